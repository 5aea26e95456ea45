"""Alerts on errors (5xx, timeouts, dead proxies) of a site or of one route, and on a route that alone is refused.

Errors are no hostility and lower no score. A fault is the route's while another route of the site is well, and the
site's when none is: so each fault is told once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.alerts.text import ADVICE, DIAGNOSIS, SCORE
from crawlhealth.bundle.model import Alert, Group, Options, Severity
from crawlhealth.bundle.recording import HOURLY, USUAL, USUAL_INTERVAL

ERRORS: Final = 0.2
"""The share of errors from which a site or route is told of, unless that is usual for the site."""
ALWAYS: Final = 0.5
"""The share of errors that is never usual."""
WELL: Final = 0.1
"""The share of failures under which a route is well."""
REFUSED: Final = 0.5
ENOUGH: Final = 10
"""Requests of the hour that make a share worth reading."""


def _routes(metric: str) -> str:
    return (
        f"(last_over_time(site_route:{metric}:ratio1h[15m])"
        f" and last_over_time(site_route:crawl_requests:increase1h[15m]) >= {ENOUGH})"
    )


_REASONS: Final = (
    '{{ range printf "sort_desc(topk(3, sum by (reason)'
    ' (increase(crawlhealth_request_reasons_total{@match,reason=~\\"http_5..|timeout|dns|tls|proxy|connection_.+\\"}'
    '[1h])) >= 1))" @args | query }} {{ .Labels.reason }}: {{ .Value | printf "%.0f" }}.{{ end }}'
)

ERRORS_HIGH: Final = Alert(
    name="CrawlErrorsHigh",
    expr=(
        f"last_over_time(site:crawl_errors:ratio1h[15m]) >= {ERRORS}\n"
        f"and on ($on) min by ($by) {_routes('crawl_errors')} >= {WELL}\n"
        "unless on ($on) (\n"
        "  last_over_time(site:crawl_errors:ratio1h[15m])\n"
        f"  < clamp_max(2 * last_over_time(site:crawl_errors:ratio1h_median7d[15m]), {ALWAYS})\n"
        ")"
    ),
    for_=timedelta(minutes=15),
    window=timedelta(hours=1),
    severity=Severity.WARNING,
    summary="A site answers with errors or not at all, through every route.",
    description=(
        "{{ $value | humanizePercentage }} of the requests to {{ $labels.site }} ended in an error in the last hour."
        + _REASONS
        + DIAGNOSIS
        + ADVICE
        + " You decide: whether to wait for the site, or to stop until it is back."
    ),
)
ROUTE_ERRORS_HIGH: Final = Alert(
    name="CrawlRouteErrorsHigh",
    expr=(f"{_routes('crawl_errors')} >= {ERRORS}\nand on ($on) min by ($by) {_routes('crawl_errors')} < {WELL}"),
    for_=timedelta(minutes=15),
    window=timedelta(hours=1),
    severity=Severity.WARNING,
    summary="One route to a site brings errors while another one works.",
    description=(
        "{{ $value | humanizePercentage }} of the requests to {{ $labels.site }} through {{ $labels.route }} ended in"
        " an error in the last hour, and another route works."
        + DIAGNOSIS
        + " You decide: take the route out until it is mended."
    ),
)
ROUTE_FAILING: Final = Alert(
    name="CrawlRouteFailing",
    expr=(f"{_routes('crawl_refused')} >= {REFUSED}\nand on ($on) min by ($by) {_routes('crawl_refused')} < {WELL}"),
    for_=timedelta(minutes=15),
    window=timedelta(hours=1),
    severity=Severity.WARNING,
    summary="One route to a site is refused while another one is served.",
    description=(
        "{{ $value | humanizePercentage }} of what {{ $labels.site }} answered through {{ $labels.route }} in the last"
        " hour were refusals, and another route is served."
        + SCORE
        + DIAGNOSIS
        + ADVICE
        + " You decide: take the route out of this site; do not make up for it through another."
    ),
)


def groups(_options: Options) -> tuple[Group, ...]:
    """The rules of errors and routes: counts of an hour first, then what is read from them."""
    alerts = (ERRORS_HIGH, ROUTE_ERRORS_HIGH, ROUTE_FAILING)
    return (
        Group(file="errors", name="crawlhealth-errors", rules=(*HOURLY, *alerts), interval=timedelta(minutes=1)),
        Group(file="errors", name="crawlhealth-errors-usual", rules=USUAL, interval=USUAL_INTERVAL),
    )
