"""Redirect loops between one's own domains, and the ends of their registrations."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from crawlhealth.config import Fetching
from crawlhealth.looking import Looker
from crawlhealth.searchbots.expiry import Expiries, ExpiryError, end_of, registrations
from crawlhealth.searchbots.redirects import Redirects, cycles, domain_of
from crawlhealth.searchbots.rounds import Rounds
from crawlhealth.searchbots.shelf import FILE_NAME, Shelf
from searchbots.verifying import NOW, Clock
from searchbots.webserver import Answer, moved, web
from waiting import until

LOOKER = Looker(Fetching, clock=time.time)


def settled(part: Redirects | Expiries) -> None:
    """Do what is due, to its end."""
    rounds: Rounds = part.rounds
    for _ in range(5):
        part.tick()
        until(lambda: rounds.running == 0, 10, "nothing is under way")


def test_a_circle_through_our_domains_is_found_and_its_end_too() -> None:
    clock = Clock()
    with web() as one, web() as two:
        names = (one.url(host="localhost").rstrip("/"), two.url().rstrip("/"))
        one.answer = lambda _method, _path: moved(two.url())
        two.answer = lambda _method, _path: moved(one.url(host="localhost"))
        redirects = Redirects(lambda: names, LOOKER, clock=clock)
        assert dict(redirects.loops()) == {}
        settled(redirects)
        assert dict(redirects.loops()) == {f"localhost:{one.port}": True, f"127.0.0.1:{two.port}": True}
        two.answer = lambda _method, _path: (200, {}, b"")
        clock.now += 301
        settled(redirects)
        assert dict(redirects.loops()) == {f"localhost:{one.port}": False, f"127.0.0.1:{two.port}": False}
        asked = len(two.asked)
        clock.now += 3590
        settled(redirects)
        assert len(two.asked) == asked, "once an hour"


def test_a_way_through_another_domain_and_back_that_ends_is_no_circle() -> None:
    with web() as shop, web() as login:
        shop.answer = lambda _method, path: moved(login.url("/login")) if path == "/" else (200, {}, b"")
        login.answer = lambda _method, _path: moved(shop.url("/welcome", host="localhost"))
        names = (f"http://localhost:{shop.port}", f"http://127.0.0.1:{login.port}")
        redirects = Redirects(lambda: names, LOOKER, clock=Clock())
        settled(redirects)
        assert not any(dict(redirects.loops()).values())


def test_redirects_without_an_end_that_never_leave_are_neither_a_circle_nor_none() -> None:
    with web() as server:
        server.answer = lambda _method, path: moved(server.url(path + "?n=1"))
        redirects = Redirects(lambda: (f"http://127.0.0.1:{server.port}",), LOOKER, clock=Clock())
        settled(redirects)
        assert dict(redirects.loops()) == {}


def test_a_circle_of_ever_new_urls_is_found() -> None:
    with web() as one, web() as two:
        names = (one.url(host="localhost").rstrip("/"), two.url().rstrip("/"))
        one.answer = lambda _method, path: moved(two.url(path + "?n=1"))
        two.answer = lambda _method, path: moved(one.url(path + "&n=2", host="localhost"))
        redirects = Redirects(lambda: names, LOOKER, clock=Clock())
        settled(redirects)
        assert dict(redirects.loops()) == {f"localhost:{one.port}": True, f"127.0.0.1:{two.port}": True}


def test_a_long_circle_on_one_host_is_found() -> None:
    with web() as server:
        server.answer = lambda _method, path: moved(server.url(f"/{(int(path[1:] or 0) + 1) % 12 or ''}"))
        redirects = Redirects(lambda: (f"http://127.0.0.1:{server.port}",), LOOKER, clock=Clock())
        settled(redirects)
        assert dict(redirects.loops()) == {f"127.0.0.1:{server.port}": True}


def test_a_domain_that_cannot_be_reached_keeps_what_was_known() -> None:
    clock = Clock()
    with web() as server:
        server.answer = lambda _method, _path: moved(server.url())
        redirects = Redirects(lambda: (f"http://127.0.0.1:{server.port}",), LOOKER, clock=clock)
        settled(redirects)
    clock.now += 3601
    settled(redirects)
    assert dict(redirects.loops()) == {f"127.0.0.1:{server.port}": True}


def test_a_circle_of_dispatches_is_told_at_once_and_forgotten_after_an_hour() -> None:
    clock = Clock()
    redirects = Redirects(lambda: ("a.example", "b.example", "c.example"), LOOKER, clock=clock)
    redirects.sent("a.example", "https://b.example/x")
    redirects.sent("c.example", "https://a.example/")
    assert dict(redirects.loops()) == {}
    redirects.sent("b.example", "http://a.example/")
    assert dict(redirects.loops()) == {"a.example": True, "b.example": True}
    clock.now += 3601
    assert dict(redirects.loops()) == {}


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        pytest.param([("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")], "abc", id="a circle of three"),
        pytest.param([("a", "a"), ("a", "b"), ("c", "b")], "", id="staying is no circle"),
    ],
)  # fmt: skip
def test_cycles(sent: list[tuple[str, str]], found: str) -> None:
    assert cycles(sent) == frozenset(found)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        pytest.param("Shop.Example.", "shop.example", id="a name"),
        pytest.param("https://shop.example:443", "shop.example", id="an origin with its own port"),
        pytest.param("http://shop.example:8080", "shop.example:8080", id="an origin with another port"),
    ],
)
def test_domain_of(written: str, name: str) -> None:
    assert domain_of(written) == name


def rdap(end: str) -> Answer:
    events = [{"eventAction": "registration", "eventDate": "2001-01-01T00:00:00Z"},
              {"eventAction": "expiration", "eventDate": end}]  # fmt: skip
    return 200, {"Content-Type": "application/rdap+json"}, json.dumps({"events": events}).encode()


def test_the_end_of_a_registration_is_asked_once_a_day_and_a_failure_keeps_the_last(tmp_path: Path) -> None:
    clock = Clock()
    shelf = Shelf(tmp_path / FILE_NAME, now=NOW)
    with web() as server:

        def service(_method: str, path: str) -> Answer:
            if path == "/domain/shop.example":
                return moved(server.url("/r/shop.example"))
            return rdap("2027-03-01T00:00:00Z") if path == "/r/shop.example" else (404, {}, b"")

        server.answer = service
        domains = ("www.shop.example", "127.0.0.1", "localhost")
        expiries = Expiries(lambda: domains, server.url, LOOKER, shelf=shelf, clock=clock)
        settled(expiries)
        ((domain, known, problem),) = expiries.known()
        assert (domain, problem) == ("www.shop.example", None)
        assert known is not None
        assert known.until == 1_803_859_200.0
        asked = ["GET /domain/www.shop.example", "GET /domain/shop.example", "GET /r/shop.example"]
        assert server.asked == asked
        clock.now += 86_000
        settled(expiries)
        assert server.asked == asked, "a day is not over"
        clock.now += 401
        server.answer = lambda _method, _path: (500, {}, b"")
        settled(expiries)
        assert list(expiries.known()) == [("www.shop.example", known, "HTTP 500")]
        server.answer = lambda _method, _path: (200, {}, b'{"events": []}')
        clock.now += 3601
        settled(expiries)
        assert list(expiries.known()) == [("www.shop.example", known, "the answer tells of no end")]
    shelf.close()
    again = Shelf(tmp_path / FILE_NAME, now=NOW)
    later = Expiries(lambda: domains, lambda: "http://127.0.0.1:1", LOOKER, shelf=again, clock=clock)
    assert list(later.known()) == [("www.shop.example", known, None)], "kept over a restart"
    again.close()


def test_what_was_never_told_has_no_end_at_all(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / FILE_NAME, now=NOW)
    with web(lambda _method, _path: (404, {}, b"")) as server:
        expiries = Expiries(lambda: ("shop.example",), server.url, LOOKER, shelf=shelf, clock=Clock())
        settled(expiries)
        assert list(expiries.known()) == [("shop.example", None, "no registration of it is known (HTTP 404)")]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"events": [3]}', id="events that are none"),
        pytest.param(b'{"events": [{"eventAction": "expiration", "eventDate": "soon"}]}', id="a date that is none"),
        pytest.param(b'{"events": [{"eventAction": "expiration", "eventDate": 7}]}', id="a date of another type"),
        pytest.param(b"[" * 100_000, id="endless brackets"),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error(body: bytes) -> None:
    with pytest.raises(ExpiryError):
        end_of(body, "shop.example", now=NOW)


def told(end: str, **more: object) -> bytes:
    return json.dumps({"events": [{"eventAction": "expiration", "eventDate": end}], **more}).encode()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(told("0001-01-01T00:00:00Z"), "0001-01-01, which is no end", id="the first day of all"),
        pytest.param(told("0001-01-01T00:00:00+14:00"), "no end", id="a day before the first"),
        pytest.param(told("1970-01-01T00:00:00Z"), "1970-01-01, which is no end", id="no time"),
        pytest.param(told("9999-12-31T23:59:59-14:00"), "9999-12-31, which is no end", id="never"),
        pytest.param(told("2027-03-01T00:00:00Z", ldhName="other.example"), "of another name than shop", id="another"),
        pytest.param(told("2027-03-01T00:00:00Z", ldhName=7), "of another name than shop", id="no name"),
    ],
)
def test_an_end_that_no_registration_has_and_the_end_of_another_are_errors(body: bytes, problem: str) -> None:
    with pytest.raises(ExpiryError, match=problem):
        end_of(body, "shop.example", now=NOW)


def test_an_answer_of_the_name_in_other_letters_is_its_own() -> None:
    assert end_of(told("2027-03-01T00:00:00Z", ldhName="SHOP.example."), "shop.example", now=NOW) == 1_803_859_200.0


def test_an_answer_of_another_name_changes_nothing_and_one_of_the_parent_is_asked_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / FILE_NAME, now=NOW)
    clock, of = Clock(), "shop.example"
    with web(lambda _method, _path: (200, {}, told("2027-03-01T00:00:00Z", ldhName=of))) as server:
        expiries = Expiries(lambda: ("www.shop.example",), server.url, LOOKER, shelf=shelf, clock=clock)
        settled(expiries)
        ((_, known, problem),) = expiries.known()
        assert (known is not None, problem) == (True, None)
        of = "other.example"
        clock.now += 86_401
        settled(expiries)
        problem = "the answer is of another name than shop.example"
        assert list(expiries.known()) == [("www.shop.example", known, problem)]
    shelf.close()


def test_a_date_without_a_zone_is_utc() -> None:
    body = b'{"events": [{"eventAction": "expiration", "eventDate": "2027-03-01T00:00:00"}]}'
    assert end_of(body, "shop.example", now=NOW) == 1_803_859_200.0


@pytest.mark.parametrize(
    ("domain", "names"),
    [
        ("a.b.example", ("a.b.example", "b.example")),
        ("b.example:8080", ("b.example",)),
        ("localhost", ()),
        ("192.0.2.1:80", ()),
    ],
)
def test_registrations(domain: str, names: tuple[str, ...]) -> None:
    assert registrations(domain) == names
