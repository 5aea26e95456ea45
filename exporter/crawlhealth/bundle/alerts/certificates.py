"""Alerts on ends of validity: certificates of crawled sites, registrations of the user's own domains.

The certificate's end is the earliest one seen in hours: a probe that fails does not resolve the alert, and nodes with
different certificates do not make it flap.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.bundle.model import Alert, Group, Options, Scope, Severity

_END: Final = 'min by ($by, host) (min_over_time(crawlhealth_tls_not_after_timestamp_seconds{job="$job"}[$window]))'
_DOMAIN_END: Final = (
    'max by (${group}domain) (last_over_time(crawlhealth_domain_expiry_timestamp_seconds{job="$job"}[$window]))'
)
CERTIFICATE_DAYS: Final = 14
DOMAIN_DAYS: Final = 30

ALERTS: Final = (
    Alert(
        name="CrawlCertificateExpiring",
        expr=f"0 < {_END} - time() < {CERTIFICATE_DAYS * 86400}",
        for_=timedelta(minutes=15),
        window=timedelta(hours=6),
        severity=Severity.INFO,
        summary="The certificate of a crawled host ends within two weeks.",
        description=(
            "The certificate of {{ $labels.host }} ({{ $labels.site }}) ends in {{ $value | humanizeDuration }}."
            " You decide: nothing for somebody else's site but to know; renew it where the host is yours."
        ),
    ),
    Alert(
        name="CrawlCertificateExpired",
        expr=f"time() - {_END} >= 0",
        for_=timedelta(minutes=15),
        window=timedelta(hours=6),
        severity=Severity.WARNING,
        summary="The certificate of a crawled host has expired: requests to it fail.",
        description=(
            "The certificate of {{ $labels.host }} ({{ $labels.site }}) ended {{ $value | humanizeDuration }} ago."
            " You decide: tell the site's owner, and stop the crawl of this host until it is renewed."
        ),
    ),
    Alert(
        name="CrawlDomainExpiring",
        expr=f"0 < {_DOMAIN_END} - time() < {DOMAIN_DAYS * 86400}",
        for_=timedelta(hours=1),
        window=timedelta(days=2),
        severity=Severity.WARNING,
        summary="The registration of one of our domains ends within a month.",
        description=(
            "The registration of {{ $labels.domain }} ends in {{ $value | humanizeDuration }}."
            " You decide: renew it at its registrar, or let it go on purpose."
        ),
        scope=Scope.SEARCHBOTS,
    ),
    Alert(
        name="CrawlDomainExpired",
        expr=f"time() - {_DOMAIN_END} >= 0",
        for_=timedelta(hours=1),
        window=timedelta(days=2),
        severity=Severity.CRITICAL,
        summary="The registration of one of our domains has ended: anybody may take it.",
        description=(
            "The registration of {{ $labels.domain }} ended {{ $value | humanizeDuration }} ago."
            " You decide: renew it today, while its registrar still holds it for us."
        ),
        scope=Scope.SEARCHBOTS,
    ),
)


def groups(_options: Options) -> tuple[Group, ...]:
    """The rules of ends of validity."""
    return (Group(file="certificates", name="crawlhealth-certificates", rules=ALERTS, interval=timedelta(minutes=5)),)
