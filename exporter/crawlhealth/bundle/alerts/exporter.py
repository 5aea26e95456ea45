"""Alerts on the exporter itself, on what is pushed to it, and on the rules: who watches must be watched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from crawlhealth.bundle.model import Alert, Group, Options, Scope, Scoring, Severity


def _alert(
    name: str,
    *,
    expr: str,
    severity: Severity,
    summary: str,
    description: str,
    minutes: int,
    window_minutes: int = 15,
    keep_minutes: int = 0,
) -> Alert:
    return Alert(
        name=name,
        expr=expr,
        severity=severity,
        summary=summary,
        description=description,
        for_=timedelta(minutes=minutes),
        keep_firing_for=timedelta(minutes=keep_minutes),
        window=timedelta(minutes=window_minutes),
        scope=Scope.EXPORTER,
    )


_DOWN: Final = 'up{job="$job"} == 0'
ALERTS: Final = (
    _alert(
        "CrawlUplinkDown",
        expr='crawlhealth_uplink_up{job="$job"} == 0',
        minutes=1,
        keep_minutes=5,  # what it mutes takes an evaluation or a canary's run to end, and a bad line comes back
        severity=Severity.CRITICAL,
        summary="Our own connection is down: no site is to blame for what fails now.",
        description=(
            "{{ $labels.instance }} reaches nothing: every canary fails to connect, or the reference does."
            " You decide: call whoever runs the network."
        ),
    ),
    _alert(
        "CrawlUplinkOutage",
        expr='min_over_time(max_over_time(crawlhealth_uplink_up{job="$job"}[5m])[$window:1m]) == 0',
        minutes=0,
        window_minutes=120,
        severity=Severity.INFO,
        summary="Our own connection was down within the last two hours: counts of the hour still show it.",
        description=(
            "{{ $labels.instance }} reached nothing for five minutes or more. Errors, failing canaries and missing"
            " volume are not told until two hours after it. You decide: whether to crawl again what was missed."
        ),
    ),
    _alert(
        "CrawlExporterDown",
        expr=f'{_DOWN} or absent(up{{job="$job"}})',
        minutes=5,
        severity=Severity.CRITICAL,
        summary="crawlhealth cannot be scraped: no site is being watched.",
        description=(
            "{{ with $labels.instance }}{{ . }} does not answer.{{ else }}"
            "Prometheus has no target of the job {{ $labels.job }}.{{ end }}"
            " You decide: restart it, or mend the scrape configuration."
        ),
    ),
    _alert(
        "CrawlExporterStale",
        expr=(
            'time() - crawlhealth_evaluation_timestamp_seconds{job="$job"} > ${5m}\n'
            'or (up{job="$job"} == 1 unless on (${group}job, instance)'
            ' crawlhealth_evaluation_timestamp_seconds{job="$job"}) * 0'
        ),
        minutes=5,
        severity=Severity.CRITICAL,
        summary="crawlhealth answers but judges no more: every score it shows is old.",
        description=(
            "{{ $labels.instance }} {{ if $value }}last computed its verdicts {{ $value | humanizeDuration }} ago."
            "{{ else }}has computed no verdicts yet.{{ end }} You decide: keep its log, then restart it."
        ),
    ),
    _alert(
        "CrawlShardMissing",
        expr=(
            "(\n"
            '  max by (${group}job) (crawlhealth_shards{job="$job"})\n'
            '  > count by (${group}job) (count by (${group}job, shard) (crawlhealth_shards{job="$job"}))\n'
            '  or max by (${group}job) (crawlhealth_shards{job="$job"})'
            ' > min by (${group}job) (crawlhealth_shards{job="$job"})\n'
            ")\n"
            'unless on (${group}job) up{job="$job"} == 0'
        ),
        minutes=10,
        severity=Severity.CRITICAL,
        summary="A shard is missing, or exporters disagree on how many there are: some sites are watched by nobody.",
        description=(
            "There should be {{ $value }} shards"
            '{{ with printf "count(count by (shard) (crawlhealth_shards{job=%q}))" $labels.job | query }}'
            ", and {{ . | first | value }} are there{{ end }}."
            " You decide: start the one that is missing, or give all of them the same number."
        ),
    ),
    _alert(
        "CrawlHistoryFailing",
        expr='increase(crawlhealth_history_write_failures_total{job="$job"}[$window]) > 0',
        minutes=5,
        severity=Severity.CRITICAL,
        summary="crawlhealth cannot write its history: pushes are not taken and nothing is learnt.",
        description=(
            '{{ $labels.instance }} failed to write {{ $value | printf "%.0f" }} times in a quarter of an hour.'
            " You decide: make room on the disk, or mend its permissions."
        ),
    ),
    _alert(
        "CrawlPushRejected",
        expr=(
            'sum by (${group}job, instance) (increase(crawlhealth_push_items_total{job="$job",result="rejected"}'
            "[$window]))\n"
            '/ sum by (${group}job, instance) (increase(crawlhealth_push_items_total{job="$job"}[$window])) >= 0.05\n'
            'or sum by (${group}job, instance) (increase(crawlhealth_push_batches_total{job="$job",result="rejected"}'
            "[$window]))\n"
            '/ sum by (${group}job, instance) (increase(crawlhealth_push_batches_total{job="$job"}[$window])) >= 0.05'
        ),
        minutes=15,
        severity=Severity.WARNING,
        summary="What crawlers send is rejected: it is counted for no site.",
        description=(
            "{{ $labels.instance }} rejected {{ $value | humanizePercentage }} of what was pushed to it lately."
            " You decide: correct what the crawler sends; the answer to a push names each fault."
        ),
    ),
    _alert(
        "CrawlPushBusy",
        expr=(
            'sum by (${group}job, instance) (increase(crawlhealth_push_batches_total{job="$job",result="busy"}'
            "[$window]))\n"
            '/ sum by (${group}job, instance) (increase(crawlhealth_push_batches_total{job="$job"}[$window])) >= 0.05'
        ),
        minutes=15,
        severity=Severity.WARNING,
        summary="crawlhealth cannot take what crawlers send as fast as it comes.",
        description=(
            "{{ $labels.instance }} put off {{ $value | humanizePercentage }} of the pushes lately; crawlers keep them"
            " until their own buffers are full. You decide: send minute summaries, a faster disk, or more shards."
        ),
    ),
    _alert(
        "CrawlReloadFailed",
        expr='crawlhealth_config_last_reload_successful{job="$job"} == 0',
        minutes=5,
        severity=Severity.WARNING,
        summary="The configuration that was read last has faults: the one before is still in force.",
        description=(
            "{{ $labels.instance }} could not read its configuration. You decide: `crawlhealth check` names every"
            " fault with its line."
        ),
    ),
    _alert(
        "CrawlRulesFailing",
        expr='increase(prometheus_rule_evaluation_failures_total{rule_group=~".*;crawlhealth-.+"}[$window]) > 0',
        minutes=5,
        severity=Severity.WARNING,
        summary="Prometheus cannot evaluate rules of crawlhealth: alerts may be missing.",
        description=(
            'In {{ $labels.rule_group }} {{ $value | printf "%.0f" }} evaluations failed in a quarter of an hour.'
            " You decide: read the error on Prometheus' page of rules."
        ),
    ),
    _alert(
        "CrawlScrapeFailing",
        expr='avg_over_time(up{job="$job"}[$window]) < 0.9 and changes(up{job="$job"}[$window]) >= 4',
        minutes=15,
        window_minutes=60,
        severity=Severity.WARNING,
        summary="Scrapes of crawlhealth fail now and then: graphs have gaps and alerts come late.",
        description=(
            "Only {{ $value | humanizePercentage }} of the scrapes of {{ $labels.instance }} worked in the last hour."
            " You decide: a longer scrape timeout, a lighter exposition, or a better line."
        ),
    ),
)


def groups(options: Options) -> tuple[Group, ...]:
    """The exporter's rules. With fleet scoring there may be no exporter at all."""
    rules: tuple[Alert, ...] = ALERTS
    if options.scoring is Scoring.FLEET:
        rules = tuple(replace(one, expr=_DOWN) if one.name == "CrawlExporterDown" else one for one in ALERTS)
    return (Group(file="exporter", name="crawlhealth-exporter", rules=rules),)
