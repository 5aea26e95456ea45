"""Small responses of our own for the tests of classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlhealth.classify import classify
from crawlhealth.config import Site
from crawlhealth.model import Classification, Response

ASKED = "https://shop.example/product/7"
REFUSALS = Site(name="shop", hosts=("shop.example",)).refusal_status


def page(title: str = "", body: str = "", head: str = "") -> str:
    """An HTML page."""
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


def prose(characters: int) -> str:
    """Ordinary reading matter of about so many characters."""
    sentence = "The kettle is made of copper and holds a litre and a half of water. "
    return f"<p>{sentence * (characters // len(sentence) + 1)}</p>"


def judged(
    body: str | bytes = "",
    status: int = 200,
    *,
    headers: Mapping[str, str] | None = None,
    redirects: Sequence[str] = (),
    url: str = ASKED,
    hosts: Sequence[str] = ("shop.example",),
    refusal_status: frozenset[int] = REFUSALS,
    extracted: bool | None = None,
    usual_bytes: float | None = None,
    expects_json: bool = False,
) -> Classification:
    """A response classified; HTML in UTF-8 from the asked URL, with nothing expected, unless said otherwise."""
    response = Response(
        status=status,
        url=url,
        final_url=redirects[-1] if redirects else url,
        headers={"content-type": "text/html; charset=utf-8", **(headers or {})},
        body=body.encode() if isinstance(body, str) else body,
        redirects=tuple(redirects),
    )
    return classify(
        response,
        hosts=hosts,
        refusal_status=refusal_status,
        extracted=extracted,
        usual_bytes=usual_bytes,
        expects_json=expects_json,
    )
