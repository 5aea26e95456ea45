"""The alerts as data: few of them page, and every one is a symptom. Each has promtool cases and a runbook.

Bands have their enter and leave times inside the exporter, so alerts on them wait no longer. They look back a few
minutes (`$window`) because a restart of the exporter must not resolve a page that is about to come back. A site that
resists is also degrading: the second alert stays on, muted, so that getting worse is never told as a recovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Severity(StrEnum):
    """Who hears of it: `critical` calls a person, `warning` is read in working hours."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. In `expr`, `$job` is the scrape job's name and `$window` the time looked back over.

    `summary` is one sentence without values, so that equal alerts group; `description` is a Prometheus template.
    The runbook is `alerting/runbooks/<name>.md`. An alert `of_site` is about one site, and keeps quiet during its
    planned stops.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    for_: timedelta = timedelta(0)
    window: timedelta = timedelta(minutes=5)
    of_site: bool = True


_SCORE_AND_COSTS = """\
{{ with printf "min(crawlhealth_score{site=%q})" $labels.site | query }} The health score is \
{{ . | first | value | printf "%.0f" }} of 100.{{ end }}\
{{ range printf "sort_desc(max by (signal) (crawlhealth_penalty_points{site=%q}) >= 1)" $labels.site | query }} \
{{ .Labels.signal }} costs {{ .Value | printf "%.0f" }} points.{{ end }}"""

_WRONG_VALUES = """\
{{ range printf "max by (value) (crawlhealth_canary_value_ok{site=%q,canary=%q,route=%q}) == 0" \
$labels.site $labels.canary $labels.route | query }} Wrong: {{ .Labels.value }}.{{ end }}"""

ALERTS = (
    Alert(
        name="CrawlTargetResisting",
        expr='max by (site) (last_over_time(crawlhealth_band{job="$job",band="resisting"}[$window])) == 1',
        severity=Severity.CRITICAL,
        summary="A site refuses most of what its own normal allows.",
        description="{{ $labels.site }} is resisting." + _SCORE_AND_COSTS,
    ),
    Alert(
        name="CrawlTargetDegrading",
        expr=('max by (site) (last_over_time(crawlhealth_band{job="$job",band=~"degrading|resisting"}[$window])) == 1'),
        severity=Severity.WARNING,
        summary="A site behaves worse than its own normal.",
        description="{{ $labels.site }} is degrading." + _SCORE_AND_COSTS,
    ),
    Alert(
        name="CrawlCanaryWrongValue",
        expr=(
            "max by (site, canary, route) "
            '(avg_over_time(crawlhealth_canary_decoy_suspect{job="$job"}[$window])) >= 0.25'
        ),
        for_=timedelta(minutes=5),
        window=timedelta(minutes=30),
        severity=Severity.CRITICAL,
        summary="A page that looks served carries a wrong value: a decoy, or a known answer that is out of date.",
        description=(
            "Canary {{ $labels.canary }} of {{ $labels.site }} through {{ $labels.route }} was wrong "
            "{{ $value | humanizePercentage }} of the time lately." + _WRONG_VALUES
        ),
    ),
    Alert(
        name="CrawlParserFailing",
        expr='min by (site) (crawlhealth_parser_score{job="$job"}) < 80',
        for_=timedelta(minutes=10),
        severity=Severity.WARNING,
        summary="Extraction fails on pages that are served: the parser, or the page under it, changed.",
        description='The parser score of {{ $labels.site }} is {{ $value | printf "%.0f" }} of 100.',
    ),
    Alert(
        name="CrawlCanaryLate",
        expr='max by (site, canary, route) (crawlhealth_canary_late{job="$job"}) == 1',
        for_=timedelta(minutes=5),
        severity=Severity.WARNING,
        summary="A canary that the crawler itself should send does not arrive: it is not being watched.",
        description="Nothing of canary {{ $labels.canary }} of {{ $labels.site }} through {{ $labels.route }} arrives.",
    ),
    Alert(
        name="CrawlUplinkDown",
        expr='crawlhealth_uplink_up{job="$job"} == 0',
        for_=timedelta(minutes=1),
        severity=Severity.CRITICAL,
        summary="Our own connection is down: no site is to blame for what fails now.",
        description="{{ $labels.instance }} reaches nothing: every canary fails to connect, or the reference does.",
        of_site=False,
    ),
    Alert(
        name="CrawlExporterDown",
        expr='up{job="$job"} == 0 or absent(up{job="$job"})',
        for_=timedelta(minutes=5),
        severity=Severity.CRITICAL,
        summary="crawlhealth cannot be scraped: no site is being watched.",
        description=(
            "{{ with $labels.instance }}{{ . }} does not answer.{{ else }}"
            "Prometheus has no target of the job {{ $labels.job }}.{{ end }}"
        ),
        of_site=False,
    ),
)
