"""`crawlhealth incidents`, `label` and `review`: what the judgement found, what people say of it, how good it was."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import click
import msgspec

from crawlhealth import incidentanswer, labels, ownership, quantities
from crawlhealth import review as reviews
from crawlhealth.config import Config
from crawlhealth.history import FILE_NAME, Decisions, HistoryError, past_incidents, past_slots, reading
from crawlhealth.incident import Incident
from crawlhealth.options import CONFIG, SHARD, when
from crawlhealth.shard import Shard
from crawlhealth.verdict import IncidentLabel

UNTIL = click.option("--until", metavar="WHEN", help="Up to a moment, or so long ago.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SHOWN_TO_CHOOSE_FROM = 10


@click.command(epilog="Example: crawlhealth incidents books --since 30d")
@click.argument("site", required=False)
@click.option("--since", metavar="WHEN", help="From a moment (2026-12-01T00:00:00Z) or so long ago (14d) on.")
@UNTIL
@JSON
@CONFIG
@SHARD
def incidents(
    *, site: str | None, since: str | None, until: str | None, as_json: bool, path: Path, shard: Shard | None
) -> None:
    """List the stays outside normal, of SITE or of all sites, newest first.

    Those that lasted at any moment of the time named; all that are kept (five years) where none is. Times are UTC.
    """
    config = ownership.beside(path, shard)
    now = time.time()
    _known(config, site)
    begin, end = _period(since, until, now)
    try:
        with reading(config.data_dir / FILE_NAME) as connection:
            found = past_incidents(connection, site=site, since=begin, until=end)
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        _print_json([incidentanswer.answer(incident, now) for incident in found])
    elif found:
        click.echo("\n".join(_table([_HEAD, *(_row(incident, now) for incident in found)], skip=int(site is not None))))
    else:
        click.echo(f"no incident{f' of {site}' if site else ''} is on record for this time")


@click.command(epilog="Example: crawlhealth label books latest false-alarm --note 'their sale was on'")
@click.argument("site")
@click.argument("start")
@click.argument("said", metavar="true|false-alarm", type=click.Choice([label.value for label in IncidentLabel]))
@click.option("--note", default="", help="Why; shown wherever the incident is.")
@click.option("--reason", type=click.Choice([s.value for s in labels.REASONS]), help="What its first reason should be.")
@CONFIG
@SHARD
def label(*, site: str, start: str, said: str, note: str, reason: str | None, path: Path, shard: Shard | None) -> None:
    """Say whether the incident of SITE that began at START was one, for `crawlhealth review` to count.

    START is as `crawlhealth incidents` prints it, or `latest`. What was said of it before is replaced. May run while
    `serve` runs.
    """
    config = ownership.beside(path, shard)
    now = time.time()
    _known(config, site)
    try:
        with closing(Decisions.open(config.data_dir / FILE_NAME, now=now)) as decisions:
            incident = decisions.incident(site, start)
            if incident is None:
                some = decisions.incidents(site=site, limit=SHOWN_TO_CHOOSE_FROM)
                raise click.UsageError(_none_such(site, start, some))
            decisions.label(labels.parse(site, incident.start, said, now=now, note=note, reason=reason))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{site}: the incident of {incident.name} is labelled {said}")


@click.command(epilog="Example: crawlhealth review --since 30d --site books")
@click.option("--since", default="30d", show_default=True, metavar="WHEN", help="From a moment or so long ago on.")
@UNTIL
@click.option("--site", help="Only this site.")
@JSON
@CONFIG
@SHARD
def review(*, since: str, until: str | None, site: str | None, as_json: bool, path: Path, shard: Shard | None) -> None:
    """Tell how good the judgement was: the incidents that began in a time, how many were true, and how early.

    Precision is true / labelled. Lead times are medians. Advice was obeyed when the traffic of the hours after it, as a
    share of that in the same hours a day before, was at most 0.1 over what was advised; it is told as far back as hours
    are kept (`history.keep_hours`).
    """
    config = ownership.beside(path, shard)
    now = time.time()
    _known(config, site)
    begin, end = _period(since, until, now)
    try:
        with reading(config.data_dir / FILE_NAME) as connection:
            found = reviews.review(
                past_incidents(connection, site=site, since=begin, until=end),
                lambda name, at: past_slots(connection, name, at),
                since=begin,
                until=end,
                now=now,
            )
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        _print_json(_ReviewAnswer.of(found))
    else:
        click.echo("\n".join(_told(found)))


class _ReviewAnswer(msgspec.Struct, frozen=True):
    """A review as JSON, with its times in words."""

    since: str
    until: str
    overall: reviews.Figures
    sites: dict[str, reviews.Figures]
    obedience: list[dict[str, object]]

    @classmethod
    def of(cls, found: reviews.Review) -> _ReviewAnswer:
        return cls(
            since=incidentanswer.moment(found.since),
            until=incidentanswer.moment(found.until),
            overall=found.overall,
            sites={each.site: each.figures for each in found.sites},
            obedience=[
                {**msgspec.to_builtins(each), "start": incidentanswer.moment(each.start), "obeyed": each.obeyed}
                for each in found.obedience
            ],
        )


def _known(config: Config, site: str | None) -> None:
    if site is not None:
        ownership.check(config, site, remedy=ownership.past_elsewhere(config, site))


def _period(since: str | None, until: str | None, now: float) -> tuple[float, float]:
    begin, end = 0.0 if since is None else when(since, now), now if until is None else when(until, now)
    if end <= begin:
        raise click.UsageError("--until: write a moment later than --since")
    return begin, end


def _print_json(said: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def _none_such(site: str, start: str, some: Iterable[Incident]) -> str:
    names = ", ".join(incident.name for incident in some)
    if not names:
        return f"{site} has had no incident"
    return f"{site} has no incident of {start}: write latest, or one of {names}"


_HEAD = ("site", "start", "lasted", "worst", "first reason", "diagnosis", "label")


def _row(incident: Incident, now: float) -> tuple[str, ...]:
    score = "no score" if incident.worst_score is None else str(incident.worst_score)
    said = "-" if incident.label is None else incident.label.value
    return (
        incident.site,
        incident.name,
        _span(incident.seconds(now)) + (" so far" if incident.end is None else ""),
        f"{score} {incident.worst_band}",
        "-" if incident.first_reason is None else incident.first_reason.value,
        incident.diagnosis.value,
        f"{said}: {incident.note}" if incident.note else said,
    )


def _table(rows: Sequence[Sequence[str]], *, skip: int) -> Iterable[str]:
    """Lines of columns, without the first `skip`."""
    columns = list(zip(*rows, strict=True))[skip:]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _span(seconds: float | None) -> str:
    """A duration to the minute, under one to the second; a dash where it is not known."""
    if seconds is None:
        return "-"
    step = 60 if seconds >= 60 else 1
    return quantities.show(timedelta(seconds=round(seconds / step) * step))


def _told(found: reviews.Review) -> Iterable[str]:
    begin, end = incidentanswer.moment(found.since), incidentanswer.moment(found.until)
    yield f"{begin} to {end}"
    if not found.overall.incidents:
        yield "no incident began in this time"
        return
    sites = [(each.site, each.figures) for each in found.sites]
    for name, figures in sites if len(sites) == 1 else [("all sites", found.overall), *sites]:
        yield ""
        yield from _figures(name, figures)


def _figures(name: str, figures: reviews.Figures) -> Iterable[str]:
    still = f", {figures.open} of them still on" if figures.open else ""
    yield f"{name}: {_count(figures.incidents, 'incident')}{still}"
    known = "" if figures.precision is None else f": precision {figures.precision:.0%}"
    false = _count(figures.false_alarms, "false alarm")
    yield f"  labels        {figures.true} true, {false}, {figures.unlabelled} unlabelled{known}"
    early = f"{figures.warned} had an early warning"
    if figures.warning_to_band is not None:
        early += f", {_span(figures.warning_to_band)} before the band"
    yield f"  lead time     {early}; the worst came {_span(figures.band_to_worst)} after it began (medians)"
    right, wrong = figures.reason_right, figures.reason_wrong
    yield f"  first reason  {right} right, {wrong} wrong, {figures.reason_unknown} unknown"
    yield f"  paused        {_span(figures.paused_seconds)}"
    yield f"  advice        {_advice(figures)}"


def _advice(figures: reviews.Figures) -> str:
    if not figures.advised:
        return "cannot be told: no whole hour of it beside traffic a day before"
    return (
        f"obeyed in {figures.obeyed} of {figures.advised}: traffic {_share(figures.traffic_ratio)} of the day before,"
        f" {_share(figures.advised_ratio)} advised; refused {_share(figures.refused_before)} before,"
        f" {_share(figures.refused_after)} after (medians)"
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
