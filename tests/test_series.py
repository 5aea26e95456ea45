"""Our text of a scrape against prometheus_client's own encoders, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics

from crawlhealth import metrics
from crawlhealth.series import Encoder, Families, Series, Text, written

ENCODERS = [
    pytest.param(generate_latest, id="text"),
    pytest.param(partial(openmetrics.generate_latest, escaping="underscores", version="1.0.0"), id="OpenMetrics"),
]
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8) | st.sampled_from(
    ['a"b', "back\\slash", "100 %s", "%", "{x}", "ß", "日本"]
)
NUMBERS = st.floats() | st.integers(min_value=-(10**15), max_value=10**15) | st.sampled_from([0, 1, 999_999, 1_000_000])
VALUES = NUMBERS | st.none()
COUNTS = st.dictionaries(
    st.integers(min_value=0, max_value=300), st.integers(min_value=1, max_value=10**9), max_size=20
)


class Fixed:
    """A collector of these families."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families.all()


def both(fill: Callable[[Series], None], encoder: Encoder) -> tuple[str, str]:
    """The text by us and by prometheus_client."""
    text, families = Text(), Families()
    fill(text)
    fill(families)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Fixed(families))
    return "".join(text.pieces(encoder)), encoder(registry).decode().removesuffix("# EOF\n")


@pytest.mark.parametrize("encoder", ENCODERS)
@given(sites=st.lists(st.tuples(NAMES, NAMES, VALUES, VALUES, COUNTS), max_size=5))
def test_text_is_as_the_library_writes_it(
    encoder: Encoder, sites: list[tuple[str, str, float | None, float | None, dict[int, int]]]
) -> None:
    def fill(shown: Series) -> None:
        for site, route, one, other, counts in sites:
            shown.put(metrics.SCORE, (site,), one)
            shown.put(metrics.SKIPPED, (), other)
            shown.put(metrics.CANARY_SUCCESS, (site, "front", route), one)
            shown.spread(metrics.REQUESTS, (site, route, "traffic"), ("ok", "error"), (one, other))
            shown.spread(metrics.ROUTE_REFUSED, (site,), (route,), (one,))
            shown.spread(metrics.PENALTY, (site,), (), ())
            shown.histogram(metrics.DURATION, (site, "traffic"), counts, 0.25, first=metrics.HISTOGRAM_FIRST)
            shown.histogram(metrics.SCHEDULE_LAG, (), counts, 1e9, first=0.001)

    ours, theirs = both(fill, encoder)
    assert ours == theirs


def test_what_was_given_is_let_go() -> None:
    text = Text()
    text.put(metrics.SCORE, ("books",), 66)
    assert "".join(text.pieces(generate_latest)).endswith('crawlhealth_score{site="books"} 66.0\n')
    assert list(text.pieces(generate_latest)) == []


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        pytest.param(0, "0.0", id="a whole number"),
        pytest.param(1_796_040_000.25, "1.79604000025e+09", id="a time has an exponent, as Go writes it"),
        pytest.param(float("nan"), "NaN", id="not a number"),
        pytest.param(float("-inf"), "-Inf", id="infinite"),
    ],
)
def test_numbers(value: float, seen: str) -> None:
    assert written(value) == seen
