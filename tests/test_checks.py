"""Every row of CHECKS: what holds, what does not and what is said then, and which arguments are refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.checks import CHECKS, Check, Selector, ValueSpec, agree, judge, see
from crawlhealth.checks.values import SEEN_CHARACTERS
from crawlhealth.model import CheckFailure, ValueResult

TEXT = Selector(kind="css", expression="p::text")


def judged(texts: list[str], checks: dict[str, object], *, element: bool = False, **spec: object) -> ValueResult:
    value = ValueSpec(
        name="value",
        selector=TEXT,
        checks=tuple(Check(name=name, argument=argument) for name, argument in checks.items()),
        **spec,  # type: ignore[arg-type]  # a table's keyword arguments have no types
    )
    return judge(value, see(value, texts, element=element))


@pytest.mark.parametrize(
    ("texts", "checks"),
    [
        pytest.param(["A Light"], {"equals": "A Light"}, id="equals"),
        pytest.param(["\n A \t Light\n"], {"equals": "A  Light"}, id="white space collapses on both sides"),
        pytest.param(["\n ", "In stock"], {"equals": "In stock"}, id="the first match that is not blank counts"),
        pytest.param(["red"], {"one_of": ["blue", "red"]}, id="one of"),
        pytest.param(["a897fe39b1053632"], {"matches": "^[0-9a-f]{16}$"}, id="matches"),
        pytest.param(["£51.77"], {"number": {"equals": 51.77}}, id="a number equals"),
        pytest.param(["£51.77"], {"number": {"equals": 50, "within_percent": 5}}, id="a number within percent"),
        pytest.param(["-5 °C"], {"number": {"equals": -5.2, "within_percent": 5}}, id="percent of a negative number"),
        pytest.param(["3"], {"number": {"at_least": 3, "at_most": 3}}, id="bounds are inclusive"),
        pytest.param(["3"], {"number": {"decimal": "."}}, id="any number"),
        pytest.param(["a", "b"], {"count": {"equals": 2}}, id="count counts all matches"),
        pytest.param([], {"count": {"equals": 0}}, id="none is a count"),
        pytest.param([""] * 3, {"count": {"equals": 3}, "present": True}, id="elements need no text"),
        pytest.param(["x"], {"present": True}, id="present"),
        pytest.param([], {"absent": True}, id="absent"),
        pytest.param(["-"], {"equals": "-"}, id="a placeholder that is expected"),
        pytest.param(["£5", "x"], {"number": {"at_least": 1}, "count": {"at_least": 2}}, id="several checks together"),
    ],
)
def test_holds(texts: list[str], checks: dict[str, object]) -> None:
    result = judged(texts, checks, element="" in texts)
    assert (result.ok, result.missing, result.failures) == (True, False, ())


@pytest.mark.parametrize(
    ("texts", "checks", "said", "missing"),
    [
        pytest.param(["B"], {"equals": "A"}, [("equals", "'A'", "'B'")], False, id="another text"),
        pytest.param([], {"equals": "A"}, [("equals", "'A'", "nothing")], True, id="nothing is missing"),
        pytest.param(["red"], {"one_of": ["a", "b"]}, [("one_of", "one of 'a', 'b'", "'red'")], False, id="none of"),
        pytest.param(["x1"], {"matches": "^y"}, [("matches", "a text matching '^y'", "'x1'")], False, id="no match"),
        pytest.param(
            ["£61.77"], {"number": {"equals": 51.77}}, [("number", "number: equals 51.77", "61.77 ('£61.77')")], False,
            id="a decoy price is wrong, not missing",
        ),
        pytest.param(
            ["soon"], {"number": {"at_least": 1}}, [("number", "number: at least 1", "'soon'")], False,
            id="a text where a number should be",
        ),
        pytest.param(["x"] * 3, {"count": {"equals": 20}}, [("count", "count: equals 20", "3")], False, id="too few"),
        pytest.param([], {"count": {"equals": 20}}, [("count", "count: equals 20", "0")], True, id="none is missing"),
        pytest.param([""], {"present": True}, [("present", "a value", "''")], True, id="a blank field is missing"),
        pytest.param(["N/A"], {"present": True}, [("present", "a value", "'N/A'")], True, id="a placeholder"),
        pytest.param(["null"], {}, [("present", "a value", "'null'")], True, id="null as text is missing"),
        pytest.param(["{{ price }}"], {}, [("present", "a value", "'{{ price }}'")], True, id="an unfilled template"),
        pytest.param(["sold"], {"absent": True}, [("absent", "nothing", "'sold'")], False, id="there against the rule"),
        pytest.param(
            ["£0"], {"number": {"at_least": 1}, "count": {"equals": 2}},
            [("number", "number: at least 1", "0 ('£0')"), ("count", "count: equals 2", "1")], False,
            id="every check that fails is told",
        ),
    ],
)  # fmt: skip
def test_does_not_hold(
    texts: list[str], checks: dict[str, object], said: list[tuple[str, str, str]], missing: bool
) -> None:
    result = judged(texts, checks)
    failures = tuple(
        CheckFailure(check=check, expected=wants, seen=saw, where="css p::text") for check, wants, saw in said
    )
    assert (result.ok, result.missing, result.failures) == (False, missing, failures)


@pytest.mark.parametrize(
    ("regex", "text", "seen"),
    [
        pytest.param(r"\((\d+) available\)", "In stock (19 available)", "19", id="group 1 where there is one"),
        pytest.param(r"\d+", "In stock (19 available)", "19", id="else the whole match"),
        pytest.param(r"x(\d)?", "x", "", id="a group that took no part is blank"),
        pytest.param(r"\d", "none", None, id="no match is nothing"),
    ],
)
def test_regex(regex: str, text: str, seen: str | None) -> None:
    assert judged([text], {}, regex=regex).seen == seen


def test_a_catastrophic_pattern_is_linear() -> None:
    assert not judged(["a" * 100_000 + "!"], {"matches": "^(a+)+$"}, regex="(a|aa)+!?").missing


def test_a_number_of_json_needs_no_text() -> None:
    spec = ValueSpec(name="v", selector=TEXT, checks=(Check(name="number", argument={"equals": 1.299}),))
    assert judge(spec, see(spec, ["1.299"], value=1.299)).ok


@pytest.mark.parametrize("bounds", [{"at_least": 1}, {"at_most": 1}, {"equals": 1}])
def test_what_is_no_number_is_within_no_bounds(bounds: dict[str, float]) -> None:
    spec = ValueSpec(name="v", selector=TEXT, checks=(Check(name="number", argument=bounds),))
    assert not judge(spec, see(spec, ["x"], value=math.nan)).ok


def test_large_numbers_are_told_to_the_digit() -> None:
    (failure,) = judged(["1,299,001 €"], {"number": {"equals": 1299000}}).failures
    assert (failure.expected, failure.seen) == ("number: equals 1299000", "1299001 ('1,299,001 €')")


def test_a_long_text_is_kept_short() -> None:
    seen = judged(["x" * 10_000], {"equals": "y"}).seen
    assert seen == "x" * SEEN_CHARACTERS + "… (10000 characters)"


@pytest.mark.parametrize(
    ("check", "argument", "said"),
    [
        pytest.param("equals", 5, 'compares text: write "5" in quotes, or number: {equals: 5}', id="a number as text"),
        pytest.param("equals", None, "compares text: write one text in quotes", id="nothing to compare with"),
        pytest.param("one_of", "a", 'needs a list of texts: write ["one", "another"]', id="one_of without a list"),
        pytest.param("one_of", [], 'needs a list of texts: write ["one", "another"]', id="one_of nothing"),
        pytest.param(
            "matches", "(?=a)",
            "the pattern does not compile: invalid perl operator: (?= (RE2 has no look-around and no back-references)",
            id="a pattern that does not compile",
        ),
        pytest.param(
            "number", 5, "needs a mapping: write {equals: 51.77}, {at_least: 1} or {equals: 100, within_percent: 5}",
            id="a bare number",
        ),
        pytest.param(
            "number", {"equal": 5},
            "does not know 'equal': write one of equals, at_least, at_most, within_percent, decimal",
            id="an unknown bound",
        ),
        pytest.param(
            "number", {"at_least": float("nan")},
            "at_least needs a number: write {equals: 51.77}, {at_least: 1} or {equals: 100, within_percent: 5}",
            id="not a number",
        ),
        pytest.param(
            "number", {"at_least": 5, "at_most": 4}, "can never hold: at_least 5 is over at_most 4", id="no room"
        ),
        pytest.param(
            "number", {"within_percent": 5},
            "within_percent needs the value it is near: write {equals: 100, within_percent: 5}", id="near to nothing",
        ),
        pytest.param("number", {"decimal": ";"}, 'decimal is "." or ",", in quotes', id="an odd decimal sign"),
        pytest.param("count", {}, "says nothing: write {equals: 20} or {at_least: 1}", id="count without a bound"),
        pytest.param(
            "count", {"equals": 2.5}, "counts whole things: write {equals: 20} or {at_least: 1}", id="half a thing"
        ),
        pytest.param(
            "present", False, "takes only true: leave it out, or write its opposite (present, absent)", id="not present"
        ),
    ],
)  # fmt: skip
def test_argument_problem(check: str, argument: object, said: str) -> None:
    assert CHECKS[check].problem(argument) == said


def on(**texts: str) -> dict[str, ValueResult]:
    """The value as each route saw it."""
    return {route: judged([text] if text else [], {}) for route, text in texts.items()}


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        pytest.param({"a": "£51.77", "b": "£51.77"}, [], id="the same everywhere"),
        pytest.param({"a": "£51.77", "b": "51,77 €", "c": "51.77"}, [], id="the same number written otherwise"),
        pytest.param({"a": "£51.77", "b": "£51.77", "c": "£60"}, ["c"], id="the minority is wrong"),
        pytest.param({"a": "£51.77", "b": "£60"}, ["a", "b"], id="without a majority all are"),
        pytest.param({"a": "1", "b": "1", "c": "2", "d": "3"}, ["a", "b", "c", "d"], id="half is no majority"),
        pytest.param({"a": "Book 1: A", "b": "Book 1: B"}, ["a", "b"], id="a text with a digit is compared as text"),
        pytest.param({"a": "£51.77"}, [], id="one route has nothing to agree with"),
    ],
)
def test_agree(seen: dict[str, str], wrong: list[str]) -> None:
    judged_routes = agree(on(**seen))
    assert [route for route, result in judged_routes.items() if not result.ok] == wrong


def test_a_missing_value_takes_no_part_in_agreement() -> None:
    results = on(a="£51.77", b="")
    assert agree(results) == results


def test_disagreement_names_the_majority() -> None:
    result = agree(on(direct="£51.77", eu="£51.77", us="£60"))["us"]
    assert result.failures == (
        CheckFailure(check="same_on", expected="'£51.77' as on direct, eu", seen="'£60'", where="route us"),
    )


def test_disagreement_without_majority_shows_the_others() -> None:
    result = agree(on(direct="£51.77", us="£60"))["us"]
    assert result.failures[0].expected == "one value, but direct: '£51.77'"


ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["equals", "at_least", "x"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(CHECKS)), ARGUMENTS, st.lists(st.text(max_size=20), max_size=3))
def test_an_argument_is_refused_or_works_on_any_text(check: str, argument: object, texts: list[str]) -> None:
    if CHECKS[check].problem(argument) is None:
        result = judged(texts, {check: argument})
        assert result.ok is (not result.failures)
        assert not (result.ok and result.missing)


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["1", "2", "3", ""]), min_size=1))
def test_agreement_never_makes_a_wrong_value_right(seen: dict[str, str]) -> None:
    results = on(**seen)
    assert all(results[route].ok or not result.ok for route, result in agree(results).items())


def test_an_element_that_is_only_counted_has_no_number() -> None:
    card = "Oak stool £48.50 10 in stock"
    assert judged([card], {"count": {"equals": 1}}, element=True).number is None
    assert judged([card], {"unchanged": True, "present": True}, element=True).number is None
    assert judged(["£48.50"], {"count": {"equals": 1}}).number == 48.5
    assert judged(["£48.50"], {"number": {"equals": 48.5}, "count": {"equals": 1}}, element=True).number == 48.5
    assert judged(["£48.50"], {"present": True}, element=True, same_on=("direct", "us")).number == 48.5
