"""How much of its usual pace a download slot gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.client import SiteAdvice
from crawlhealth.scrapy.limits import LONGEST_DELAY, Pace, allowed


@pytest.mark.parametrize(
    ("usual", "ratio", "latency", "expected"),
    [
        pytest.param(Pace(8, 0.0), 1.0, 0.2, Pace(8, 0.0), id="as usual"),
        pytest.param(Pace(8, 0.0), 0.7, 0.2, Pace(5, 0.0), id="concurrency falls and is rounded down"),
        pytest.param(Pace(8, 0.0), 0.25, 0.2, Pace(2, 0.0), id="a quarter"),
        pytest.param(Pace(8, 0.5), 0.5, 0.2, Pace(4, 1.0), id="a usual delay is stretched"),
        pytest.param(Pace(1, 0.0), 0.25, 0.2, Pace(1, 0.8), id="one at a time is spread out by its latency"),
        pytest.param(Pace(1, 0.0), 0.25, None, Pace(1, 0.0), id="an unknown latency spreads nothing"),
        pytest.param(Pace(1, 3.0), 0.5, 0.2, Pace(1, 6.0), id="the longer delay counts"),
        pytest.param(Pace(1, 500.0), 0.25, 0.2, Pace(1, LONGEST_DELAY), id="a slow site is not forgotten"),
        pytest.param(Pace(1, 900.0), 0.25, 0.2, Pace(1, 900.0), id="a usual delay is never shortened"),
        pytest.param(Pace(8, 0.5), 0.0, 0.2, Pace(0, 0.5), id="nothing at all"),
    ],
)
def test_pace(usual: Pace, ratio: float, latency: float | None, expected: Pace) -> None:
    assert allowed(usual, SiteAdvice(concurrency_ratio=ratio), latency) == expected


def test_a_paused_site_gets_nothing_whatever_its_ratio() -> None:
    assert allowed(Pace(8, 0.0), SiteAdvice(paused=True), 0.2).concurrency == 0


@given(
    st.integers(1, 100), st.floats(0, 100), st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 100)
)  # fmt: skip
def test_worse_advice_never_makes_faster(
    concurrency: int, delay: float, one: float, other: float, latency: float | None
) -> None:
    usual = Pace(concurrency, delay)
    slow = allowed(usual, SiteAdvice(concurrency_ratio=min(one, other)), latency)
    fast = allowed(usual, SiteAdvice(concurrency_ratio=max(one, other)), latency)
    assert slow.concurrency <= fast.concurrency <= concurrency
    assert slow.delay >= fast.delay or slow.concurrency == 0
    assert fast.delay >= delay
