"""One HEAD a minute at each target, and what it says."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crawlhealth.config import Fetching
from crawlhealth.looking import Looker
from crawlhealth.outcome import Reason
from crawlhealth.searchbots.looks import Looked
from crawlhealth.searchbots.targets import Result, Targets, TargetState, result_of
from crawlhealth.searchbotsettings import Target
from searchbots.verifying import Clock
from searchbots.webserver import moved, web
from waiting import until


def looker() -> Looker:
    return Looker(Fetching, clock=time.time)


@contextmanager
def unused_port() -> Iterator[int]:
    """A port that is taken and does not listen."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def probed(targets: Targets, name: str, number: int) -> TargetState:
    """The state after so many probes in all."""

    def done() -> bool:
        targets.tick()
        return sum(count for (target, _), count in targets.probes.items() if target == name) >= number

    until(done, 10, f"{name} is probed {number} times")
    until(lambda: targets.rounds.running == 0, 10, "nothing is under way")
    state = targets.state(name)
    assert state is not None
    return state


def test_one_head_a_minute_whoever_wants_to_know() -> None:
    clock = Clock()
    with web(lambda _method, _path: (200, {}, b"page")) as server:
        targets = Targets(lambda: {"t": Target(name="t", url=server.url("/x"))}, looker(), clock=clock)
        assert targets.state("t") is None
        state = probed(targets, "t", 1)
        assert (state.up, state.result, state.missed) == (True, Result.OK, 0)
        for _ in range(59):
            clock.now += 1
            targets.tick()
            assert targets.state("t") is not None
        assert server.asked == ["HEAD /x"]
        clock.now += 1
        probed(targets, "t", 2)
        assert server.asked == ["HEAD /x"] * 2


def test_five_without_an_answer_in_a_row_are_down_and_one_answer_ends_it() -> None:
    clock = Clock()
    with web() as server:
        server.answer = lambda _method, _path: (503, {}, b"")
        targets = Targets(lambda: {"t": Target(name="t", url=server.url())}, looker(), clock=clock)
        for number in range(1, 6):
            state = probed(targets, "t", number)
            assert (state.up, state.missed, state.down) == (False, number, number == 5)
            clock.now += 60
        server.answer = lambda _method, _path: moved("https://elsewhere.example/")
        state = probed(targets, "t", 6)
        assert (state.up, state.missed, state.down, state.result) == (True, 0, False, Result.OK)
        assert targets.probes == {("t", "http_5xx"): 5, ("t", "ok"): 1}


def test_a_target_that_does_not_listen_cannot_be_connected_to() -> None:
    with unused_port() as port:
        targets = Targets(lambda: {"t": Target(name="t", url=f"http://127.0.0.1:{port}/")}, looker(), clock=Clock())
        state = probed(targets, "t", 1)
    assert (state.up, state.result) == (False, Result.CONNECT)


def test_a_target_that_hangs_times_out_and_holds_up_no_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, web() as server:
        urls = {"slow": f"http://127.0.0.1:{silent.getsockname()[1]}/", "good": server.url()}
        real = looker()

        def hasty(
            url: str, *, method: str = "GET", timeout: float = 10.0, redirects: int = 0, accept: str = "*/*"
        ) -> Looked:
            return real(url, method=method, timeout=timeout / 20, redirects=redirects, accept=accept)

        configured = {name: Target(name=name, url=url) for name, url in urls.items()}
        targets = Targets(lambda: configured, hasty, clock=Clock())
        targets.tick()
        until(lambda: targets.state("good"), 5, "the good one is known")
        state = probed(targets, "slow", 1)
        assert (state.up, state.result) == (False, Result.TIMEOUT)
        del configured["slow"]
        assert [name for name, _ in targets.states()] == ["good"]


@pytest.mark.parametrize(
    ("looked", "result", "up"),
    [
        pytest.param(Looked(status=200), "ok", True, id="200"),
        pytest.param(Looked(status=404), "ok", True, id="404 is an answer"),
        pytest.param(Looked(status=500), "http_5xx", True, id="500 is one, if a bad one"),
        pytest.param(Looked(status=501), "http_5xx", True, id="a server without HEAD is up"),
        pytest.param(Looked(status=502), "http_5xx", False, id="502 says that nobody is behind"),
        pytest.param(Looked(status=503), "http_5xx", False, id="503 too"),
        pytest.param(Looked(reason=Reason.TIMEOUT), "timeout", False, id="a timeout"),
        pytest.param(Looked(reason=Reason.DNS), "connect", False, id="a name that is none"),
        pytest.param(Looked(reason=Reason.TLS), "connect", False, id="no TLS"),
    ],
)
def test_result(looked: Looked, result: str, up: bool) -> None:
    assert result_of(looked) == (result, up)
