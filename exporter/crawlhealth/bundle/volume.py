"""Recording rules of crawl volume: what is counted, what was to be expected of it, and whether half of that is gone.

Three things are judged alike: production requests of a site (`site:crawl_requests`), its valid records
(`site:crawl_records`), and the visits of a verified search bot to a domain (`domain_bot:searchbot_visits`). Each has

| record | meaning |
|---|---|
| `…:increase1h`, `…:increase1d` | counted in the last hour, in the last day; a series that vanished counts as 0 |
| `…:increase1h_median7d`, `…:increase1d_median7d` | the median of the seven days before, at this time of day |
| `…:increase1h_reference`, `…:increase1d_reference` | yesterday's; the median where that is out of line with it |
| `…:increase1h_least` | the least median of an hour and a quarter to either side of this time of day |
| `…:increase1h_busy` | what a third of the day's hours lead one to expect at least |
| `…:volume_ratio`, `…:volume_ratio1d` | the share of the reference that was counted, where that is at least 100 |
| `…:volume_halved` | 1: half is gone and no week had it so, 0: not; absent where there is too little to tell |
| `…:increase1d_avg3d` | a day's count, over three days: what slow changes are looked for in |

- **Hours and days.** Hours are judged where they have 100 to expect; the last 24 hours where not even a third of the
  day's hours do. The last judgement holds until the next, 18 hours at most: a night with little to count ends no alarm.
- **Summer time.** An hour is half gone only if it is half of the least median around it, too: work that runs by local
  time moves by an hour twice a year.
- **Quiet before.** A day of the week that is always quiet has the volume of a week ago, and of two: so an outage does
  not excuse the one a week later.
- **Advice** that the crawler has (`crawlhealth_advice_*`) makes that much less expected.
- **No judgement** is made while the exporter's counts lag behind: it was not scraped for a while of the last hour,
  cannot write, turned pushes away, or reads a log late. See `volumetrust.py`.

All of it needs 15 days of retention, and 29 for the comparison with four weeks ago.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from crawlhealth import metrics
from crawlhealth.bundle.alerts import volume as alerts
from crawlhealth.bundle.model import Alert, Group, Options, Record
from crawlhealth.bundle.recording import TRAFFIC
from crawlhealth.bundle.recording import requests as counts
from crawlhealth.bundle.volumetrust import LOGS_BEHIND, Subject, lagging, trusted

INTERVAL: Final = timedelta(minutes=4)
"""Ranges of a day are read of these results: half as many as two minutes would give cost half."""
EXPECTED: Final = 100
"""How much an hour, or a day, must lead one to expect before half of it can be missed."""
SEEN: Final = 20
"""How much expected is enough to see that all is well again, on something that is judged by the hour at other times."""
AS_QUIET: Final = 0.6
"""The share of last week's volume that still is what last week was."""
ADVISED: Final = Record(
    name="site:crawl_advice:share",
    expr='min by ($by) (min_over_time(crawlhealth_advice_concurrency_ratio{job="$job"}[5m]))\n'
    '/ max by ($by) (max_over_time(crawlhealth_advice_revisit_multiplier{job="$job"}[5m]))',
)
"""How much of the usual volume advice leaves: recorded, since a day of it is read over and over."""


def groups(options: Options) -> tuple[Group, ...]:
    """A file with one group each for requests, records and visits: recording rules first, then the alerts."""
    sites = (*options.group_labels, "site")
    bots = tuple(dict.fromkeys((*options.group_labels, "tenant", "domain", "bot")))
    requests = Subject(
        prefix="site:crawl_requests",
        hour=counts(TRAFFIC),
        shown='crawlhealth_requests_total{job="$job",source="traffic",outcome="ok"}',
        labels=sites,
        unreliable="site:crawl_requests:unreliable",
        advised=True,
    )
    records = Subject(
        prefix="site:crawl_records",
        hour='increase(crawlhealth_records_total{$traffic,result="valid"}[1h])',
        shown='crawlhealth_records_total{job="$job",result="valid"}',
        labels=sites,
        unreliable="site:crawl_requests:unreliable",
        advised=True,
    )
    visits = Subject(
        prefix=metrics.VISITS_RECORDED,
        hour='increase(crawlhealth_searchbot_visits_total{job="$job",identity="verified"}[1h])',
        shown='crawlhealth_searchbot_visits_total{job="$job",identity="verified"}',
        labels=bots,
        unreliable="domain_bot:searchbot_visits:unreliable",
        advised=False,
    )
    return (
        _group(
            requests,
            options,
            (*lagging(requests, options, "instance:crawl_exporter:behind"), ADVISED),
            alerts.requests(requests.on),
        ),
        _group(records, options, (), alerts.records(records.on)),
        _group(
            visits,
            options,
            lagging(visits, options, "instance:searchbot_logs:behind", LOGS_BEHIND),
            alerts.visits(options, visits.on),
        ),
    )


def _group(subject: Subject, options: Options, trust: tuple[Record, ...], told: tuple[Alert, ...]) -> Group:
    what = subject.prefix.rpartition("_")[2]
    return Group(
        file=f"volume-{what}",
        name=f"crawlhealth-volume-{what}",
        interval=INTERVAL,
        rules=(*trust, *_counts(subject, options), *_judgement(subject, options), *told),
    )


def _counts(subject: Subject, options: Options) -> tuple[Record, ...]:
    """What was counted, and what it is compared with."""
    p, on = subject.prefix, subject.on
    hours = _either(f"last_over_time({p}:increase1h[15m] offset {day}d)" for day in range(1, 8))
    days = _either(f"last_over_time({p}:increase1d[15m] offset {day}d)" for day in range(1, 8))
    return (
        Record(
            name=f"{p}:increase1h",
            expr=f"sum by ({on}) ({subject.hour})\n"
            f"or 0 * (last_over_time({p}:increase1h_reference[15m]) > 0)\n{trusted(subject, options)}",
        ),
        Record(name=f"{p}:increase1h_median7d", expr=f"quantile by ({on}) (0.5,\n{hours}\n)"),
        Record(
            name=f"{p}:increase1h_reference",
            expr=_reference(p, on, "increase1h"),
        ),
        Record(name=f"{p}:increase1h_least", expr=f"min_over_time({p}:increase1h_median7d[2h30m] offset 22h45m)"),
        Record(name=f"{p}:increase1h_busy", expr=f"quantile_over_time(0.67, {p}:increase1h_least[1d])"),
        Record(
            name=f"{p}:increase1d",
            expr=f"24 * avg_over_time({p}:increase1h[1d])\nand last_over_time({p}:increase1h[6h] offset 20h)",
        ),
        Record(name=f"{p}:increase1d_median7d", expr=f"quantile by ({on}) (0.5,\n{days}\n)"),
        Record(
            name=f"{p}:increase1d_reference",
            expr=_reference(p, on, "increase1d"),
        ),
        Record(
            name=f"{p}:increase1d_avg3d",
            expr="("
            + " + ".join(f"last_over_time({p}:increase1d[15m]{shift})" for shift in ("", " offset 1d", " offset 2d"))
            + ") / 3",
        ),
    )


def _judgement(subject: Subject, options: Options) -> tuple[Record, ...]:
    """How much of the reference is there, and whether half is gone."""
    p, on = subject.prefix, subject.on
    hour = _halved(subject, "volume_ratio", "increase1h", "2h")
    day = _halved(subject, "volume_ratio1d", "increase1d", "1d")
    least = f"last_over_time({p}:increase1h_least[15m])"
    shifted = f"\n    unless on ({on}) last_over_time({p}:increase1h[15m]) >= on ({on}) 0.5 * {least}"
    by_hour = f"on ({on}) (last_over_time({p}:increase1h_busy[15m]) >= {EXPECTED})"
    return (
        Record(
            name=f"{p}:volume_ratio",
            expr=f"last_over_time({p}:increase1h[15m])\n"
            f"/ on ({on}) (last_over_time({p}:increase1h_reference[15m]) >= {EXPECTED})",
        ),
        Record(
            name=f"{p}:volume_ratio1d",
            expr=f"last_over_time({p}:increase1d[15m])\n"
            f"/ on ({on}) (last_over_time({p}:increase1d_reference[15m]) >= {EXPECTED})\n"
            f"unless {by_hour}",
        ),
        Record(
            name=f"{p}:volume_halved",
            expr="(\n"
            f"  1 + 0 * ({hour}{shifted}\n  )\n"
            f"  or 0 * {_now(p, on, 'volume_ratio', 'increase1h')}\n"
            f"  or 1 + 0 * ({day}\n  )\n"
            f"  or 0 * {_now(p, on, 'volume_ratio1d', 'increase1d')}\n"
            f"  or 0 * (last_over_time({p}:increase1h[15m])\n"
            f"    >= on ({on}) 0.5 * (last_over_time({p}:increase1h_reference[15m]) >= {SEEN}) and {by_hour})\n"
            f")\n{trusted(subject, options)}",
        ),
    )


def _halved(subject: Subject, ratio: str, count: str, advised: str) -> str:
    """Half is gone; not as quiet as weeks before, and more than advice asks for."""
    p, on = subject.prefix, subject.on
    weeks = _either((f"last_over_time({p}:{count}[15m] offset {days}d)" for days in (7, 14)), 6)
    quiet = (
        f"\n    unless on ({on}) last_over_time({p}:{count}[15m])"
        f" >= on ({on}) {AS_QUIET} * max by ({on}) (\n{weeks}\n    )"
    )
    less = ""
    if subject.advised:
        less = (
            f"\n    unless on ({on}) last_over_time({p}:{ratio}[15m])"
            f" >= on ({on}) 0.5 * min_over_time({ADVISED.name}[{advised}])"
        )
    return f"{_now(p, on, ratio, count)} < 0.5{quiet}{less}"


def _now(p: str, on: str, ratio: str, count: str) -> str:
    """A ratio of this moment: one that was recorded last while there was enough to expect does not outlive that."""
    edge = f" unless on ({on}) last_over_time({p}:increase1h_least[15m]) < {EXPECTED}" if count == "increase1h" else ""
    enough = f"last_over_time({p}:{count}_reference[15m]) >= {EXPECTED}"
    return f"(last_over_time({p}:{ratio}[15m]) and on ({on}) {enough}{edge})"


def _reference(p: str, on: str, count: str) -> str:
    """Yesterday's, where it lies within half and twice the median, else the median."""
    median = f"last_over_time({p}:{count}_median7d[15m])"
    yesterday = f"last_over_time({p}:{count}[15m] offset 1d)"
    return f"{yesterday}\n  >= on ({on}) 0.5 * {median}\n  <= on ({on}) 2 * {median}\nor {median}"


def _either(vectors: Iterable[str], indent: int = 2) -> str:
    """The vectors side by side as one, each series marked with the place of its vector."""
    lines = [f'label_replace({vector}, "lookback", "{place}", "", "")' for place, vector in enumerate(vectors, 1)]
    return ("\n" + " " * indent + "or ").join([" " * indent + lines[0], *lines[1:]])
