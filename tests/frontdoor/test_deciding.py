"""`crawlhealth pause`, `resume` and `limit` beside a running exporter, and before the first one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlhealth import shard
from running import Exporter
from waiting import until

CONFIG = """\
sites:
  books: {hosts: [books.example]}
score: {evaluate_every: 100ms}
maintenance:
  - {days: [mon, tue, wed, thu, fri, sat, sun], start: "00:00", end: "00:00", note: they move}
"""


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with Exporter(tmp_path_factory.mktemp("deciding"), CONFIG) as exporter:
        yield exporter


def crawlhealth(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "crawlhealth.cli", *arguments], cwd=folder, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    return done.returncode, (done.stdout or done.stderr).strip()


def test_what_is_decided_on_the_command_line_is_followed_and_shown(exporter: Exporter) -> None:
    def advice() -> tuple[float, bool]:
        found = exporter.get("/api/v1/sites/books").json()["advice"]
        return found["concurrency_ratio"], found["paused"]

    code, said = crawlhealth(exporter.folder, "pause", "books", "--until", "2h", "--note", "they asked")
    assert (code, said.startswith("books: pause at 0 of the usual concurrency until 20")) == (0, True)
    until(lambda: advice() == (0.0, True), 20, "the pause is followed")
    shown = exporter.get("/api/v1/sites/books").json()["override"]
    assert (shown["kind"], shown["note"]) == ("pause", "they asked")
    samples = exporter.samples()
    assert samples["crawlhealth_advice_paused", frozenset({("site", "books")})] == 1.0
    assert (
        "crawlhealth_override_until_timestamp_seconds",
        frozenset({("site", "books"), ("kind", "pause")}),
    ) in samples

    crawlhealth(exporter.folder, "limit", "books", "--concurrency", "0.3")
    until(lambda: advice() == (0.3, False), 20, "the limit takes its place")
    crawlhealth(exporter.folder, "resume", "books", "--until", "1s")
    until(lambda: advice() == (1.0, False), 20, "the resumption takes its place")
    until(lambda: exporter.get("/api/v1/sites/books").json()["override"] is None, 20, "it expires")
    assert crawlhealth(exporter.folder, "resume", "books", "--clear")[1].endswith(
        "nothing was decided, the advice rules"
    )


def test_a_planned_stop_is_shown(exporter: Exporter) -> None:
    assert exporter.get("/api/v1/sites/books").json()["maintenance"] is True
    assert exporter.value("crawlhealth_maintenance", site="books") == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["pause", "bokos"], "there is no site 'bokos': did you mean books?", id="no such site"),
        pytest.param(
            ["limit", "books", "--concurrency", "3"], "concurrency_ratio: write a share over 0 and up to 1",
            id="no such share",
        ),
        pytest.param(["pause", "books", "--until", "soon"], "until: is not a duration", id="no such time"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_told_and_exits_2(exporter: Exporter, arguments: list[str], said: str) -> None:
    code, text = crawlhealth(exporter.folder, *arguments)
    assert code == 2
    assert said in text


def test_a_decision_waits_for_the_exporter_that_is_started_later(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path, CONFIG)
    assert crawlhealth(tmp_path, "limit", "books", "--concurrency", "0.5")[0] == 0
    with exporter:
        assert exporter.get("/api/v1/sites/books").json()["advice"]["concurrency_ratio"] == 0.5


OF_SHARD = shard.number_of("books", 3)
OTHER = OF_SHARD % 3 + 1
DECISIONS = [
    ["pause", "books"],
    ["resume", "books"],
    ["resume", "books", "--clear"],
    ["limit", "books", "--concurrency", "0.3"],
    ["accept", "books"],
    ["accept", "books", "--undo"],
]


@pytest.mark.parametrize("arguments", [pytest.param(one, id=" ".join(one)) for one in DECISIONS])
def test_a_site_of_another_shard_is_told_with_where_it_is_and_nothing_is_written(
    tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "crawlhealth.yml").write_text(CONFIG)
    code, text = crawlhealth(tmp_path, *arguments, "--shard", f"{OTHER}/3")
    assert code == 2
    assert f"the site 'books' belongs to shard {OF_SHARD} of 3, and this is shard {OTHER}: decide it there" in text
    assert list(tmp_path.iterdir()) == [tmp_path / "crawlhealth.yml"]


def test_the_shard_is_that_of_the_exporter_beside_it_and_decides_on_its_own_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crawlhealth.yml").write_text(CONFIG)
    assert crawlhealth(tmp_path, "pause", "books", "--shard", f"{OF_SHARD}/3")[0] == 0
    monkeypatch.setenv("CRAWLHEALTH_SHARD", f"{OF_SHARD}/3")
    assert crawlhealth(tmp_path, "limit", "books", "--concurrency", "0.5")[0] == 0
    monkeypatch.setenv("CRAWLHEALTH_SHARD", f"{OTHER}/3")
    assert crawlhealth(tmp_path, "limit", "books", "--concurrency", "0.5")[0] == 2
