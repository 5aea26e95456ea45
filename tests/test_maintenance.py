from __future__ import annotations

import pytest

from crawlhealth.config import Maintenance
from crawlhealth.maintenance import moment, under_maintenance

MOVE = Maintenance(start="2026-12-01T22:00:00Z", end="2026-12-02T04:00:00+01:00", sites=("books",))
NIGHTLY = Maintenance(start="23:30", end="01:00", days=("mon", "sun"))


@pytest.mark.parametrize(
    ("window", "at", "on"),
    [
        pytest.param(MOVE, "2026-12-01T21:59:59Z", False, id="before it begins"),
        pytest.param(MOVE, "2026-12-01T22:00:00Z", True, id="from its start"),
        pytest.param(MOVE, "2026-12-02T02:59:59Z", True, id="until its end in its own time zone"),
        pytest.param(MOVE, "2026-12-02T03:00:00Z", False, id="not at its end"),
        pytest.param(NIGHTLY, "2026-11-30T23:29:00Z", False, id="a Monday before the hour"),
        pytest.param(NIGHTLY, "2026-11-30T23:30:00Z", True, id="a Monday night"),
        pytest.param(NIGHTLY, "2026-12-01T00:59:00Z", True, id="over midnight into Tuesday"),
        pytest.param(NIGHTLY, "2026-12-01T01:00:00Z", False, id="until the end on Tuesday"),
        pytest.param(NIGHTLY, "2026-12-01T23:45:00Z", False, id="not on a Tuesday night"),
    ],
)
def test_maintenance_is_on(window: Maintenance, at: str, on: bool) -> None:
    assert under_maintenance([window], "books", moment(at)) is on


def test_maintenance_of_one_site_is_not_that_of_another() -> None:
    assert not under_maintenance([MOVE], "quotes", moment("2026-12-01T23:00:00Z"))
    assert under_maintenance([MOVE, NIGHTLY], "quotes", moment("2026-11-30T23:45:00Z")), "no site named means all"
