"""Several logs side by side: each line for the log that it is of, however like their names are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from crawlhealth.searchbots import rotation
from crawlhealth.searchbots.follow import Follower
from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbotsettings import LogSettings, SearchbotSettings
from searchbots.logwriting import NOON, Reading, Written, line


class Several:
    """A service that reads several logs; `now` is its clock."""

    def __init__(self, folder: Path, logs: Sequence[LogSettings]) -> None:
        self.now = NOON
        settings = SearchbotSettings(logs=tuple(logs))
        self.service = LogService(folder / "history.db", lambda: settings, clock=lambda: self.now)

    def values(self) -> dict[tuple[str, ...], float]:
        """What /metrics shows, by name and labels."""
        found: dict[tuple[str, ...], float] = {}

        def put(spec: object, labels: tuple[str, ...], value: float | None) -> None:
            if value is not None:
                found[getattr(spec, "name", "").removeprefix("crawlhealth_"), *labels] = value

        self.service.show(put)
        return found

    def lines(self) -> dict[str, float]:
        """The lines of each log, when what is there is read."""
        self.service.read()
        return {each[1]: value for each, value in self.values().items() if each[0] == "log_lines_total"}


@contextmanager
def reading(folder: Path, *logs: LogSettings) -> Iterator[Several]:
    several = Several(folder, logs)
    try:
        yield several
    finally:
        several.service.stop()


@pytest.mark.parametrize(
    "patterns", [("shop.log", "shop-2.log"), ("shop.log", "shop-?.log"), ("shop-2.log", "shop.log")]
)
def test_a_path_that_is_configured_is_no_rotation_of_another(tmp_path: Path, patterns: tuple[str, str]) -> None:
    one, two = Written(tmp_path / "shop.log"), Written(tmp_path / "shop-2.log")
    one.write(1)
    with reading(tmp_path, *(LogSettings(path=tmp_path / each, name=each) for each in patterns)) as several:
        several.lines()
        one.write(2)
        two.write(5)
        two.rename("shop-2.log.1")
        two.write(1)
        assert sorted(several.lines().values()) == [3, 6]


def test_what_is_rotated_goes_to_the_log_whose_name_is_nearest(tmp_path: Path) -> None:
    one, two = Written(tmp_path / "shop.log"), Written(tmp_path / "shop-2.log")
    with reading(tmp_path, *(LogSettings(path=each.path, name=each.path.stem) for each in (one, two))) as several:
        several.lines()
        for log in (one, two):
            log.write(3)
        two.rename("shop-2-20261130.log")
        two.write(4)
        assert several.lines() == {"shop": 3, "shop-2": 7}


@pytest.mark.parametrize("names", [("web.log", "web-2.log", "web-10.log"), ("web.log", "web.1.log", "web_3.log")])
def test_all_that_a_pattern_matches_are_logs_of_their_own(tmp_path: Path, names: tuple[str, ...]) -> None:
    logs = [Written(tmp_path / name) for name in names]
    for log in logs:
        log.write(10)
    following = Reading(tmp_path, LogSettings(path=tmp_path / "*.log", name="all"))
    following.service.read()
    assert following.total("log_lines_total") == 30
    for log in logs:
        log.write(1)
    following.again()
    following.service.read()
    assert following.total("log_lines_total") == 33
    following.service.stop()


@pytest.mark.parametrize("copying", [False, True], ids=["by rename", "by copying and truncating"])
@pytest.mark.parametrize("before", [0, 2], ids=["none before", "some before"])
@pytest.mark.parametrize("form", ["web.{}.log", "web-{}.log", "web-2026113{}.log"])
def test_rotations_whose_names_the_pattern_matches_count_once(
    tmp_path: Path, form: str, before: int, copying: bool
) -> None:
    log = Written(tmp_path / "web.log")
    names = [form.format(number) for number in range(1, 6)]
    for number, name in enumerate(names[:before]):
        Written(tmp_path / name).write_raw(line(900 + number, status=404).encode())
    log.write(10)
    following = Reading(tmp_path, LogSettings(path=tmp_path / "*.log", name="all"))
    following.service.read()
    first = following.total("log_lines_total")
    for _ in range(3):
        log.write(4)
        following.service.read()
        log.write(2)
        if "2026" in form:
            free = next(name for name in names if not (tmp_path / name).exists())
        else:
            for older, newer in reversed(list(pairwise(names))):
                if (tmp_path / older).exists():
                    (tmp_path / older).rename(tmp_path / newer)
            free = names[0]
        (log.copytruncate if copying else log.rename)(free)
        log.write(1)
        following.service.read()
    assert following.total("log_lines_total") == first + 21
    following.service.stop()


def test_the_first_log_has_a_path_that_two_could_have(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Written(tmp_path / "shop.log").write(3)
    path = tmp_path / "shop.log"
    with reading(
        tmp_path, LogSettings(path=path, name="one"), LogSettings(path=tmp_path / "*.log", name="all")
    ) as both:
        for _ in range(3):
            assert both.lines() == {"one": 3}
    assert [
        record.getMessage() for record in caplog.records if "the log one has it already" in record.getMessage()
    ] == [f"all: {path} is not read for it: the log one has it already"]


def test_what_many_files_cost_grows_with_their_number_alone(tmp_path: Path) -> None:
    """By the names that are looked at: each once a look, were there as many pairs of them."""
    for number in range(1, 801):
        (tmp_path / f"web-{number}.log").write_text(line(number))
    follower = Follower("all", tmp_path / "*.log", {})
    rotation.origins.cache_clear()
    follower.look()
    asked = rotation.origins.cache_info()
    follower.close()
    assert asked.misses <= 801
    assert asked.hits + asked.misses < 801 * 5


def test_more_paths_than_one_log_may_have_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1003):
        (tmp_path / f"site{number:04d}x.log").write_bytes(b"")
    with reading(tmp_path, LogSettings(path=tmp_path / "*.log", name="all")) as several:
        several.lines()
        several.lines()
        several.now += 900
        assert several.values()["log_lag_seconds", "all"] == 900
    assert [record.getMessage() for record in caplog.records] == [
        "all: 3 of its paths are not read: one log has at most 1,000; make it several"
    ]


def test_a_log_that_cannot_be_read_is_told_once_and_looks_late(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder.log").mkdir()
    (tmp_path / "loop.log").symlink_to(tmp_path / "loop.log")
    os.mkfifo(tmp_path / "pipe.log")
    names = ["folder.log", "loop.log", "pipe.log", "none.log", "nothing*.log"]
    with reading(tmp_path, *(LogSettings(path=tmp_path / name, name=name) for name in names)) as several:
        for _ in range(3):
            several.now += 300
            assert several.lines() == {}
        values = several.values()
        assert {values["log_lag_seconds", name] for name in names} == {600}
        assert not [each for each in values if each[0] == "log_lag_bytes"]
        said = [record.getMessage() for record in caplog.records]
        for name, why in zip(
            names, ("is a folder", "Too many levels", "is a pipe", "No such file", "no file matches"), strict=True
        ):
            assert len([each for each in said if each.startswith(f"{name}: ") and why in each]) == 1
        assert len(said) == len(names)
        Written(tmp_path / "none.log").write(2)
        assert several.lines() == {"none.log": 2}
        assert several.values()["log_lag_seconds", "none.log"] == 0
    assert caplog.records[-1].getMessage() == "none.log: is read again"
