"""Logs that are rotated and compressed while nobody reads them: every line once, as if they were plain."""

from __future__ import annotations

import gzip
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlhealth.history.visits import Place, PlaceKey
from crawlhealth.searchbots.follow import Follower
from crawlhealth.searchbotsettings import LogSettings
from running import Exporter
from searchbots.logwriting import GOOGLE, Reading, Written
from searchbots.nginxes import MAIN, NGINX, Nginx


class Rotated(Written):
    """A log that logrotate rotates and compresses at once, an hour after the last time."""

    hours = 0

    def pack(self, plain: Path) -> Path:
        """Compress a file as gzip does."""
        packed = plain.with_name(plain.name + ".gz")
        packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
        self.hours += 1
        at = self.path.parent.stat().st_ctime + self.hours * 3600
        os.utime(packed, (at, at))
        plain.unlink()
        return packed

    def rotate(self, *, copying: bool = False) -> Path:
        """Rotate and compress: older ones get the next number."""
        for number in range(20, 0, -1):
            older = self.path.with_name(f"access.log.{number}.gz")
            if older.exists():
                older.rename(self.path.with_name(f"access.log.{number + 1}.gz"))
        (self.copytruncate if copying else self.rename)("access.log.1")
        return self.pack(self.path.with_name("access.log.1"))


@pytest.fixture
def log(tmp_path: Path) -> Rotated:
    (tmp_path / "logs").mkdir()
    return Rotated(tmp_path / "logs" / "access.log")


@pytest.fixture
def reading(tmp_path: Path, log: Rotated) -> Iterator[Reading]:
    reading = Reading(tmp_path, LogSettings(path=log.path, name="shop"))
    yield reading
    reading.service.stop()


def read(reading: Reading) -> float:
    for _ in range(3):
        reading.service.read()
    return reading.total("searchbot_visits_total")


@pytest.mark.parametrize("copying", [False, True], ids=["by rename", "by copying and truncating"])
def test_what_was_rotated_and_compressed_during_a_stop_is_read_on(
    log: Rotated, reading: Reading, copying: bool
) -> None:
    log.write(10)
    assert read(reading) == 10
    log.write(5)
    for lines in (4, 3, 2):
        log.rotate(copying=copying)
        log.write(lines)
    reading.again()
    assert read(reading) == log.count == 24
    reading.again()
    assert read(reading) == 24
    assert reading.total("log_unreadable_lines_total") == 0


def test_a_log_that_was_empty_at_the_stop_is_found_by_its_time(log: Rotated, reading: Reading) -> None:
    log.write(10)
    read(reading)
    log.rotate()
    log.hours -= 2  # the old one had been written before the log was begun
    old = log.path.with_name("access.log.1.gz")
    before = log.path.stat().st_mtime - 3
    os.utime(old, (before, before))
    assert read(reading) == 10
    log.hours += 2
    log.write(3)
    log.rotate()
    log.write(2)
    reading.again()
    assert read(reading) == log.count == 15


def test_what_was_compressed_after_it_was_read_is_not_read_again(log: Rotated, reading: Reading) -> None:
    for lines in (4, 3, 2):
        log.write(lines)
        read(reading)
        log.rotate()
        assert read(reading) == log.count
    reading.again()
    assert read(reading) == log.count == 9


def test_compressed_ones_from_before_the_first_start_are_left_alone(log: Rotated, reading: Reading) -> None:
    log.write(50)
    log.rotate()
    log.write(2)
    assert read(reading) == 2
    log.write(1)
    log.rotate()
    log.write(1)
    reading.again()
    assert read(reading) == 4


def test_one_that_is_still_being_compressed_is_not_read_beside_its_original(log: Rotated, reading: Reading) -> None:
    log.write(10)
    read(reading)
    log.write(2)
    log.rotate()
    log.write(3)
    log.rename("access.log.0")
    whole = log.path.with_name("access.log.0").read_bytes()
    original = log.pack(log.path.with_name("access.log.0")).with_suffix("")
    original.write_bytes(whole)
    log.write(1)
    reading.again()
    assert read(reading) == log.count == 16


def test_a_damaged_one_is_read_as_far_as_it_goes_and_told(
    log: Rotated, reading: Reading, caplog: pytest.LogCaptureFixture
) -> None:
    log.write(10)
    read(reading)
    log.write(5)
    log.rotate()
    log.write(3)
    damaged = log.rotate()
    at = damaged.stat().st_mtime
    damaged.write_bytes(damaged.read_bytes()[:30])
    os.utime(damaged, (at, at))
    log.write(4)
    reading.again()
    assert read(reading) == 19
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "access.log.1.gz cannot be read on" in caplog.text


def test_one_that_is_nowhere_is_told(log: Rotated, reading: Reading, caplog: pytest.LogCaptureFixture) -> None:
    log.write(10)
    read(reading)
    log.write(5)
    log.rotate().rename(log.path.with_name("elsewhere.gz"))
    log.write(4)
    reading.again()
    assert read(reading) == 14
    assert "rotated away and is nowhere to be found" in caplog.text


def lines_of(follower: Follower, most_bytes: int, places: dict[PlaceKey, Place]) -> int:
    """The lines of one transaction; `places` are those on disk."""
    changes = dict(follower.look())
    lines = 0
    for piece in follower.pieces(most_bytes):
        lines += piece.chunk.count(b"\n")
        changes[piece.key] = piece.place
    for key, place in changes.items():
        if place is None:
            places.pop(key, None)
        else:
            places[key] = place
    return lines


def test_a_kill_while_compressed_ones_are_read_loses_and_doubles_nothing(log: Rotated) -> None:
    """Each piece is a megabyte, and after each the reader begins anew; numbers move on meanwhile."""
    places: dict[PlaceKey, Place] = {}
    log.write(2_000)
    follower = Follower("shop", log.path, places)
    found = lines_of(follower, 10**9, places)
    follower.close()
    for _ in range(2):
        log.write(20_000)
        log.rotate()
    log.write(5)
    restarts = 0
    while found < log.count and restarts < 30:
        follower = Follower("shop", log.path, places)
        found += lines_of(follower, 1, places)
        follower.close()
        restarts += 1
        if restarts == 2:
            log.rotate()
    assert found == log.count
    assert restarts > 6
    follower = Follower("shop", log.path, places)
    assert [lines_of(follower, 10**9, places) for _ in range(3)] == [0, 0, 0]
    assert len(places) == 1
    follower.close()


def test_a_compressed_file_may_have_the_inode_of_the_log_that_is_gone(log: Rotated) -> None:
    places: dict[PlaceKey, Place] = {}
    log.write(4)
    follower = Follower("shop", log.path, places)
    found = lines_of(follower, 10**9, places)
    follower.close()
    for _ in range(2):
        log.write(3)
        newest = log.rotate().stat()
    (place,) = places.values()
    places = {("shop", newest.st_dev, newest.st_ino): place}
    follower = Follower("shop", log.path, places)
    found += sum(lines_of(follower, 10**9, places) for _ in range(3))
    follower.close()
    assert found == log.count == 10


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 2), st.lists(st.integers(1, 3), max_size=3), st.booleans()),
        max_size=4,
    )
)
def test_whatever_is_rotated_during_stops_every_line_counts_once(stops: list[tuple[int, int, list[int], bool]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        log = Rotated(folder / "logs" / "access.log")
        reading = Reading(folder, LogSettings(path=log.path, name="shop"))
        try:
            read(reading)
            for written, unread, rotations, stopped in stops:
                log.write(written)
                assert read(reading) == log.count
                log.write(unread)
                for lines in rotations if stopped else rotations[:1]:
                    log.rotate()
                    log.write(lines)
                if stopped:
                    reading.again()
                assert read(reading) == log.count
        finally:
            reading.service.stop()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_nginx_whose_log_is_rotated_and_compressed_twice_while_the_exporter_is_down(tmp_path: Path) -> None:
    config = f"""
        searchbots:
          logs: [{{path: nginx/access.log, name: shop, domain: shop.example, format: '{MAIN}'}}]
          resolver: {{servers: ['127.0.0.1:1']}}
          domains: {{redirects: false, expiry: false}}
    """
    with Nginx(tmp_path / "nginx") as nginx, Exporter(tmp_path, config) as exporter:
        nginx.visit(GOOGLE, "", 20)
        lines = nginx.lines()
        exporter.wait_for("crawlhealth_log_lines_total", lines)
        assert exporter.stop() == 0
        for visits in (7, 5):
            nginx.visit(GOOGLE, "", visits)
            nginx.rotate()
        nginx.visit(GOOGLE, "", 3)
        exporter.start()
        exporter.wait_for("crawlhealth_log_lines_total", lines + 15)
        nginx.visit(GOOGLE, "", 1)
        exporter.wait_for("crawlhealth_log_lines_total", lines + 16)
        assert exporter.value("crawlhealth_log_lines_total") == lines + 16
        assert exporter.value("crawlhealth_log_unreadable_lines_total") == 0
        assert sorted(path.name for path in nginx.folder.glob("*.gz")) == ["access.log.1.gz", "access.log.2.gz"]
