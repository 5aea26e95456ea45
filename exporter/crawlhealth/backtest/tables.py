"""Tables: what a backtest found, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from crawlhealth.backtest.episodes import Found
from crawlhealth.backtest.figures import Row
from crawlhealth.backtest.scenarios import REFUSED
from crawlhealth.backtest.simulating import Simulated
from crawlhealth.backtest.stories import Measure


def lines(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    for line in columns:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def simulation(found: Simulated) -> Iterator[str]:
    """Everything that was simulated."""
    yield f"{found.sites} simulated sites a scenario, seed {found.seed}"
    if found.hours:
        yield ""
        yield "By the hour: median hours / share found within 96 h (800 h of +1 pp/day); false alarms a site-week."
        yield from lines([_head(found.hours), *(_cells(row) for row in found.hours)])
        yield from _refused(found.hours)
    if found.minutes:
        yield ""
        yield "By the minute: median / share found within 48 h, and of refusals resisting within 4 h."
        yield from lines([_head(found.minutes, plain=False), *(_cells(row, plain=False) for row in found.minutes)])
    for name, methods in found.stories.items():
        yield ""
        yield f"{name}:"
        first = next(iter(methods.values()))
        measures = [methods[method] for method in methods]
        head = ["", *methods]
        yield from lines(
            [head, *([one.name, *(_measure(each[place]) for each in measures)] for place, one in enumerate(first))]
        )


def _head(rows: Sequence[Row], *, plain: bool = True) -> list[str]:
    return ["detector", "threshold", *rows[0].found, "false alarms", *(["at <80"] if plain else [])]


def _cells(row: Row, *, plain: bool = True) -> list[str]:
    found = [told(one, minutes=not plain) for one in row.found.values()]
    last = ["" if row.at_80 is None else f"{row.at_80:.2f}"] if plain else []
    return [row.name, f"{row.threshold:g}", *found, f"{row.false_alarms:.3f}", *last]


def _refused(rows: Iterable[Row]) -> Iterator[str]:
    """What a site that refuses everything scores."""
    yield ""
    yield f"{REFUSED.name}: under 50 (median hours / share), and the highest score at the end"
    yield from lines(
        [[row.name, told(row.under_50), f"{row.final:.0f}"] for row in rows if row.under_50 and row.final is not None]
    )


def told(found: Found, *, minutes: bool = False) -> str:
    """The median (hours, or minutes where it is less than two hours of them) and the share."""
    share = f"{found.share:.1%}".replace(".0%", "%").replace("%", " %")
    if found.median is None:
        return f"– / {share}"
    if minutes and found.median < 2:
        return f"{found.median * 60:.0f} min / {share}"
    return f"{found.median:.1f}".removesuffix(".0") + (" h" if minutes else "") + f" / {share}"


def _measure(one: Measure) -> str:
    if one.a_week is not None:
        return f"{one.a_week:.3f} a site-week"
    share = 0.0 if one.share is None else one.share
    if one.hours is None:
        return f"{share:.1%}".replace("%", " %")
    return f"{one.hours:.1f}".removesuffix(".0") + f" h / {share:.1%}".replace("%", " %")
