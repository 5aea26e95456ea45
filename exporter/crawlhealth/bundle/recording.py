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
| `site_route:crawl_errors:ratio1h`, `site:crawl_errors:ratio1h` | site (, route) | errors among them |
| `site_route:crawl_refused:ratio1h`, `site:crawl_refused:ratio1h` | site (, route) | refused among the answered |
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

_REFUSED: Final = 'outcome=~"hard_block|challenge|soft_block"'


def _hour(by: str, matcher: str = "") -> str:
    """The requests of the last hour that `matcher` chooses, by labels."""
    chosen = f"{{{matcher}}}" if matcher else ""
    return f"sum by ({by}) (last_over_time(site_route_outcome:crawl_requests:increase1h{chosen}[15m]))"


def _ratio(name: str, by: str, *, part: str, whole: str = "") -> Record:
    counted, among = _hour(by, part), _hour(by, whole)
    return Record(name=name, expr=f"({counted} or 0 * {among})\n/ ({among} > 0)")


HOURLY: Final = (
    Record(
        name="site_route_outcome:crawl_requests:increase1h",
        expr="sum by ($by, route, source, outcome) (increase(crawlhealth_requests_total{$traffic}[1h]))",
    ),
    Record(name="site_route:crawl_requests:increase1h", expr=_hour("$by, route")),
    _ratio("site_route:crawl_errors:ratio1h", "$by, route", part='outcome="error"'),
    _ratio("site_route:crawl_refused:ratio1h", "$by, route", part=_REFUSED, whole='outcome!="error"'),
    _ratio("site:crawl_errors:ratio1h", "$by", part='outcome="error"'),
    _ratio("site:crawl_refused:ratio1h", "$by", part=_REFUSED, whole='outcome!="error"'),
)

USUAL: Final = (
    Record(
        name="site:crawl_errors:ratio1h_median7d",
        expr="quantile_over_time(0.5, site:crawl_errors:ratio1h[7d:1h] offset 1d)",
    ),
)
USUAL_INTERVAL: Final = timedelta(minutes=5)
"""A week is read over and over: seldom is enough, and any less would leave gaps between two results."""
