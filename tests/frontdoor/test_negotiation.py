"""/metrics to clients that ask for what there is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from running import Exporter


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with Exporter(tmp_path_factory.mktemp("negotiation"), "sites: {}") as running:
        yield running


@pytest.mark.parametrize("refused", ["gzip;q=0", "br, gzip; q=0.000", "notgzip"])
def test_gzip_is_not_given_to_those_who_refuse_it(exporter: Exporter, refused: str) -> None:
    assert "content-encoding" not in exporter.get("/metrics", headers={"Accept-Encoding": refused}).headers


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/openmetrics-text;version=latest", id="a version that is none"),
        pytest.param("application/openmetrics-text; version=1.0.0-rc.0", id="a version before one"),
        pytest.param("text/plain;version=1.x", id="a plain version that is none"),
        pytest.param("application/openmetrics-text;version=1.0.0;q=0, */*", id="refused"),
        pytest.param(",;;q=,;version", id="noise"),
    ],
)
def test_whoever_asks_for_what_there_is_not_gets_plain_text(exporter: Exporter, accept: str) -> None:
    answer = exporter.get("/metrics", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
