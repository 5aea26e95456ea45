"""A new normal as people accept it: what is meant, since when, and that nothing written breaks the reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.acceptance import Begun, begun, consequence, parse, told
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Band, BandState, Unknown, Verdict
from samples import DAY, HOUR, NOW

SETTINGS = BaselineSettings()
USUAL = Begun(since=NOW - DAY, why="when it left its normal")
TIMES = st.text(max_size=40) | st.datetimes().map(lambda when: when.isoformat() + "Z") | st.from_regex(r"\d+[smhdw]")


def verdict(band: Band, *, unknown: Unknown | None = None) -> Verdict:
    return Verdict(site="books", at=NOW, state=BandState(band=band, since=NOW - HOUR), unknown=unknown)


@pytest.mark.parametrize(
    ("latest", "incident", "since"),
    [
        pytest.param(verdict(Band.RESISTING), NOW - 9 * HOUR, NOW - 9 * HOUR, id="the start of its open incident"),
        pytest.param(verdict(Band.RESISTING), None, NOW - HOUR, id="the start of its band, where there is none"),
        pytest.param(verdict(Band.DEGRADING), NOW + HOUR, NOW, id="never a time to come"),
        pytest.param(verdict(Band.NORMAL), None, NOW, id="now, of a normal site"),
        pytest.param(verdict(Band.UNKNOWN, unknown=Unknown.NO_BASELINE), None, NOW, id="now, of an unknown site"),
        pytest.param(
            verdict(Band.UNKNOWN, unknown=Unknown.BASELINE_REFUSED), None, NOW - 14 * DAY,
            id="all of a first baseline that is refused",
        ),
        pytest.param(None, None, NOW, id="now, of a site that was never judged"),
    ],
)  # fmt: skip
def test_since_when_where_nobody_names_a_time(latest: Verdict | None, incident: float | None, since: float) -> None:
    assert begun(latest, incident, now=NOW, settings=SETTINGS).since == since


@pytest.mark.parametrize(
    ("written", "since"),
    [
        pytest.param(None, NOW - DAY, id="as usual"),
        pytest.param("", NOW - DAY, id="as usual, by an empty field"),
        pytest.param("2h", NOW - 2 * HOUR, id="so long ago"),
        pytest.param("2026-11-30T10:00:00+01:00", NOW - 3 * HOUR, id="a moment"),
        pytest.param("0", NOW, id="now"),
    ],
)
def test_what_is_meant(written: str | None, since: float) -> None:
    found = parse("books", now=NOW, usual=USUAL, since=written, by=" anna\n", note="  their\n new shop ")
    assert found == Accepted(site="books", at=NOW, since=since, by="anna", note="their new shop")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("2026-12-01T22:00:00Z", "since: is in the future: write an earlier moment", id="the future"),
        pytest.param("3y", "since: is not a duration: write 30s, 5m, 1h30m or 2d", id="no duration"),
        pytest.param("2026-11-30T10:00:00", "since: a moment needs a time zone: write for", id="no time zone"),
        pytest.param("T", "since: write a moment as in 2026-12-01T22:00:00Z, or so long ago as in 2h", id="no moment"),
        pytest.param("400d", "since: is more than a year ago: write a later moment", id="long ago"),
    ],
)
def test_what_cannot_be_meant_is_told(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", "[(]")):
        parse("books", now=NOW, usual=USUAL, since=written)


@given(st.none() | TIMES, st.text(max_size=120), st.text(max_size=600))
def test_anything_else_is_told_what_to_write(since: str | None, by: str, note: str) -> None:
    try:
        found = parse("books", now=NOW, usual=USUAL, since=since, by=by, note=note)
    except ValueError as error:
        assert "write" in str(error)  # noqa: PT017 - either is good
        return
    assert NOW - 367 * DAY <= found.since <= NOW
    assert (len(found.by) <= 100, len(found.note) <= 500) == (True, True)


def test_it_is_told_in_words() -> None:
    found = parse("books", now=NOW, usual=USUAL, by="anna", note="their new shop")
    assert told(found) == "Accepted as normal since 2026-11-29 12:00:00 UTC by anna: their new shop"
    assert told(parse("books", now=NOW, usual=USUAL)) == "Accepted as normal since 2026-11-29 12:00:00 UTC"
    assert consequence(SETTINGS) == (
        "Its baseline is made of the hours since then, 6 at least and the last 1d too, until there are 14d of them."
    )
