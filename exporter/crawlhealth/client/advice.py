"""What crawlers should do about each site: asked of the exporter in the background, answered from memory."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import msgspec
import requests

from crawlhealth.client import answer
from crawlhealth.client.misdirected import Misdirected, Owner
from crawlhealth.secret import Secret

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 10.0
LONG_POLL: Final = 30
"""Seconds that a request for a single site waits at the exporter for something new."""


class SiteAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one site; as it stands here: crawl as usual.

    `concurrency_ratio` is a share of the usual concurrency, `revisit_multiplier` stretches the time between visits,
    `cost_multiplier` says how many times its usual cost a served page has now. `band` and `score` say why.
    """

    concurrency_ratio: float = 1.0
    revisit_multiplier: float = 1.0
    cost_multiplier: float = 1.0
    paused: bool = False
    band: str = "unknown"
    score: float | None = None


AS_USUAL: Final = SiteAdvice()


class _Advised(msgspec.Struct):
    concurrency_ratio: float = 1.0
    revisit_multiplier: float = 1.0
    cost_multiplier: float = 1.0
    paused: bool = False


class _Answer(msgspec.Struct):
    advice: _Advised = msgspec.field(default_factory=_Advised)
    band: str = "unknown"
    score: float | None = None
    shard: Owner | None = None


_decode = msgspec.json.Decoder(_Answer, strict=False).decode


class Advice:
    """Follows the advice for `sites` at the exporter's `url`. Thread-safe; never raises and never waits.

    A thread of its own, begun with the first question, asks every `every` seconds, and is told of a change at once
    when there is a single site. Fails open: before the first answer, and once no answer has come for `stale_after`
    seconds, the advice is to crawl as usual. An exporter of another shard has no advice: that counts as no answer, and
    is an error in the log that names the right shard.
    """

    def __init__(
        self,
        url: str,
        sites: Iterable[str],
        *,
        token: str | None = None,
        every: float = 10.0,
        stale_after: float = 300.0,
    ) -> None:
        self._url = url.rstrip("/") + "/api/v1/sites/"
        self._sites = tuple(dict.fromkeys(sites))
        self._token = Secret(token) if token else None
        self._every = every
        self._stale_after = stale_after
        self._known: dict[str, tuple[SiteAdvice, float]] = {}
        self._tags: dict[str, str] = {}
        self._misdirected = Misdirected(url)
        self._set_up()
        _survive(self)

    def _set_up(self) -> None:
        self._ending = threading.Event()
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None

    def of(self, site: str) -> SiteAdvice:
        """The advice for a site; that of a site that is not followed is to crawl as usual."""
        if self._thread is None:
            self._begin()
        known = self._known.get(site)
        if known is None or time.monotonic() - known[1] > self._stale_after:
            return AS_USUAL
        return known[0]

    def close(self) -> None:
        """End the thread; the advice stays what it is until it is stale."""
        self._ending.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> None:
        with self._beginning:
            if self._thread is not None or self._ending.is_set():
                return
            thread = threading.Thread(target=self._run, name="crawlhealth-advice", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                return
            self._thread = thread

    def _run(self) -> None:
        complained = False
        with requests.Session() as session:
            session.trust_env = False  # the crawler's proxies do not lead to the exporter
            if self._token is not None:
                session.headers["Authorization"] = f"Bearer {self._token.reveal()}"
            while not self._ending.is_set():
                begun = time.monotonic()
                problems = [problem for site in self._sites if (problem := self._ask(session, site))]
                if problems and not complained:
                    log.warning("no advice from %s, crawling as usual unless it was known: %s", self._url, problems[0])
                complained = bool(problems)
                self._misdirected.complain(time.monotonic())
                at_once = len(self._sites) == 1 and not problems and time.monotonic() - begun > self._every
                self._ending.wait(0 if at_once else self._every)

    def _ask(self, session: requests.Session, site: str) -> str:
        """Ask for one site; returns what went wrong."""
        tag = self._tags.get(site)
        headers = {"If-None-Match": tag} if tag else {}
        address, seconds = self._url + quote(site, safe=""), ANSWER_SECONDS
        if tag and len(self._sites) == 1:
            address += f"?wait={LONG_POLL}s&etag={quote(tag, safe='')}"
            seconds += LONG_POLL
        try:
            with session.get(
                address,
                headers=headers,
                timeout=(CONNECT_SECONDS, seconds),
                allow_redirects=False,
                stream=True,
            ) as response:
                return self._learn(site, response, answer.read(response) or b"")
        except (requests.RequestException, OSError) as error:
            return type(error).__name__
        except Exception:
            log.exception("advice for %s", site)
            return "an error of our own"

    def _learn(self, site: str, response: requests.Response, body: bytes) -> str:
        now = time.monotonic()
        if response.status_code == 304:
            self._misdirected.note(site, None)
            if site in self._known:
                self._known[site] = (self._known[site][0], now)
            return ""
        if response.status_code not in {200, 404}:  # that of an unknown site is neutral
            return f"answer {response.status_code}"
        try:
            said = _decode(body)
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors, and so is text that is none
            return f"answer {response.status_code}: {error}"
        elsewhere = said.shard if response.status_code == 404 else None
        self._misdirected.note(site, elsewhere)
        if elsewhere is not None:
            return ""
        self._known[site] = (_sound(said), now)
        self._tags[site] = response.headers.get("ETag", "")
        return f"{site} is no site of the exporter" if response.status_code == 404 else ""


def _sound(said: _Answer) -> SiteAdvice:
    """An answer as advice; a number out of its range counts as the nearest one within, and one that is none as 1."""
    advised = said.advice
    return SiteAdvice(
        concurrency_ratio=min(1.0, max(0.0, _number(advised.concurrency_ratio))),
        revisit_multiplier=max(1.0, _number(advised.revisit_multiplier)),
        cost_multiplier=max(1.0, _number(advised.cost_multiplier)),
        paused=advised.paused,
        band=said.band,
        score=said.score,
    )


def _number(value: float) -> float:
    return value if math.isfinite(value) else 1.0


def _survive(advice: Advice) -> None:
    """Have a forked child begin a thread of its own."""
    known = weakref.ref(advice)

    def forked() -> None:
        mine = known()
        if mine is not None and not mine._ending.is_set():
            mine._set_up()

    os.register_at_fork(after_in_child=forked)
