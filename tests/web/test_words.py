"""Verdicts, times and checks in the words that a person on call reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.verdict import Band, BandState, Cost, Diagnosis, Override, OverrideKind, Unknown, Verdict
from crawlhealth.web import SitePast, words
from crawlhealth.web.overview import overview
from crawlhealth.web.siteview import view
from samples import HOUR, NOW
from web import sample

BAD = sample.verdict("shop", Band.RESISTING)


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        pytest.param(sample.verdict("quotes", Band.NORMAL), ["serves as it normally does"], id="all is well"),
        pytest.param(
            replace(sample.verdict("quotes", Band.NORMAL), reasons=BAD.reasons), ["What differs:"], id="nearly well"
        ),
        pytest.param(BAD, ["turns the crawler away", "It is the site"], id="resisting"),
        pytest.param(replace(BAD, diagnosis=Diagnosis.SELF), ["", "our own connection"], id="ourselves"),
        pytest.param(
            replace(BAD, state=BandState(band=Band.RESISTING, held=True), unknown=Unknown.NOT_ENOUGH_REQUESTS),
            ["turns the crawler away", "not enough requests", "silence is not recovery", "It is the site"],
            id="held",
        ),
        pytest.param(
            replace(
                BAD, state=BandState(band=Band.DEGRADING, held=True, eased_at=NOW), unknown=Unknown.NOT_ENOUGH_REQUESTS
            ),
            ["worse than its own normal", "not enough requests", "canaries are served again", "It is the site"],
            id="on its way back",
        ),
        pytest.param(
            Verdict(site="maps", at=NOW, state=BandState(), unknown=Unknown.BASELINE_REFUSED),
            ["A person decides whether that is its normal"], id="refused from the beginning",
        ),
        pytest.param(
            Verdict(site="maps", at=NOW, state=BandState(), unknown=Unknown.NO_BASELINE), ["no normal of its own"],
            id="unknown",
        ),
        pytest.param(replace(BAD, maintenance=True), ["", "", "Planned maintenance"], id="maintenance"),
    ],
)  # fmt: skip
def test_a_verdict_in_sentences(verdict: Verdict, says: list[str]) -> None:
    said = words.headline(verdict)
    assert len(said) == len(says)
    assert all(part in sentence for part, sentence in zip(says, said, strict=True)), said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "0 s"),
        (59, "59 s"),
        (140, "2 min"),
        (5400, "1.5 h"),
        (7200, "2 h"),
        (86_400, "24 h"),
        (14 * 86_400, "14 d"),
    ],
    ids=str,
)
def test_durations(seconds: float, said: str) -> None:
    assert words.span(seconds) == said


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        pytest.param([("equals", "A Light")], "equals A Light", id="a text"),
        pytest.param([("one_of", ["a", "b"])], "one of a, b", id="one of several"),
        pytest.param([("number", {"equals": 5, "within_percent": 2, "decimal": ","})],
                     "number equals 5 and within 2 %", id="a number"),
        pytest.param([("count", {"at_least": 7}), ("present", True)], "count at least 7, present", id="several"),
        pytest.param([], "a value", id="none"),
    ],
)  # fmt: skip
def test_what_is_expected_of_a_value(checks: list[tuple[str, object]], said: str) -> None:
    spec = ValueSpec(
        name="x",
        selector=Selector(kind="css", expression="h1"),
        checks=tuple(Check(name=name, argument=argument) for name, argument in checks),
    )
    assert words.expected(spec) == said


def test_what_a_person_decided_is_shown_with_its_end_and_note() -> None:
    shown = sample.exposition()
    override = Override(
        site="shop", kind=OverrideKind.LIMIT, at=NOW, until=NOW + HOUR, concurrency=0.25, note="<b>wait</b>"
    )
    verdicts = tuple(
        replace(verdict, override=override) if verdict.site == "shop" else verdict for verdict in shown.verdicts
    )
    page = view("shop", replace(shown, verdicts=verdicts), SitePast())
    assert page.override == (
        "Limited by a person to 25% of the usual concurrency until 2026-11-30 13:00:00 UTC: <b>wait</b>"
    )


def test_a_site_whose_extraction_fails_needs_a_person_too() -> None:
    shown = sample.exposition(more=3)
    verdicts = tuple(
        replace(verdict, parser_score=41, diagnosis=Diagnosis.PARSER) if verdict.site == "store-0001" else verdict
        for verdict in shown.verdicts
    )
    page = overview(replace(shown, verdicts=verdicts))
    assert [site.name for site in page.cards] == ["shop", "books", "store-0001"]
    assert "our own extraction" in page.cards[2].headline[1]


def test_nobody_is_told_to_slow_down_where_a_person_decided_otherwise() -> None:
    override = Override(site="shop", kind=OverrideKind.RESUME, at=NOW, until=NOW + HOUR, concurrency=1.0)
    assert "told to stop" in words.headline(BAD)[0]
    assert "told to" not in words.headline(replace(BAD, override=override))[0]


def test_what_a_record_costs_is_shown_where_it_is_known() -> None:
    cost = Cost(requests=1.62, retries=0.31, bytes=91_234.2, credits=0.0)
    assert BAD.window is not None
    verdict = replace(BAD, window=structs.replace(BAD.window, cost=cost))
    page = view("shop", replace(sample.exposition(), verdicts=(verdict,)), SitePast())
    assert [(row.name, row.now, row.normal) for row in page.cost] == [
        ("requests", "1.62", "–"), ("retries", "0.31", "–"), ("bytes", "91.2 kB", "–"),
    ]  # fmt: skip


def test_a_young_site_is_drawn_over_the_time_it_was_judged_in() -> None:
    shown = sample.exposition()
    verdicts = [sample.verdict("shop", Band.RESISTING, at=NOW - 60 * minute) for minute in (30, 20, 10)]
    page = view("shop", shown, SitePast(verdicts=verdicts, slots=sample.past("shop").slots))
    assert [chart.title for chart in page.charts] == ["Last 30 min", "Last 24 h", "Last 14 d"]
    assert [chart.title for chart in view("shop", shown, sample.past("shop")).charts] == ["Last 24 h", "Last 14 d"]
    assert [chart.title for chart in view("shop", shown, SitePast()).charts] == ["Last 2 min"]


def test_every_reason_for_no_score_has_its_words() -> None:
    assert set(words.UNKNOWN) == set(Unknown)
