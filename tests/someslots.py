"""Windows made of slots, and slots of any kind, for tests of what they hold."""

from __future__ import annotations

from hypothesis import strategies as st

from crawlhealth import stats
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.tally import Slot, Tally
from crawlhealth.weighted import Sums
from crawlhealth.windows import Windows
from samples import HOUR, NOW, slot

LIVES = (600.0, 1800.0, 7200.0, 21600.0)
MINUTE = 60.0

COUNT = st.integers(min_value=0, max_value=1000)
TALLIES = st.builds(
    Tally, ok=COUNT, hard_block=COUNT, challenge=COUNT, error=COUNT, extractions_failed=COUNT, bytes=COUNT,
    credits=st.floats(0, 1000), latency=st.dictionaries(st.integers(0, len(stats.BOUNDS)), COUNT, max_size=5),
)  # fmt: skip


def windows(*slots: Slot, lives: tuple[float, ...] = LIVES) -> Windows:
    made = Windows(lives, resolution=MINUTE)
    made.add(slots)
    return made


def sums(panel: Panel, site: str = "books") -> list[Sums]:
    """What each window of a site in a panel holds, shortest first."""
    return [Sums(*columns) for columns in panel.totals[panel.sites.index(site)].tolist()]


def some_slots(*, minutes: int) -> st.SearchStrategy[list[Slot]]:
    """Slots that began in the last so many minutes."""
    one = st.builds(
        slot,
        st.integers(min_value=0, max_value=minutes).map(lambda ago: NOW - ago * MINUTE),
        TALLIES,
        seconds=st.sampled_from([MINUTE, HOUR]),
        site=st.sampled_from(["books", "quotes"]),
        route=st.sampled_from(["direct", "dc-us"]),
        source=st.sampled_from(list(Source)),
    )
    return st.lists(one, max_size=30)
