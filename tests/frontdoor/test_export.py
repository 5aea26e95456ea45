"""`crawlhealth export` through its front door: back into crawlhealth, and into the real Prometheus."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from running import Exporter, plain_session
from waiting import until

HOUR = 3600
CONFIG = """
data_dir: data
sites:
  books: {hosts: [books.example], routes: [direct, dc]}
  'od"d': {hosts: [odd.example]}
routes: {dc: {proxy: "socks5h://127.0.0.1:9"}}
"""


def crawlhealth(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "crawlhealth.cli", *arguments, "--config", str(folder / "crawlhealth.yml")]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)


def lines(now: float, hours: int = 60) -> bytes:
    """Hours that have ended, but for a gap of a day: 100 requests each, ten of them challenged."""
    last = now // HOUR * HOUR
    starts = [last - back * HOUR for back in range(1, hours + 1) if not 10 < back <= 34]
    window = {
        "source": "traffic", "window_seconds": HOUR, "requests": 100, "challenge": 10, "bytes": 1000, "credits": 0.25,
        "latency_seconds": {"buckets": {"0.1": 45, "0.5": 90}, "sum": 18.5},
        "extractions_ok": 80, "extractions_failed": 1, "records_valid": 5,
    }  # fmt: skip
    strata = (("books", "direct"), ("books", "dc"), ('od"d', "direct"))
    return b"".join(
        json.dumps({"site": site, "route": route, "start": start, **window}).encode() + b"\n"
        for start in starts for site, route in strata
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration with a history of 60 hours."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "crawlhealth.yml").write_text(CONFIG, encoding="utf-8")
    done = crawlhealth(folder, "import", "-", stdin=lines(time.time()))
    assert done.returncode == 0, done.stderr
    return folder


def test_a_running_exporter_is_exported_and_another_takes_it_back(folder: Path, tmp_path: Path) -> None:
    with Exporter(folder, CONFIG):
        exported = crawlhealth(folder, "export")
    assert (exported.returncode, exported.stderr) == (0, b"")
    assert len(exported.stdout.splitlines()) == 36 * 3
    (tmp_path / "crawlhealth.yml").write_text(CONFIG, encoding="utf-8")
    done = crawlhealth(tmp_path, "import", "-", stdin=exported.stdout)
    assert done.returncode == 0, done.stderr
    assert crawlhealth(tmp_path, "export").stdout == exported.stdout


def test_only_what_is_configured_and_asked_for(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = crawlhealth(folder, "export", "--site", "books", "--since", "6h", "--out", str(out))
    assert done.returncode == 0, done.stderr
    windows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {window["site"] for window in windows} == {"books"}
    assert len(windows) in (10, 12)  # five or six hours of two routes
    other = tmp_path / "other"
    other.mkdir()
    (other / "crawlhealth.yml").write_text(
        f"data_dir: {folder}/data\nsites: {{books: {{hosts: [books.example]}}}}\n", encoding="utf-8"
    )
    done = crawlhealth(other, "export")
    assert len(done.stdout.splitlines()) == 36
    assert done.stderr == b'left out: route dc, site od"d (not configured any more)\n'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--site", "none"], "no site 'none'", id="an unknown site"),
        pytest.param(["--since", "yesterday"], "is no time", id="no time"),
        pytest.param(["--openmetrics", "--label", "1=2"], "is no label", id="no label"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], said: str) -> None:
    done = crawlhealth(folder, "export", *arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_without_a_history_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "crawlhealth.yml").write_text(CONFIG, encoding="utf-8")
    done = crawlhealth(tmp_path, "export")
    assert done.returncode == 1
    assert "there is no history" in done.stderr.decode()
    assert not (tmp_path / "data").exists()


def test_prometheus_takes_the_past_and_answers_from_it(folder: Path, tmp_path: Path) -> None:
    promtool, prometheus = shutil.which("promtool"), shutil.which("prometheus")
    assert promtool, "promtool is missing: script/test says how to install it"
    assert prometheus, "prometheus is missing: script/test says how to install it"
    text = tmp_path / "past.txt"
    done = crawlhealth(folder, "export", "--openmetrics", "--out", str(text))
    assert done.returncode == 0, done.stderr
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(tmp_path / "tsdb")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr + made.stdout
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    process = subprocess.Popen(
        [prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
         f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=10y"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.time() // HOUR * HOUR

        def query(expression: str, at: float = end) -> list[float]:
            try:
                with plain_session() as session:
                    answer = session.get(
                        f"http://127.0.0.1:{port}/api/v1/query",
                        params={"query": expression, "time": str(at)},
                        timeout=5,
                    ).json()
            except (requests.RequestException, ValueError):
                return []
            return [float(result["value"][1]) for result in answer.get("data", {}).get("result", [])]

        until(lambda: query("vector(1)") == [1.0], 30, "Prometheus answers")
        books = 'job="crawlhealth",site="books"'
        assert query(f"sum(crawlhealth_requests_total{{{books}}})") == [36 * 2 * 100]
        assert query(f'sum(crawlhealth_requests_total{{{books},outcome="challenge",route="dc"}})') == [36 * 10]
        assert query(f'sum(increase(crawlhealth_requests_total{{{books},route="dc"}}[10h]))') == [pytest.approx(1000)]
        assert query('sum(crawlhealth_requests_total{site="od\\"d"})') == [36 * 100]
        until_the_gap = query(f'sum(crawlhealth_requests_total{{{books},route="dc"}})', end - 10 * HOUR)
        assert until_the_gap == [26 * 100], "after a gap it begins where it was: nothing is spread over the gap"
        assert query(f"crawlhealth_request_duration_seconds_count{{{books}}}") == [36 * 2 * 90]
        assert query(f"crawlhealth_request_duration_seconds_sum{{{books}}}") == [pytest.approx(36 * 2 * 18.5)]
        p50 = f"histogram_quantile(0.5, rate(crawlhealth_request_duration_seconds_bucket{{{books}}}[10h]))"
        assert query(p50) == [pytest.approx(0.1, rel=0.05)]
        assert query(f'crawlhealth_records_total{{{books},result="valid"}}') == [36 * 2 * 5]
        assert query(f"sum(crawlhealth_credits_total{{{books}}})") == [36 * 2 * 0.25]
    finally:
        process.terminate()
        process.wait(timeout=20)
