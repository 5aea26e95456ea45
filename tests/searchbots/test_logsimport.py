"""`crawlhealth logs import`: what it takes into the history, and what it must not."""

from __future__ import annotations

import gzip
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crawlhealth.cli import main
from crawlhealth.history import FILE_NAME
from crawlhealth.history.visitstore import VisitStore
from searchbots.logwriting import line


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crawlhealth.yml").write_text("searchbots: {logs: [{path: access.log, name: shop, domain: shop.example}]}\n")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["logs", "import", *arguments])


def written(at: float) -> str:
    """A line of a bot at a time."""
    return line().replace("30/Nov/2026:12:00:00", datetime.fromtimestamp(at, UTC).strftime("%d/%b/%Y:%H:%M:%S"))


def kept() -> int:
    """How many visits the history has."""
    with closing(VisitStore.open(Path("data") / FILE_NAME, now=time.time())) as store:
        return sum(visits for _, visits in store.hours(-1e12, 1e12))


def test_a_cut_file_replaces_nothing_and_nothing_is_taken_beside_it() -> None:
    one = written(time.time() - 7200)
    lines = "".join(one.replace("/page/0", f"/page/{number}") for number in range(2000))
    whole, cut, other = Path("whole.gz"), Path("cut.gz"), Path("other.log")
    whole.write_bytes(gzip.compress(lines.encode()))
    cut.write_bytes(whole.read_bytes()[:-200])
    other.write_text(one)
    assert run(str(whole)).stdout == "2,000 visits taken\n"
    result = run(str(cut), str(other))
    assert result.exit_code == 1
    assert "cut.gz: " in result.stderr
    assert "nothing is taken into the history: mend that file, or leave it out" in result.stderr
    assert kept() == 2000


def test_an_export_without_them_says_so_and_leaves_a_file() -> None:
    Path("good.log").write_text(written(time.time() - 7200))
    run("good.log")
    result = CliRunner().invoke(main, ["export", "--out", "h.jsonl"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "left out: search bots' visits in 1 h (--openmetrics has them)\n"
    assert Path("h.jsonl").read_bytes() == b""


def test_visits_of_times_that_the_history_does_not_keep_are_left_out_and_told() -> None:
    now = time.time()
    times = ("01/Jan/1900:00:00:00", "01/Jan/1970:00:00:00", "01/Jan/9999:00:00:00")
    strange = "".join(line().replace("30/Nov/2026:12:00:00", each) for each in times)
    old = written(now - 731 * 86_400) + written(now + 7200)
    Path("old.log").write_text(strange + old + written(now - 700 * 86_400) + written(now - 60))
    result = run("old.log")
    assert result.exit_code == 0, result.output
    assert result.stdout == "2 visits taken\n"
    assert result.stderr == "5 visits left out: older than 2 years, or of times to come\n"
    assert kept() == 2
