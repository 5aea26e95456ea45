"""The reporter against a real server: everything arrives once, nothing is raised, and nothing grows without bound."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from crawlhealth.client import Limits, Reporter
from crawlhealth.outcome import Outcome, Reason
from pushserver import PushServer, Scripted
from rawserver import RawServer, flooding
from waiting import until

NOWHERE = "http://127.0.0.1:9"


def test_a_report_arrives_in_the_words_of_the_wire_format() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        reporter.report(
            "books", Outcome.CHALLENGE, reason=Reason.CLOUDFLARE_CHALLENGE, route="dc-us", at=1796040000.25,
            seconds=0.5, bytes=18230, retries=1, credits=0.5, records_valid=0, records_invalid=1,
            fields_missing=["price"], page_type="listing", count=2,
        )  # fmt: skip
        reporter.report(url="https://books.example/x", status=403, headers={"server": "x"}, body="<html>", at=1.0)
        reporter.report("books", "ok", at=2.0, body=b"\xff\x00")
        assert reporter.flush(10)
        assert server.items == [
            {
                "site": "books", "outcome": "challenge", "reason": "cloudflare_challenge", "route": "dc-us",
                "at": 1796040000.25, "seconds": 0.5, "bytes": 18230, "retries": 1, "credits": 0.5, "records_valid": 0,
                "records_invalid": 1, "fields_missing": ["price"], "page_type": "listing", "count": 2,
            },
            {"url": "https://books.example/x", "status": 403, "headers": {"server": "x"}, "body": "<html>", "at": 1.0},
            {"site": "books", "outcome": "ok", "at": 2.0, "body_base64": "/wA="},
        ]  # fmt: skip


def test_a_report_is_of_now_when_it_says_no_time() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        before = time.time()
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert before <= server.items[0]["at"] <= time.time()


def test_reports_of_many_threads_all_arrive_once() -> None:
    with PushServer() as server, Reporter(server.url, limits=Limits(batch=700)) as reporter:

        def work(number: int) -> None:
            for index in range(5_000):
                reporter.report(f"site-{number}", "ok", at=float(index))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert reporter.flush(20)
        assert len({(item["site"], item["at"]) for item in server.items}) == len(server.items) == 20_000
        assert reporter.counts().delivered == 20_000


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"outcome": object()}, id="an outcome that is no word"),
        pytest.param({"page_type": "\udc80"}, id="text that is no text"),
        pytest.param({"fields_missing": object()}, id="fields that are no list"),
        pytest.param({"headers": {object(): 1}}, id="headers that are none"),
    ],
)
def test_what_cannot_be_written_down_is_counted_and_keeps_nothing_else_back(arguments: dict[str, object]) -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        reporter.report("books", "ok", at=1.0)
        reporter.report("books", at=2.0, **arguments)  # type: ignore[arg-type]
        reporter.report("books", "ok", at=3.0)
        assert reporter.flush(10)
        assert [item["at"] for item in server.items] == [1.0, 3.0]
        counts = reporter.counts()
        assert (counts.delivered, counts.rejected) == (2, 1)


def test_a_body_of_the_wrong_kind_raises_nothing() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        reporter.report("books", "ok", body=17)  # type: ignore[arg-type]
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert len(server.items) == 1
        counts = reporter.counts()
        assert (counts.reported, counts.delivered, counts.rejected) == (2, 1, 1)


def refuse(_: threading.Thread) -> None:
    """What a thread's start does where there is no room for one more."""
    raise RuntimeError("can't start new thread")


def test_without_room_for_threads_the_next_report_begins_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            reporter.report("books", "ok")
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert len(server.items) == 2


def test_a_reporter_that_never_had_a_thread_counts_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", refuse)
    reporter = Reporter(NOWHERE)
    reporter.report("books", "ok")
    assert reporter.close().dropped == 1


def test_a_large_page_is_cut_and_its_size_is_told() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        reporter.report("books", status=200, body="a" * 1_000_000)
        assert reporter.flush(10)
        [item] = server.items
        assert (item["bytes"], len(item["body"])) == (1_000_000, 262_144)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Scripted(status=None), id="a cut connection"),
        pytest.param(Scripted(status=500), id="an error of the server"),
        pytest.param(Scripted(status=503, headers={"Retry-After": "1"}), id="a busy server"),
        pytest.param(Scripted(status=401), id="a token that is not known yet"),
        pytest.param(Scripted(status=200, body=b"<html>welcome"), id="an answer of somebody else"),
        pytest.param(Scripted(status=200, body=b'{"accepted": 1, "rejected": [{"reason": "\xff"}]}'), id="no text"),
        pytest.param(Scripted(status=400, body=b"plain HTTP was sent to a TLS port"), id="a proxy that wants TLS"),
        pytest.param(Scripted(status=403, body=b"<html>not from here"), id="a proxy that refuses"),
        pytest.param(Scripted(status=403, body=b"["), id="a refusal that is cut"),
    ],
)
def test_reports_are_sent_again_after(trouble: Scripted) -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        server.scripted.append(trouble)
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert len(server.items) == 1
        assert reporter.counts().delivered == 1


def test_an_answer_without_end_takes_no_memory_and_ends() -> None:
    flood = flooding(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x" * 65_536)
    with RawServer(flood) as server, Reporter(server.url(""), close_within=0.1) as reporter:
        reporter.report("books", "ok")
        until(lambda: len(server.received) > 1, 20, "it is sent again")


def test_a_push_that_counted_and_whose_answer_was_lost_is_not_counted_again() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        server.scripted.append(Scripted(status=None, counts=True))
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert (len(server.items), server.repeats) == (1, 1)
        assert reporter.counts().delivered == 1


def test_a_server_that_asks_for_patience_gets_it() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        server.scripted.append(Scripted(status=429, headers={"Retry-After": "2"}))
        began = time.monotonic()
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert time.monotonic() - began >= 2


def test_a_push_that_is_too_large_is_sent_in_parts() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        server.largest = 2_000
        for index in range(1_000):
            reporter.report("books", "ok", at=float(index), page_type=str(hash(str(index))))
        assert reporter.flush(20)
        assert sorted(item["at"] for item in server.items) == [float(index) for index in range(1_000)]


def test_a_single_report_that_is_too_large_is_counted_as_rejected() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        server.largest = 10
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert reporter.counts().rejected == 1


def test_rejected_items_and_batches_that_cannot_be_read_are_counted() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        server.refused_sites = {"who"}
        reporter.report("who", "ok")
        reporter.report("books", "ok")
        assert reporter.flush(10)
        for status in (400, 403):
            server.scripted.append(Scripted(status=status))
            reporter.report("books", "ok")
            assert reporter.flush(10)
        counts = reporter.counts()
        assert (counts.reported, counts.delivered, counts.rejected) == (4, 1, 3)


def test_without_a_server_memory_is_bounded_and_every_drop_is_counted() -> None:
    limits = Limits(queue=2_000, batch=100, memory=20_000)
    reporter = Reporter(NOWHERE, limits=limits, close_within=0.1)
    for _ in range(50):
        for _ in range(1_000):
            reporter.report("books", "ok", seconds=0.25, bytes=20_000)
        until(lambda: len(reporter._queue) < limits.queue, 10, "the packer keeps up")
    counts = reporter.counts()
    assert counts.reported == 50_000
    assert counts.dropped + counts.waiting == 50_000
    assert 0 < counts.waiting < 10_000
    assert reporter.close().dropped == 50_000


def test_pages_that_wait_are_bounded_by_their_bytes() -> None:
    limits = Limits(bodies=1_000_000, memory=1_000_000)
    reporter = Reporter(NOWHERE, limits=limits, close_within=0.1)
    for index in range(500):
        reporter.report("books", status=200, body=f"{index}" * 50_000)
        assert reporter._bodies <= limits.bodies
    assert reporter.counts().dropped > 0
    assert reporter.close().dropped == 500


def test_reports_after_the_end_are_counted_as_dropped() -> None:
    with PushServer() as server:
        reporter = Reporter(server.url)
        reporter.report("books", "ok")
        reporter.close()
        reporter.report("books", "ok")
        counts = reporter.close()
        assert (counts.reported, counts.delivered, counts.dropped, counts.waiting) == (2, 1, 1, 0)


def test_the_end_does_not_wait_for_a_server_that_hangs() -> None:
    with PushServer() as server:
        server.gate.clear()
        reporter = Reporter(server.url, flush_every=0.01)
        reporter.report("books", "ok")
        began = time.monotonic()
        counts = reporter.close(0.5)
        assert time.monotonic() - began < 5
        assert counts.dropped == 1


def test_the_token_is_sent_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with PushServer() as server, Reporter(server.url, token="s3cret-token") as reporter:
        server.scripted.append(Scripted(status=401))
        reporter.report("books", "ok")
        assert reporter.flush(10)
        assert server.tokens == {"Bearer s3cret-token"}
        assert "s3cret" not in caplog.text + repr(vars(reporter))


def test_a_forked_child_reports_for_itself() -> None:
    with PushServer() as server, Reporter(server.url) as reporter:
        reporter.report("parent", "ok")
        assert reporter.flush(10)
        child = os.fork()
        if child == 0:
            reporter.report("child", "ok")
            os._exit(0 if reporter.flush(10) else 1)
        assert os.waitpid(child, 0)[1] == 0
        reporter.report("parent", "ok")
        assert reporter.flush(10)
        assert Counter(item["site"] for item in server.items) == {"parent": 2, "child": 1}


def test_a_process_that_just_ends_has_reported_everything() -> None:
    program = (
        "import sys\nfrom crawlhealth.client import Reporter\nreporter = Reporter(sys.argv[1])\n"
        "for index in range(1000): reporter.report('books', 'ok')\n"
    )
    with PushServer() as server:
        subprocess.run([sys.executable, "-c", program, server.url], check=True, timeout=60)
        assert len(server.items) == 1_000


def test_the_client_brings_no_parser_and_no_server_along() -> None:
    program = (
        "import sys, crawlhealth.client\n"
        "heavy = {'lxml', 'parsel', 're2', 'uvicorn', 'starlette', 'yaml', 'cryptography', 'jinja2', 'scrapy'}\n"
        "found = heavy & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(', '.join(sorted(found)) or 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
