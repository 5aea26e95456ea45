"""Alerts on volume: half of it gone, falling slowly, not judged at all. What is judged how: see `volume.py`.

A judgement holds until the next one, for 18 hours at most: at night there may be too little to count, and that ends
no alarm. None of them pages: who refuses a crawler is told by its score, and one bot on one domain is a ticket.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.alerts.text import ADVICE, DIAGNOSIS, SCORE
from crawlhealth.bundle.model import Alert, Options, Scope, Severity

STEADY: Final = timedelta(minutes=20)
AGAIN: Final = timedelta(minutes=30)
"""What hovers about the half is told once."""
AFTER_A_STOP: Final = timedelta(hours=2)
"""Sums of an hour are low for an hour after a planned stop, and the crawl may take a while to get going."""
_OF_RECORDS: Final = "unless on ($on) last_over_time(site:crawl_requests:volume_halved[18h]) == 1"


def halved(metric: str) -> str:
    """What has lost half of its volume, by the last judgement."""
    return f"last_over_time({metric}:volume_halved[18h]) == 1"


def declining(metric: str, on: str) -> str:
    """Half of a week ago and of two weeks ago, or half of four weeks ago and little more of three; over three days.

    The second comparison of each keeps a week that was unusually full from making the next ones look poor.
    """
    now = f"last_over_time({metric}:increase1d_avg3d[15m])"

    def before(days: int) -> str:
        return f"last_over_time({metric}:increase1d_avg3d[15m] offset {days}d)"

    return (
        f"({now} < on ({on}) 0.5 * ({before(7)} >= 100)\n"
        f"  unless on ({on}) {now} >= on ({on}) 0.5 * {before(14)})\n"
        f"or ({now} < on ({on}) 0.5 * ({before(28)} >= 100)\n"
        f"  unless on ({on}) {now} >= on ({on}) 0.6 * {before(21)})"
    )


def unjudged(metric: str, on: str) -> str:
    """Enough to judge, and no judgement for a day."""
    return (
        f"last_over_time({metric}:increase1d[15m]) >= 100\nunless on ({on}) last_over_time({metric}:volume_halved[1d])"
    )


def _share(metric: str, match: str, arguments: str) -> str:
    """How much is there of what was expected, within the hour or, where that is too little, within the day."""
    return "".join(
        f'{{{{ with printf "100 * last_over_time({metric}:{ratio}{{{match}}}[15m])" {arguments} | query }}}}'
        f' {{{{ . | first | value | printf "%.0f" }}}}% of what was expected came within {span}.{{{{ end }}}}'
        for ratio, span in (("volume_ratio", "the hour"), ("volume_ratio1d", "the day"))
    )


def requests(on: str) -> tuple[Alert, ...]:
    """Alerts on the production requests of a site."""
    return (
        Alert(
            name="CrawlVolumeHalved",
            expr=halved("site:crawl_requests"),
            for_=STEADY,
            keep_firing_for=AGAIN,
            window=AFTER_A_STOP,
            severity=Severity.WARNING,
            summary="A site is crawled half as much as it should be by now, or less.",
            description=(
                "The crawl of {{ $labels.site }} has lost half of its requests or more."
                + _share("site:crawl_requests", "@match", "@args")
                + SCORE
                + ADVICE
                + " You decide: whether the crawler, its queue or its schedule is to be mended, or this is wanted."
            ),
        ),
        Alert(
            name="CrawlVolumeDeclining",
            expr=declining("site:crawl_requests", on),
            for_=timedelta(hours=6),
            window=AFTER_A_STOP,
            severity=Severity.WARNING,
            summary="The crawl of a site has shrunk to less than half within weeks, too slowly for one day to show it.",
            description=(
                '{{ $labels.site }} is down to {{ $value | printf "%.0f" }} requests a day, less than half of a week'
                " or of four weeks ago."
                + SCORE
                + ADVICE
                + " You decide: whether the frontier runs dry, a rule became too strict, or less is wanted."
            ),
        ),
        Alert(
            name="CrawlVolumeUnjudged",
            expr=unjudged("site:crawl_requests", on),
            for_=timedelta(days=2),
            severity=Severity.INFO,
            summary="A site has been crawled for days and its volume could not be judged.",
            description=(
                '{{ $labels.site }} has {{ $value | printf "%.0f" }} requests a day. They are not judged: there are no'
                " earlier days to compare them with, or the exporter's counts lag behind."
                " You decide: whether Prometheus keeps 15 days, and what keeps the exporter from counting in time."
            ),
        ),
    )


def records(_on: str) -> tuple[Alert, ...]:
    """The alert on the valid records of a site: told only while the requests are there, for else that is the news."""
    return (
        Alert(
            name="CrawlRecordsHalved",
            expr=f"{halved('site:crawl_records')}\n{_OF_RECORDS}",
            for_=STEADY,
            keep_firing_for=AGAIN,
            window=AFTER_A_STOP,
            severity=Severity.WARNING,
            summary="A site yields half as many valid records as it should, or fewer, from as many requests.",
            description=(
                "{{ $labels.site }} has lost half of its valid records or more, and not its requests."
                + _share("site:crawl_records", "@match", "@args")
                + SCORE
                + DIAGNOSIS
                + ADVICE
                + " You decide: whether the extraction broke, the pages became empty, or the wrong pages are fetched."
            ),
        ),
    )


def visits(options: Options, on: str) -> tuple[Alert, ...]:
    """Alerts on the visits of a verified search bot to one of our domains."""
    labels = on.split(", ")
    match, arguments = ",".join(f"{label}=%q" for label in labels), " ".join(f"$labels.{label}" for label in labels)
    return (
        Alert(
            name="CrawlBotVisitsHalved",
            expr=halved("domain_bot:searchbot_visits"),
            for_=STEADY,
            keep_firing_for=AGAIN,
            severity=Severity.WARNING,
            summary="A search bot visits one of our domains half as often as it should by now, or less.",
            description=(
                "{{ $labels.bot }} visits {{ $labels.domain }} half as often as usual, or less."
                + _share("domain_bot:searchbot_visits", match, arguments)
                + " You decide: whether the domain, its robots.txt, a firewall or the dispatcher keeps it out."
            ),
            scope=Scope.SEARCHBOTS,
        ),
        Alert(
            name="CrawlBotVisitsDeclining",
            expr=declining("domain_bot:searchbot_visits", on),
            for_=timedelta(hours=6),
            severity=Severity.WARNING,
            summary="A search bot has come less and less to one of our domains for weeks.",
            description=(
                '{{ $labels.bot }} is down to {{ $value | printf "%.0f" }} visits a day on {{ $labels.domain }}, less'
                " than half of a week or of four weeks ago. You decide: look into the search engine's own console, and"
                " at what changed on the domain."
            ),
            scope=Scope.SEARCHBOTS,
        ),
    )
