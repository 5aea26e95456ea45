"""Alerts on errors (5xx, timeouts, dead proxies) of a site or of one route, and on a route that alone is refused.

Errors are no hostility and lower no score. A fault is the route's while another route of the site is well, and the
site's when none is: so each fault is told once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.alerts.text import ADVICE, DIAGNOSIS, SCORE
from crawlhealth.bundle.model import Alert, Group, Options, Severity
from crawlhealth.bundle.recording import HOURLY, REQUESTS, USUAL, USUAL_INTERVAL, of_routes, recent

ERRORS: Final = 0.2
"""The share of errors from which a site or route is told of, unless that is usual for the site."""
ALWAYS: Final = 0.5
"""The share of errors that is never usual."""
WELL: Final = 0.1
"""The share of failures under which a route is well."""
REFUSED: Final = 0.5


_REASONS: Final = (
    '{{ range printf "sort_desc(topk(3, sum by (reason)'
    ' (increase(crawlhealth_request_reasons_total{@match,reason=~\\"http_5..|timeout|dns|tls|proxy|connection_.+\\"}'
    '[1h])) >= 1))" @args | query }} {{ .Labels.reason }}: {{ .Value | printf "%.0f" }}.{{ end }}'
)

ERRORS_HIGH: Final = Alert(
    name="CrawlErrorsHigh",
    expr=(
        f"{recent('site:crawl_errors:ratio1h')} >= {ERRORS}\n"
        f"and on ($on) {recent('site:crawl_errors:ratio1h_best_route')} >= {WELL}\n"
        "unless on ($on) (\n"
        f"  {recent('site:crawl_errors:ratio1h')}\n"
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
    expr=(
        f"({of_routes('crawl_errors')}) >= {ERRORS}\n"
        f"and on ($on) {recent('site:crawl_errors:ratio1h_best_route')} < {WELL}"
    ),
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
    expr=(
        f"({of_routes('crawl_refused')}) >= {REFUSED}\n"
        f"and on ($on) {recent('site:crawl_refused:ratio1h_best_route')} < {WELL}"
    ),
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
    """The rules of errors and routes: what is read from counts of an hour, which volumes are read from, too."""
    alerts = (ERRORS_HIGH, ROUTE_ERRORS_HIGH, ROUTE_FAILING)
    return (
        Group(file="requests", name="crawlhealth-requests", rules=(REQUESTS,), interval=timedelta(minutes=1)),
        Group(file="errors", name="crawlhealth-errors", rules=(*HOURLY, *alerts), interval=timedelta(minutes=1)),
        Group(file="errors", name="crawlhealth-errors-usual", rules=USUAL, interval=USUAL_INTERVAL),
    )
