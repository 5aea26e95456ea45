"""What the practice site answers to a request under given behaviours: pure, from tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qs, quote

from crawlhealth.demo import hostile, pages, refusals
from crawlhealth.demo.behaviour import CHANGES, Behaviour, Kind

Headers = tuple[tuple[str, str], ...]
HTML: Final = "text/html; charset=utf-8"


class Delivery(StrEnum):
    """How an answer goes out."""

    WHOLE = "whole"
    RESET = "reset"
    CLOSE = "close"
    HANG = "hang"
    TRUNCATED = "truncated"
    DRIP = "drip"
    DRIP_HEAD = "drip_head"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request. `path` is without query, `host` without port; `origin` is what the site calls itself."""

    method: str
    path: str
    query: str = ""
    host: str = "127.0.0.1"
    origin: str = "http://127.0.0.1"
    proxied: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent. `delay` is the seconds before the first byte, `pace` those between the bytes of a drip.

    A repeated body is `body` again and again, up to `length` bytes, or without end and length.
    """

    status: int = 200
    content_type: str = HTML
    headers: Headers = ()
    body: bytes = b""
    delay: float = 0.0
    delivery: Delivery = Delivery.WHOLE
    pace: float = 0.1
    length: int | None = None


def answer(asked: Asked, behaviours: Sequence[Behaviour]) -> Answer:
    """The answer to a request on which these behaviours fall. A bomb takes up to a second to build."""
    look, delay, encoding = pages.PLAIN, 0.0, ""
    found: Answer | None = None
    for behaviour in behaviours:
        if behaviour.kind is Kind.SLOW:
            delay += behaviour.seconds
        elif behaviour.kind is Kind.ENCODED:
            encoding = behaviour.encoding
        elif behaviour.kind in CHANGES:
            look = replace(look, **{_LOOKS[behaviour.kind]: True})
        elif found is None:
            found = _REPLACING[behaviour.kind](asked, behaviour)
    if found is None:
        found = served(asked.path, look)
        if encoding:
            found = _encoded(found, encoding)
    return replace(found, delay=delay) if delay else found


def served(path: str, look: pages.Look = pages.PLAIN) -> Answer:
    """The page at a path as the shop serves it, 404 where it has none."""
    if path == refusals.DEFAULT_PAGE_PATH:
        return Answer(body=refusals.DEFAULT_PAGE.encode())
    page = pages.page(path, look)
    if page is None:
        return Answer(status=404, body=refusals.plain(404).encode())
    content_type, body = page
    return Answer(content_type=content_type, body=body)


_LOOKS: Final[Mapping[Kind, str]] = {
    Kind.DECOY: "decoy",
    Kind.REDESIGN: "redesign",
    Kind.EMPTY_LISTING: "empty",
    Kind.SHRUNKEN: "shrunken",
    Kind.BLANK_VALUES: "blank",
}


def _encoded(plain: Answer, encoding: str) -> Answer:
    return replace(
        plain,
        headers=(*plain.headers, ("content-encoding", encoding)),
        body=hostile.packed(plain.body, encoding),
    )


def _refusal(refusal: refusals.Refusal, behaviour: Behaviour) -> Answer:
    return Answer(status=behaviour.status or refusal.status, headers=refusal.headers, body=refusal.body.encode())


def _status(_: Asked, behaviour: Behaviour) -> Answer:
    status = behaviour.status or 403
    headers: Headers = () if behaviour.retry_after is None else (("retry-after", str(behaviour.retry_after)),)
    return Answer(status=status, headers=headers, body=refusals.plain(status).encode())


def _challenge(_: Asked, behaviour: Behaviour) -> Answer:
    refusal = refusals.VENDORS.get(behaviour.vendor)
    if refusal is None:
        return Answer(status=500, body=f"no vendor {behaviour.vendor!r}: {', '.join(refusals.VENDORS)}".encode())
    return _refusal(refusal, behaviour)


def _redirect(location: str, status: int = 302) -> Answer:
    return Answer(status=status, headers=(("location", location),), body=refusals.plain(status).encode())


def _to_login(asked: Asked, _: Behaviour) -> Answer:
    return served(asked.path) if asked.path == "/login" else _redirect("/login?next=" + quote(asked.path))


def _to_home(asked: Asked, _: Behaviour) -> Answer:
    return served(asked.path) if asked.path == "/" else _redirect("/")


def _to_default_page(asked: Asked, _: Behaviour) -> Answer:
    if asked.path == refusals.DEFAULT_PAGE_PATH:
        return served(asked.path)
    return _redirect(asked.origin.replace("127.0.0.1", "localhost", 1) + refusals.DEFAULT_PAGE_PATH)


def _hops(asked: Asked) -> int:
    written = parse_qs(asked.query, max_num_fields=20).get("hop", ["0"])[0]
    return int(written) if written.isascii() and written.isdigit() and len(written) < 9 else 0


def _redirects(asked: Asked, behaviour: Behaviour) -> Answer:
    hops = _hops(asked)
    return served(asked.path) if hops >= behaviour.count else _redirect(f"?hop={hops + 1}")


def _endless_redirects(asked: Asked, _: Behaviour) -> Answer:
    return _redirect(f"?hop={_hops(asked) + 1}")


def _delivered(delivery: Delivery) -> Callable[[Asked, Behaviour], Answer]:
    def page(asked: Asked, behaviour: Behaviour) -> Answer:
        return replace(served(asked.path), delivery=delivery, pace=behaviour.seconds)

    return page


def _html(body: Callable[[], bytes]) -> Callable[[Asked, Behaviour], Answer]:
    def page(_: Asked, __: Behaviour) -> Answer:
        return Answer(body=body())

    return page


def _bomb(_: Asked, behaviour: Behaviour) -> Answer:
    return Answer(headers=(("content-encoding", behaviour.encoding),), body=hostile.bomb(behaviour.encoding))


_REPLACING: Final[Mapping[Kind, Callable[[Asked, Behaviour], Answer]]] = {
    Kind.STATUS: _status,
    Kind.RESET: _delivered(Delivery.RESET),
    Kind.CLOSE: _delivered(Delivery.CLOSE),
    Kind.HANG: _delivered(Delivery.HANG),
    Kind.CHALLENGE: _challenge,
    Kind.BLOCK_PAGE: lambda _, b: _refusal(refusals.BLOCK_PAGE, b),
    Kind.IMPERVA_STUB: lambda _, b: _refusal(refusals.IMPERVA_STUB, b),
    Kind.HTML_FOR_JSON: _html(refusals.HTML_FOR_JSON.encode),
    Kind.REDIRECT_LOGIN: _to_login,
    Kind.REDIRECT_HOME: _to_home,
    Kind.REDIRECT_DEFAULT_PAGE: _to_default_page,
    Kind.REDIRECTS: _redirects,
    Kind.ENDLESS_REDIRECTS: _endless_redirects,
    Kind.DRIP: _delivered(Delivery.DRIP),
    Kind.DRIP_HEAD: _delivered(Delivery.DRIP_HEAD),
    Kind.ENDLESS: lambda _, __: Answer(body=hostile.LARGE_PIECE, delivery=Delivery.REPEATED),
    Kind.LARGE: lambda _, __: Answer(body=hostile.LARGE_PIECE, delivery=Delivery.REPEATED, length=hostile.LARGE_BYTES),
    Kind.BOMB: _bomb,
    Kind.BIG_HEADER: lambda asked, _: replace(served(asked.path), headers=(("x-filler", hostile.BIG_HEADER),)),
    Kind.TRUNCATED: _delivered(Delivery.TRUNCATED),
    Kind.NESTED_TAGS: _html(hostile.nested_tags),
    Kind.MANY_ATTRIBUTES: _html(hostile.many_attributes),
    Kind.NESTED_DIVS: _html(hostile.nested_divs),
    Kind.CATASTROPHIC: _html(hostile.catastrophic),
    Kind.BAD_ENCODING: _html(hostile.bad_encoding),
    Kind.NUL_BYTES: lambda asked, _: replace(served(asked.path), body=hostile.nul_bytes(served(asked.path).body)),
}
