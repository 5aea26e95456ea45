"""Access logs of every format that is known: one reader each, and finding out which one a log is in."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from crawlhealth.searchbots.formats.balancer import alb
from crawlhealth.searchbots.formats.columns import cloudfront, w3c
from crawlhealth.searchbots.formats.entry import LINE_END, Entry, Format, count
from crawlhealth.searchbots.formats.jsonlines import caddy, nginx_json, traefik
from crawlhealth.searchbots.formats.named import Named
from crawlhealth.searchbots.formats.quoted import combined, common, vhost

FORMATS: Final[Mapping[str, Callable[[], Format]]] = MappingProxyType(
    {
        "combined": combined,
        "common": common,
        "vhost": vhost,
        "nginx_json": nginx_json,
        "caddy": caddy,
        "traefik": traefik,
        "w3c": w3c,
        "cloudfront": cloudfront,
        "alb": alb,
    }
)
"""By the names that configurations use; any other text with a `$` is an nginx `log_format`."""

__all__ = ["FORMATS", "LINE_END", "Entry", "Format", "count", "detected", "is_address", "reader"]


def reader(name: str) -> Format:
    """A new reader of the format of a name, or of an nginx `log_format`. Raises ValueError, saying what to write."""
    if "$" in name:
        return Named(name)
    make = FORMATS.get(name)
    if make is None:
        raise ValueError(f"there is no format {name[:50]!r}: write one of {', '.join(FORMATS)}, or an nginx log_format")
    return make()


def is_address(text: bytes) -> bool:
    """Whether a text is an address of either version."""
    try:
        ipaddress.ip_address(text.decode("ascii", "replace"))
    except ValueError:
        return False
    return True


def detected(lines: Iterable[bytes]) -> str:
    """The name of the format that reads most of some lines of a log; combined where none reads any.

    CloudFront's and IIS' files say themselves what they are.
    """
    sample = list(lines)
    scores = {}
    for name, make in FORMATS.items():
        form = make()
        entries = [form.read(line) for line in sample]
        scores[name] = sum(1 + bool(entry.agent) + 2 * is_address(entry.address) for entry in entries if entry)
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else "combined"
