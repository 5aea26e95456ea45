"""The bands of fleet scoring: latched, led by canaries, held in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth import bundle
from crawlhealth.bundle import fleet
from crawlhealth.bundle.alerts import score
from crawlhealth.bundle.model import Group, Options, Scoring
from crawlhealth.scoresettings import ScoreSettings
from ruleruns import ran, written

SETTINGS = ScoreSettings()
OPTIONS = Options(scoring=Scoring.FLEET)
NONE = "_"
BAND = "site:crawlhealth_band:level"


def bands() -> Group:
    return next(group for group in fleet.groups(OPTIONS) if group.name == "crawlhealth-fleet-bands")


def told(
    scores: Sequence[float | None],
    folder: Path,
    *,
    canaries: Mapping[str, Sequence[float]] | None = None,
    silent: Sequence[int] = (),
) -> str:
    """The band at the end of every minute with these scores: a letter each, a dot where there is none.

    In the minutes that are `silent` no request comes.
    """
    seen = [60 * max((one for one in range(place + 1) if one not in silent), default=0) for place in range(len(scores))]
    shown = " ".join(NONE if score is None else f"{score:g}" for score in scores)
    places = " ".join(NONE if score is None else "0" for score in scores)
    series = {
        'site_window:crawlhealth_score:known{site="books",window="10m"}': shown,
        'site:crawlhealth_window:shortest{site="books"}': places,
        'site:crawl_requests:seen_timestamp{site="books"}': written(seen),
    }
    for outcome, values in (canaries or {}).items():
        series[f'site_outcome:crawl_canaries:increase1h{{site="books",outcome="{outcome}"}}'] = written(values)
    times = range(0, 60 * len(scores), 60)
    said = ran([bands()], series, [BAND], times, folder, options=OPTIONS)
    found = (said.get((BAND, float(time)), {}).get(("books",)) for time in times)
    return "".join("." if value is None else "NDR"[int(value)] for value in found)


def minutes(length: timedelta) -> int:
    return round(length / timedelta(minutes=1))


ENTER = minutes(SETTINGS.enter_after.degrading)
LEAVE, LEAVE_RESISTING = minutes(SETTINGS.leave_after.degrading), minutes(SETTINGS.leave_after.resisting)


def test_a_score_that_swings_about_fifty_is_one_resisting_until_it_is_long_well_over_it(tmp_path: Path) -> None:
    swinging = [48, 48, 48, 48, *[52, 48] * 20]
    band = told([100] * 5 + swinging + [62] * (LEAVE_RESISTING + 1) + [52, 48] * 3, tmp_path)
    assert band == "N" * 8 + "R" * (41 + LEAVE_RESISTING) + "D" * 7


def test_under_eighty_for_its_time_is_degrading_and_for_less_is_not(tmp_path: Path) -> None:
    band = told([100] + [79] * ENTER + [81] + [79] * (ENTER + 1), tmp_path)
    assert band == "N" * (2 + 2 * ENTER) + "D"


def test_degrading_ends_after_its_time_of_good_scores(tmp_path: Path) -> None:
    band = told([100] + [60] * (ENTER + 1) + [90] * 200 + [84] + [90] * (LEAVE + 1) + [90], tmp_path)
    assert band == "N" * (1 + ENTER) + "D" * (1 + 200 + 1 + LEAVE) + "N" * 2


def test_in_silence_a_score_that_stands_still_begins_and_ends_no_band(tmp_path: Path) -> None:
    quiet = range(22, 22 + ENTER)
    band = told([100] * 2 + [60] * (20 + ENTER) + [90] * 5, tmp_path, silent=quiet)
    assert band == "N" * (27 + ENTER)
    band = told([100] * 2 + [60] * (21 + ENTER), tmp_path, silent=quiet)
    assert band == "N" * (22 + ENTER) + "D"
    last = 3 + ENTER
    good = [100] * 2 + [60] * (1 + ENTER) + [90] * (LEAVE + 20)
    assert set(told(good, tmp_path, silent=range(last, len(good)))[last:]) == {"D"}


def test_a_bad_band_is_held_without_a_score_and_a_good_one_is_not_known(tmp_path: Path) -> None:
    band = told([20] * 5 + [None] * 400, tmp_path)
    assert band == "." * 3 + "R" * 402
    assert told([100] * 5 + [None] * 20, tmp_path)[-5:] == "....."


def test_served_canaries_lead_a_held_site_out_of_resisting_and_refused_ones_into_it(tmp_path: Path) -> None:
    silent = [20] * 5 + [None] * 40
    served = [0] * 25 + [6] * 20
    assert told(silent, tmp_path, canaries={"ok": served})[20:] == "R" * 5 + "D" * 20
    mixed = {"ok": served, "hard_block": [0] * 25 + [1] * 20}
    assert told(silent, tmp_path, canaries=mixed)[20:] == "R" * 25
    alone = told([None] * 20, tmp_path, canaries={"challenge": [0] * 10 + [6] * 10})
    assert alone == "." * 10 + "R" * 10


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(OPTIONS, id="as it is"),
        pytest.param(
            Options(scoring=Scoring.FLEET, group_labels=("tenant",), time_scale=60), id="group labels, faster clock"
        ),
    ],
)
def test_the_groups_are_small_and_read(options: Options, tmp_path: Path) -> None:
    assert ran(fleet.groups(options), {}, ["vector(1)"], [60], tmp_path, options=options) == {
        ("vector(1)", 60.0): {(): 1.0}
    }


def raised(folder: Path, *, planned: bool = False) -> dict[tuple[str, ...], float]:
    """The alerts on a site that scores 40 for half an hour, 6 points of which latency costs, by name and state."""
    series = {
        'site_window:crawlhealth_score:known{site="books",window="10m"}': "40x30",
        'site:crawlhealth_window:shortest{site="books"}': "0x30",
        'site:crawl_requests:seen_timestamp{site="books"}': "0+60x30",
        'site_window_signal:crawlhealth_penalty_points{site="books",window="10m",signal="latency"}': "6x30",
        **({'crawlhealth_maintenance{job="crawlhealth",site="books"}': "1x30"} if planned else {}),
    }
    query = "sum by (alertname, alertstate) (ALERTS)"
    groups = [bands(), *score.groups(OPTIONS)]
    return ran(groups, series, [query], [1800], folder, options=OPTIONS).get((query, 1800.0), {})


def test_alerts_on_bands_and_points_read_what_fleet_scoring_records(tmp_path: Path) -> None:
    names = ("CrawlLatencyHigh", "CrawlTargetDegrading", "CrawlTargetResisting")
    assert raised(tmp_path) == {(name, "firing"): 1.0 for name in names}
    assert raised(tmp_path, planned=True) == {}


def test_either_scoring_has_the_same_alerts_and_few_ask_otherwise() -> None:
    own, exporter = ({alert.name: alert for alert in bundle.alerts(options)} for options in (OPTIONS, Options()))
    assert own.keys() == exporter.keys()
    changed = {name for name in own if own[name] != exporter[name]}
    assert changed == {"CrawlTargetDegrading", "CrawlTargetResisting", "CrawlExporterDown"}


def test_only_fleet_scoring_has_these_rules() -> None:
    assert fleet.groups(Options()) == ()
