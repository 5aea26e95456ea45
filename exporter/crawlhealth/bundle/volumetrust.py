"""Whose volume is judged, and when its counts are not to be trusted: records that say where an exporter lags behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crawlhealth.bundle.model import Options, Record

LAG_SECONDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something with a volume: the prefix of its records, what counts its last hour, the labels it is told apart by.

    `shown` selects one series of its counter for each of its ways, as the exporter shows all others beside it.
    `unreliable` is the record that says where counts are not to be trusted; `advised` whether crawlers take advice.
    """

    prefix: str
    hour: str
    shown: str
    labels: tuple[str, ...]
    unreliable: str
    advised: bool

    @property
    def on(self) -> str:
        """The labels as they stand after `by` and `on`."""
        return ", ".join(self.labels)


_EXPORTER_BEHIND: Final = """\
avg_over_time(up{job="$job"}[1h]) < 0.9
or increase(crawlhealth_history_write_failures_total{job="$job"}[15m]) > 0
or crawlhealth_push_queue_items{job="$job"} > 0
  and on (%s) time() - crawlhealth_history_last_commit_timestamp_seconds{job="$job"} > ${5m}
or sum by (%s) (increase(crawlhealth_push_batches_total{job="$job",result="busy"}[1h]))
  > 0.1 * sum by (%s) (increase(crawlhealth_push_batches_total{job="$job"}[1h]))"""
LOGS_BEHIND: Final = f"""
or max_over_time(crawlhealth_log_lag_seconds{{job="$job"}}[1h]) > {LAG_SECONDS}"""


def lagging(subject: Subject, options: Options, behind: str, logs: str = "") -> tuple[Record, ...]:
    """Which exporters lag behind, and what has its counts from them. One that is down keeps what it had."""
    where = ", ".join((*options.group_labels, "instance"))
    trouble = _EXPORTER_BEHIND.replace("%s", where) + logs
    level, _, metric = subject.prefix.partition(":")
    series = f"{level}_instance:{metric}:series"
    here = ", ".join(dict.fromkeys((*subject.labels, "instance")))
    return (
        Record(name=behind, expr=f"count by ({where}) (\n{_indented(trouble)}\n)"),
        Record(
            name=series,
            expr=f"count by ({here}) ({subject.shown})\n"
            f'or last_over_time({series}[2h]) and on ({where}) (up{{job="$job"}} == 0)',
        ),
        Record(
            name=subject.unreliable,
            expr=f"(\n"
            f"  count by ({subject.on}) (\n"
            f"    last_over_time({series}[15m]) and on ({where}) last_over_time({behind}[15m])\n  )\n"
            f"  / count by ({subject.on}) (last_over_time({series}[15m]))\n"
            f") > 0.1",
        ),
    )


def trusted(subject: Subject, options: Options) -> str:
    """Only while counts are what happened: Prometheus scraped all the hour, and the exporter was not behind."""
    group = ", ".join(options.group_labels)
    by = f" by ({group})" if group else ""
    return (
        f"and on ({group}) count_over_time((count{by} (up{{$traffic}}))[1h:5m])"
        " >= 0.85 * scalar(count_over_time(vector(1)[1h:5m]))\n"
        f"unless on ({subject.on}) last_over_time({subject.unreliable}[15m])"
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
