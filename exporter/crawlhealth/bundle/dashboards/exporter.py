"""The dashboard of the exporter itself: is it scraped, does it judge, does it write, does it keep up."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Panel, Query, Row, Series, Variable
from crawlhealth.bundle.dashboards.exporterfigures import DOWN, FIGURES, OF
from crawlhealth.bundle.model import Scope


def _lines(
    title: str,
    description: str,
    *queries: tuple[str, str],
    unit: str,
    empty: str = DOWN,
    stacked: bool = False,
    shades: dict[str, str] | None = None,
    series: tuple[Series, ...] = (),
    limit: float | None = None,
) -> Panel:
    """Lines over time; what is beyond a limit lies on a coloured area."""
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=tuple(Query(expr=expr, legend=legend) for expr, legend in queries),
        width=8,
        height=8,
        unit=unit,
        least=0,
        reach=limit,
        thresholds=() if limit is None else ((None, "transparent"), (limit, colours.BAD)),
        areas=limit is not None,
        stacked=stacked,
        fill=10,
        colours=shades or {},
        series=series,
        empty=empty,
    )


_SCRAPE: Final = _lines(
    "Scrape",
    "How long a scrape takes. It must stay under the scrape's timeout (10 s unless written).",
    (f"max by (instance) (scrape_duration_seconds{{{OF}}})", "{{instance}}"),
    unit="s",
)
_SAMPLES: Final = _lines(
    "Samples in a scrape",
    "How many samples a scrape brings: about a hundred for each site.",
    (f"max by (instance) (scrape_samples_scraped{{{OF}}})", "{{instance}}"),
    unit="short",
)
_EVALUATION: Final = _lines(
    "Age of the verdicts",
    "The time since the verdicts were last computed. A line that rises: no more are. On the red area an alert fires.",
    (f"time() - max by (instance) (crawlhealth_evaluation_timestamp_seconds{{{OF}}})", "{{instance}}"),
    unit="s",
    limit=300,
)
_HISTORY: Final = _lines(
    "History on disk",
    "The size of the history on disk. It levels out at what `history.keep_hours` keeps.",
    (f"max by (instance) (crawlhealth_history_size_bytes{{{OF}}})", "{{instance}}"),
    unit="bytes",
)
_PUSHES: Final = _lines(
    "Pushes",
    "Pushes of crawlers in a second, by what came of them. Rejected: the answer names each fault. Busy: a slow disk.",
    (f"sum by (result) (rate(crawlhealth_push_batches_total{{{OF}}}[$__rate_interval]))", "{{result}}"),
    unit="suffix: pushes/s",
    stacked=True,
    shades={"accepted": colours.BLUE, "duplicate": colours.PALE, "rejected": colours.RED, "busy": colours.AMBER},
    empty="No crawler pushes to this exporter.",
)
_ITEMS: Final = _lines(
    "Pushed items",
    "Items of pushes in a second, by what came of them, and how many wait for the disk (dashed, on the right).",
    (f"sum by (result) (rate(crawlhealth_push_items_total{{{OF}}}[$__rate_interval]))", "{{result}}"),
    (f"sum(crawlhealth_push_queue_items{{{OF}}})", "waiting"),
    unit="suffix: items/s",
    shades={"accepted": colours.BLUE, "duplicate": colours.PALE, "rejected": colours.RED},
    series=(Series(name="waiting", colour=colours.AMBER, dashed=True, right=True, unit="short"),),
)
_LAG: Final = _lines(
    "Access logs: lag",
    "How far the reader of each log is behind. On the red area an alert fires, and volumes are not judged.",
    (f"max by (log) (crawlhealth_log_lag_seconds{{{OF}}})", "{{log}}"),
    unit="s",
    limit=900,
    empty="No access log is read: this part is for search bots on your own domains.",
)
_LINES_READ: Final = _lines(
    "Access logs: lines",
    "Lines read in a second, and those that could not be understood.",
    (f"sum(rate(crawlhealth_log_lines_total{{{OF}}}[$__rate_interval]))", "read"),
    (f"sum(rate(crawlhealth_log_unreadable_lines_total{{{OF}}}[$__rate_interval]))", "unreadable"),
    unit="suffix: lines/s",
    shades={"read": colours.BLUE, "unreadable": colours.RED},
    empty="No access log is read: this part is for search bots on your own domains.",
)
_CACHE: Final = _lines(
    "Look-ups of visitors",
    "Questions in a second who a visitor is: hit, the answer was known; miss, it was asked. On the right: who waits.",
    (f"sum by (result) (rate(crawlhealth_log_verification_cache_total{{{OF}}}[$__rate_interval]))", "{{result}}"),
    (f"sum(crawlhealth_log_verification_waiting{{{OF}}})", "waiting"),
    unit="suffix: /s",
    series=(Series(name="waiting", colour=colours.AMBER, dashed=True, right=True, unit="short"),),
    empty="No visitor is verified: this part is for search bots on your own domains.",
)
_MEMORY: Final = _lines(
    "Memory",
    "Resident memory of the exporter. About 50 KB for each site with a long history.",
    (f"max by (instance) (process_resident_memory_bytes{{{OF}}})", "{{instance}}"),
    unit="bytes",
)
_CPU: Final = _lines(
    "Processor",
    "Processor time used, as a share of one core.",
    (f"max by (instance) (rate(process_cpu_seconds_total{{{OF}}}[$__rate_interval]))", "{{instance}}"),
    unit="percentunit",
)
_VERSIONS: Final = Panel(
    title="Exporters",
    description="The version of each exporter, and its shard if sites are shared among several.",
    kind=Kind.TABLE,
    queries=(
        Query(expr=f"max by (instance, version, python) (crawlhealth_build_info{{{OF}}})"),
        Query(expr=f"max by (instance, shard) (crawlhealth_shards{{{OF}}})"),
        Query(expr=f"time() - max by (instance) (process_start_time_seconds{{{OF}}})"),
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
    empty=DOWN,
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
        Row(title="Now", lines=(FIGURES[:4], FIGURES[4:])),
        Row(title="Judging and writing", lines=((_EVALUATION, _SCRAPE, _SAMPLES), (_HISTORY, _MEMORY, _CPU))),
        Row(title="What comes in", lines=((_PUSHES, _ITEMS, _VERSIONS), (_LAG, _LINES_READ, _CACHE))),
    ),
)
