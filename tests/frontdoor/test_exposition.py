"""/metrics as Prometheus takes it: the real promtool, the real Prometheus, both formats."""

from __future__ import annotations

import gzip
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from prometheus_client.openmetrics import parser

from crawlhealth import metrics
from crawlhealth.demo.site import PracticeSite
from running import Exporter, plain_session
from waiting import until

OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("exposition")
    with PracticeSite() as site:
        (folder / "canaries.yml").write_text(
            f"""
site: shop
every: 500ms
timeout: 400ms
canaries:
  - {{name: home, url: "{site.url()}", expect: {{n: {{css: article.product, count: {{equals: 20}}}}}}}}
  - {{name: refused, url: "{site.url("/~status:403/")}"}}
  - {{name: gone, url: "http://127.0.0.1:1/"}}
"""
        )
        config = """
            sites: {"shop": {hosts: [127.0.0.1], min_gap: 0s}}
            canaries: [canaries.yml]
            history: {commit_every: 100ms}
            """
        with Exporter(folder, config) as running:
            for outcome in ("ok", "hard_block", "error"):
                running.wait_for("crawlhealth_canary_runs_total", 1, outcome=outcome)
            yield running


def test_promtool_finds_nothing_to_say(exporter: Exporter) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: script/test says how to install it"
    text = exporter.get("/metrics").text
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_openmetrics_is_spoken_to_those_who_ask(exporter: Exporter) -> None:
    answer = exporter.get("/metrics", headers={"Accept": OPEN_METRICS})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    families = _families(answer.text)
    assert "crawlhealth_requests" in families
    plain = exporter.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=")


def test_every_crawlhealth_metric_is_one_of_the_contract(exporter: Exporter) -> None:
    known = {spec.name.removesuffix("_total").removesuffix("_info") for spec in metrics.ALL}
    families = _families(exporter.get("/metrics", headers={"Accept": OPEN_METRICS}).text)
    assert {name for name in families if name.startswith("crawlhealth_")} <= known


def test_gzip_is_given_to_those_who_take_it(exporter: Exporter) -> None:
    with plain_session() as session:
        answer = session.get(exporter.url + "/metrics", headers={"Accept-Encoding": "gzip"}, stream=True, timeout=10)
        raw = answer.raw.read(decode_content=False)
    assert answer.headers["content-encoding"] == "gzip"
    assert b"crawlhealth_build_info" in gzip.decompress(raw)
    assert "content-encoding" not in exporter.get("/metrics", headers={"Accept-Encoding": "identity"}).headers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/-/healthy", 200, id="healthy"),
        pytest.param("GET", "/-/ready", 200, id="ready"),
        pytest.param("GET", "/-/reload", 405, id="a reload is not a GET"),
        pytest.param("POST", "/metrics", 405, id="metrics take no POST"),
        pytest.param("GET", "/nowhere", 404, id="no other page"),
        pytest.param("GET", "/..%2f..%2fetc/passwd", 404, id="no file is served"),
    ],
)
def test_status(exporter: Exporter, method: str, path: str, status: int) -> None:
    with plain_session() as session:
        assert session.request(method, exporter.url + path, timeout=10).status_code == status


def test_prometheus_scrapes_it_and_drops_nothing(exporter: Exporter, tmp_path: Path) -> None:
    binary = shutil.which("prometheus")
    assert binary, "prometheus is missing: script/test says how to install it"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "prometheus.yml").write_text(
        f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: crawlhealth
    static_configs: [{{targets: ["{exporter.url.removeprefix("http://")}"]}}]
"""
    )
    process = subprocess.Popen(
        [binary, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with plain_session() as session:

            def query(expression: str) -> list[float]:
                try:
                    answer = session.get(
                        f"http://127.0.0.1:{port}/api/v1/query", params={"query": expression}, timeout=5
                    )
                except requests.ConnectionError:
                    return []
                if answer.status_code != 200:  # it is starting
                    return []
                return [float(result["value"][1]) for result in answer.json()["data"]["result"]]

            until(lambda: query('up{job="crawlhealth"}') == [1.0], 30, "Prometheus scrapes")
            until(lambda: bool(query("rate(crawlhealth_requests_total[10s]) > 0")), 30, "it sees counters rise")
            scraped = query("scrape_samples_scraped")
            assert scraped == query("scrape_samples_post_metric_relabeling")
            for cause in ("duplicate_timestamp", "out_of_order", "out_of_bounds"):
                assert query(f"prometheus_target_scrapes_sample_{cause}_total") in ([], [0.0])
            targets = session.get(f"http://127.0.0.1:{port}/api/v1/targets", timeout=5).json()["data"]["activeTargets"]
            assert [target["lastError"] for target in targets] == [""]
            text = exporter.get("/metrics").text
            samples = [line for line in text.splitlines() if line and not line.startswith("#")]
            assert scraped[0] == pytest.approx(len(samples), abs=3)  # a first event may have added a series
    finally:
        process.terminate()
        process.wait(timeout=20)


def _families(text: str) -> set[str]:
    """The names in an OpenMetrics text."""
    return {family.name for family in parser.text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]  # its
