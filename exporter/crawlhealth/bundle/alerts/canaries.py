"""Alerts on canaries: wrong values, routes that disagree, failing, not arriving or not run."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.alerts.text import ADVICE, SCORE
from crawlhealth.bundle.model import Alert, Group, Options, Record, Severity

_ONE: Final = "$by, canary, route"
_WRONG_VALUES: Final = (
    '{{ range printf "max by (value) (crawlhealth_canary_value_ok{@match,canary=%q,route=%q}) == 0"'
    " @args $labels.canary $labels.route | query }} Wrong: {{ .Labels.value }}.{{ end }}"
)
_WHICH: Final = "Canary {{ $labels.canary }} of {{ $labels.site }} through {{ $labels.route }}"

WRONG_VALUE: Final = Alert(
    name="CrawlCanaryWrongValue",
    expr=f'max by ({_ONE}) (avg_over_time(crawlhealth_canary_decoy_suspect{{job="$job"}}[$window])) >= 0.25',
    for_=timedelta(minutes=5),
    window=timedelta(minutes=30),
    severity=Severity.CRITICAL,
    summary="A page that looks served carries a wrong value: a decoy, or a known answer that is out of date.",
    description=(
        f"{_WHICH} was wrong {{{{ $value | humanizePercentage }}}} of the time lately."
        + _WRONG_VALUES
        + SCORE
        + " You decide: look at the page yourself, then stop storing the site's data, or correct the known answer."
    ),
)
RIGHT: Final = Record(
    name="site_canary_route_value:crawl_canary_value_ok:avg30m",
    expr=f'min by ({_ONE}, value) (avg_over_time(crawlhealth_canary_value_ok{{job="$job"}}[30m]))',
)
"""How often a value was right through each route: recorded, since the most and the least of it are compared."""
DISAGREEMENT: Final = Alert(
    name="CrawlCanaryDisagreement",
    expr=(
        f"max by ($by, canary, value) (last_over_time({RIGHT.name}[5m]))\n"
        f"- min by ($by, canary, value) (last_over_time({RIGHT.name}[5m])) >= 0.25\n"
        'or (stddev by ($by, canary, value) (crawlhealth_canary_value{job="$job"}) > 0)\n'
        'and on ($on, canary, value) max by ($by, canary, value) (crawlhealth_canary_value_ok{job="$job"}) == 0'
    ),
    for_=timedelta(minutes=15),
    window=timedelta(minutes=30),
    severity=Severity.WARNING,
    summary="The same page shows one value through one route and another through the next.",
    description=(
        "Value {{ $labels.value }} of canary {{ $labels.canary }} of {{ $labels.site }} differs between routes."
        '{{ range printf "sort(max by (route) (crawlhealth_canary_value{@match,canary=%q,value=%q}))"'
        " @args $labels.canary $labels.value | query }} {{ .Labels.route }}: {{ .Value }}.{{ end }}"
        '{{ range printf "min by (route) (crawlhealth_canary_value_ok{@match,canary=%q,value=%q}) == 0'
        ' and on () max(crawlhealth_canary_value_ok{@match,canary=%q,value=%q}) == 1"'
        " @args $labels.canary $labels.value @args $labels.canary $labels.value | query }}"
        " Wrong through {{ .Labels.route }}.{{ end }}"
        " You decide: which data was collected through the wrong route, and whether to stop it."
    ),
)
FAILING: Final = Alert(
    name="CrawlCanaryFailing",
    expr=(
        f'max by ({_ONE}) (max_over_time(crawlhealth_canary_success{{job="$job"}}[$window])) == 0\n'
        f'and on ($on, canary, route) last_over_time(crawlhealth_canary_success{{job="$job"}}[15m] offset 50m)\n'
        f"unless on ($on, canary, route)\n"
        f'  max by ({_ONE}) (max_over_time(crawlhealth_canary_decoy_suspect{{job="$job"}}[$window])) == 1'
    ),
    for_=timedelta(minutes=5),
    window=timedelta(hours=1),
    severity=Severity.WARNING,
    summary="A canary has not been served with its right values for an hour.",
    description=(
        f"{_WHICH} has not succeeded for an hour."
        '{{ with printf "max(crawlhealth_canary_last_success_timestamp_seconds{@match,canary=%q,route=%q})"'
        " @args $labels.canary $labels.route | query }}"
        " It last did at {{ . | first | value | humanizeTimestamp }}.{{ end }}"
        + SCORE
        + ADVICE
        + " You decide: whether the page, the route or the canary is at fault; one probe tells."
    ),
)
LATE: Final = Alert(
    name="CrawlCanaryLate",
    expr=f'max by ({_ONE}) (crawlhealth_canary_late{{job="$job"}}) == 1',
    for_=timedelta(minutes=5),
    severity=Severity.WARNING,
    summary="A canary that the crawler itself should send does not arrive: it is not being watched.",
    description=(
        "Nothing of canary {{ $labels.canary }} of {{ $labels.site }} through {{ $labels.route }} arrives."
        " You decide: mend the crawler's schedule, or write a longer `every`."
    ),
)
STALE: Final = Alert(
    name="CrawlCanaryStale",
    expr=(
        f'time() - max by ({_ONE}) (crawlhealth_canary_last_run_timestamp_seconds{{job="$job"}})\n'
        f'> on ($on, canary, route) 3 * max by ({_ONE}) (crawlhealth_canary_interval_seconds{{job="$job"}}) + ${{5m}}\n'
        f'unless on ($on, canary, route) max by ({_ONE}) (crawlhealth_canary_late{{job="$job"}})'
    ),
    for_=timedelta(minutes=5),
    severity=Severity.WARNING,
    summary="A canary has missed three runs: its gauges show what was, not what is.",
    description=(
        f"{_WHICH} last ran {{{{ $value | humanizeDuration }}}} ago."
        " You decide: whether the exporter has more to fetch than it can, or the site asked us to wait that long."
    ),
)


def groups(_options: Options) -> tuple[Group, ...]:
    """The canaries' rules."""
    rules = (RIGHT, WRONG_VALUE, DISAGREEMENT, FAILING, LATE, STALE)
    return (Group(file="canaries", name="crawlhealth-canaries", rules=rules, interval=timedelta(minutes=1)),)
