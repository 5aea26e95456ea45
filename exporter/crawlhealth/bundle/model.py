"""What the bundle is described with: alerts, recording rules, groups of them, and the options of a rendering.

Each part of the bundle is a module with one function, `groups(options) -> tuple[Group, ...]`, named in `render.PARTS`.

**Expressions** are PromQL with these placeholders (`rules.py` fills them; a `$` of any other name is an error):

| written | becomes | for |
|---|---|---|
| `$job` | the exporter's job, escaped | `crawlhealth_band{job="$job"}`: what only the exporter has |
| `$traffic` | `job="crawlhealth"`, or `job=~"crawlhealth|crawlers"` | `crawlhealth_requests_total{$traffic,source="traffic"}`: counters that crawlers may expose themselves |
| `$by` | the group labels and `site`: `site`, or `tenant, cluster, site` | `by ($by)`, `by ($by, route)` |
| `$on` | the same list | `on ($on)`, `on ($on, route) group_left ()` |
| `${group}` | the group labels with a comma after each: nothing, or `tenant, cluster, ` | `by (${group}domain, bot)`: what is not of a site |
| `$window` | the rule's `window` | `max_over_time(…[$window])` |
| `${5m}` | that length in seconds: `300` | `time() - x > ${5m}` |

Lengths that stand in the text (`[1h]`, `[14d:5m]`, `offset 1d`) and placeholders of lengths are divided by the time
scale of the rendering; numbers are not. Ranges stay at 10 s or more. Rules that read another rule of the bundle write
`last_over_time(site:x:y[15m])`: some engines write results late. The first line of an expression is not indented.

**Texts** (`description`) are Prometheus templates; `@match` becomes `site=%q` (with group labels
`tenant=%q,cluster=%q,site=%q`) and `@args` `$labels.site` (`$labels.tenant $labels.cluster $labels.site`), for
`{{ with printf "site:crawlhealth_score{@match}" @args | query }}`.
"""  # noqa: E501 - rows of a table do not break

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from math import inf
from typing import Final

DEFAULT_RUNBOOKS: Final = "https://crawlhealth.invalid/runbooks"
DEFAULT_DASHBOARDS: Final = "https://grafana.invalid"
DEFAULT_EXPORTER: Final = "https://crawlhealth.invalid"
MAX_RULES: Final = 20
"""How many rules a group may have."""
MAX_INTERVAL: Final = timedelta(minutes=5)
"""Results of rules that are evaluated less often are invisible between two evaluations."""


class Severity(StrEnum):
    """Who hears of it: `critical` calls a person, `warning` is a ticket, `info` goes into a digest."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Scoring(StrEnum):
    """Where the score comes from: the exporter's gauges, or rules over the counters of all crawlers."""

    EXPORTER = "exporter"
    FLEET = "fleet"


class Scope(StrEnum):
    """What one firing of an alert is about; the value is the dashboard that shows it.

    An alert of a site carries the label `site`, and keeps quiet during the site's planned stops.
    """

    SITE = "crawlhealth-site"
    EXPORTER = "crawlhealth-exporter"
    SEARCHBOTS = "crawlhealth-searchbots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert.

    `summary` is one sentence without values, so that equal alerts group; `description` is a template (see above). The
    runbook is `alerting/runbooks/<name>.md`. `window` is what `$window` stands for, and how long after the end of a
    planned stop the alert still keeps quiet.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    for_: timedelta = timedelta(0)
    keep_firing_for: timedelta = timedelta(0)
    window: timedelta = timedelta(minutes=5)
    scope: Scope = Scope.SITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One recording rule. `name` is `level:metric:operations`, `labels` are added to every series."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)
    window: timedelta = timedelta(minutes=5)


Rule = Alert | Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated in this order, one after the other, in the file `alerting/rules/<file>.yml`.

    Raises ValueError when there are more rules than one evaluation should take, or it comes too seldom.
    """

    file: str
    name: str
    rules: tuple[Rule, ...]
    interval: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if len(self.rules) > MAX_RULES:
            raise ValueError(f"group {self.name}: {len(self.rules)} rules, at most {MAX_RULES} in one group")
        if not timedelta(0) < self.interval <= MAX_INTERVAL:
            raise ValueError(f"group {self.name}: interval {self.interval}, at most {MAX_INTERVAL}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a rendering may be given.

    `job` is the scrape job of the exporter, `crawler_jobs` those of crawlers that expose counters themselves.
    `group_labels` are target labels that part sites of the same name (a tenant, a cluster). `severities` replace those
    of alerts by name. `runbook_base` is where `alerting/runbooks` is served, `dashboard_base` Grafana's address,
    `exporter_url` that of the exporter, to whose pages of sites messages link.
    `page_url`, `notify_url` and `digest_url` are the webhooks of critical, warning and info alerts. `time_scale`
    divides every duration: a demo plays hours in minutes. Raises ValueError unless it is over 0.
    """

    job: str = "crawlhealth"
    crawler_jobs: tuple[str, ...] = ()
    scoring: Scoring = Scoring.EXPORTER
    group_labels: tuple[str, ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    runbook_base: str = DEFAULT_RUNBOOKS
    dashboard_base: str = DEFAULT_DASHBOARDS
    exporter_url: str = DEFAULT_EXPORTER
    page_url: str = "http://127.0.0.1:9878/page"
    notify_url: str = "http://127.0.0.1:9878/notify"
    digest_url: str = "http://127.0.0.1:9878/digest"
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.time_scale < inf:
            raise ValueError(f"time_scale must be over 0, not {self.time_scale}")
