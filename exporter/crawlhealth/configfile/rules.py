"""What must hold inside `crawlhealth.yml` beyond the types: one function a section, each noting every problem."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from crawlhealth import hosts, quantities
from crawlhealth.config import DIRECT, Fetching, HistorySettings, PushSettings, PushToken, Route, Secret, Site
from crawlhealth.scoresettings import BaselineSettings, ScoreSettings
from crawlhealth.yamlfile.binding import nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import Scalar, quoted

LEAST_WAITING_BYTES: Final = 16_000_000
"""One push may be as large."""
PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_COOKIE_VALUE: Final = re.compile(r"[^\x00-\x20;,\"\\\x7f]*")
_NAME: Final = re.compile(r"[^\s/\x00-\x1f\x7f](?:[^/\x00-\x1f\x7f]{0,98}[^\s/\x00-\x1f\x7f])?")


def check_name(document: Document, name: str, steps: Steps, *, key: bool = True) -> None:
    """Names are labels and parts of addresses: short, on one line, without a slash."""
    if not _NAME.fullmatch(name):
        message = "a name has 1 to 100 characters, no slash and no blanks around it: write another"
        document.report(steps, message, key=key)


def check_headers(document: Document, headers: Mapping[str, str | Secret], steps: Steps) -> None:
    """Names and values that can be sent, and nothing that could start another header."""
    for name, value in headers.items():
        text = value.reveal() if isinstance(value, Secret) else value
        if not _HEADER.fullmatch(name):
            document.report((*steps, name), "is not a header name: write it as in Accept-Language", key=True)
        elif name.lower() in ("host", "content-length", "transfer-encoding", "connection"):
            document.report((*steps, name), "is set by the fetch itself: leave it out", key=True)
        if not text.isprintable() or not text.isascii():
            document.report((*steps, name), "has a character that a header cannot carry: write plain ASCII on one line")


def check_cookies(document: Document, cookies: Mapping[str, str | Secret], steps: Steps) -> None:
    """Names and values that stay one cookie each."""
    for name, value in cookies.items():
        text = value.reveal() if isinstance(value, Secret) else value
        if not _HEADER.fullmatch(name):
            document.report((*steps, name), "is not a cookie name: write letters, digits, - and _", key=True)
        if not text.isascii() or not _COOKIE_VALUE.fullmatch(text):
            document.report((*steps, name), "has a character that a cookie cannot carry: percent-encode it")


def check_routes(document: Document, routes: Mapping[str, Route]) -> None:
    """Every proxy is one that can be used, and `direct` is what it says."""
    for name, route in routes.items():
        steps = ("routes", name)
        check_name(document, name, steps)
        check_headers(document, route.headers, (*steps, "headers"))
        if route.timeout is not None and route.timeout <= timedelta(0):
            document.report((*steps, "timeout"), "must be more than 0: write for instance 20s")
        if route.proxy is None:
            continue
        if name == DIRECT:
            document.report((*steps, "proxy"), "direct is the route without a proxy: give this one another name")
        problem = _proxy_problem(route.proxy.reveal())
        if problem is not None:
            document.report((*steps, "proxy"), problem, secret=True)


def _proxy_problem(url: str) -> str | None:
    """What is wrong with a proxy URL. The answer never repeats it: it may hold a password."""
    example = "write for instance socks5h://host:1080"
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        return f"is not a URL: {example}"
    if parts.scheme not in PROXY_SCHEMES:
        return f"needs one of the schemes {', '.join(PROXY_SCHEMES)}: {example}"
    if not host or not url.isprintable() or " " in url:
        return f"names no host: {example}"
    if port is None or port == 0:
        return f"names no port: {example}"
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return f"has more than host and port: {example}"
    return None


def check_route_names(document: Document, names: tuple[str, ...], known: Mapping[str, object], steps: Steps) -> None:
    """A list of routes: not empty, each known, each once."""
    if not names:
        document.report(steps, "names no route: write [direct], or leave the key out")
    for number, name in enumerate(names):
        if name not in known:
            document.report((*steps, number), f"there is no route {quoted(name)}: {nearest(name, known)}")
        elif name in names[:number]:
            document.report((*steps, number), f"the route {quoted(name)} stands twice: keep one")


def check_sites(document: Document, sites: Mapping[str, Site], routes: Mapping[str, object]) -> None:
    """Every site has hosts of its own, routes that exist and limits that let it run."""
    index = hosts.HostIndex({name: site.hosts for name, site in sites.items()})
    for name, site in sites.items():
        steps = ("sites", name)
        check_name(document, name, steps)
        if not site.hosts and document.sound(*steps, "hosts"):
            document.report((*steps, "hosts"), "names no host: write for instance [books.toscrape.com]")
        for number, written in enumerate(site.hosts):
            try:
                others = sorted(set(index.clashes(name, hosts.parse(written))))
            except ValueError as error:
                document.report((*steps, "hosts", number), f"{quoted(written)} {error}")
                continue
            if others:
                also = " and ".join(map(quoted, others[:3]))
                document.report((*steps, "hosts", number), f"also belongs to the site {also}: a host has one site")
        check_route_names(document, site.routes, routes, (*steps, "routes"))
        for status in sorted(site.refusal_status):
            if not 300 <= status <= 599:
                document.report((*steps, "refusal_status"), f"{status} is no refusal: write statuses from 300 to 599")
        if site.max_concurrency < 1:
            document.report((*steps, "max_concurrency"), "must be at least 1")


MOST_DEVIATIONS = 10
"""More standard deviations than these never come by chance."""


def check_score(document: Document, score: ScoreSettings) -> None:
    """Weights, bands, windows and baseline fit together."""
    weights = {name: getattr(score.weights, name) for name in ("hard_block", "challenge", "soft_block", "latency")}
    for name, weight in weights.items():
        if weight < 0:
            document.report(("score", "weights", name), "must not be negative")
    total = sum(weights.values())
    if document.sound("score", "weights") and abs(total - 100) > 1e-6:
        document.report(("score", "weights"), f"the weights sum to {total:g}: make them sum to 100")
    bands = score.bands
    if document.sound("score", "bands") and not (
        0 < bands.resisting <= bands.leave_resisting <= bands.degrading <= bands.leave_degrading <= 100
    ):
        message = "must rise from 0 to 100 in this order: resisting, leave_resisting, degrading, leave_degrading"
        document.report(("score", "bands"), message)
    if document.sound("score", "windows"):
        lengths = score.windows
        if not lengths or lengths[0] <= timedelta(0) or list(lengths) != sorted(set(lengths)):
            document.report(("score", "windows"), "must be durations that grow: write for instance [10m, 30m, 2h, 6h]")
    _positive(document, score.evaluate_every, "score", "evaluate_every")
    _at_least(document, score.min_requests, 1, "score", "min_requests")
    for name in ("noise", "swing", "rare"):
        if not 0 <= getattr(score.margins, name) <= MOST_DEVIATIONS and document.sound("score", "margins", name):
            message = f"must be a number of standard deviations from 0 to {MOST_DEVIATIONS}: write for instance 1.0"
            document.report(("score", "margins", name), message)
    if not 0 < score.drift_threshold <= MOST_DEVIATIONS and document.sound("score", "drift_threshold"):
        message = f"must be over 0 and at most {MOST_DEVIATIONS} standard deviations: write for instance 4"
        document.report(("score", "drift_threshold"), message)
    _check_baseline(document, score.baseline)


def _check_baseline(document: Document, baseline: BaselineSettings) -> None:
    """A normal can be learnt of what is left of the time."""
    for name in ("min_requests", "min_blocks", "min_days", "min_total"):
        _at_least(document, getattr(baseline, name), 1, "score", "baseline", name)
    _positive(document, baseline.every, "score", "baseline", "every")
    if not 0 <= baseline.level <= 1 and document.sound("score", "baseline", "level"):
        document.report(("score", "baseline", "level"), "must be a share from 0 to 1: 0.5 is the median")
    if not 0 <= baseline.least_score <= 100 and document.sound("score", "baseline", "least_score"):
        document.report(("score", "baseline", "least_score"), "must be a score from 0 to 100: write for instance 92")
    for name in ("exclude_last", "quiet"):
        if getattr(baseline, name) < timedelta(0) and document.sound("score", "baseline", name):
            document.report(("score", "baseline", name), "must not be negative: write for instance 1d")
    if document.sound("score", "baseline") and baseline.exclude_last >= baseline.length:
        message = f"must be shorter than length ({quantities.show(baseline.length)})"
        document.report(("score", "baseline", "exclude_last"), message)


def check_history(document: Document, history: HistorySettings, score: ScoreSettings) -> None:
    """What the score reads is kept long enough, in rows that fill an hour exactly."""
    seconds = history.resolution.total_seconds()
    if seconds < 1 or 3600 % seconds:
        document.report(("history", "resolution"), "must fill an hour exactly: write for instance 1m, 10s or 1s")
    _positive(document, history.commit_every, "history", "commit_every")
    if history.keep_minutes < timedelta(hours=1) and document.sound("history", "keep_minutes"):
        document.report(("history", "keep_minutes"), "must be at least 1h")
    if not document.sound("score") or not document.sound("history", "keep_hours"):
        return
    longest = max(score.reach, score.baseline.reach)
    if history.keep_hours < longest:
        message = f"must be at least {quantities.show(longest)}, which the score reads"
        document.report(("history", "keep_hours"), message)


def check_fetch(document: Document, fetch: Fetching) -> None:
    """Limits that let a page through, and a name that can be sent."""
    _at_least(document, fetch.max_body_bytes, 1000, "fetch", "max_body_bytes")
    _at_least(document, fetch.max_header_bytes, 1000, "fetch", "max_header_bytes")
    _at_least(document, fetch.max_redirects, 0, "fetch", "max_redirects")
    _at_least(document, fetch.max_concurrency, 1, "fetch", "max_concurrency")
    _positive(document, fetch.extract_timeout, "fetch", "extract_timeout")
    if not (fetch.user_agent.strip() and fetch.user_agent.isprintable() and fetch.user_agent.isascii()):
        document.report(("fetch", "user_agent"), "must say who fetches, in plain ASCII on one line")
    if fetch.ca_file is not None and not os.path.isfile(fetch.ca_file):  # pathlib raises where a name is too long
        document.report(("fetch", "ca_file"), f"there is no file {quoted(str(fetch.ca_file), 300)}")


def check_listen(document: Document, listen: str) -> None:
    """An address to listen on is host:port."""
    host, colon, port = listen.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1
    if not colon or not host or not host.isprintable() or not 0 <= number < 65536 or (":" in host and bare == host):
        message = "is not an address to listen on: write host:port, as in 127.0.0.1:9877 or [::1]:9877"
        document.report(("listen",), message)


def check_data_dir(document: Document, data_dir: Path) -> None:
    """The folder may be new, but nothing else may stand there, or on the way to it."""
    try:
        good = stat.S_ISDIR(data_dir.stat().st_mode)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        document.report(("data_dir",), f"{quoted(str(data_dir), 300)} cannot be used ({reason}): name another folder")
        return
    if not good:
        document.report(("data_dir",), f"{quoted(str(data_dir), 300)} is not a folder: name another")


def check_push(document: Document, push: PushSettings, history: HistorySettings, sites: Collection[str]) -> None:
    """Every token comes from outside, and is one that a header can bear."""
    for number, token in enumerate(push.tokens):
        steps: Steps = ("push", "tokens", number)
        secret = token.token if isinstance(token, PushToken) else token
        if isinstance(token, PushToken):
            steps = (*steps, "token")
            for position, site in enumerate(token.sites):
                if site not in sites:
                    place = ("push", "tokens", number, "sites", position)
                    document.report(place, f"no site {quoted(site)} is configured: {nearest(site, sites)}")
            if not token.sites:
                document.report(("push", "tokens", number, "sites"), "is empty: name the sites that it may push")
        text = secret.reveal()
        if isinstance(document.find(steps), Scalar):
            document.report(steps, "is a secret and must not stand here: write {env: NAME} or {file: path}")
        elif not (text.isascii() and text.isprintable()) or " " in text:
            document.report(steps, "has a character that no bearer token can have: use ASCII letters and digits")
    _positive(document, push.max_age, "push", "max_age")
    if push.max_age > history.keep_hours and document.sound("push", "max_age"):
        document.report(("push", "max_age"), "is longer than history.keep_hours: what is pushed must be kept")
    _at_least(document, push.max_waiting_bytes, LEAST_WAITING_BYTES, "push", "max_waiting_bytes")
    _positive(document, history.keep_push_keys, "history", "keep_push_keys")


def _positive(document: Document, value: timedelta, *steps: str) -> None:
    if value <= timedelta(0) and document.sound(*steps):
        document.report(steps, "must be more than 0: write for instance 15s")


def _at_least(document: Document, value: int, least: int, *steps: str) -> None:
    if value < least and document.sound(*steps):
        document.report(steps, f"must be at least {least}")
