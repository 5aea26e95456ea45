"""The spool: what was reported is on disk until the exporter has it, whoever dies in between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from crawlhealth.client import Limits, Reporter
from pushserver import PushServer
from waiting import until

PROGRAM = """
import sys
from crawlhealth.client import Reporter
reporter = Reporter(sys.argv[1], spool=sys.argv[2], flush_every=0.02)
for index in range(int(sys.argv[3])):
    reporter.report("books", "ok", at=float(index))
print("reported", flush=True)
sys.stdin.read()
"""


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.ndjson.gz"))


def crawler(url: str, folder: Path, reports: int) -> subprocess.Popen[bytes]:
    """A process that has reported and waits to be ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, str(folder), str(reports)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"reported\n"
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_what_could_not_be_sent_is_sent_by_the_next_process(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        with Reporter(server.url, spool=tmp_path) as reporter:
            for index in range(100):
                reporter.report("books", "ok", at=float(index))
        counts = reporter.counts()
        assert (counts.dropped, counts.waiting) == (0, 100)
        server.start()
        with Reporter(server.url, spool=tmp_path) as reporter:
            reporter.report("books", "ok", at=100.0)
            assert reporter.flush(20)
            assert (reporter.counts().reported, reporter.counts().delivered) == (101, 101)
        assert sorted(item["at"] for item in server.items) == [float(index) for index in range(101)]
        assert files(tmp_path) == []
        assert list(tmp_path.iterdir()) == []


def test_a_killed_process_loses_nothing_that_was_packed(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        process = crawler(server.url, tmp_path, 5_000)
        until(lambda: sum(int(path.name.split("-")[1]) for path in files(tmp_path)) == 5_000, 20, "all is on disk")
        kill(process)
        server.start()
        with Reporter(server.url, spool=tmp_path) as reporter:
            assert reporter.flush(20)
        assert sorted(item["at"] for item in server.items) == [float(index) for index in range(5_000)]


def test_what_was_counted_before_the_kill_is_not_counted_again(tmp_path: Path) -> None:
    """The server counts the push, and the process dies before it hears of that."""
    with PushServer() as server:
        server.gate.clear()
        process = crawler(server.url, tmp_path, 10)
        until(lambda: server.tokens, 10, "the push is there")
        kill(process)
        server.gate.set()
        until(lambda: server.items, 10, "the push is counted")
        with Reporter(server.url, spool=tmp_path) as reporter:
            assert reporter.flush(10)
        assert (len(server.items), server.repeats) == (10, 1)


def test_the_reports_of_a_process_that_lives_are_left_to_it(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        process = crawler(server.url, tmp_path, 10)
        until(lambda: files(tmp_path), 10, "its reports are on disk")
        with Reporter(server.url, spool=tmp_path) as reporter:
            assert reporter.counts().waiting == 0
        assert len(files(tmp_path)) > 0
        kill(process)


def test_a_full_spool_drops_the_oldest_and_counts_them(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        limits = Limits(batch=10, disk=2_000)
        with Reporter(server.url, spool=tmp_path, limits=limits, close_within=0.1) as reporter:
            for index in range(1_000):
                reporter.report("books", "ok", at=float(index))
        counts = reporter.counts()
        assert counts.dropped + counts.waiting == 1_000
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 2_000
        assert max(int(path.name.split("-")[1]) for path in files(tmp_path)) == 10


def test_a_disk_that_refuses_reports_has_them_kept_in_memory(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        with Reporter(server.url, spool=tmp_path) as reporter:
            [own] = tmp_path.iterdir()
            shutil.rmtree(own)
            reporter.report("books", "ok")
            until(lambda: reporter._outbox.waiting() == 1, 10, "it is kept")
            server.start()
            assert reporter.flush(20)
        assert len(server.items) == 1


def test_reports_whose_file_somebody_deletes_are_counted_as_dropped(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        with Reporter(server.url, spool=tmp_path) as reporter:
            reporter.report("books", "ok")
            until(lambda: files(tmp_path), 10, "it is on disk")
            files(tmp_path)[0].unlink()
            assert reporter.flush(20)
            assert (reporter.counts().dropped, reporter.counts().waiting) == (1, 0)


def test_a_file_that_cannot_be_read_for_a_while_keeps_no_other_back_and_is_sent_later(tmp_path: Path) -> None:
    with PushServer() as server:
        server.stop()
        with Reporter(server.url, spool=tmp_path, flush_every=0.02) as reporter:
            reporter.report("books", "ok", at=1.0)
            until(lambda: files(tmp_path), 10, "it is on disk")
            [path] = files(tmp_path)
            aside, loop = tmp_path / "aside", tmp_path / "loop"
            aside.hardlink_to(path)
            loop.symlink_to(path.name)
            loop.replace(path)  # it leads to itself: nobody can read that, whoever runs the tests
            reporter.report("books", "ok", at=2.0)
            server.start()
            until(lambda: [item["at"] for item in server.items] == [2.0], 20, "the other is delivered")
            aside.replace(path)
            assert reporter.flush(20)
            assert (reporter.counts().delivered, reporter.counts().dropped) == (2, 0)


def test_files_that_are_none_of_ours_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with PushServer() as server, Reporter(server.url, spool=tmp_path) as reporter:
        reporter.report("books", "ok")
        assert reporter.flush(10)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_forked_child_has_a_part_of_its_own(tmp_path: Path) -> None:
    with PushServer() as server, Reporter(server.url, spool=tmp_path) as reporter:
        reporter.report("parent", "ok")
        assert reporter.flush(10)
        child = os.fork()
        if child == 0:
            reporter.report("child", "ok")
            sound = reporter.flush(10) and len(list(tmp_path.iterdir())) == 2
            reporter.close()
            os._exit(0 if sound else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(tmp_path.iterdir())) == 1
        reporter.report("parent", "ok")
        assert reporter.flush(10)
        assert sorted(item["site"] for item in server.items) == ["child", "parent", "parent"]
