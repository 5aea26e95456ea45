"""`crawlhealth backtest` on the command line: simulated, on a stored history, and on a file of windows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from crawlhealth.cli import main
from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, Decisions, History, import_windows
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic.exporting import as_line
from crawlhealth.verdict import Accepted

HOUR, DAY = 3600.0, 86400.0
NOW = 1_796_040_000.0 // DAY * DAY
BEGUN = NOW - 30 * DAY
STEP = NOW - 8 * DAY
FIXED = STEP + 2 * DAY
CONFIG = """\
sites:
  books: {hosts: [books.example]}
  quotes: {hosts: [quotes.example]}
history: {keep_hours: 400d}
"""


def slots() -> Iterator[Slot]:
    """Two sites by the hour; books is challenged for two days a week ago."""
    draw = np.random.default_rng(1)
    for site in ("books", "quotes"):
        for start in np.arange(BEGUN, NOW, HOUR).tolist():
            bad = 0.7 if site == "books" and STEP <= start < FIXED else 0.0
            ok, challenge, hard = draw.multinomial(200, [0.96 - bad, 0.03 + bad, 0.01])
            tally = Tally(
                ok=int(ok),
                challenge=int(challenge),
                hard_block=int(hard),
                latency={100: int(ok)},
                latency_sum=0.12 * int(ok),
            )
            yield Slot(site=site, route="direct", source=Source.TRAFFIC, start=start, seconds=HOUR, tally=tally)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration with its history, the same as a file of windows, another configuration, and labels."""
    folder = tmp_path_factory.mktemp("past")
    (folder / "crawlhealth.yml").write_text(CONFIG, encoding="utf-8")
    (folder / "deaf.yml").write_text(
        CONFIG + "score: {bands: {degrading: 5, resisting: 2, leave_degrading: 10, leave_resisting: 4}}\n",
        encoding="utf-8",
    )
    (folder / "data").mkdir()
    settings = HistorySettings(keep_hours=HistorySettings().keep_hours * 4)
    History.open(folder / "data" / FILE_NAME, settings, now=NOW).close()
    import_windows(folder / "data" / FILE_NAME, settings, slots(), now=NOW)
    (folder / "windows.jsonl").write_bytes(b"".join(map(as_line, slots())))
    (folder / "faults.csv").write_text(
        f"site,start,end\nbooks,{STEP},{FIXED}\nquotes,{STEP},{FIXED}\nbooks,5,6\n", encoding="utf-8"
    )
    return folder


def run(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(
        main, ["backtest", "--config", str(folder / "crawlhealth.yml"), "--processes", "1", *arguments]
    )


def answer(folder: Path, *arguments: str) -> dict[str, Any]:
    done = run(folder, "--json", *arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def only(found: dict[str, Any]) -> dict[str, Any]:
    (one,) = found["configurations"].values()
    assert isinstance(one, dict)
    return one


def moment(at: float) -> str:
    return str(np.datetime64(int(at), "s")) + "Z"


def test_a_stored_history_is_judged_as_the_exporter_would_have(folder: Path) -> None:
    found = answer(folder)
    assert (found["since"], found["until"]) == (moment(BEGUN), moment(NOW))
    told = only(found)
    (incident,) = told["incidents"]
    assert incident["site"] == "books"
    assert moment(STEP) <= incident["start"] <= moment(STEP + 3 * HOUR)
    assert moment(FIXED) <= incident["end"] <= moment(FIXED + DAY)
    assert incident["worst_band"] == "resisting"
    assert incident["worst_score"] < 35
    assert incident["first_reason"] == "challenge"
    figures = told["figures"]
    assert figures["incidents"] == 1
    assert figures["site_weeks"] == pytest.approx(2 * 29 / 7, abs=0.3), "there is a normal after a day"
    assert figures["alarms_a_week"] == pytest.approx(1 / figures["site_weeks"])
    assert figures["agreement"] is None


def test_the_history_is_only_read(folder: Path) -> None:
    data = folder / "data"
    before = {file.name: file.read_bytes() for file in data.iterdir() if not file.name.endswith("-shm")}
    answer(folder, "--site", "books")
    assert {file.name: file.read_bytes() for file in data.iterdir() if not file.name.endswith("-shm")} == before


def test_a_file_of_windows_says_the_same_as_a_history(folder: Path) -> None:
    stored, imported = answer(folder), answer(folder, "--import", str(folder / "windows.jsonl"))
    assert only(imported)["incidents"] == only(stored)["incidents"]
    assert only(imported)["figures"] == only(stored)["figures"]
    assert (imported["since"], imported["until"]) == (stored["since"], stored["until"])


def test_two_processes_say_the_same_as_one(folder: Path) -> None:
    assert answer(folder, "--processes", "2") == answer(folder)


def test_labels_say_what_was_found_and_how_soon(folder: Path) -> None:
    found = only(answer(folder, "--labels", str(folder / "faults.csv")))["figures"]
    agreement = found["agreement"]
    assert (agreement["windows"], agreement["found"], agreement["false_alarms"]) == (2, 1, 0), "one was long before"
    assert found["recall"] == 0.5
    assert HOUR <= agreement["median_delay"] <= 3 * HOUR
    quotes = only(answer(folder, "--labels", str(folder / "faults.csv"), "--site", "quotes"))["figures"]
    assert (quotes["agreement"]["windows"], quotes["agreement"]["found"]) == (1, 0)


def test_two_configurations_stand_side_by_side(folder: Path) -> None:
    deaf, config = str(folder / "deaf.yml"), str(folder / "crawlhealth.yml")
    done = run(folder, "--compare", deaf, "--labels", str(folder / "faults.csv"))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{moment(BEGUN)} to {moment(NOW)}"
    assert f"{config}:" in lines
    assert f"{deaf}: no incident" in lines
    table = {line[:26].strip(): line[26:].split("  ") for line in lines[lines.index("") :]}
    assert [cell.strip() for cell in table["incidents"] if cell.strip()] == ["1", "0"]
    assert [cell.strip() for cell in table["labelled windows found"] if cell.strip()] == ["1 of 2", "0 of 2"]


@pytest.mark.parametrize(
    ("since", "until", "incidents"),
    [
        pytest.param(FIXED + DAY, None, 0, id="after it"),
        pytest.param(STEP + DAY, None, 1, id="from its middle on: it lasted then"),
        pytest.param(None, STEP, 0, id="before it"),
        pytest.param(STEP - DAY, STEP + DAY, 1, id="up to its middle: it lasts"),
    ],
)
def test_a_time_may_be_chosen(folder: Path, since: float | None, until: float | None, incidents: int) -> None:
    given = [*(["--since", moment(since)] if since else []), *(["--until", moment(until)] if until else [])]
    for source in ((), ("--import", str(folder / "windows.jsonl"))):
        found = answer(folder, *given, *source)
        assert len(only(found)["incidents"]) == incidents
        assert found["since"] == moment(since or BEGUN)
        assert found["until"] == moment(until or NOW)
        if until == STEP + DAY:
            assert only(found)["incidents"][0]["end"] is None


def test_minutes_are_judged_every_minute(folder: Path) -> None:
    found = only(answer(folder, "--step", "1m", "--since", moment(STEP - DAY), "--until", moment(STEP + DAY / 2)))
    (incident,) = found["incidents"]
    assert moment(STEP + 1800) <= incident["start"] <= moment(STEP + 2 * HOUR)


def test_what_was_accepted_is_the_normal_from_then_on(folder: Path) -> None:
    at = STEP + DAY / 2
    with closing(Decisions.open(folder / "data" / FILE_NAME, now=NOW)) as decisions:
        decisions.accept(Accepted(site="books", at=at, since=STEP))
        try:
            first, *others = only(answer(folder, "--site", "books"))["incidents"]
        finally:
            decisions.undo_accept("books", NOW)
    assert first["end"] == moment(at + HOUR)
    assert not [one for one in others if one["start"] < moment(FIXED)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--simulate", "--since", "3d"], 2, "--simulate knows no past: leave out --since", id="no past"),
        pytest.param(["--minutes"], 2, "write --simulate as well, or leave out --minutes", id="no simulation"),
        pytest.param(["--scenario", "past"], 2, "write --simulate as well, or leave out --scenario", id="no scenario"),
        pytest.param(["--site", "shop"], 2, "no site 'shop' in the configuration", id="unknown site"),
        pytest.param(
            ["--since", "1d", "--until", "2d"], 2, "--until: write a moment later than --since", id="backwards"
        ),
        pytest.param(["--since", "yesterday"], 2, "'yesterday' is no time: write", id="no time"),
        pytest.param(["--until", "2020-01-01T00:00:00Z"], 1, "there is nothing of that time", id="before all"),
        pytest.param(["--history", "nowhere"], 1, "there is no history nowhere", id="no history"),
        pytest.param(["--history", "data", "--import", "empty"], 2, "--history and --import: write one", id="both"),
        pytest.param(["--import", "empty"], 1, "no window in the file that could be taken", id="an empty file"),
        pytest.param(["--labels", "bad.csv"], 1, "bad.csv: line 1: 'x' is no time: write", id="bad labels"),
        pytest.param(["--labels", "image"], 1, "image: ", id="labels that are no text"),
    ],
)
def test_what_cannot_be_done_is_told(
    folder: Path, arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("empty").write_bytes(b"")
    Path("bad.csv").write_text("books,x,y\n", encoding="utf-8")
    Path("image").write_bytes(b"\x89PNG\xff\xfe")
    done = run(folder, *arguments)
    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_bad_lines_of_a_file_are_told_and_the_rest_is_judged(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_bytes(b"nonsense\n" * 25 + (folder / "windows.jsonl").read_bytes())
    done = run(folder, "--import", str(file))
    assert done.exit_code == 1
    assert f"{file}:1: " in done.stderr
    assert f"{file}: 5 more lines not taken" in done.stderr
    assert "books" in done.stdout


def test_a_simulation_is_told_as_a_table_and_as_json() -> None:
    arguments = ["backtest", "--simulate", "--sites", "9", "--scenario", "past", "--processes", "2"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    head, _, name, columns, *lines = done.stdout.splitlines()
    assert (head, name) == ("9 simulated sites a scenario, seed 1", "past:")
    assert columns.split() == ["plain", "robust"]
    assert any(line.startswith("a +20 pp step a week after an incident") and line.endswith("100.0 %") for line in lines)
    told = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert told["stories"]["past"]["robust"][1]["share"] == 1.0
    assert told["hours"] == []


def test_a_configuration_may_be_simulated(folder: Path) -> None:
    arguments = ["--simulate", "--sites", "9", "--scenario", "past", "--json", "--compare", str(folder / "deaf.yml")]
    told = answer(folder, *arguments)["stories"]["past"]
    assert [figures[1]["share"] for figures in told.values()] == [1.0, 0.0]
