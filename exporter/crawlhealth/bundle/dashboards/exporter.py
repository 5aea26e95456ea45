"""The dashboard of the exporter itself: is it scraped, does it judge, does it write, does it keep up."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Mapped, Panel, Query, Row, Series, Variable
from crawlhealth.bundle.dashboards.parts import UP, figure
from crawlhealth.bundle.model import Scope

_OF: Final = '@{group}job="@job",instance=~"$instance"'
_DOWN: Final = "The exporter is not scraped."


def _lines(
    title: str,
    description: str,
    *queries: tuple[str, str],
    unit: str,
    empty: str = _DOWN,
    stacked: bool = False,
    shades: dict[str, str] | None = None,
    series: tuple[Series, ...] = (),
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=tuple(Query(expr=expr, legend=legend) for expr, legend in queries),
        width=8,
        height=8,
        unit=unit,
        least=0,
        stacked=stacked,
        fill=10,
        colours=shades or {},
        series=series,
        empty=empty,
    )


_FIGURES: Final = (
    Panel(
        title="Exporters scraped",
        description="Whether Prometheus reaches every exporter. Down: no site is being watched.",
        kind=Kind.STAT,
        queries=(Query(expr=f"min(up{{{_OF}}})", legend="up", instant=True),),
        width=4,
        height=4,
        unit="none",
        mappings=UP,
        empty="Prometheus has no target of this job.",
    ),
    figure(
        "Since judged",
        "The time since the verdicts were last computed. Over five minutes an alert fires.",
        f"max(time() - crawlhealth_evaluation_timestamp_seconds{{{_OF}}})",
        unit="s",
        steps=((None, colours.GOOD), (120, colours.AMBER), (300, colours.BAD)),
        empty=_DOWN,
    ),
    figure(
        "Since written",
        "The time since the history was last written. It is written whenever there is something new.",
        f"max(time() - crawlhealth_history_last_commit_timestamp_seconds{{{_OF}}})",
        unit="s",
        steps=((None, colours.GOOD), (300, colours.AMBER)),
        empty=_DOWN,
    ),
    figure(
        "Failed writes, 1 h",
        "Commits of the history that failed within an hour. Pushes are not taken while they do.",
        f"sum(increase(crawlhealth_history_write_failures_total{{{_OF}}}[1h]))",
        unit="none",
        steps=((None, colours.GOOD), (1, colours.BAD)),
        empty=_DOWN,
    ),
    Panel(
        title="Configuration",
        description="Whether the last attempt to read the configuration worked. If not, the one before is in force.",
        kind=Kind.STAT,
        queries=(Query(expr=f"min(crawlhealth_config_last_reload_successful{{{_OF}}})", legend="read", instant=True),),
        width=4,
        height=4,
        unit="none",
        mappings=(
            Mapped(value=1, text="read", colour=colours.GOOD),
            Mapped(value=0, text="HAS FAULTS", colour=colours.BAD),
        ),
        empty=_DOWN,
    ),
    figure(
        "Failed rules, 1 h",
        "Evaluations of crawlhealth's rules that failed within an hour: alerts may be missing.",
        'sum(increase(prometheus_rule_evaluation_failures_total{rule_group=~".*;crawlhealth-.+"}[1h]))',
        unit="none",
        steps=((None, colours.GOOD), (1, colours.BAD)),
        empty="Prometheus does not scrape itself, so it cannot tell.",
    ),
)
_SCRAPE: Final = _lines(
    "Scrape",
    "How long a scrape takes. It must stay under the scrape's timeout (10 s unless written).",
    (f"max by (instance) (scrape_duration_seconds{{{_OF}}})", "{{instance}}"),
    unit="s",
)
_SAMPLES: Final = _lines(
    "Samples in a scrape",
    "How many samples a scrape brings: about a hundred for each site.",
    (f"max by (instance) (scrape_samples_scraped{{{_OF}}})", "{{instance}}"),
    unit="short",
)
_EVALUATION: Final = _lines(
    "Age of the verdicts",
    "The time since the verdicts were last computed, at each scrape. A line that rises: it judges no more.",
    (f"time() - max by (instance) (crawlhealth_evaluation_timestamp_seconds{{{_OF}}})", "{{instance}}"),
    unit="s",
)
_HISTORY: Final = _lines(
    "History on disk",
    "The size of the history on disk. It levels out at what `history.keep_hours` keeps.",
    (f"max by (instance) (crawlhealth_history_size_bytes{{{_OF}}})", "{{instance}}"),
    unit="bytes",
)
_PUSHES: Final = _lines(
    "Pushes",
    "Pushes of crawlers in a second, by what came of them. Rejected: the answer names each fault. Busy: a slow disk.",
    (f"sum by (result) (rate(crawlhealth_push_batches_total{{{_OF}}}[$__rate_interval]))", "{{result}}"),
    unit="suffix: pushes/s",
    stacked=True,
    shades={"accepted": colours.BLUE, "duplicate": colours.PALE, "rejected": colours.RED, "busy": colours.AMBER},
    empty="No crawler pushes to this exporter.",
)
_ITEMS: Final = _lines(
    "Pushed items",
    "Items of pushes in a second, by what came of them, and how many wait for the disk (dashed, on the right).",
    (f"sum by (result) (rate(crawlhealth_push_items_total{{{_OF}}}[$__rate_interval]))", "{{result}}"),
    (f"sum(crawlhealth_push_queue_items{{{_OF}}})", "waiting"),
    unit="suffix: items/s",
    shades={"accepted": colours.BLUE, "duplicate": colours.PALE, "rejected": colours.RED},
    series=(Series(name="waiting", colour=colours.AMBER, dashed=True, right=True, unit="short"),),
)
_LAG: Final = _lines(
    "Access logs: lag",
    "How far the reader of each log is behind. Over 15 minutes an alert fires, and volumes are not judged.",
    (f"max by (log) (crawlhealth_log_lag_seconds{{{_OF}}})", "{{log}}"),
    unit="s",
    empty="No access log is read: this part is for search bots on your own domains.",
)
_LINES_READ: Final = _lines(
    "Access logs: lines",
    "Lines read in a second, and those that could not be understood.",
    (f"sum(rate(crawlhealth_log_lines_total{{{_OF}}}[$__rate_interval]))", "read"),
    (f"sum(rate(crawlhealth_log_unreadable_lines_total{{{_OF}}}[$__rate_interval]))", "unreadable"),
    unit="suffix: lines/s",
    shades={"read": colours.BLUE, "unreadable": colours.RED},
    empty="No access log is read: this part is for search bots on your own domains.",
)
_CACHE: Final = _lines(
    "Look-ups of visitors",
    "Questions in a second who a visitor is, by whether the answer was known; addresses that wait on the right.",
    (f"sum by (result) (rate(crawlhealth_log_verification_cache_total{{{_OF}}}[$__rate_interval]))", "{{result}}"),
    (f"sum(crawlhealth_log_verification_waiting{{{_OF}}})", "waiting"),
    unit="suffix: /s",
    series=(Series(name="waiting", colour=colours.AMBER, dashed=True, right=True, unit="short"),),
    empty="No visitor is verified: this part is for search bots on your own domains.",
)
_MEMORY: Final = _lines(
    "Memory",
    "Resident memory of the exporter. About 50 KB for each site with a long history.",
    (f"max by (instance) (process_resident_memory_bytes{{{_OF}}})", "{{instance}}"),
    unit="bytes",
)
_CPU: Final = _lines(
    "Processor",
    "Processor time used, as a share of one core.",
    (f"max by (instance) (rate(process_cpu_seconds_total{{{_OF}}}[$__rate_interval]))", "{{instance}}"),
    unit="percentunit",
)
_VERSIONS: Final = Panel(
    title="Exporters",
    description="The version of each exporter, and its shard if sites are shared among several.",
    kind=Kind.TABLE,
    queries=(
        Query(expr=f"max by (instance, version, python) (crawlhealth_build_info{{{_OF}}})"),
        Query(expr=f"max by (instance, shard) (crawlhealth_shards{{{_OF}}})"),
        Query(expr=f"time() - max by (instance) (process_start_time_seconds{{{_OF}}})"),
    ),
    width=8,
    height=8,
    columns=(
        Column(name="instance", title="Exporter"),
        Column(name="version", title="Version"),
        Column(name="shard", title="Shard"),
        Column(name="Value #B", title="of", unit="none"),
        Column(name="Value #C", title="Runs for", unit="s", decimals=0),
    ),
    order="instance",
    empty=_DOWN,
)

BOARD: Final = Board(
    uid=Scope.EXPORTER,
    title="crawlhealth / Exporter",
    description="The exporter itself: is it scraped, does it judge, does it write, does it keep up.",
    hours=6,
    variables=(
        Variable(
            name="instance",
            label="Exporter",
            query='label_values(crawlhealth_build_info{@{group}job="@job"}, instance)',
            description="The exporters to show.",
        ),
    ),
    rows=(
        Row(title="Now", lines=(_FIGURES,)),
        Row(title="Judging and writing", lines=((_EVALUATION, _SCRAPE, _SAMPLES), (_HISTORY, _MEMORY, _CPU))),
        Row(title="What comes in", lines=((_PUSHES, _ITEMS, _VERSIONS), (_LAG, _LINES_READ, _CACHE))),
    ),
)
