"""Selectors of one element as patterns, and what patterns may be."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.markers import marker_options, marker_size, tag_pattern


def selects(selector: str, markup: str) -> bool:
    pattern = tag_pattern(selector)
    assert marker_size(pattern) < 5_000
    return bool(re2.compile(pattern.encode(), marker_options()).search(markup.encode()))


@pytest.mark.parametrize(
    ("selector", "markup", "selected"),
    [
        pytest.param("form", "<form action=/x>", True, id="a tag"),
        pytest.param("form", "<formula>", False, id="a longer tag's name"),
        pytest.param("#gate", '<div id="gate">', True, id="an id"),
        pytest.param("#gate", "<DIV ID='Gate'>", True, id="case does not matter"),
        pytest.param("#gate", "<div id=gate>", True, id="an id without quotes"),
        pytest.param("#gate", "<div id=gates>", False, id="a longer id without quotes"),
        pytest.param("#gate", '<div id="gate-2">', False, id="a longer id"),
        pytest.param("#gate", '<div data-id="gate">', False, id="the end of another attribute's name"),
        pytest.param(".captcha", '<p class="big captcha wide">', True, id="a class among others"),
        pytest.param(".captcha", '<p class="captcha-off">', False, id="a longer class"),
        pytest.param("div.a.b", '<div class="x b y a">', True, id="two classes in any order"),
        pytest.param("div.a.b", '<div class="a"><div class="b">', False, id="two classes of two elements"),
        pytest.param("[data-gate]", "<div data-gate>", True, id="an attribute that is there"),
        pytest.param("script[src*=challenge]", '<script async src="/x/challenge.js">', True, id="a part of a value"),
        pytest.param("script[src^='/x/']", '<script src="/y/x/">', False, id="another beginning"),
        pytest.param('a[href$=".exe"]', "<a href=/get.exe>", True, id="an end without quotes"),
        pytest.param("form#f[action='/verify']", '<form action="/verify" class=x id=f>', True, id="in any order"),
        pytest.param("form#f[action='/verify']", "<form id=f><a action=/verify>", False, id="on one element only"),
        pytest.param("#f[title]", '<p id="f"title="x">', True, id="no blank between attributes"),
        pytest.param("*[lang=x]", "<html lang=x>", True, id="any element"),
    ],
)
def test_selectors(selector: str, markup: str, selected: bool) -> None:
    assert selects(selector, markup) is selected


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        pytest.param("div p", "cannot be read here", id="a descendant"),
        pytest.param("div > p", "cannot be read here", id="a child"),
        pytest.param("p:first-child", "cannot be read here", id="a pseudo class"),
        pytest.param("h1::text", "cannot be read here", id="a pseudo element"),
        pytest.param("a, b", "cannot be read here", id="a list"),
        pytest.param("", "selects nothing in particular", id="nothing"),
        pytest.param("*", "selects nothing in particular", id="everything"),
        pytest.param("[a][b][c][d]", "more than 3 conditions", id="too many conditions"),
    ],
)
def test_selectors_that_cannot_be_patterns(selector: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tag_pattern(selector)


@given(st.text(max_size=40))
def test_a_selector_is_a_pattern_that_compiles_or_a_clear_error(selector: str) -> None:
    try:
        pattern = tag_pattern(selector)
    except ValueError:
        return
    assert marker_size(pattern) > 0


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        pytest.param("(", "missing", id="an open group"),
        pytest.param("(?=x)", "no look-around", id="look-around"),
        pytest.param("[а-я]", "beyond ASCII", id="a set of Cyrillic letters"),
        pytest.param("ä+", "beyond ASCII", id="a repeated umlaut"),
    ],
)
def test_patterns_with_a_problem(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        marker_size(pattern)
