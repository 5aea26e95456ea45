"""What items come to: outcome, reason, sums, and why some are not taken."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest

from crawlhealth.config import Block, Config, HistorySettings, PushSettings, Route, Site
from crawlhealth.history import Batch
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.tally import Tally
from crawlhealth.traffic.body import TooLarge
from crawlhealth.traffic.gathering import MAX_ITEMS, Gathering
from crawlhealth.traffic.norms import MIN_PAGES, Norms
from crawlhealth.traffic.report import MAX_NAMED, Rejected
from crawlhealth.traffic.terms import Terms
from samples import NOW

CONFIG = Config(
    routes={name: Route(name=name) for name in ("direct", "us")},
    sites={
        "books": Site(name="books", hosts=("books.example",)),
        "quotes": Site(name="quotes", hosts=(".quotes.example", "api.example:8443")),
    },
    push=PushSettings(max_age=timedelta(hours=6)),
    history=HistorySettings(),
)
CHALLENGE = "<html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>"
PAGE = "<!doctype html><html><head><title>Books</title></head><body><h1>Books</h1><p>All of them.</p></body></html>"


def gathered(
    *items: object, norms: Norms | None = None, sites: frozenset[str] | None = None, config: Config = CONFIG
) -> Gathering:
    gathering = Gathering(Terms(config=config, now=NOW, width=60.0, sites=sites), norms or Norms())
    gathering.take([item if isinstance(item, bytes) else json.dumps(item).encode() for item in items])
    return gathering


def observed(**fields: object) -> dict[str, object]:
    return {"site": "books", "at": NOW, **fields}


def one(batch: Batch) -> tuple[str, str, Outcome, str]:
    """The site, route, outcome and reason of a batch of one request."""
    ((site, route, source, _), tally), *more = batch.slots.items()
    assert not more
    assert source is Source.TRAFFIC
    outcomes = [outcome for outcome in Outcome if tally.of(outcome)]
    reasons = [labels[2] for _, labels in batch.counters] or ["served"]
    assert (tally.requests, len(outcomes), len(reasons)) == (1, 1, 1)
    return site, route, outcomes[0], reasons[0]


@pytest.mark.parametrize(
    ("item", "outcome", "reason"),
    [
        pytest.param({"outcome": "ok"}, "ok", "served", id="an outcome alone"),
        pytest.param({"outcome": "challenge", "reason": "cloudflare_challenge"}, "challenge", "cloudflare_challenge",
                     id="an outcome with its reason"),
        pytest.param({"outcome": "hard_block", "status": 403}, "hard_block", "http_403",
                     id="a status names the reason"),
        pytest.param({"outcome": "error", "status": 404}, "error", "custom", id="unless it belongs to another outcome"),
        pytest.param({"outcome": "soft_block"}, "soft_block", "custom", id="a refusal without any reason"),
        pytest.param({"status": 200, "body": PAGE}, "ok", "served", id="a page that is content"),
        pytest.param({"status": 200, "body": CHALLENGE, "headers": {"cf-mitigated": "challenge"}}, "challenge",
                     "cloudflare_challenge", id="a challenge with 200 and the right URL"),
        pytest.param({"status": 429, "headers": {"CF-Mitigated": "challenge"}}, "challenge", "cloudflare_challenge",
                     id="a header in any case beats the status"),
        pytest.param({"status": 403}, "hard_block", "http_403", id="a refusal status"),
        pytest.param({"status": 503}, "error", "http_503", id="a server error is no hostility"),
        pytest.param({"status": 404}, "ok", "http_404", id="a missing page is no hostility"),
        pytest.param({"reason": "proxy"}, "error", "proxy", id="a dead proxy is no site block"),
        pytest.param({"reason": "connection_reset"}, "hard_block", "connection_reset", id="a reset is a block"),
        pytest.param({"url": "https://books.example/a/1", "final_url": "https://books.example/login?next=/a/1",
                      "status": 200, "body": PAGE}, "soft_block", "redirected_login", id="a redirect to a login"),
        pytest.param({"url": "https://books.example/a/1", "final_url": "https://parked.example/", "status": 200},
                     "soft_block", "redirected_away", id="a redirect to another host"),
        pytest.param({"url": "https://books.example/a/1", "final_url": "https://books.example/login", "status": 200,
                      "records_valid": 3}, "ok", "served", id="unless records were found there"),
        pytest.param({"status": 200, "body_base64": base64.b64encode(CHALLENGE.encode("utf-16")).decode(),
                      "headers": {"cf-mitigated": "challenge"}}, "challenge", "cloudflare_challenge",
                     id="a body as it came"),
        pytest.param({"status": 200, "body": '<meta charset="utf-16">' + PAGE}, "ok", "served",
                     id="text is read as such, whatever it says of its coding"),
        pytest.param({"status": 200, "reason": "truncated_body", "body": PAGE}, "error", "truncated_body",
                     id="a page that did not come whole"),
        pytest.param({"status": 403, "reason": "timeout"}, "hard_block", "http_403",
                     id="a refusal that did not come whole is one all the same"),
        pytest.param({"status": 407}, "error", "proxy", id="a proxy that wants a password"),
        pytest.param({"status": 0}, "error", "invalid_response", id="a status that is none"),
        pytest.param({"status": 200, "body": "<p>Members only, says our bouncer"}, "soft_block", "custom",
                     id="a marker of the user's own"),
    ],
)  # fmt: skip
def test_what_came_of_a_request(item: dict[str, object], outcome: str, reason: str) -> None:
    blocks = (Block(name="bouncer", where="body", outcome=Outcome.SOFT_BLOCK, pattern="our bouncer"),)
    config = Config(routes=CONFIG.routes, sites=CONFIG.sites, push=CONFIG.push, blocks=blocks)
    gathering = gathered(observed(**item), config=config)
    assert gathering.report.rejected == []
    assert one(gathering.batch()) == ("books", "direct", Outcome(outcome), reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"outcome": "fine"}, "Invalid enum value 'fine' - at `$.outcome`", id="an unknown outcome"),
        pytest.param({"outcome": "ok", "colour": 1}, "Object contains unknown field `colour`", id="an unknown field"),
        pytest.param({"outcome": "ok", "site": "nobody"}, "unknown site: 'nobody'", id="an unknown site"),
        pytest.param({"outcome": "ok", "site": None}, "needs site, or url", id="no site at all"),
        pytest.param({"outcome": "ok", "site": None, "url": "http://else.example/"},
                     "unknown site: no site has the host 'else.example'", id="a URL of no site"),
        pytest.param({"outcome": "ok", "site": None, "url": "http://[::1"}, "not a URL: 'http://[::1'", id="no URL"),
        pytest.param({"outcome": "ok", "route": "moon"}, "unknown route: 'moon'", id="an unknown route"),
        pytest.param({"outcome": "ok", "at": NOW + 61}, "at is in the future", id="more than a minute ahead"),
        pytest.param({"outcome": "ok", "at": NOW - 6 * 3600 - 1}, "at is longer ago than push.max_age", id="too late"),
        pytest.param({"outcome": "ok", "at": "2026-11-30T12:00:00"},
                     "Expected `datetime` with a timezone component - at `$.at`", id="no time zone"),
        pytest.param({"outcome": "ok", "count": 0}, "Expected `int` >= 1 - at `$.count`", id="none at all"),
        pytest.param({"outcome": "ok", "bytes": -1}, "Expected `int` >= 0 - at `$.bytes`", id="less than nothing"),
        pytest.param({"outcome": "ok", "seconds": 1e9}, "Expected `float` <= 86400.0 - at `$.seconds`", id="for ever"),
        pytest.param({"outcome": "ok", "reason": "timeout"}, "the reason timeout does not go with the outcome ok",
                     id="a reason of another outcome"),
        pytest.param({"outcome": "error", "reason": "http_403"},
                     "the reason http_403 does not go with the outcome error", id="a refusal called an error"),
        pytest.param({}, "needs an outcome, or a status to classify, or the reason of a request that failed",
                     id="nothing to judge by"),
        pytest.param({"reason": "http_403"},
                     "needs an outcome, or a status to classify, or the reason of a request that failed",
                     id="a reason that says nothing without a response"),
    ],
)  # fmt: skip
def test_an_item_that_is_not_taken_is_named_and_the_others_count(fields: dict[str, object], reason: str) -> None:
    gathering = gathered(observed(outcome="ok"), observed(**fields), observed(outcome="ok"))
    assert gathering.report.rejected == [Rejected(1, reason)]
    assert gathering.report.accepted == 2
    ((_, tally),) = gathering.batch().slots.items()
    assert tally.requests == 2


def test_sums_are_those_of_the_items() -> None:
    items = [
        observed(outcome="ok", seconds=0.25, bytes=1000, count=4, retries=2, credits=0.5, records_valid=20),
        observed(outcome="ok", seconds=4.0, records_valid=3, records_invalid=2, fields_missing=["price"]),
        observed(outcome="hard_block", reason="http_403", seconds=0.05, bytes=10, count=3, records_valid=0),
        observed(outcome="ok", records_valid=0),
        observed(outcome="ok", fields_missing=[]),
    ]
    batch = gathered(*items).batch()
    assert batch.slots == {
        ("books", "direct", Source.TRAFFIC, NOW): Tally(
            ok=7, hard_block=3, bytes=1010, retries=2, credits=0.5, records_valid=23, records_invalid=2,
            extractions_ok=5, extractions_failed=2, latency_sum=5.0, latency={116: 4, 173: 1},
        )
    }  # fmt: skip
    assert batch.counters == {
        ("crawlhealth_request_reasons_total", ("books", "traffic", Reason.HTTP_403.value)): 3,
    }


def test_late_items_go_to_their_own_slot_and_url_finds_the_site() -> None:
    items = [
        observed(outcome="ok", at="2026-11-30T13:00:30+02:00"),
        {"url": "https://www.quotes.example/x", "outcome": "ok", "at": NOW - 61, "route": "us"},
        {"url": "https://api.example:8443/x", "outcome": "ok", "at": NOW + 30},
    ]
    batch = gathered(*items).batch()
    assert {key: tally.requests for key, tally in batch.slots.items()} == {
        ("books", "direct", Source.TRAFFIC, NOW - 3600): 1,
        ("quotes", "us", Source.TRAFFIC, NOW - 120): 1,
        ("quotes", "direct", Source.TRAFFIC, NOW): 1,
    }
    assert batch.last == {("books", Source.TRAFFIC): NOW - 3570, ("quotes", Source.TRAFFIC): NOW + 30}


def test_a_page_under_half_its_usual_size_without_a_record_is_a_soft_block_by_facts_alone() -> None:
    norms = Norms()
    facts = {"status": 200, "page_type": "listing"}
    usual = [observed(**facts, bytes=18_000 + number, records_valid=20) for number in range(MIN_PAGES)]
    assert gathered(*usual, norms=norms).batch().slots
    small = gathered(observed(**facts, bytes=5_000, records_valid=0), norms=norms).batch()
    assert one(small)[2:] == (Outcome.SOFT_BLOCK, "size_collapse")
    parser = gathered(observed(**facts, bytes=17_000, records_valid=0), norms=norms).batch()
    assert one(parser)[2:] == (Outcome.OK, "served"), "the usual size without a record is the parser's matter"
    ((_, tally),) = parser.slots.items()
    assert (tally.extractions_ok, tally.extractions_failed) == (0, 1)
    other = gathered(observed(status=200, page_type="other", bytes=5_000, records_valid=0), norms=norms).batch()
    assert one(other)[2] is Outcome.OK, "nothing is known of this page type"


def test_a_refused_page_leaves_its_evidence() -> None:
    url = "https://user:secret@books.example/a"
    batch = gathered(observed(status=403, url=url, body="<title>Denied <b>", at=NOW - 5), observed(status=403)).batch()
    ((latest,),) = batch.refusals.values()
    assert (latest.at, latest.outcome, latest.reason) == (NOW, Outcome.HARD_BLOCK, Reason.HTTP_403)
    ((first,),) = gathered(observed(status=403, url=url, body="<title>Denied</title>")).batch().refusals.values()
    assert first.evidence.title == "Denied"
    assert "secret" not in repr(first)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        pytest.param("https://books.example/" + "a" * 5_000_000, "https://books.example/" + "a" * 1_978, id="long"),
        pytest.param("https://books.example/\u202e\x07\nx", "https://books.example/x", id="not printable"),
        pytest.param(
            "https://user:secret@books.example/" + "a" * 5_000, "https://books.example/", id="with a password"
        ),
        pytest.param("https://user:secret" + "t" * 5_000 + "@books.example/", "", id="with a password without end"),
    ],
)
@pytest.mark.parametrize("facts", [{"status": 403}, {"reason": "connection_reset"}], ids=["refused", "reset"])
def test_addresses_in_evidence_are_short_printable_and_without_secrets(
    facts: dict[str, object], url: str, kept: str
) -> None:
    ((refusal,),) = gathered(observed(**facts, url=url, final_url=url)).batch().refusals.values()
    for address in (refusal.url, refusal.evidence.final_url):
        assert address.rstrip("a") == kept.rstrip("a")
        assert len(address) <= 2_000


def test_headers_in_evidence_have_short_printable_names_and_values() -> None:
    prefix = "x-kpsdk-"
    hostile = {
        prefix + "c" * 1_000_000: "long",
        prefix + "\u202e": "odd",
        prefix + "ct": "v" * 1_000_000,
        "Server": "a\x07b",
    }
    ((refusal,),) = gathered(observed(status=403, headers=hostile)).batch().refusals.values()
    assert refusal.evidence.headers == (("server", "ab"), (prefix + "ct", "v" * 200))


def test_a_token_for_some_sites_counts_nothing_of_others() -> None:
    gathering = gathered(
        observed(outcome="ok"), observed(outcome="ok", site="quotes"), sites=frozenset({"quotes"})
    )  # fmt: skip
    assert gathering.report.rejected == [Rejected(0, "the token may not push the site 'books'")]
    assert (gathering.forbidden, gathering.report.accepted) == (1, 1)
    assert {key[0] for key in gathering.batch().slots} == {"quotes"}


def test_only_the_first_rejected_items_are_named_and_all_are_counted() -> None:
    report = gathered(*[observed(outcome="?")] * (MAX_NAMED + 5), observed(outcome="ok")).report
    assert (len(report.rejected), report.rejected_items, report.accepted) == (MAX_NAMED, MAX_NAMED + 5, 1)


def test_too_many_items_are_refused_as_a_whole() -> None:
    gathering = gathered(observed(outcome="ok"))
    with pytest.raises(TooLarge, match="more than 100000 items"):
        gathering.take([b"{}"] * MAX_ITEMS)
