"""The dashboard of search bots on the user's own domains: who came, was it them, and where their visits went."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Panel, Query, Row, Series, Variable
from crawlhealth.bundle.dashboards.parts import figure
from crawlhealth.bundle.dashboards.searchtargets import BOT, DISPATCH, DOMAINS, NO_LOG, TARGETS, counted
from crawlhealth.bundle.model import Scope

Steps = tuple[tuple[float | None, str], ...]
VERIFIED: Final = 'identity="verified"'
FAKE: Final = 'identity="fake"'
_VISITS: Final = 'domain_bot:searchbot_visits:increase1h{@{group}tenant=~"$tenant",domain=~"$domain",bot=~"$bot"}'
_DAY: Final = counted("searchbot_visits_total", VERIFIED, BOT, "1d")


def _all(metric: str, chosen: str = "", window: str = "1d") -> str:
    return f"sum({counted(metric, chosen, BOT, window)})"


_DAY_BEFORE: Final = counted("searchbot_visits_total", VERIFIED, BOT, "1d", "1d")
_OF_YESTERDAY: Final = f"sum by (@{{prefix}}bot) ({_DAY})\n/ (sum by (@{{prefix}}bot) ({_DAY_BEFORE}) > 0)"
_FALLEN: Final = ((None, colours.BAD), (0.5, colours.AMBER))
_GOOD: Final = ((None, colours.GOOD),)
_FAULTS: Final = ((None, colours.GOOD), (1, colours.BAD))
_FIGURES: Final = (
    figure(
        "Visits in a day",
        "Visits of verified search bots in the last 24 hours.",
        _all("searchbot_visits_total", VERIFIED),
        unit="short",
        steps=_GOOD,
        empty=NO_LOG,
    ),
    Panel(
        title="Share of yesterday",
        description=(
            "Visits of verified bots in the last 24 hours, as a share of those in the 24 hours before: of all of them,"
            " and of the bot that lost most."
        ),
        kind=Kind.STAT,
        queries=(
            Query(
                expr=f"{_all('searchbot_visits_total', VERIFIED)}\n/ (sum({_DAY_BEFORE}) > 0)",
                legend="all bots",
                instant=True,
            ),
            Query(expr=f"bottomk(1, {_OF_YESTERDAY})", legend="{{bot}}", instant=True),
        ),
        width=4,
        height=4,
        unit="percentunit",
        decimals=0,
        thresholds=(*_FALLEN, (0.75, colours.GOOD)),
        names=True,
        empty="No visits a day before.",
    ),
    figure(
        "Fakes in a day",
        "Visits that called themselves a search bot and were not, in the last 24 hours.",
        _all("searchbot_visits_total", FAKE),
        unit="short",
        steps=((None, colours.GREY),),
        empty="No fake has come: good, or no log is read.",
    ),
    figure(
        "Targets down",
        "Targets that did not answer their last probe.",
        'count(max by (@{prefix}target) (crawlhealth_target_up{@{group}job="@job"}) == 0) or 0 * count('
        'crawlhealth_target_up{@{group}job="@job"})',
        unit="none",
        steps=_FAULTS,
        empty="No target is probed.",
    ),
    figure(
        "Redirect loops",
        "Domains whose redirects lead back to themselves: nobody gets to a page.",
        'sum(max by (@{prefix}domain) (crawlhealth_redirect_loop{@{group}job="@job",domain=~"$domain"}))',
        unit="none",
        steps=_FAULTS,
        empty="No domain is watched.",
    ),
    figure(
        "Services down",
        "Services that the dispatcher needs and that do not answer.",
        'count(max by (@{prefix}name) (crawlhealth_dependency_up{@{group}job="@job"}) == 0) or 0 * count('
        'crawlhealth_dependency_up{@{group}job="@job"})',
        unit="none",
        steps=_FAULTS,
        empty="No service is watched.",
    ),
)
_COMPARED: Final = Panel(
    title="Visits in an hour, against yesterday and last week",
    description=(
        "Visits of verified bots in the last hour, all chosen bots and domains together, over the same hour of the day"
        " before (dashed) and of a week ago. Choose a bot above to see it alone."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr=f"sum({_VISITS})", legend="now"),
        Query(expr=f"sum({_VISITS} offset 1d)", legend="yesterday"),
        Query(expr=f"sum({_VISITS} offset 7d)", legend="a week ago"),
    ),
    width=14,
    height=9,
    unit="short",
    least=0,
    series=(
        Series(name="now", colour=colours.BLUE, width=3, fill=10),
        Series(name="yesterday", colour=colours.AMBER, dashed=True),
        Series(name="a week ago", colour=colours.PALE),
    ),
    empty=NO_LOG,
)
_BOTS: Final = Panel(
    title="Bots",
    description="Visits of each verified bot in the last 24 hours, in those before, and a week ago; when it last came.",
    kind=Kind.TABLE,
    queries=(
        Query(expr=f"sum by (@{{prefix}}bot) ({_DAY})"),
        Query(expr=_OF_YESTERDAY),
        Query(
            expr=(
                f"sum by (@{{prefix}}bot) ({_DAY})\n/ (sum by (@{{prefix}}bot)"
                f" ({counted('searchbot_visits_total', VERIFIED, BOT, '1d', '7d')}) > 0)"
            )
        ),
        Query(
            expr=(
                "1000 * max by (@{prefix}bot)"
                f' (crawlhealth_searchbot_last_visit_timestamp_seconds{{@{{group}}job="@job",{BOT}}})'
            )
        ),
    ),
    width=10,
    height=9,
    columns=(
        Column(name="bot", title="Bot"),
        Column(name="Value #A", title="In a day", unit="short", decimals=0, width=80),
        Column(
            name="Value #B",
            title="of yesterday",
            unit="percentunit",
            decimals=0,
            width=105,
            thresholds=(*_FALLEN, (0.75, "transparent")),
        ),
        Column(
            name="Value #C",
            title="of last week",
            unit="percentunit",
            decimals=0,
            width=105,
            thresholds=(*_FALLEN, (0.75, "transparent")),
        ),
        Column(name="Value #D", title="Last visit", unit="dateTimeFromNow"),
    ),
    order="Value #A",
    falling=True,
    empty=NO_LOG,
)


def _rates(title: str, description: str, label: str, shades: dict[str, str], *, empty: str, chosen: str = "") -> Panel:
    more = f",{chosen}" if chosen else ""
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=(
            Query(
                expr=(
                    f"sum by ({label}) (increase(crawlhealth_searchbot_visits_total"
                    f'{{@{{group}}job="@job",{BOT}{more}}}[1h]))'
                ),
                legend=f"{{{{{label}}}}}",
            ),
        ),
        width=8,
        height=8,
        unit="short",
        least=0,
        stacked=True,
        colours=shades,
        empty=empty,
    )


_WHO: Final = (
    _rates(
        "Visits in an hour: was it them",
        "By identity. Verified: an address of theirs. Fake: not theirs. Unverifiable: they publish no way to tell."
        " Unverified: nothing is proved. Stealth: a browser's name from a search engine's addresses.",
        "identity",
        dict(colours.IDENTITIES),
        empty=NO_LOG,
    ),
    _rates(
        "Visits in an hour: what was answered",
        "Visits of verified bots by the class of the answer's status. 5xx costs you their trust.",
        "status_class",
        {"2xx": colours.BLUE, "3xx": colours.SKY, "4xx": colours.AMBER, "5xx": colours.RED},
        empty=NO_LOG,
        chosen=VERIFIED,
    ),
    _rates(
        "Fakes in an hour, by name",
        "Visits of those that only call themselves a search bot, by the bot they claim to be.",
        "bot",
        {},
        empty="No fake has come in this time: good.",
        chosen=FAKE,
    ),
)

BOARD: Final = Board(
    uid=Scope.SEARCHBOTS,
    title="crawlhealth / Search bots",
    description="Search bots on your own domains: who came, was it them, and where their visits went.",
    hours=7 * 24,
    refresh="5m",
    variables=tuple(
        Variable(
            name=name,
            label=label,
            query=f'label_values(crawlhealth_searchbot_visits_total{{@{{group}}job="@job"}}, {name})',
            description=f"The {label.lower()}s to show.",
        )
        for name, label in (("tenant", "Tenant"), ("domain", "Domain"), ("bot", "Bot"))
    ),
    rows=(
        Row(title="Now", lines=(_FIGURES, (_COMPARED, _BOTS))),
        Row(title="Who came", lines=(_WHO,)),
        Row(title="Where visits went", lines=DISPATCH),
        Row(title="Targets and domains", lines=(TARGETS, DOMAINS)),
    ),
)
