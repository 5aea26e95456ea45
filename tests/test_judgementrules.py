"""The sections `advice`, `maintenance`, `uplink` and `score.canaries`: what is read, and every problem."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from configured import CONFIG, Folder
from crawlhealth.config import Maintenance, UplinkSettings
from crawlhealth.scoresettings import AdviceSettings, CanaryLed


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_all_sections_are_read(folder: Folder) -> None:
    config = folder.load(
        CONFIG
        + """\
advice: {least_concurrency: 0.5, most_revisit: 6, pause: false}
maintenance:
  - {sites: [books], start: "2026-12-01T22:00:00Z", end: "2026-12-02T04:00:00Z", note: they move}
  - {days: [sat, sun], start: "23:30", end: "01:00"}
uplink: {reference: "https://www.iana.org/", every: 10s, sites: 5, after: 1m}
score: {canaries: {refused: 4, served: 10, over: 30m, double_every: 1h}}
"""
    )
    assert config.score.canaries == CanaryLed(
        refused=4, served=10, over=timedelta(minutes=30), double_every=timedelta(hours=1)
    )
    assert config.advice == AdviceSettings(least_concurrency=0.5, most_revisit=6, pause=False)
    assert config.maintenance == (
        Maintenance(start="2026-12-01T22:00:00Z", end="2026-12-02T04:00:00Z", sites=("books",), note="they move"),
        Maintenance(start="23:30", end="01:00", days=("sat", "sun")),
    )
    assert config.uplink == UplinkSettings(
        reference="https://www.iana.org/", every=timedelta(seconds=10), sites=5, after=timedelta(minutes=1)
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        pytest.param(
            "advice: {least_concurrency: 2}",
            "advice.least_concurrency: must be a share from 0 to 1: write for instance 0.25",
            id="a concurrency over the usual",
        ),
        pytest.param(
            "advice: {most_revisit: 0.5}",
            "advice.most_revisit: must be a factor from 1 to 1000: write for instance 4",
            id="a revisit factor that speeds up",
        ),
        pytest.param(
            "maintenance: [{sites: [bokos], start: '2026-12-01T22:00:00Z', end: '2026-12-01T23:00:00Z'}]",
            "maintenance[0].sites[0]: there is no site 'bokos': did you mean books?",
            id="maintenance of no known site",
        ),
        pytest.param(
            "maintenance: [{start: '2026-12-01T22:00:00', end: '2026-12-01T23:00:00Z'}]",
            "maintenance[0].start: '2026-12-01T22:00:00' is not a time: a moment needs a time zone: "
            "write for instance 2026-12-01T22:00:00Z",
            id="a moment without a time zone",
        ),
        pytest.param(
            "maintenance: [{start: '2026-12-01T22:00:00Z', end: '2026-12-01T21:00:00Z'}]",
            "maintenance[0].end: must be after start",
            id="an end before the start",
        ),
        pytest.param(
            "maintenance: [{start: '2026-13-01T22:00:00Z', end: '2026-12-01T21:00:00Z'}]",
            "maintenance[0].start: '2026-13-01T22:00:00Z' is not a time: write a moment as in 2026-12-01T22:00:00Z",
            id="a month that does not exist",
        ),
        pytest.param(
            "maintenance: [{days: [mon], start: '25:00', end: '02:00'}]",
            "maintenance[0].start: '25:00' is not a time: write a time of day as in 22:00",
            id="an hour that does not exist",
        ),
        pytest.param(
            "score: {canaries: {served: 0}}",
            "score.canaries.served: must be a number of runs from 1 to 32: write for instance 6",
            id="a pause that nothing served ends",
        ),
        pytest.param(
            "score: {canaries: {refused: 33}}",
            "score.canaries.refused: must be a number of runs from 1 to 32: write for instance 6",
            id="more runs than are remembered",
        ),
        pytest.param(
            "score: {canaries: {double_every: 0}}",
            "score.canaries.double_every: must be more than 0: write for instance 15m",
            id="a return without steps",
        ),
        pytest.param("uplink: {sites: 0}", "uplink.sites: must be at least 1", id="an uplink that is always down"),
        pytest.param(
            "uplink: {every: 10ms}", "uplink.every: must be at least 1s: write for instance 30s", id="a flood"
        ),
        pytest.param(
            "uplink: {reference: 'ftp://iana.org/'}",
            "uplink.reference: is not an http or https URL: write for instance https://www.iana.org/",
            id="a reference that is not fetched over HTTP",
        ),
        pytest.param(
            "uplink: {reference: 'https://me:secret@iana.org/'}",
            "uplink.reference: must not hold a user name: write for instance https://www.iana.org/",
            id="a reference with a password",
        ),
    ],
)
def test_a_problem_is_told_with_its_remedy(folder: Folder, section: str, said: str) -> None:
    (problem,) = folder.problems(CONFIG + section + "\n")
    assert problem.partition(": ")[2] == said
