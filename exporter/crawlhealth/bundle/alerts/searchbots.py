"""Alerts on search bots on the user's own domains: who comes, who stays away, and where visits went.

Fewer visits than usual are judged by `volume.py`, with what has been learnt about volumes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.model import Alert, Group, Options, Scope, Severity

GAPS: Final = 10
"""How many of its usual gaps a bot may stay away."""
FAKES: Final = 100
FAKES_FACTOR: Final = 5
RAMP: Final = 2.0
"""The most by which a target's visits may grow within a week; the usual ramp grows by two thirds at most."""
RAMP_LEAST: Final = 500
SHARE: Final = 0.1
LOST: Final = 0.2
ENOUGH: Final = 50
LAG: Final = "${15m}"

_BOT: Final = "${group}tenant, domain, bot"
_TARGET: Final = "${group}tenant, target"
_TO_TARGET: Final = "${group}tenant, bot, target"


def _alert(
    name: str,
    *,
    expr: str,
    severity: Severity,
    summary: str,
    description: str,
    for_: timedelta,
    window: timedelta = timedelta(minutes=5),
) -> Alert:
    return Alert(
        name=name,
        expr=expr,
        severity=severity,
        summary=summary,
        description=description,
        for_=for_,
        window=window,
        scope=Scope.SEARCHBOTS,
    )


VISITS: Final = (
    _alert(
        "CrawlBotSilent",
        expr=(
            f"time() - max by ({_BOT})"
            ' (last_over_time(crawlhealth_searchbot_last_visit_timestamp_seconds{job="$job"}[$window]))\n'
            f"> clamp_min({GAPS} * ${{7d}} / sum by ({_BOT})"
            ' (increase(crawlhealth_searchbot_visits_total{job="$job",identity="verified"}[7d] offset 1d)), ${2h})'
        ),
        for_=timedelta(minutes=15),
        window=timedelta(days=2),
        severity=Severity.WARNING,
        summary="A search bot stays away for many times its usual gap.",
        description=(
            "{{ $labels.bot }} has not come to {{ $labels.domain }} for {{ $value | humanizeDuration }}."
            " You decide: whether the server, its robots.txt or the dispatcher keeps it out."
        ),
    ),
    _alert(
        "CrawlBotFakesSurge",
        expr=(
            f"sum by ({_BOT})"
            ' (increase(crawlhealth_searchbot_visits_total{job="$job",identity="fake"}[1h]))'
            f" >= {FAKES}\n"
            f"unless on ({_BOT}) (\n"
            f"  sum by ({_BOT}) (increase("
            'crawlhealth_searchbot_visits_total{job="$job",identity="fake"}[1h]))\n'
            f"  < {FAKES_FACTOR} / 24 * sum by ({_BOT}) (increase("
            'crawlhealth_searchbot_visits_total{job="$job",identity="fake"}[1d] offset 1d))\n'
            ")"
        ),
        for_=timedelta(minutes=15),
        severity=Severity.WARNING,
        summary="Far more visitors than usual only call themselves a search bot.",
        description=(
            '{{ $value | printf "%.0f" }} visits to {{ $labels.domain }} in the last hour called themselves'
            " {{ $labels.bot }} and were not. You decide: whether to limit or refuse them; real bots are known apart."
        ),
    ),
    _alert(
        "CrawlLogReaderBehind",
        expr=f'crawlhealth_log_lag_seconds{{job="$job"}} > {LAG}',
        for_=timedelta(minutes=10),
        severity=Severity.WARNING,
        summary="An access log is read too slowly: visits are counted late, and volumes cannot be judged.",
        description=(
            "{{ $labels.instance }} is {{ $value | humanizeDuration }} behind in {{ $labels.log }}."
            " You decide: a faster disk or fewer logs for one reader; it catches up by itself after a burst."
        ),
    ),
)

DISPATCH: Final = (
    _alert(
        "CrawlBotTargetDown",
        expr='max by (${group}target) (crawlhealth_target_up{job="$job"}) == 0',
        for_=timedelta(minutes=5),
        severity=Severity.CRITICAL,
        summary="A target that search bots are sent to has not answered for five minutes.",
        description=(
            "{{ $labels.target }} answered no probe for five minutes."
            " You decide: mend it, or take it out of the dispatcher until it is mended."
        ),
    ),
    _alert(
        "CrawlBotQuotaExceeded",
        expr=(
            f'max by ({_TARGET}) (crawlhealth_target_quota_used{{job="$job"}})\n'
            f'> on ({_TARGET}) max by ({_TARGET}) (crawlhealth_target_quota{{job="$job"}})'
        ),
        for_=timedelta(minutes=15),
        severity=Severity.WARNING,
        summary="A target got more visits today than its quota.",
        description=(
            '{{ $labels.target }} of {{ $labels.tenant }} got {{ $value | printf "%.0f" }} visits today, over its'
            " quota. You decide: why the dispatcher sent more, or whether the quota is too small."
        ),
    ),
    _alert(
        "CrawlBotQuotaRampTooSteep",
        expr=(
            f'max by ({_TARGET}) (max_over_time(crawlhealth_target_quota_used{{job="$job"}}[1d])) >= {RAMP_LEAST}\n'
            f'and on ({_TARGET}) max by ({_TARGET}) (max_over_time(crawlhealth_target_quota_used{{job="$job"}}[1d]))\n'
            f"  / max by ({_TARGET})"
            f' (max_over_time(crawlhealth_target_quota_used{{job="$job"}}[1d] offset 7d)) > {RAMP:g}'
        ),
        for_=timedelta(hours=1),
        severity=Severity.WARNING,
        summary="A target's visits grew faster within a week than any usual ramp.",
        description=(
            '{{ $labels.target }} of {{ $labels.tenant }} got {{ $value | printf "%.0f" }} visits within a day, more'
            " than twice as many as a week ago. You decide: whether to slow the ramp down."
        ),
    ),
    _alert(
        "CrawlBotShareOff",
        expr=(
            f'abs(max by ({_TO_TARGET}) (crawlhealth_searchbot_share_ratio{{job="$job"}})\n'
            f"  - on ({_TO_TARGET}) max by ({_TO_TARGET})"
            f' (crawlhealth_searchbot_share_expected_ratio{{job="$job"}})) > {SHARE}\n'
            "and on (${group}tenant, bot) sum by (${group}tenant, bot)"
            f' (increase(crawlhealth_searchbot_dispatches_total{{job="$job"}}[1h])) >= {ENOUGH}'
        ),
        for_=timedelta(hours=1),
        severity=Severity.WARNING,
        summary="A target's share of a bot's visits is far from its configured weight.",
        description=(
            "The share of {{ $labels.target }} in the visits of {{ $labels.bot }} is {{ $value | humanizePercentage }}"
            " of all away from its weight. You decide: whether the dispatcher or the weight is wrong."
        ),
    ),
    _alert(
        "CrawlBotVisitsLost",
        expr=(
            f"(sum by ({_TO_TARGET}) (increase("
            'crawlhealth_searchbot_dispatches_total{job="$job",decision="sent"}[1h]))'
            f" >= {ENOUGH})\n"
            f"- on ({_TO_TARGET}) sum by ({_TO_TARGET})"
            ' (increase(crawlhealth_dispatch_arrivals_total{job="$job"}[1h]))\n'
            f"> on ({_TO_TARGET}) {LOST} * sum by ({_TO_TARGET}) (increase("
            'crawlhealth_searchbot_dispatches_total{job="$job",decision="sent"}[1h]))'
        ),
        for_=timedelta(minutes=15),
        severity=Severity.WARNING,
        summary="Visits that were sent to a target do not arrive there.",
        description=(
            '{{ $value | printf "%.0f" }} visits of {{ $labels.bot }} sent to {{ $labels.target }} in the last hour'
            " are not in its log. You decide: look at what lies between the dispatcher and the target."
        ),
    ),
    _alert(
        "CrawlRedirectLoop",
        expr='max by (${group}domain) (crawlhealth_redirect_loop{job="$job"}) == 1',
        for_=timedelta(minutes=5),
        severity=Severity.CRITICAL,
        summary="Redirects of one of our domains lead back to itself: nobody gets to a page.",
        description=(
            "{{ $labels.domain }} redirects in a circle through our domains."
            " You decide: which redirect to take back; the last change is the first suspect."
        ),
    ),
    _alert(
        "CrawlDependencyDown",
        expr='max by (${group}name) (crawlhealth_dependency_up{job="$job"}) == 0',
        for_=timedelta(minutes=5),
        severity=Severity.CRITICAL,
        summary="A service that the dispatcher needs does not answer.",
        description=(
            "{{ $labels.name }} has not answered for five minutes."
            " You decide: restart or mend it; what the dispatcher does without it is its own matter."
        ),
    ),
)


def groups(_options: Options) -> tuple[Group, ...]:
    """The rules of search bots and of where their visits are sent."""
    return (
        Group(file="searchbots", name="crawlhealth-searchbots", rules=VISITS, interval=timedelta(minutes=1)),
        Group(file="searchbots", name="crawlhealth-dispatch", rules=DISPATCH, interval=timedelta(minutes=1)),
    )
