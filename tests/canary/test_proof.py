"""What proves that a page is the expected one: right values that no other page would have."""

from __future__ import annotations

from typing import Literal

import pytest

from crawlhealth.canary.page import Page
from crawlhealth.canary.proof import found
from crawlhealth.checks import Check, Selector, ValueSpec

PAGE = b"<h1>Kettle</h1><p class=price>5</p>"
BLOCK = b"<title>Just a moment...</title><h1>Checking</h1>"


def value(name: str, expression: str, kind: Literal["css", "xpath"] = "css", **checks: object) -> ValueSpec:
    return ValueSpec(
        name=name,
        selector=Selector(kind=kind, expression=expression),
        checks=tuple(Check(name=check, argument=argument) for check, argument in checks.items()),
    )


TITLE = value("title", "h1::text", equals="Kettle")
PRICE = value("price", ".price::text", number={"equals": 5})
HEADING = value("heading", "h1", present=True)
NO_ERRORS = value("errors", ".error", count={"equals": 0})


@pytest.mark.parametrize(
    ("specs", "on_page", "on_block"),
    [
        pytest.param((TITLE,), True, False, id="a known text"),
        pytest.param((TITLE, PRICE), True, False, id="two known values"),
        pytest.param((), None, None, id="nothing expected"),
        pytest.param((NO_ERRORS,), None, None, id="no elements of a kind, which no page has"),
        pytest.param((TITLE, NO_ERRORS), True, False, id="a known text, and no elements of a kind"),
        pytest.param((TITLE, value("few", "li", count={"at_most": 9})), True, False, id="at most so many elements"),
        pytest.param((TITLE, value("e", ".error", absent=True)), True, False, id="something absent"),
        pytest.param(
            (TITLE, value("e", "count(//li)", "xpath", number={"equals": 0})), True, False, id="none, counted by XPath"
        ),
        pytest.param((HEADING,), True, True, id="a heading, and nothing better known"),
        pytest.param((TITLE, HEADING), True, None, id="a known text and any heading"),
        pytest.param((PRICE, value("h", "h1::text", matches=".")), True, None, id="a known price and any text"),
        pytest.param((PRICE, value("h", "h1", count={"at_least": 1})), True, None, id="a known price and an element"),
    ],
)
def test_proof(specs: tuple[ValueSpec, ...], on_page: bool | None, on_block: bool | None) -> None:
    assert found(specs, Page(PAGE, "text/html").judge(specs)) is on_page
    assert found(specs, Page(BLOCK, "text/html").judge(specs)) is on_block


def test_one_known_value_that_is_right_is_enough() -> None:
    specs = (TITLE, value("price", ".price::text", number={"equals": 6}), HEADING)
    assert found(specs, Page(PAGE, "text/html").judge(specs)) is True
