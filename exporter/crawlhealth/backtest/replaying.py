"""Replaying: what came of the past of real sites, in figures and as text. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from crawlhealth import quantities
from crawlhealth.backtest import tables
from crawlhealth.backtest.labelled import Agreement, Labelled, agreement
from crawlhealth.backtest.sources import Told
from crawlhealth.backtest.stays import Outcome, Stay
from crawlhealth.incidentanswer import moment

HEAD: Final = ("site", "start", "end", "lasted", "worst", "first reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of one configuration. Rates are a site-week, times in seconds; None where they cannot be told.

    Of labelled windows `agreement` says how many were found and how soon, `false_alarms_a_week` how many incidents were
    in none of them.
    """

    incidents: int
    alarms_a_week: float | None
    early_warnings_a_week: float | None
    site_weeks: float
    outside_seconds: float
    median_seconds: float | None
    agreement: Agreement | None = None
    recall: float | None = None
    false_alarms_a_week: float | None = None

    @classmethod
    def of(cls, outcome: Outcome, windows: Sequence[Labelled] | None, *, since: float) -> Figures:
        """The figures of an outcome, from `since` on. Incidents that last count up to the end."""
        until = since if outcome.until is None else outcome.until
        lengths = [(until if stay.end is None else stay.end) - max(stay.start, since) for stay in outcome.stays]
        agreed = None if windows is None else agreement(outcome.stays, windows)
        return cls(
            incidents=len(outcome.stays),
            alarms_a_week=_rate(sum(1 for stay in outcome.stays if stay.start > since), outcome.site_weeks),
            early_warnings_a_week=_rate(outcome.warnings, outcome.site_weeks),
            site_weeks=outcome.site_weeks,
            outside_seconds=sum(lengths),
            median_seconds=statistics.median(lengths) if lengths else None,
            agreement=agreed,
            recall=None if agreed is None else agreed.recall,
            false_alarms_a_week=None if agreed is None else _rate(agreed.false_alarms, outcome.site_weeks),
        )


def text(told: Told, figures: Mapping[str, Figures]) -> Iterator[str]:
    """The incidents of each configuration, and a table of them side by side."""
    yield f"{moment(told.since)} to {moment(told.until)}"
    for name, outcome in told.outcomes.items():
        yield ""
        yield f"{name}:" if outcome.stays else f"{name}: no incident"
        if outcome.stays:
            yield from tables.lines([HEAD, *(_row(stay, told.until) for stay in outcome.stays)])
    yield ""
    yield from tables.lines([["", *figures], *_compared(list(figures.values()))])


def answer(told: Told, figures: Mapping[str, Figures]) -> object:
    """The same for JSON, with times in words."""
    return {
        "since": moment(told.since),
        "until": moment(told.until),
        "configurations": {
            name: {"figures": figures[name], "incidents": [_answer(stay) for stay in outcome.stays]}
            for name, outcome in told.outcomes.items()
        },
    }


def _answer(stay: Stay) -> dict[str, object]:
    return {
        "site": stay.site,
        "start": moment(stay.start),
        "end": None if stay.end is None else moment(stay.end),
        "worst_score": stay.worst_score,
        "worst_band": stay.worst_band,
        "first_reason": stay.first_reason,
    }


def _row(stay: Stay, until: float) -> tuple[str, ...]:
    end = until if stay.end is None else stay.end
    return (
        stay.site,
        moment(stay.start),
        "-" if stay.end is None else moment(stay.end),
        _span(end - stay.start) + (" so far" if stay.end is None else ""),
        f"{'no score' if stay.worst_score is None else stay.worst_score} {stay.worst_band}",
        "-" if stay.first_reason is None else stay.first_reason.value,
    )


def _compared(several: Sequence[Figures]) -> Iterator[list[str]]:
    yield ["incidents", *(str(one.incidents) for one in several)]
    yield ["alarms a site-week", *(_number(one.alarms_a_week) for one in several)]
    yield ["early warnings a site-week", *(_number(one.early_warnings_a_week) for one in several)]
    yield ["site-weeks judged", *(f"{one.site_weeks:,.1f}" for one in several)]
    yield ["time outside normal", *(_span(one.outside_seconds) for one in several)]
    yield ["median incident", *(_span(one.median_seconds) for one in several)]
    agreed = [one.agreement for one in several]
    known = [one for one in agreed if one is not None]
    if len(known) == len(several):
        yield ["labelled windows found", *(f"{one.found} of {one.windows}" for one in known)]
        yield ["median delay", *(_span(one.median_delay) for one in known)]
        yield ["incidents in none of them", *(str(one.false_alarms) for one in known)]
        yield ["the same a site-week", *(_number(one.false_alarms_a_week) for one in several)]


def _rate(count: int, weeks: float) -> float | None:
    return count / weeks if weeks > 0 else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _span(seconds: float | None) -> str:
    """A duration to the minute; a dash where it is not known."""
    return "-" if seconds is None else quantities.show(timedelta(seconds=round(seconds / 60) * 60))
