"""The exporter in figures: is it scraped, does it judge and write, are its configuration, rules and pushes in order."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Kind, Mapped, Panel, Query
from crawlhealth.bundle.dashboards.parts import UP, figure

OF: Final = '@{group}job="@job",instance=~"$instance"'
DOWN: Final = "The exporter is not scraped."

FIGURES: Final = (
    Panel(
        title="Exporters scraped",
        description="Whether Prometheus reaches every exporter. Down: no site is being watched.",
        kind=Kind.STAT,
        queries=(Query(expr=f"min(up{{{OF}}})", legend="up", instant=True),),
        width=6,
        height=3,
        unit="none",
        mappings=UP,
        empty="Prometheus has no target of this job.",
    ),
    figure(
        "Since judged",
        "The time since the verdicts were last computed. Over five minutes an alert fires.",
        f"max(time() - crawlhealth_evaluation_timestamp_seconds{{{OF}}})",
        unit="s",
        steps=((None, colours.GOOD), (120, colours.AMBER), (300, colours.BAD)),
        empty=DOWN,
        width=6,
        height=3,
    ),
    figure(
        "Since written",
        "The time since the history was last written. It is written whenever there is something new.",
        f"max(time() - crawlhealth_history_last_commit_timestamp_seconds{{{OF}}})",
        unit="s",
        steps=((None, colours.GOOD), (300, colours.AMBER)),
        empty=DOWN,
        width=6,
        height=3,
    ),
    figure(
        "Failed writes, 1 h",
        "Commits of the history that failed within an hour. Pushes are not taken while they do.",
        f"sum(increase(crawlhealth_history_write_failures_total{{{OF}}}[1h]))",
        unit="none",
        steps=((None, colours.GOOD), (1, colours.BAD)),
        empty=DOWN,
        width=6,
        height=3,
    ),
    Panel(
        title="Configuration",
        description="Whether the last attempt to read the configuration worked. If not, the one before is in force.",
        kind=Kind.STAT,
        queries=(Query(expr=f"min(crawlhealth_config_last_reload_successful{{{OF}}})", legend="read", instant=True),),
        width=6,
        height=3,
        unit="none",
        mappings=(
            Mapped(value=1, text="read", colour=colours.GOOD),
            Mapped(value=0, text="HAS FAULTS", colour=colours.BAD),
        ),
        empty=DOWN,
    ),
    figure(
        "Rules that failed, 1 h",
        "Evaluations of crawlhealth's rules that failed within an hour: alerts may be missing.",
        'sum(increase(prometheus_rule_evaluation_failures_total{rule_group=~".*;crawlhealth-.+"}[1h]))',
        unit="none",
        steps=((None, colours.GOOD), (1, colours.BAD)),
        empty="Prometheus does not scrape itself, so it cannot tell.",
        width=6,
        height=3,
    ),
    figure(
        "Pushes turned away, 1 h",
        "Pushes within an hour that were not taken: faulty, or the disk was too slow. Crawlers bring the latter again.",
        f'sum(increase(crawlhealth_push_batches_total{{{OF},result=~"rejected|busy"}}[1h]))',
        unit="none",
        steps=((None, colours.GOOD), (1, colours.AMBER)),
        empty="No crawler pushes to this exporter.",
        width=6,
        height=3,
    ),
    figure(
        "Memory now",
        "Resident memory of the exporter that uses most.",
        f"max(process_resident_memory_bytes{{{OF}}})",
        unit="bytes",
        steps=((None, colours.GOOD),),
        empty=DOWN,
        width=6,
        height=3,
    ),
)
