"""`unchanged`: the structure of a part of a page against what it was when first seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.canary.extract import Extractor
from crawlhealth.canary.fetch import Fetcher
from crawlhealth.canary.page import Page
from crawlhealth.canary.runner import Runner, Sizes
from crawlhealth.canary.structures import Structures
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.config import Canary, Config, Fetching, Route, Site
from crawlhealth.history import StoredRun
from crawlhealth.model import CanaryRun, ValueResult
from crawlhealth.outcome import Outcome
from crawlhealth.sketch import SIZE, likeness, sketch
from rawserver import RawServer, answering

NOW = 1_796_040_000.0
KEY = ("shop", "list", "direct")


def spec(argument: object = True, kind: str = "css", expression: str = "main", *more: Check) -> ValueSpec:
    selector = Selector(kind=kind, expression=expression)  # type: ignore[arg-type]  # one of the four
    return ValueSpec(name="layout", selector=selector, checks=(Check(name="unchanged", argument=argument), *more))


def value_of(body: str, wanted: ValueSpec) -> ValueResult:
    kind = "application/json" if wanted.selector.kind == "jmespath" else "text/html; charset=utf-8"
    (value,) = Page(body.encode(), kind).judge((wanted,))
    return value


def item(number: int, extra: str = "") -> str:
    return (
        f'<li class="item row-{number}"><a class="name" href="/p/{number}">Thing {number}</a>'
        f'<p class="price">£{number}.00 <b>now</b></p><div class="stars"><i></i><i></i></div>{extra}</li>'
    )


def listing(*items: str) -> str:
    return (
        '<html><body><nav><a href="/">Home</a></nav><main class="page"><h1>Things</h1><div class="tools"><form><label>'
        f'Sort</label><select><option>a</option></select></form></div><ul class="grid">{"".join(items)}</ul>'
        '<footer class="pager"><a class="next">Next</a><span class="count">20</span></footer></main></body></html>'
    )


FIRST = listing(*(item(number) for number in range(20)))
REDESIGN = (
    '<html><body><main><section data-grid><article><h2>Thing</h2><strong>£1</strong></article></section>'
    '<aside><ol><li><em>x</em></li></ol></aside></main></body></html>'
)  # fmt: skip


@pytest.mark.parametrize(
    ("page", "same"),
    [
        pytest.param(FIRST, True, id="the same page"),
        pytest.param(listing(*(item(number + 50) for number in range(20))), True, id="other texts, links and numbers"),
        pytest.param(listing(*(item(number) for number in range(3))), True, id="fewer items"),
        pytest.param(listing(*(item(n, "<em class=sale>Sale</em>") for n in range(20))), True, id="a badge more"),
        pytest.param(FIRST.replace("</ul>", "</ul><script>x</script><!-- y -->"), True, id="a script and a comment"),
        pytest.param(FIRST.replace("<nav>", "<nav><div><div><div>"), True, id="a change elsewhere on the page"),
        pytest.param(listing(), False, id="no items at all"),
        pytest.param(FIRST.replace("class=", "data-c="), False, id="all classes gone"),
        pytest.param(REDESIGN, False, id="a redesign"),
    ],
)
def test_what_counts_as_unchanged(page: str, same: bool) -> None:
    wanted = spec()
    structures = Structures({})
    (first,) = structures.adopt(KEY, (wanted,), structures.compare(KEY, (wanted,), (value_of(FIRST, wanted),)), NOW)
    assert first.ok, "what is seen first is right"
    (now,) = structures.compare(KEY, (wanted,), (value_of(page, wanted),))
    assert now.ok is same, now.failures
    assert now.reference == first.reference
    assert not now.wrong, "another structure is no wrong value"


def test_a_change_is_told_with_how_much_of_it() -> None:
    wanted = spec()
    structures = Structures({})
    structures.adopt(KEY, (wanted,), (value_of(FIRST, wanted),), NOW)
    (now,) = structures.compare(KEY, (wanted,), (value_of(listing(), wanted),))
    (failure,) = now.failures
    assert failure.expected.startswith("at least 80% of the structure of 2026-11-30 12:00 (")
    assert failure.seen.endswith(")")
    assert "% of it (" in failure.seen
    (now,) = structures.compare(KEY, (spec({"within_percent": 60}),), (value_of(listing(), wanted),))
    assert now.ok, "more may be allowed"


def test_a_later_since_accepts_what_is_seen_next() -> None:
    wanted, later = spec(), spec({"since": "2026-11-30T13:00:00Z"})
    structures = Structures({})
    structures.adopt(KEY, (wanted,), (value_of(FIRST, wanted),), NOW)
    values = structures.compare(KEY, (later,), (value_of(REDESIGN, wanted),))
    (accepted,) = structures.adopt(KEY, (later,), values, NOW + 7200)
    assert accepted.ok
    (now,) = structures.compare(KEY, (later,), (value_of(FIRST, wanted),))
    assert not now.ok, "the new one is the first now"


def test_json_by_its_keys() -> None:
    wanted = spec(True, "jmespath", "@")
    first = '{"items": [{"id": 1, "price": {"value": 2, "currency": "x"}}, {"id": 2}], "next": null}'
    again = '{"next": "p2", "items": [{"id": 7, "price": {"value": 3, "currency": "y"}}]}'
    other = '{"data": {"rows": [[1, 2], [3, 4]]}, "status": "ok"}'
    structures = Structures({})
    structures.adopt(KEY, (wanted,), (value_of(first, wanted),), NOW)
    kept, changed = (structures.compare(KEY, (wanted,), (value_of(body, wanted),))[0] for body in (again, other))
    assert (kept.ok, changed.ok) == (True, False)


def test_what_is_no_element_has_no_structure() -> None:
    value = value_of(FIRST, spec(True, "xpath", "//h1/text()"))
    assert [(failure.check, failure.seen) for failure in value.failures] == [("unchanged", "'Things'")]
    gone = value_of("<p>nothing", spec())
    assert (gone.ok, gone.missing, gone.structure) == (False, True, None)


@given(st.sets(st.text(max_size=5), max_size=300), st.sets(st.text(max_size=5), max_size=300))
def test_likeness_is_that_of_the_sets(one: set[str], other: set[str]) -> None:
    alike = likeness(sketch(one), sketch(other))
    together = len(one | other)
    exact = len(one & other) / together if together else 1.0
    assert alike == pytest.approx(exact, abs=0 if together <= SIZE else 0.25)
    assert likeness(sketch(one), sketch(one)) == 1.0


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor(1.0) as extractor:
        yield extractor


def run(extractor: Extractor, body: str, structures: Structures, *, at: float = NOW, expect: ValueSpec) -> CanaryRun:
    page = body.encode()
    with RawServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page)) as server:
        canary = Canary(name="list", site="shop", url=server.url(), expect=(expect,))
        runner = Runner(
            Config(
                sites={"shop": Site(name="shop", hosts=("127.0.0.1",))}, routes={"direct": Route(name="direct")},
                canaries=(canary,),
            ),
            fetcher=Fetcher(Fetching()), extractor=extractor, sizes=Sizes({}), structures=structures, clock=lambda: at,
        )  # fmt: skip
        (result,) = runner.run(canary, ("direct",))
        return result


def test_the_first_structure_goes_through_the_history_and_back(extractor: Extractor) -> None:
    first = run(extractor, FIRST, Structures({}), expect=spec())
    assert first.success
    stored = StoredRun.after(None, first)
    known = Structures({KEY: stored.structures})  # as after a restart
    changed = run(extractor, REDESIGN, known, at=NOW + 60, expect=spec())
    assert (changed.success, changed.decoy_suspect, changed.extracted) == (False, False, True)
    stored = StoredRun.after(stored, changed)
    assert stored.structures["layout"].at == NOW, "what is wrong does not become the first"
    assert run(extractor, FIRST, Structures({KEY: stored.structures}), at=NOW + 120, expect=spec()).success


DENIED = "<html><head><title>Access denied</title></head><body><main><h1>Access denied</h1></main></body></html>"


def test_a_structure_never_seen_before_proves_no_content(extractor: Extractor) -> None:
    structures = Structures({})
    blocked = run(extractor, DENIED, structures, expect=spec())
    assert blocked.classification.outcome is Outcome.SOFT_BLOCK
    assert run(extractor, FIRST, structures, expect=spec()).success, "a block page does not become the first"
    assert run(extractor, DENIED, structures, expect=spec()).classification.outcome is Outcome.SOFT_BLOCK


def test_a_page_with_another_value_wrong_is_not_taken_for_the_first(extractor: Extractor) -> None:
    title = Check(name="equals", argument="Other things")
    structures = Structures({})
    assert run(extractor, FIRST, structures, expect=spec(True, "css", "h1", title)).values[0].reference is None
    assert run(extractor, FIRST, structures, expect=spec(True, "css", "h1")).values[0].reference is not None
