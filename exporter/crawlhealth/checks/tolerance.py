"""Tolerance: how much of a structure may change before the check `unchanged` fails, and since when it is looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

WITHIN_PERCENT: Final = 20.0
"""How much of a structure may differ unless the check says otherwise."""
_EXAMPLE: Final = 'write true, {within_percent: 10} or {since: "2026-12-01T08:00:00Z"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How much may differ, in percent; a structure seen before `since` (unix seconds) does not count as the first."""

    within_percent: float = WITHIN_PERCENT
    since: float | None = None


def tolerance(argument: object) -> Tolerance:
    """The argument of `unchanged` as written. Raises ValueError, saying what to write."""
    if argument is True:
        return Tolerance()
    if not isinstance(argument, Mapping) or not argument or set(argument) - {"within_percent", "since"}:
        raise ValueError(f"cannot be read: {_EXAMPLE}")
    percent = argument.get("within_percent", WITHIN_PERCENT)
    if not isinstance(percent, int | float) or isinstance(percent, bool) or not 0 <= percent < 100:
        raise ValueError(f"within_percent is from 0 to less than 100: {_EXAMPLE}")
    since = _moment(argument["since"]) if "since" in argument else None
    return Tolerance(within_percent=float(percent), since=since)


def _moment(written: object) -> float:
    try:
        moment = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not math.isfinite(moment.timestamp()):
        raise ValueError(f"since is not a time with its zone: {_EXAMPLE}")
    return moment.timestamp()
