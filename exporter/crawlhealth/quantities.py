"""Durations and sizes as people write them: `250ms`, `5m`, `1h30m`, `2d`; `5MB`, `64KiB`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

LONGEST: Final = timedelta(days=3653)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d|w)")
_BYTES: Final = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
}
_SIZE: Final = re.compile(r"(\d{1,12}) ?([A-Za-z]{1,3})?")


def duration(text: str) -> timedelta:
    """A duration, each unit at most once; ValueError says what to write instead."""
    if text == "0":
        return timedelta(0)
    seconds, at, units = 0.0, 0, set()
    for part in _PART.finditer(text):
        if part.start() != at or part.group(2) in units:
            break
        units.add(part.group(2))
        seconds += float(part.group(1)) * _SECONDS[part.group(2)]
        at = part.end()
    if not text or at != len(text):
        hint = f"{text}s" if text.isascii() and text.isdigit() and len(text) < 10 else "30s, 5m, 1h30m or 2d"
        raise ValueError(f"is not a duration: write {hint} (units ms, s, m, h, d, w)")
    if seconds > LONGEST.total_seconds():
        raise ValueError("is longer than ten years: write a shorter duration")
    return timedelta(seconds=seconds)


def size(text: str) -> int:
    """A number of bytes; ValueError says what to write instead."""
    match = _SIZE.fullmatch(text)
    unit = (match.group(2) or "B").upper() if match else ""
    if match is None or unit not in _BYTES:
        raise ValueError("is not a size: write a number of bytes, or 500KB, 5MB, 64KiB")
    return int(match.group(1)) * _BYTES[unit]


def show(value: timedelta) -> str:
    """A duration as it would be written: `1h30m`."""
    left = round(value.total_seconds() * 1000)
    said = ""
    for unit, milliseconds in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, left = divmod(left, milliseconds)
        said += f"{count}{unit}" if count else ""
    return said or "0s"
