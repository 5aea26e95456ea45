"""The past that rules look back on, brought into a Prometheus as blocks: of records, and of what is scraped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from crawlhealth.bundle import rules
from crawlhealth.bundle.model import Group, Options, Record
from exposed import ROUTES, SITE, Line

SCRAPE: Final = 30
"""Seconds between two scrapes."""
RECENT: Final = 1800
"""What rules read of the last so many seconds only is not brought in: it comes of itself."""
LENGTH: Final = r"((?:\d+(?:ms|[smhdw]))+)"
LOOK: Final = re.compile(
    rf"\b(?P<name>[a-z_]+:[a-z0-9_:]+|crawlhealth_[a-z0-9_]+|up)(?:\{{(?P<matchers>[^}}]*)\}})?"
    rf"(?:\[{LENGTH}(?::{LENGTH}?)?\])?(?: offset {LENGTH})?"
)
MATCHER: Final = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')
VALUES: Final = {
    "route": ROUTES,
    "source": ("traffic", "canary"),
    "outcome": ("ok", "hard_block", "challenge", "soft_block", "error"),
    "signal": ("hard_block", "challenge", "soft_block", "refused", "latency", "inverse_size"),
    "window": ("10m", "30m", "2h", "6h"),
    "band": ("normal", "degrading", "resisting"),
    "day": ("middle", "slowest"),
}
"""The values of the labels of records."""


@dataclass(slots=True)
class Look:
    """How rules read the past of one metric: seconds between its samples, spans of seconds ago, label matchers."""

    step: int
    spans: list[tuple[int, int]]
    matchers: list[str]

    def times(self, now: int) -> list[int]:
        """The moments of the samples that are read, oldest first."""
        ago = {a // self.step * self.step for begin, end in self.spans for a in range(end, begin, self.step)}
        return [now // self.step * self.step - back for back in sorted(ago, reverse=True) if back > SCRAPE]

    def wants(self, labels: str) -> bool:
        """Whether any rule reads a series with these labels."""
        borne = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        return any(all(_matches(borne.get(name, ""), how, text) for name, how, text in MATCHER.findall(one)
                       if name != "job") for one in self.matchers)  # fmt: skip


def _matches(value: str, how: str, text: str) -> bool:
    found = bool(re.fullmatch(text, value)) if "~" in how else value == text
    return found != how.startswith("!")


def seconds(text: str | None) -> int:
    """A length of time in seconds; nothing is 0."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([smhdw])", text or ""))


def looked_back(groups: Iterable[Group], options: Options) -> Mapping[str, Look]:
    """What rules read of the past, by metric, where that is longer ago than half an hour."""
    texts = [(group, rule, rules.expression(rule, options)) for group in groups for rule in group.rules]
    every = {
        rule.name: 3600 if "% 3600" in text else round(group.interval.total_seconds())
        for group, rule, text in texts
        if isinstance(rule, Record)
    }
    found: dict[str, Look] = {}
    for _, _, text in texts:
        for look in LOOK.finditer(text):
            name, matchers, width, _, shift = look.groups()
            look_of = found.setdefault(name, Look(step=every.get(name, SCRAPE), spans=[], matchers=[]))
            look_of.spans.append((seconds(shift) + seconds(width) + 600, max(0, seconds(shift) - 1500)))
            look_of.matchers.append(matchers or "")
    found["up"] = Look(step=SCRAPE, spans=[(90_000, 0)], matchers=[""])
    return {name: look for name, look in found.items() if max(begin for begin, _ in look.spans) > RECENT}


def write_past(
    path: Path, looks: Mapping[str, Look], site: Sequence[Line], target: str, *, sites: int, now: int
) -> int:
    """The past as OpenMetrics; returns how many samples. `site` is what is scraped of one site, `target` labels."""
    count = 0
    with path.open("w") as file:
        for name, look in sorted(looks.items()):
            times = look.times(now)
            for series, value in _series(name, look, site, target, sites):
                file.write("".join([f"{series} {value(place, at)} {at}\n" for place, at in enumerate(times)]))
                count += len(times)
        file.write("# EOF\n")
    return count


Value = Callable[[int, int], float | str]
"""A sample's value by its place and its time."""


def _series(name: str, look: Look, site: Sequence[Line], target: str, sites: int) -> Iterator[tuple[str, Value]]:
    names = [f"site-{number:05d}" for number in range(sites)]
    if name == "up":
        yield f"up{{{target}}}", lambda _place, _at: 1
    elif ":" not in name:
        for line in site:
            if line.name == name and SITE in line.labels and look.wants(line.labels):
                for one in names:
                    yield f"{line.of(one)[:-1]},{target}}}", _following(line)
    else:
        labels = [part for part in name.partition(":")[0].split("_") if part != "site"]
        if not set(labels) <= VALUES.keys():
            return
        value = _in_turn(value_of(name))
        for one in names:
            for chosen in product(*(VALUES[label] for label in labels)):
                pairs = "".join(f',{label}="{text}"' for label, text in zip(labels, chosen, strict=True))
                yield f'{name}{{site="{one}"{pairs}}}', value


def _following(line: Line) -> Value:
    return lambda _place, at: line.at(at)


def _in_turn(values: Sequence[str]) -> Value:
    return lambda place, _at: values[place % len(values)]


def value_of(name: str) -> tuple[str, ...]:
    """Values of a record in turn: something near to what it would be."""
    if "score" in name:
        return ("100", "99", "100", "98")
    if "band" in name or name.endswith("halved"):
        return ("0",)
    if "crawl_hour" in name or "six_hours" in name:
        return ("0.001", "0.002", "0.0015", "0.0005", "0.0012", "0.003", "0.0008")  # all is a little above it now
    if "increase1d" in name:
        return ("4752",)
    if "increase1h" in name and "ratio" not in name:
        return ("198", "190", "206")
    return ("0.05", "0.06", "0.04")
