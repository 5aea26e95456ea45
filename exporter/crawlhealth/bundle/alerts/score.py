"""Alerts on the verdict: bands, a score that is missing, early warning, parser, latency, cost, baseline.

Bands have their enter and leave times inside the exporter, so alerts on them wait no longer. They look back a few
minutes because a restart of the exporter must not resolve a page that is about to come back. A site that resists is
also degrading: the second alert stays on, muted, so that getting worse is never told as a recovery.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.alerts.text import ADVICE, DIAGNOSIS, SCORE, VERDICT
from crawlhealth.bundle.model import Alert, Group, Options, Rule, Scoring, Severity
from crawlhealth.bundle.recording import JUDGED, SCORES, TRAFFIC, requests
from crawlhealth.scoresettings import ScoreSettings

DRIFT_THRESHOLD: Final = ScoreSettings().drift_threshold
LATENCY_POINTS: Final = 3.0
"""A fifth of what latency can cost, as `degrading` begins at a fifth of all points: 1.4 times its normal."""
ENOUGH_REQUESTS: Final = 50
CRAWLED: Final = "site:crawl_requests:increase1d"
"""A day's requests, as `volume.py` records them: read for two days ago, of a site that is no newcomer."""
COST_FACTOR: Final = 2
FROZEN_DAYS: Final = 4
"""Real days on every clock: a baseline is learnt by the hour of the day, which no demo shortens."""

RESISTING: Final = Alert(
    name="CrawlTargetResisting",
    expr='max by ($by) (last_over_time(crawlhealth_band{job="$job",band="resisting"}[$window])) == 1',
    severity=Severity.CRITICAL,
    summary="A site refuses most of what its own normal allows.",
    description=(
        "{{ $labels.site }} is resisting." + VERDICT + " You decide: slow down further, read the site's terms, look for"
        " an API, or stop."
    ),
)
DEGRADING: Final = Alert(
    name="CrawlTargetDegrading",
    expr='max by ($by) (last_over_time(crawlhealth_band{job="$job",band=~"degrading|resisting"}[$window])) == 1',
    severity=Severity.WARNING,
    summary="A site behaves worse than its own normal.",
    description=(
        "{{ $labels.site }} is degrading." + VERDICT + " You decide: whether something of ours changed, and whether to"
        " slow down more than advised."
    ),
)
UNKNOWN: Final = Alert(
    name="CrawlScoreUnknown",
    expr=(
        f"sum by ($by) ({requests(TRAFFIC)}) >= {ENOUGH_REQUESTS}\n"
        f"and on ($on) last_over_time({CRAWLED}[1h] offset 2d) > 0\n"
        "unless on ($on) last_over_time(site:crawlhealth_score[15m])"
    ),
    for_=timedelta(hours=6),
    severity=Severity.WARNING,
    summary="A site that is crawled has had no health score for hours.",
    description=(
        '{{ $labels.site }} had {{ $value | printf "%.0f" }} requests of traffic in the last hour and no score.'
        + DIAGNOSIS
        + ADVICE
        + " You decide: mend what makes most requests fail, or accept what the site does as its normal."
    ),
)
DRIFTING: Final = Alert(
    name="CrawlTargetDrifting",
    expr=f'max by ($by) (last_over_time(crawlhealth_drift_z{{job="$job"}}[$window])) > {DRIFT_THRESHOLD}',
    keep_firing_for=timedelta(hours=6),
    severity=Severity.INFO,
    summary="A site slowly moves away from its own normal; its score may still be good.",
    description=(
        '{{ $labels.site }} has moved {{ $value | printf "%.1f" }} standard deviations.'
        f'{{{{ range printf "sort_desc(max by (signal) (crawlhealth_drift_z{{@match}}) > {DRIFT_THRESHOLD})" @args'
        ' | query }} {{ .Labels.signal }}: {{ .Value | printf "%.1f" }}.{{ end }}'
        + SCORE
        + " You decide: nothing yet; look at what changed."
    ),
)
PARSER: Final = Alert(
    name="CrawlParserFailing",
    expr='min by ($by) (crawlhealth_parser_score{job="$job"}) < 80',
    for_=timedelta(minutes=10),
    severity=Severity.WARNING,
    summary="Extraction fails on pages that are served: the parser, or the page under it, changed.",
    description=(
        'The parser score of {{ $labels.site }} is {{ $value | printf "%.0f" }} of 100.'
        + SCORE
        + DIAGNOSIS
        + " You decide: mend the selectors, and crawl again what was missed."
    ),
)
LATENCY: Final = Alert(
    name="CrawlLatencyHigh",
    expr=(
        'max by ($by) (last_over_time(site_signal:crawlhealth_penalty_points{signal="latency"}[$window]))'
        f" >= {LATENCY_POINTS}"
    ),
    for_=timedelta(minutes=15),
    severity=Severity.WARNING,
    summary="A site answers in twice its usual time or more.",
    description=(
        'The latency of {{ $labels.site }} costs {{ $value | printf "%.0f" }} points.'
        '{{ with printf "max(crawlhealth_latency_p95_seconds{@match})" @args | query }}'
        " Its 95th percentile is {{ . | first | value | humanizeDuration }}{{ end }}"
        '{{ with printf "max(crawlhealth_latency_p95_baseline_seconds{@match})" @args | query }}'
        ", normally {{ . | first | value | humanizeDuration }}.{{ end }}"
        + SCORE
        + ADVICE
        + " You decide: whether we are the load, and slow down if we are."
    ),
)
COST: Final = Alert(
    name="CrawlCostDoubled",
    expr="\nor ".join(
        f'label_replace(max by ($by) (crawlhealth_{cost}_per_record{{job="$job"}})'
        f' / (max by ($by) (crawlhealth_{cost}_per_record_baseline{{job="$job"}}) > 0) >= {COST_FACTOR},'
        f' "cost", "{cost}", "", "")'
        for cost in ("requests", "credits")
    ),
    for_=timedelta(hours=1),
    severity=Severity.WARNING,
    summary="A valid record costs twice its usual price or more.",
    description=(
        'A valid record of {{ $labels.site }} costs {{ $value | printf "%.1f" }} times its usual {{ $labels.cost }}.'
        + VERDICT
        + " You decide: whether the records are worth it, and where requests are wasted."
    ),
)
FROZEN: Final = Alert(
    name="CrawlBaselineFrozen",
    expr=f'max by ($by) (crawlhealth_baseline_age_seconds{{job="$job"}}) > {FROZEN_DAYS * 86400}',
    for_=timedelta(hours=1),
    severity=Severity.INFO,
    summary="A site's normal is no longer learnt, because too few good hours are left.",
    description=(
        "The newest hour of the baseline of {{ $labels.site }} is {{ $value | humanizeDuration }} old."
        + SCORE
        + " You decide: whether what the site does now is its new normal, and accept it if it is."
    ),
)


def groups(options: Options) -> tuple[Group, ...]:
    """The verdict's rules. With fleet scoring the score and its bands come from `fleet.py`."""
    judged: tuple[Alert, ...] = (DRIFTING, PARSER, LATENCY, COST, FROZEN)
    missing = Group(file="score", name="crawlhealth-score-missing", rules=(UNKNOWN,), interval=timedelta(minutes=5))
    if options.scoring is Scoring.FLEET:
        return (Group(file="score", name="crawlhealth-verdicts", rules=(*JUDGED, *judged)), missing)
    rules: tuple[Rule, ...] = (*SCORES, *JUDGED, RESISTING, DEGRADING, *judged)
    return (Group(file="score", name="crawlhealth-score", rules=rules), missing)
