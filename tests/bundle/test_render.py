"""Files of the bundle: the same bytes each time, and differences that are told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth import bundle
from crawlhealth.bundle import metrictable
from crawlhealth.bundle.yamltext import duration
from crawlhealth.metrics import MetricSpec


def test_what_was_written_is_up_to_date_and_an_edit_is_told_as_a_diff(tmp_path: Path) -> None:
    names = bundle.write(tmp_path)
    assert bundle.check(tmp_path) == []
    edited = tmp_path / names[0]
    edited.write_text(edited.read_text().replace("CrawlTargetResisting", "CrawlTargetResting", 1))
    [difference] = bundle.check(tmp_path)
    assert "-      - alert: CrawlTargetResting\n+      - alert: CrawlTargetResisting\n" in difference


def test_a_file_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    assert len(bundle.check(tmp_path)) == len(bundle.render())


def test_other_options_are_another_bundle(tmp_path: Path) -> None:
    bundle.write(tmp_path, job="crawl")
    assert bundle.check(tmp_path, job="crawl") == []
    assert len(bundle.check(tmp_path)) == 1


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_clock_cannot_be_compressed_by_nothing(scale: float) -> None:
    with pytest.raises(ValueError, match="time_scale must be over 0"):
        bundle.render(time_scale=scale)


@pytest.mark.parametrize(
    ("length", "written"),
    [
        pytest.param(timedelta(minutes=5), "5m", id="whole minutes"),
        pytest.param(timedelta(hours=1, minutes=30), "1h30m", id="hours and minutes"),
        pytest.param(timedelta(days=14), "14d", id="days"),
        pytest.param(timedelta(seconds=1.25), "1s250ms", id="milliseconds"),
        pytest.param(timedelta(microseconds=1), "0s", id="less than can be written"),
    ],
)
def test_a_duration_is_written_as_prometheus_reads_it(length: timedelta, written: str) -> None:
    assert duration(length) == written


SPECS = [MetricSpec("crawlhealth_x_total", "counter", "This | that.", ("site", "from"))]
TABLE = (
    "| metric | kind | labels | meaning |\n|---|---|---|---|\n"
    "| `crawlhealth_x_total` | counter | `site`, `from` | This \\| that. |\n"
)


def test_the_metric_table_takes_the_place_of_the_one_before() -> None:
    page = f"# Title\n{metrictable.BEGIN}\nold\n{metrictable.END}\nrest\n"
    renewed = metrictable.embed(page, SPECS)
    assert renewed == f"# Title\n{metrictable.BEGIN}\n{TABLE}{metrictable.END}\nrest\n"
    assert metrictable.embed(renewed, SPECS) == renewed


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("no markers\n", id="a page without markers"),
        pytest.param(f"{metrictable.END}\n{metrictable.BEGIN}\n", id="markers in the wrong order"),
        pytest.param(f"{metrictable.BEGIN}\n{metrictable.END}\n" * 2, id="two tables"),
    ],
)
def test_a_page_that_cannot_take_the_table_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="needs one line"):
        metrictable.embed(page, SPECS)
