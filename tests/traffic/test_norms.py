from __future__ import annotations

import random

import pytest

from crawlhealth.traffic import norms
from crawlhealth.traffic.norms import Norms


def learnt(*sizes: float) -> Norms:
    known = Norms()
    for size in sizes:
        known.add("books", "listing", size)
    return known


@pytest.mark.parametrize(
    ("sizes", "usual"),
    [
        pytest.param([], None, id="of nothing nothing is known"),
        pytest.param([50_000] * 19, None, id="nineteen pages are too few"),
        pytest.param([50_000] * 20, 50_000, id="twenty equal pages are enough"),
        pytest.param([50_000] * 60 + [900] * 2 + [5_000_000] * 30, 50_000, id="odd pages move nothing"),
        pytest.param([50_000] * 60 + [10_000] * 40, 20_000, id="small pages that are common are not odd"),
        pytest.param([0] * 100, None, id="an empty page says nothing"),
    ],
)
def test_the_usual_size_is_the_median_or_twice_what_is_still_common(sizes: list[float], usual: float | None) -> None:
    found = learnt(*sizes).usual("books", "listing")
    assert found == (usual if usual is None else pytest.approx(usual, rel=0.03))


def test_page_types_and_sites_have_sizes_of_their_own() -> None:
    known = learnt(*[50_000.0] * 30)
    assert known.usual("books", "product") is None
    assert known.usual("quotes", "listing") is None


def test_a_site_that_grows_is_followed_and_one_bad_hour_is_not() -> None:
    chance = random.Random(7)
    known = learnt(*(chance.lognormvariate(10, 0.3) for _ in range(5_000)))
    before = known.usual("books", "listing")
    assert before == pytest.approx(2.718281828**10, rel=0.1)
    for _ in range(20):
        known.add("books", "listing", 700)
    assert known.usual("books", "listing") == pytest.approx(before, rel=0.1)
    for _ in range(5_000):
        known.add("books", "listing", 200_000)
    assert known.usual("books", "listing") == pytest.approx(200_000, rel=0.03)


def test_a_crawler_that_invents_page_types_fills_no_memory() -> None:
    known = Norms()
    for number in range(10 * norms.MAX_PAGE_TYPES):
        known.add("books", f"type-{number}", 1_000, count=50)
    assert len(known.changed()) == norms.MAX_PAGE_TYPES
    assert known.usual("books", "type-5") is not None


def test_what_was_learnt_comes_back_and_is_told_once() -> None:
    known = learnt(*[50_000.0] * 500)
    kept = known.changed()
    assert list(kept) == [("books", "listing")]
    assert not known.changed()
    assert Norms(kept).usual("books", "listing") == known.usual("books", "listing")


def test_a_site_that_left_the_configuration_is_forgotten() -> None:
    known = learnt(*[50_000.0] * 30)
    known.keep(["quotes"])
    assert known.usual("books", "listing") is None
    assert not known.changed()
