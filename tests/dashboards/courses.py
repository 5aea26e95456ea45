"""Values that change over time, to be reckoned with, and series of them as an exporter shows them.

Time is in hours before now, negative in the past; on a fast clock an hour takes less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

HOUR = 3600.0
LONGEST = 400.0
"""Counters know so many hours of the past, and of what is to come."""
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Course:
    """A value over time; None where there is none."""

    at: Callable[[float], float | None]

    def __add__(self, other: float | Course) -> Course:
        return _both(self, other, lambda one, two: one + two)

    def __mul__(self, other: float | Course) -> Course:
        return _both(self, other, lambda one, two: one * two)

    __radd__ = __add__
    __rmul__ = __mul__


def course(value: float | Course) -> Course:
    """A value as a course: one that stays."""
    return value if isinstance(value, Course) else Course(lambda _at: value)


def _both(one: float | Course, other: float | Course, reckon: Callable[[float, float], float]) -> Course:
    first, second = course(one), course(other)

    def at(hours: float) -> float | None:
        left, right = first.at(hours), second.at(hours)
        return None if left is None or right is None else reckon(left, right)

    return Course(at)


def turning(since: float, before: float | Course | None, after: float | Course | None) -> Course:
    """One value until a moment, and another from then on."""
    early, late = (None if value is None else course(value) for value in (before, after))

    def at(hours: float) -> float | None:
        shown = late if hours > since else early
        return None if shown is None else shown.at(hours)

    return Course(at)


def rising(since: float, over: float = 0.5) -> Course:
    """From 0 to 1 within some hours."""
    return Course(lambda hours: min(1.0, max(0.0, (hours - since) / over)))


def wave(hours: float, depth: float = 1.0) -> Course:
    """A swing around 1."""
    return Course(lambda at: 1 + depth * math.sin(at / hours * 2 * math.pi))


class Past:
    """Every series as a course. `scale` is how many times faster than life the clock goes."""

    def __init__(self, now: float, scale: float = 1.0) -> None:
        self.now = now
        self.scale = scale
        self.series: dict[Key, Course] = {}

    def day(self) -> Course:
        """How much of its day has passed at each moment, from 0 to 1."""
        begun = self.now / HOUR % 24
        return Course(lambda at: (begun + at) / 24 % 1)

    def at(self, hours: float) -> float:
        """The unix time of a moment."""
        return self.now + hours * HOUR / self.scale

    def ago(self, seconds: float) -> Course:
        """A timestamp that is always so many seconds old, as this clock goes."""
        return Course(lambda hours: self.at(hours) - seconds / self.scale)

    def put(self, name: str, value: float | Course, /, **labels: str) -> None:
        """A gauge; a name with a colon or of a process is whole, others are the exporter's."""
        whole = ":" in name or name.startswith("process_")
        self.series[name if whole else f"crawlhealth_{name}", tuple(labels.items())] = course(value)

    def count(self, name: str, rate: float | Course, /, **labels: str) -> None:
        """A counter that rises by so many an hour."""
        each, step, sums = course(rate), 0.25, [0.0]
        while len(sums) * step <= 2 * LONGEST:
            sums.append(sums[-1] + step * (each.at(-LONGEST + len(sums) * step) or 0.0))

        def total(hours: float) -> float:
            place = min(len(sums) - 1.0, max(0.0, (hours + LONGEST) / step))
            below = int(place)
            above = min(len(sums) - 1, below + 1)
            return sums[below] + (place - below) * (sums[above] - sums[below])

        self.put(name, Course(total), **labels)

    def samples(self, hours: float) -> Iterator[tuple[Key, float]]:
        """All series at a moment."""
        for key, value in self.series.items():
            seen = value.at(hours)
            if seen is not None:
                yield key, seen

    def page(self, time: float) -> str:
        """What the exporter shows at a unix time: all but what rules record."""
        hours = (time - self.now) * self.scale / HOUR
        return "".join(f"{_written(key)} {value!r}\n" for key, value in self.samples(hours) if ":" not in key[0])

    def openmetrics(self, moments: Sequence[float], labels: Mapping[str, str], of: str = "") -> str:
        """Matching series at these moments as `promtool tsdb create-blocks-from openmetrics` takes them."""
        lines: dict[str, list[str]] = {}
        for (name, own), value in self.series.items():
            if not re.search(of, name):
                continue
            written = _written((name, own if ":" in name else (*own, *labels.items())))
            seen = ((moment, value.at(moment)) for moment in moments)
            lines.setdefault(name, []).extend(
                f"{written} {one!r} {self.at(moment):.3f}\n" for moment, one in seen if one is not None
            )
        families = (f"# TYPE {name} unknown\n{''.join(found)}" for name, found in lines.items() if found)
        return "".join(families) + "# EOF\n"


def _written(key: Key) -> str:
    name, labels = key
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in labels) + "}"
