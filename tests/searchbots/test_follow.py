"""Following logs: every line once, whatever a rotation does to the files, and over every restart."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlhealth.searchbotsettings import LogSettings
from searchbots.logwriting import BROWSER, Reading, Written, line

Rotate = Callable[[Written, str], None]


@pytest.fixture
def log(tmp_path: Path) -> Written:
    (tmp_path / "logs").mkdir()
    return Written(tmp_path / "logs" / "access.log")


@pytest.fixture
def reading(tmp_path: Path, log: Written) -> Iterator[Reading]:
    reading = Reading(tmp_path, LogSettings(path=log.path, name="shop"))
    yield reading
    reading.service.stop()


ROTATIONS = [
    pytest.param(Written.rename, id="by rename"),
    pytest.param(Written.copytruncate, id="by copying and truncating"),
]


def read(reading: Reading) -> float:
    reading.service.read()
    return reading.total("searchbot_visits_total")


def test_lines_that_are_added_are_read_and_counted_once(log: Written, reading: Reading) -> None:
    log.write(3)
    assert read(reading) == 3
    log.write(2)
    assert read(reading) == 5
    assert read(reading) == 5
    assert reading.total("log_lines_total") == 5
    assert reading.total("log_bytes_total") == log.path.stat().st_size


def test_a_last_line_without_its_end_waits_for_the_rest(log: Written, reading: Reading) -> None:
    whole = line(7).encode()
    log.write_raw(whole[:100])
    assert read(reading) == 0
    log.write_raw(whole[100:])
    assert read(reading) == 1
    assert reading.total("log_unreadable_lines_total") == 0


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_what_was_written_before_a_rotation_and_after_it_is_read(
    log: Written, reading: Reading, rotate: Rotate
) -> None:
    log.write(10)
    assert read(reading) == 10
    log.write(5)
    rotate(log, "access.log.1")
    log.write(3)
    assert read(reading) == 18


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_new_file_that_is_larger_than_the_old_one_was_is_read_from_its_beginning(
    log: Written, reading: Reading, rotate: Rotate
) -> None:
    log.write(10)
    read(reading)
    rotate(log, "access.log.1")
    log.write(400)
    assert read(reading) == 410


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_rotations_during_a_stop_lose_nothing_of_files_that_were_never_seen(
    log: Written, reading: Reading, rotate: Rotate
) -> None:
    log.write(10)
    read(reading)
    log.write(1)
    for number in (3, 2, 1):
        rotate(log, f"access.log-2026113{number}")
        log.write(4)
    reading.again()
    assert read(reading) == 23


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_numbers_that_move_on_are_the_same_files(log: Written, reading: Reading, rotate: Rotate) -> None:
    folder = log.path.parent
    for _ in range(4):
        log.write(6)
        read(reading)
        log.write(1)
        for number in (3, 2, 1):
            if (folder / f"access.log.{number}").exists():
                (folder / f"access.log.{number}").rename(folder / f"access.log.{number + 1}")
        rotate(log, "access.log.1")
    assert read(reading) == 28


def test_a_copy_before_its_truncation_is_not_counted_beside_the_log(log: Written, reading: Reading) -> None:
    log.write(8)
    read(reading)
    (log.path.parent / "access.log.1").write_bytes(log.path.read_bytes())
    assert read(reading) == 8
    (log.path.parent / "access.log.1").write_bytes(log.path.read_bytes()[:100])
    assert read(reading) == 8


def test_a_file_deleted_right_after_its_rotation_is_read_to_its_end(log: Written, reading: Reading) -> None:
    log.write(3)
    read(reading)
    log.write(2)
    log.rename("access.log.1")
    (log.path.parent / "access.log.1").unlink()
    log.write(1)
    assert read(reading) == 6


def test_what_was_rotated_before_the_first_start_is_left_alone(log: Written, reading: Reading) -> None:
    log.write(50)
    log.rename("access.log.1")
    log.write(2)
    assert read(reading) == 2
    reading.again()
    assert read(reading) == 2


def test_another_log_with_a_like_name_is_no_rotated_one(log: Written, reading: Reading) -> None:
    log.write(2)
    read(reading)
    for name in ("access_admin.log", "access.log.gz", "access.logs", "access-admin.log"):
        (log.path.parent / name).write_text(line(1) * 5)
    assert read(reading) == 2


def test_packed_files_are_not_read(log: Written, reading: Reading) -> None:
    log.write(4)
    read(reading)
    log.rename("access.log.1")
    (log.path.parent / "access.log.1.gz").write_bytes(gzip.compress((log.path.parent / "access.log.1").read_bytes()))
    (log.path.parent / "access.log.1").unlink()
    assert read(reading) == 4


def test_a_log_that_comes_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    reading = Reading(tmp_path, LogSettings(path=tmp_path / "later.log", name="shop"))
    assert read(reading) == 0
    Written(tmp_path / "later.log").write(3)
    assert read(reading) == 3
    reading.service.stop()


def test_all_files_that_a_pattern_matches_are_read_and_each_once(tmp_path: Path) -> None:
    logs = [Written(tmp_path / f"{name}.log") for name in ("shop", "blog")]
    reading = Reading(tmp_path, LogSettings(path=tmp_path / "*.log*", name="all"))
    for log in logs:
        log.write(2)
    assert read(reading) == 4
    for log in logs:
        log.write(1)
        log.rename(f"{log.path.name}.1")
        log.write(1)
    Written(tmp_path / "new.log").write(5)
    assert read(reading) == 13
    reading.again()
    assert read(reading) == 13
    reading.service.stop()


def test_a_line_without_end_takes_no_memory_and_is_unreadable(log: Written, reading: Reading) -> None:
    for _ in range(30):
        log.write_raw(b"x" * 100_000)
    log.write_raw(b"\n")
    log.write(1)
    assert read(reading) == 1
    assert reading.total("log_unreadable_lines_total") >= 1


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_the_rest_of_a_line_that_is_too_long_is_no_line(
    log: Written, reading: Reading, packed: bool, restarted: bool
) -> None:
    log.write(1)
    read(reading)
    log.write_raw(b"x" * (1 << 20))
    if not packed:
        assert read(reading) == 1
    log.write_raw(line(5).encode())
    log.write(2)
    if packed:
        log.rename("access.log.1")
        plain = log.path.with_name("access.log.1")
        plain.with_name("access.log.1.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    if restarted or packed:
        reading.again()
    assert read(reading) == 3
    assert reading.total("log_unreadable_lines_total") == 1
    assert reading.total("log_lines_total") == 4


def test_a_mark_of_utf8_at_the_beginning_is_no_part_of_the_first_line(log: Written, reading: Reading) -> None:
    log.write_raw(b"\xef\xbb\xbf" + line(1).replace("192.0.2.1", "2001:db8::1").encode())
    log.write(2)
    assert read(reading) == 3
    assert reading.total("log_unreadable_lines_total") == 0


def test_a_history_that_cannot_be_written_makes_the_reader_begin_again(
    log: Written, reading: Reading, tmp_path: Path
) -> None:
    import sqlite3

    log.write(5)
    read(reading)
    log.write(5)
    other = sqlite3.connect(tmp_path / "history.db", isolation_level=None)
    other.execute("CREATE TRIGGER full BEFORE INSERT ON log_places BEGIN SELECT RAISE(ABORT, 'no room'); END")
    with pytest.raises(Exception, match="no room"):
        reading.service.read()
    assert reading.total("searchbot_visits_total") == 5
    other.execute("DROP TRIGGER full")
    assert read(reading) == 10


def test_lag_is_what_is_not_read(log: Written, reading: Reading) -> None:
    log.write(2)
    read(reading)
    shown = reading.metrics()
    assert (shown["log_lag_bytes shop"], shown["log_lag_seconds shop"]) == (0, 0)
    reading.now += 30
    assert reading.metrics()["log_lag_seconds shop"] == 30


def test_columns_named_at_the_beginning_hold_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "iis.log"
    path.write_text(
        "#Fields: date time c-ip cs-method cs-uri-stem cs(User-Agent) sc-status\n"
        "2026-11-30 12:00:00 192.0.2.1 GET / Mozilla/5.0+(compatible;+bingbot/2.0) 200\n"
    )
    reading = Reading(tmp_path, LogSettings(path=path, name="iis", format="w3c"))
    assert read(reading) == 1
    reading.again()
    with path.open("a") as file:
        file.write("2026-11-30 12:00:01 192.0.2.1 GET / Mozilla/5.0+(compatible;+bingbot/2.0) 200\n")
        file.write(f"2026-11-30 12:00:02 192.0.2.1 GET / {BROWSER.replace(' ', '+')} 200\n")
    assert read(reading) == 2
    assert reading.total("log_unreadable_lines_total") == 0
    reading.service.stop()
