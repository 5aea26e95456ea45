"""Numbers are read as sites write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.checks.numbers import READ_CHARACTERS, is_only_number, number


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        pytest.param("£51.77", None, 51.77, id="a currency sign in front"),
        pytest.param("1.234,56 €", None, 1234.56, id="German grouping and decimals"),
        pytest.param("1,299", None, 1299, id="a lone comma before three digits groups thousands"),
        pytest.param("1.299", None, 1299, id="a lone point before three digits groups thousands too"),
        pytest.param("1.299", ".", 1.299, id="unless the decimal sign is settled"),
        pytest.param("1,299", ",", 1.299, id="a decimal comma may be settled as well"),
        pytest.param("0.129", None, 0.129, id="nothing groups a zero"),
        pytest.param("1234.567", None, 1234.567, id="four digits before the point cannot be a group"),
        pytest.param("1 299,00 kr", None, 1299, id="blanks group thousands"),
        pytest.param("1\u202f299,50", None, 1299.5, id="narrow blanks too"),
        pytest.param("1’234.50", None, 1234.5, id="Swiss apostrophes too"),
        pytest.param("1,23,456.00", None, 123456, id="Indian grouping"),
        pytest.param("12.345.678,90", None, 12345678.9, id="several groups"),
        pytest.param("-5", None, -5, id="the sign is kept"),
        pytest.param("−3.5 °C", None, -3.5, id="a true minus sign too"),
        pytest.param("-$5.00", None, -5, id="a sign before the currency"),
        pytest.param("$-5.00", None, -5, id="a sign after the currency"),
        pytest.param("ISBN-5", None, 5, id="a hyphen in a word is no sign"),
        pytest.param("2024-01-05", None, 2024, id="a date begins with its year"),
        pytest.param("10-20", None, 10, id="a range begins with its lower end"),
        pytest.param("1 2999", None, 1, id="a blank that cannot group ends the number"),
        pytest.param("35€99", None, 35.99, id="a euro sign as decimal sign"),
        pytest.param("5%", None, 5, id="a percentage is a number"),
        pytest.param(".5", None, 0.5, id="no digit before the point"),
        pytest.param("Nr.5", None, 5, id="the point of an abbreviation is no decimal sign"),
        pytest.param("1e5", None, 1e5, id="an exponent as JSON writes it"),
        pytest.param("٤٫٥", None, 4.5, id="Arabic digits and decimal sign"),
        pytest.param("１２３", None, 123, id="full-width digits"),
        pytest.param("In stock (19 available)", None, 19, id="the first number in a sentence"),
        pytest.param("free", None, None, id="no digit is no number, whatever the word means"),
        pytest.param("-", None, None, id="a sign alone is no number"),
        pytest.param("", None, None, id="nothing is no number"),
        pytest.param(None, None, None, id="a missing text is no number"),
        pytest.param("1.2.3", None, None, id="a version is no number"),
        pytest.param("9" * 400, None, None, id="more digits than a float holds"),
        pytest.param(" " * READ_CHARACTERS + "5", None, None, id="only the beginning of a text is looked at"),
        pytest.param(
            "x" * (READ_CHARACTERS - 2) + " 1299", None, 1299.0, id="a number that begins in it is read whole"
        ),
    ],
)
def test_number(text: str | None, decimal: str | None, expected: float | None) -> None:
    assert number(text, decimal) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        pytest.param("£51.77", True, id="a price is only a number"),
        pytest.param("51,77 EUR", True, id="a currency code counts as currency"),
        pytest.param("Book 1: A", False, id="a title with a digit is a text"),
        pytest.param("12 of 20", False, id="two numbers are a text"),
        pytest.param("none", False, id="no number is a text"),
    ],
)
def test_is_only_number(text: str, alone: bool) -> None:
    assert is_only_number(text) is alone


@given(st.text(max_size=300), st.sampled_from([None, ".", ","]))
def test_any_text_gives_a_finite_number_or_none(text: str, decimal: str | None) -> None:
    found = number(text, decimal)
    assert found is None or math.isfinite(found)


@given(st.text(alphabet="0123456789.,' €$-+eE%\u00a0\u2212", max_size=120))
def test_number_like_noise_gives_a_finite_number_or_none(text: str) -> None:
    found = number(text)
    assert found is None or math.isfinite(found)
    is_only_number(text)


@given(st.integers(-(10**9), 10**9), st.integers(0, 99))
def test_english_and_german_writing_mean_the_same(whole: int, cents: int) -> None:
    english = f"{whole:,}.{cents:02d}"
    german = english.translate(str.maketrans(",.", ".,"))
    expected = float(f"{whole}.{cents:02d}")
    assert number(f"£ {english}" if whole >= 0 else english) == pytest.approx(expected)
    assert number(f"{german} €") == pytest.approx(expected)
