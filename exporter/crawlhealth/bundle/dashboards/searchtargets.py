"""Panels on where the visits of search bots went: decisions, shares, quotas, targets and domains."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Column, Kind, Mapped, Panel, Query
from crawlhealth.bundle.dashboards.parts import UP

BOT: Final = 'tenant=~"$tenant",domain=~"$domain",bot=~"$bot"'
"""Selects visits by what is chosen."""
NO_LOG: Final = "No access log is read: this dashboard is for search bots on your own domains."
_NO_DISPATCH: Final = "No dispatcher reports where it sends visits."
SENT: Final = 'decision="sent"'
_TENANT: Final = ',tenant=~"$tenant"'
_DOMAIN: Final = ',domain=~"$domain"'
_SENT: Final = 'tenant=~"$tenant",bot=~"$bot"'


def counted(metric: str, chosen: str, of: str, window: str, offset: str = "") -> str:
    """What a counter rose by in a window that ended `offset` ago."""
    more = f",{chosen}" if chosen else ""
    ago = f" offset {offset}" if offset else ""
    return f'increase(crawlhealth_{metric}{{@{{group}}job="@job",{of}{more}}}[{window}]{ago})'


def _gauge(metric: str, of: str, by: str) -> str:
    return f'max by (@{{prefix}}{by}) (crawlhealth_{metric}{{@{{group}}job="@job"{of}}})'


def _hourly(title: str, description: str, label: str, chosen: str, shades: dict[str, str]) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=(
            Query(
                expr=f"sum by ({label}) ({counted('searchbot_dispatches_total', chosen, BOT, '1h')})",
                legend=f"{{{{{label}}}}}",
            ),
        ),
        width=8,
        height=8,
        unit="short",
        least=0,
        stacked=True,
        colours=shades,
        empty=_NO_DISPATCH,
    )


_LOST: Final = Panel(
    title="Sent and arrived in an hour",
    description="Visits sent to targets, and those that the targets' own logs saw. A gap: visits are lost.",
    kind=Kind.LINES,
    queries=(
        Query(expr=f"sum({counted('searchbot_dispatches_total', SENT, _SENT, '1h')})", legend="sent"),
        Query(expr=f"sum({counted('dispatch_arrivals_total', '', _SENT, '1h')})", legend="arrived"),
    ),
    width=8,
    height=8,
    unit="short",
    least=0,
    colours={"sent": colours.BLUE, "arrived": colours.AMBER},
    empty=_NO_DISPATCH,
)
_SHARES: Final = Panel(
    title="Shares against weights",
    description="Which share of a bot's visits each target got, and its configured weight. Ten points off is an alert.",
    kind=Kind.TABLE,
    queries=(
        Query(expr=_gauge("searchbot_share_ratio", f",{_SENT}", "tenant, bot, target")),
        Query(expr=_gauge("searchbot_share_expected_ratio", f",{_SENT}", "tenant, bot, target")),
        Query(
            expr=(
                f"100 * ({_gauge('searchbot_share_ratio', f',{_SENT}', 'tenant, bot, target')}\n"
                f"- {_gauge('searchbot_share_expected_ratio', f',{_SENT}', 'tenant, bot, target')})"
            )
        ),
    ),
    width=12,
    height=8,
    columns=(
        Column(name="tenant", title="Tenant"),
        Column(name="bot", title="Bot"),
        Column(name="target", title="Target"),
        Column(name="Value #A", title="Share", unit="percentunit", decimals=1),
        Column(name="Value #B", title="Weight", unit="percentunit", decimals=1),
        Column(
            name="Value #C",
            title="Off by",
            unit="suffix: points",
            decimals=0,
            thresholds=((None, colours.AMBER), (-10, "transparent"), (10, colours.AMBER)),
        ),
    ),
    order="bot",
    empty=_NO_DISPATCH,
)
_QUOTA_USED: Final = (
    f"{_gauge('target_quota_used', _TENANT, 'tenant, target')}\n"
    f"/ ({_gauge('target_quota', _TENANT, 'tenant, target')} > 0)"
)
_QUOTAS: Final = Panel(
    title="Quotas used today",
    description="Visits that each target got today, as a share of its quota. Over 100 %: the dispatcher sent more.",
    kind=Kind.BARS,
    queries=(Query(expr=_QUOTA_USED, legend="{{tenant}} {{target}}", instant=True),),
    width=12,
    height=8,
    unit="percentunit",
    decimals=0,
    least=0,
    most=1,
    thresholds=((None, colours.BLUE), (0.9, colours.AMBER), (1, colours.BAD)),
    empty="No target has a quota.",
)

DISPATCH: Final = (
    (
        _hourly(
            "Decisions in an hour",
            "Where visits went: sent to a target, stayed on the domain, kept as the target was over quota, or down.",
            "decision",
            "",
            dict(colours.DECISIONS),
        ),
        _hourly("Sent in an hour, by target", "Visits sent to each target.", "target", SENT, {}),
        _LOST,
    ),
    (_SHARES, _QUOTAS),
)


def _up(title: str, description: str, metric: str, label: str, empty: str) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.STATES,
        queries=(Query(expr=_gauge(metric, "", label), legend=f"{{{{{label}}}}}"),),
        width=12,
        height=8,
        unit="none",
        mappings=UP,
        empty=empty,
    )


TARGETS: Final = (
    _up(
        "Targets",
        "Whether each target answered its probes, one HEAD a minute.",
        "target_up",
        "target",
        "No target is probed.",
    ),
    _up(
        "Services",
        "Whether the services that the dispatcher needs answered.",
        "dependency_up",
        "name",
        "No service is watched.",
    ),
)
DOMAINS: Final = (
    Panel(
        title="Domains",
        description="How long the registration of each domain lasts, and whether its redirects go in a circle.",
        kind=Kind.TABLE,
        queries=(
            Query(
                expr=f"{_gauge('domain_expiry_timestamp_seconds', _DOMAIN, 'domain')} - time()",
            ),
            Query(expr=_gauge("redirect_loop", _DOMAIN, "domain")),
            Query(expr=_gauge("domain_expiry_lookup_success", _DOMAIN, "domain")),
        ),
        width=12,
        height=8,
        columns=(
            Column(name="domain", title="Domain"),
            Column(
                name="Value #A",
                title="Registration ends in",
                unit="s",
                decimals=0,
                thresholds=((None, colours.BAD), (0, colours.AMBER), (30 * 86400, "transparent")),
            ),
            Column(
                name="Value #B",
                title="Redirects",
                mappings=(
                    Mapped(value=0, text="lead to a page"),
                    Mapped(value=1, text="IN A CIRCLE", colour=colours.BAD),
                ),
            ),
            Column(
                name="Value #C",
                title="Expiry looked up",
                mappings=(
                    Mapped(value=1, text="works"),
                    Mapped(value=0, text="fails: what was told last", colour=colours.AMBER),
                ),
            ),
        ),
        order="Value #A",
        empty="No domain is watched.",
    ),
    Panel(
        title="Quotas over time",
        description="The share of its quota that each target got since its day began. The coloured area is over it.",
        kind=Kind.LINES,
        queries=(Query(expr=_QUOTA_USED, legend="{{tenant}} {{target}}"),),
        width=12,
        height=8,
        unit="percentunit",
        least=0,
        reach=1,
        thresholds=((None, "transparent"), (1, colours.BAD)),
        areas=True,
        empty="No target has a quota.",
    ),
)
