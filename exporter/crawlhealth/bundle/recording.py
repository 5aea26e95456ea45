"""What dashboards and alerts read instead of the exporter's own series. Names are a contract; labels: see below.

| record | labels | meaning |
|---|---|---|
| `site:crawlhealth_score` | site | the health score; the lowest where several exporters know a site |
| `site:crawlhealth_score_raw` | site | the plain formula (exporter scoring only) |
| `site:crawlhealth_parser_score` | site | the parser score (exporter scoring only) |
| `site_band:crawlhealth_band` | site, band | 1 for the present band |
| `site_signal:crawlhealth_penalty_points` | site, signal | points that a signal costs |
| `site_route_outcome:crawl_requests:increase1h` | site, route, source, outcome | requests of the last hour |
| `site_route:crawl_requests:increase1h` | site, route | the same, all sources and outcomes together |
| `site_route:crawl_errors:increase1h`, `…answered…`, `…refused…` | site, route | those that ended so |
| `site_route:crawl_errors:ratio1h`, `site:crawl_errors:ratio1h` | site (, route) | errors among them |
| `site_route:crawl_refused:ratio1h`, `site:crawl_refused:ratio1h` | site (, route) | refused among the answered |
| `site:crawl_errors:ratio1h_best_route`, `site:crawl_refused:…` | site | the least of its routes with requests enough |
| `site:crawl_errors:ratio1h_by_the_hour` | site | errors among them, once an hour |
| `site:crawl_errors:ratio1h_median7d` | site | the usual share of errors: median of a week, without the last day |

`volume.py` adds `site:crawl_requests:…`, `site:crawl_records:…` and `domain_bot:searchbot_visits:…`; group labels come
before `site`. With fleet scoring `fleet.py` computes the score and the penalties under the same names.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.model import Record

SCORES: Final = (
    Record(name="site:crawlhealth_score", expr='min by ($by) (crawlhealth_score{job="$job"})'),
    Record(name="site:crawlhealth_score_raw", expr='min by ($by) (crawlhealth_score_raw{job="$job"})'),
    Record(
        name="site_signal:crawlhealth_penalty_points",
        expr='max by ($by, signal) (crawlhealth_penalty_points{job="$job"})',
    ),
    Record(name="site_band:crawlhealth_band", expr='max by ($by, band) (crawlhealth_band{job="$job"})'),
)
"""What fleet scoring computes otherwise."""

JUDGED: Final = (
    Record(name="site:crawlhealth_parser_score", expr='min by ($by) (crawlhealth_parser_score{job="$job"})'),
)

REQUESTS: Final = Record(
    name="site_route_outcome:crawl_requests:increase1h",
    expr="sum by ($by, route, source, outcome) (increase(crawlhealth_requests_total{$traffic}[1h]))",
)
"""An hour of every counter of requests, read once for all rules: nothing else of theirs costs as much."""
TRAFFIC: Final = 'source="traffic"'
_REFUSED: Final = 'outcome=~"hard_block|challenge|soft_block"'
_ANSWERED: Final = 'outcome!="error"'
ENOUGH: Final = 10
"""Requests of the hour that make the share of a route worth reading."""


def recent(record: str) -> str:
    """The last result of another rule."""
    return f"last_over_time({record}[15m])"


def requests(matcher: str) -> str:
    """The requests of the last hour by route, source and outcome; of so many series few results are read."""
    return f"last_over_time({REQUESTS.name}{{{matcher}}}[5m])"


def _counted(name: str, matcher: str) -> Record:
    """Requests of the last hour by route: all series of outcomes are read for these, and for nothing else."""
    return Record(name=f"site_route:{name}:increase1h", expr=f"sum by ($by, route) ({requests(matcher)})")


def _either(one: str, other: str) -> str:
    return f"({one} or 0 * {other})"


def _ratio(part: str, whole: str) -> tuple[Record, Record]:
    """The share of a part among a whole: by route, and of the site."""
    of_route = [recent(f"site_route:{name}:increase1h") for name in (part, whole)]
    of_site = [f"sum by ($by) ({one})" for one in of_route]
    return (
        Record(name=f"site_route:{part}:ratio1h", expr=f"{_either(*of_route)}\n/ ({of_route[1]} > 0)"),
        Record(name=f"site:{part}:ratio1h", expr=f"{_either(*of_site)}\n/ ({of_site[1]} > 0)"),
    )


def of_routes(name: str) -> str:
    """The share of each route that had requests enough."""
    return f"{recent(f'site_route:{name}:ratio1h')} and {recent('site_route:crawl_requests:increase1h')} >= {ENOUGH}"


_ERRORS: Final = recent("site_route:crawl_errors:increase1h")
_ANSWERS: Final = recent("site_route:crawl_answered:increase1h")
HOURLY: Final = (
    _counted("crawl_errors", 'outcome="error"'),
    _counted("crawl_refused", _REFUSED),
    _counted("crawl_answered", _ANSWERED),
    Record(
        name="site_route:crawl_requests:increase1h",
        expr=f"{_ANSWERS} + {_ERRORS}\nor {_ANSWERS}\nor {_ERRORS}",
    ),
    *_ratio("crawl_errors", "crawl_requests"),
    *_ratio("crawl_refused", "crawl_answered"),
    Record(name="site:crawl_errors:ratio1h_best_route", expr=f"min by ($by) ({of_routes('crawl_errors')})"),
    Record(name="site:crawl_refused:ratio1h_best_route", expr=f"min by ($by) ({of_routes('crawl_refused')})"),
)

USUAL: Final = (
    Record(
        name="site:crawl_errors:ratio1h_by_the_hour",
        expr=f"{recent('site:crawl_errors:ratio1h')}\nand on () vector(time() % ${{1h}}) < ${{5m}}",
    ),
    Record(
        name="site:crawl_errors:ratio1h_median7d",
        expr="quantile_over_time(0.5, site:crawl_errors:ratio1h_by_the_hour[7d] offset 1d)",
    ),
)
USUAL_INTERVAL: Final = timedelta(minutes=5)
"""The first result in an hour is what is remembered of it: any less often, and an hour would have none."""
