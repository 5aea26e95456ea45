"""Decisions of a dispatcher: shares against weights, quotas with a ramp, arrivals, and all of it after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth.searchbots import quotas
from crawlhealth.searchbots.posted import MAX_ITEMS, Post, Posts, Said, TooMany, UsedBefore
from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbotsettings import LogSettings, Quota, SearchbotSettings, Target, Tenant
from searchbots.logwriting import GOOGLE, NOON

DAY = 86_400.0
RAMP = Quota(ramp=(500, 800, 1200, 2000))
SETTINGS = SearchbotSettings(
    tenants={
        "acme": Tenant(name="acme", domains=("shop.example", "www.shop.example")),
        "zeta": Tenant(name="zeta", domains=("zeta.example",)),
    },
    targets={
        "money": Target(name="money", url="https://money.example/", tenant="acme", weight=3, quota=RAMP),
        "spare": Target(name="spare", url="https://spare.example:8443/a", tenant="acme", weight=1, quota=Quota(day=50)),
        "away": Target(name="away", url="https://away.example/", tenant="zeta"),
    },
)


class Dispatcher:
    """A service that decisions come to, by post or by its log."""

    def __init__(self, folder: Path) -> None:
        self.now = NOON
        self.settings = SETTINGS
        self.sent: list[tuple[str, str]] = []
        self.folder = folder
        self.again()

    def again(self) -> None:
        """As after a kill: what is not on disk is gone."""
        self.service = LogService(
            self.folder / "history.db",
            lambda: self.settings,
            clock=lambda: self.now,
            sent=lambda domain, url: self.sent.append((domain, url)),
        )
        self.posts = Posts(
            self.service.store,
            self.service.dispatches,
            lambda: self.settings,
            max_age=lambda: timedelta(days=1),
            clock=lambda: self.now,
        )

    def post(self, *items: object, key: str | None = None, tenants: tuple[str, ...] = ("acme",)) -> tuple[Said, bool]:
        texts = [json.dumps(item).encode() for item in items]
        checksum = hash(tuple(texts)) & 0xFFFFFFFF
        who = None if key is None else ("dispatches me", key)
        return self.posts.take(Post(texts=texts, tenants=frozenset(tenants), checksum=checksum, key=who))

    def shown(self) -> dict[str, float]:
        """What /metrics shows, by name and label values."""
        found: dict[str, float] = {}

        def put(spec: object, labels: tuple[str, ...], value: float | None) -> None:
            if value is not None:
                found[" ".join((getattr(spec, "name", "").removeprefix("crawlhealth_"), *labels))] = value

        self.service.show(put)
        return found


@pytest.fixture
def dispatcher(tmp_path: Path) -> Iterator[Dispatcher]:
    found = Dispatcher(tmp_path)
    yield found
    found.service.stop()


def item(**changes: object) -> dict[str, object]:
    usual = {"domain": "shop.example", "bot": "Googlebot", "target": "money", "decision": "sent", "count": 1}
    return {key: value for key, value in (usual | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("quota", "days", "first", "visits"),
    [
        pytest.param(Quota(day=500), 100, 0, 500, id="a day's quota holds every day"),
        pytest.param(RAMP, 0, None, 500, id="a ramp stands at its first step before anything was sent"),
        pytest.param(RAMP, 6, 0, 500, id="the first week"),
        pytest.param(RAMP, 7, 0, 800, id="the second week"),
        pytest.param(RAMP, 21, 0, 2000, id="the last step"),
        pytest.param(RAMP, 300, 0, 2000, id="which holds on"),
        pytest.param(Quota(ramp=(5, 8), begins="2026-12-07"), 0, -30, 5, id="a date counts more than the first visit"),
        pytest.param(Quota(ramp=(5, 8), begins="2026-12-07"), 14, -30, 8, id="and its weeks begin on its day"),
        pytest.param(Quota(), 0, 0, None, id="no quota"),
    ],
)
def test_quota_of_a_day(quota: Quota, days: int, first: int | None, visits: int | None) -> None:
    first_sent = None if first is None else NOON + first * DAY
    assert quotas.allowed(quota, today=NOON + days * DAY, first_sent=first_sent) == visits


def test_a_day_begins_at_midnight_utc() -> None:
    assert quotas.day_of(NOON) == NOON - DAY / 2
    assert quotas.day_of(NOON - DAY / 2) == NOON - DAY / 2


def test_shares_are_of_what_was_sent_to_targets_with_a_weight(dispatcher: Dispatcher) -> None:
    dispatcher.post(
        item(count=60),
        item(target="https://spare.example:8443/other", count=40),
        item(decision="over_quota", count=500),
        item(decision="stayed", target=None, count=7),
    )
    shown = dispatcher.shown()
    assert shown["searchbot_share_ratio acme Googlebot money"] == pytest.approx(0.6)
    assert shown["searchbot_share_expected_ratio acme Googlebot money"] == pytest.approx(0.75)
    assert shown["searchbot_share_ratio acme Googlebot spare"] == pytest.approx(0.4)
    assert shown["searchbot_dispatches_total acme shop.example Googlebot money sent"] == 60
    assert shown["searchbot_dispatches_total acme shop.example Googlebot money over_quota"] == 500
    assert shown["searchbot_dispatches_total acme shop.example Googlebot  stayed"] == 7
    assert (shown["target_quota acme money"], shown["target_quota_used acme money"]) == (500, 60)
    assert (shown["target_quota acme spare"], shown["target_quota_used acme spare"]) == (50, 40)
    assert shown["target_quota_used zeta away"] == 0
    assert "target_quota zeta away" not in shown
    assert not any(name.startswith("searchbot_share") and "away" in name for name in shown)


def test_a_share_forgets_after_six_hours_a_quota_at_midnight_and_a_ramp_goes_on(dispatcher: Dispatcher) -> None:
    dispatcher.post(item(count=60))
    dispatcher.now += 5 * 3600
    assert dispatcher.shown()["searchbot_share_ratio acme Googlebot money"] == 1
    dispatcher.now += 3600
    assert "searchbot_share_ratio acme Googlebot money" not in dispatcher.shown()
    assert dispatcher.shown()["target_quota_used acme money"] == 60
    dispatcher.now = NOON + DAY / 2
    assert dispatcher.shown()["target_quota_used acme money"] == 0
    dispatcher.now = NOON + 7 * DAY
    assert dispatcher.shown()["target_quota acme money"] == 800


def test_all_of_it_is_there_after_a_kill(dispatcher: Dispatcher) -> None:
    dispatcher.post(item(count=60), item(target="spare", count=40), key="a")
    before = dispatcher.shown()
    dispatcher.again()
    assert dispatcher.shown() == before
    assert dispatcher.post(item(count=60), item(target="spare", count=40), key="a")[1]
    assert dispatcher.shown() == before
    dispatcher.now += 7 * DAY
    dispatcher.again()
    assert dispatcher.shown()["target_quota acme money"] == 800


def test_a_key_counts_once_and_is_no_other_posts(dispatcher: Dispatcher) -> None:
    first, repeated = dispatcher.post(item(), item(bot="Nobody"), key="a")
    assert (first.accepted, first.rejected_items, repeated) == (1, 1, False)
    again, repeated = dispatcher.post(item(), item(bot="Nobody"), key="a")
    assert (again, repeated) == (first, True)
    with pytest.raises(UsedBefore):
        dispatcher.post(item(count=2), key="a")
    assert dispatcher.shown()["target_quota_used acme money"] == 1


@pytest.mark.parametrize(
    ("given", "said", "forbidden"),
    [
        pytest.param(item(domain="zeta.example"), "none of the domains of 'acme'", True, id="another's domain"),
        pytest.param(item(domain="no.example"), "none of the domains of 'acme'", True, id="nobody's domain"),
        pytest.param(item(target="away"), "none of the targets of 'acme'", True, id="another's target"),
        pytest.param(item(target="https://no.example/"), "none of the targets", True, id="nobody's target"),
        pytest.param(item(target="https://[bad/"), "none of the targets", True, id="no URL at all"),
        pytest.param(item(tenant="zeta"), "not for the tenant 'zeta'", True, id="another tenant"),
        pytest.param(item(bot="Nobody"), "write its name as in Googlebot", False, id="an unknown bot"),
        pytest.param(item(decision="lost"), "Invalid enum value 'lost'", False, id="an unknown decision"),
        pytest.param(item(count=-1), "`int` >= 0", False, id="less than none"),
        pytest.param(item(count=1.5), "Expected `int`", False, id="half a visit"),
        pytest.param(item(count=None), "missing required field `count`", False, id="no count"),
        pytest.param(item(target=None), "needs target: where sent", False, id="sent nowhere"),
        pytest.param(item(at=NOON - 2 * DAY), "at is too long ago", False, id="long ago"),
        pytest.param(item(at=NOON + 3600), "or to come", False, id="to come"),
        pytest.param(item(visits=1), "unknown field `visits`", False, id="an unknown field"),
        pytest.param([1], "Expected `object`", False, id="no object"),
    ],
)
def test_what_is_not_taken_is_named_and_the_rest_counts(
    dispatcher: Dispatcher, given: object, said: str, forbidden: bool
) -> None:
    answer, _ = dispatcher.post(given, item(count=2))
    assert (answer.accepted, answer.rejected_items, answer.forbidden) == (1, 1, int(forbidden))
    assert answer.rejected[0].index == 0
    assert said in answer.rejected[0].reason
    assert dispatcher.shown()["target_quota_used acme money"] == 2


def test_a_sender_for_several_says_the_tenant(dispatcher: Dispatcher) -> None:
    both = ("acme", "zeta")
    said, _ = dispatcher.post(item(), item(tenant="acme"), tenants=both)
    assert (said.accepted, said.rejected[0].reason) == (1, "needs tenant: the token is good for several")


def test_too_many_items_are_none(dispatcher: Dispatcher) -> None:
    with pytest.raises(TooMany):
        dispatcher.post(*[item()] * (MAX_ITEMS + 1))
    assert not any("dispatches" in name for name in dispatcher.shown())


def test_names_of_bots_may_be_their_tokens_and_domains_in_any_case(dispatcher: Dispatcher) -> None:
    dispatcher.post(item(bot="Googlebot-Image/1.0", domain="SHOP.Example"), item(bot="googlebot"))
    assert dispatcher.shown()["searchbot_dispatches_total acme shop.example Googlebot money sent"] == 2


def test_who_is_sent_where_is_told_at_once(dispatcher: Dispatcher) -> None:
    dispatcher.post(item(), item(decision="stayed"), item(count=0), item(target="https://spare.example:8443/x"))
    assert dispatcher.sent == [
        ("shop.example", "https://money.example/"),
        ("shop.example", "https://spare.example:8443/x"),
    ]


@pytest.fixture
def logged(dispatcher: Dispatcher) -> Callable[..., None]:
    """Writes JSON lines of a dispatcher's log, and reads them."""
    log = dispatcher.folder / "access.log"
    arrived = dispatcher.folder / "money.log"
    shop = LogSettings(path=log, format="nginx_json", tenant="acme", name="shop")
    money = LogSettings(path=arrived, format="nginx_json", tenant="acme", target="money", name="money")
    dispatcher.settings = SearchbotSettings(tenants=SETTINGS.tenants, targets=SETTINGS.targets, logs=(shop, money))

    def write(*lines: dict[str, object], to: Path = log) -> None:
        usual = {"msec": NOON, "remote_addr": "192.0.2.1", "status": 302, "http_user_agent": GOOGLE,
                 "host": "shop.example"}  # fmt: skip
        with to.open("a") as file:
            file.writelines(json.dumps(usual | each) + "\n" for each in lines)
        dispatcher.service.read()

    return write


def test_lines_of_a_log_say_the_same_as_posts(dispatcher: Dispatcher, logged: Callable[..., None]) -> None:
    logged(
        {"target": "money", "decision": "sent"},
        {"target": "https://money.example/page", "decision": "sent"},
        {"target": "https://[bad", "decision": "sent"},
        {"target": "away", "decision": "sent", "host": "zeta.example"},
        {"target": "", "decision": "stayed"},
        {"target": "money", "decision": "guess"},
    )
    shown = dispatcher.shown()
    series = "searchbot_dispatches_total acme"
    assert shown[f"{series} shop.example Googlebot money sent"] == 2
    assert shown[f"{series} shop.example Googlebot other sent"] == 1
    assert shown[f"{series} other Googlebot other sent"] == 1, "another tenant's domain and target are strange here"
    assert shown[f"{series} shop.example Googlebot  stayed"] == 1
    assert shown["target_quota_used acme money"] == 2
    assert dispatcher.sent == [
        ("shop.example", "https://money.example/"),
        ("shop.example", "https://money.example/page"),
    ]
    dispatcher.again()
    dispatcher.service.read()
    assert dispatcher.shown()["target_quota_used acme money"] == 2


def test_what_was_sent_and_never_arrived_can_be_compared(dispatcher: Dispatcher, logged: Callable[..., None]) -> None:
    logged({"target": "money", "decision": "sent"}, {"target": "spare", "decision": "sent"})
    shown = dispatcher.shown()
    assert shown["dispatch_arrivals_total acme Googlebot money"] == 0
    assert "dispatch_arrivals_total acme Googlebot spare" not in shown, "there is no log to see it in"
    logged({}, to=dispatcher.folder / "money.log")
    dispatcher.now += 120
    dispatcher.service.read()
    assert dispatcher.shown()["dispatch_arrivals_total acme Googlebot money"] == 1


def test_what_left_the_configuration_leaves_metrics(dispatcher: Dispatcher) -> None:
    dispatcher.post(item(count=60))
    dispatcher.settings = SearchbotSettings(tenants=SETTINGS.tenants)
    assert not any("money" in name for name in dispatcher.shown())
    dispatcher.settings = SearchbotSettings(targets=SETTINGS.targets, tenants={"zeta": SETTINGS.tenants["zeta"]})
    assert not any("acme" in name for name in dispatcher.shown())
