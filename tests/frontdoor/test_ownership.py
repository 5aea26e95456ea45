"""Commands beside an exporter: the data directory knows its shard, and a command turns down sites of another one."""

from __future__ import annotations

import json
import signal
import time
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crawlhealth.cli import main
from crawlhealth.shard import number_of
from running import Exporter

MINE, THEIRS = "shop1", "shop2"
NUMBER, OTHER = number_of(MINE, 2), number_of(THEIRS, 2)
CONFIG = f"""\
sites:
  {MINE}: {{hosts: [{MINE}.example]}}
  {THEIRS}: {{hosts: [{THEIRS}.example]}}
push: {{tokens: [{{env: CRAWLHEALTH_TOKEN}}, {{token: {{file: limited.token}}, sites: [{MINE}]}}]}}
routes: {{dc-us: {{proxy: {{env: DC_US_PROXY}}, headers: {{X-Key: {{env: DC_US_KEY}}}}}}}}
canaries: [canaries.yml]
searchbots:
  tenants: {{agency: {{domains: [a.example], tokens: [{{env: AGENCY_TOKEN}}]}}}}
  dependencies: {{queue: {{url: "redis://127.0.0.1:1", password: {{env: REDIS_PASSWORD}}}}}}
"""
CANARIES = """\
site: shop1
headers: {Authorization: {env: SHOP_KEY}}
canaries: [{name: home, url: "https://shop1.example/", fetch: push}]
"""
SECRETS = {
    "CRAWLHEALTH_TOKEN": "geheim", "DC_US_PROXY": "http://127.0.0.1:1", "DC_US_KEY": "key", "AGENCY_TOKEN": "other",
    "REDIS_PASSWORD": "word", "SHOP_KEY": "shopkey",
}  # fmt: skip
ELSEWHERE = f"the site '{THEIRS}' belongs to shard {OTHER} of 2, and this is shard {NUMBER}"


def exporter(folder: Path, *arguments: str) -> Exporter:
    (folder / "limited.token").write_text("limited")
    (folder / "canaries.yml").write_text(CANARIES)
    return Exporter(folder, CONFIG, environ=SECRETS, arguments=arguments)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a shard's exporter that has run, with its secrets away."""
    folder = tmp_path_factory.mktemp("served")
    with exporter(folder, "--shard", f"{NUMBER}/2") as running:
        assert running.stop(signal.SIGTERM) == 0
    (folder / "limited.token").unlink()
    return folder


def crawlhealth(folder: Path, *arguments: str, shard: str | None = None) -> Result:
    """A command in a folder, without the secrets that `serve` had; `shard` is what the environment says."""
    with chdir(folder):
        return CliRunner().invoke(main, arguments, env={**dict.fromkeys(SECRETS, None), "CRAWLHEALTH_SHARD": shard})


def bring(folder: Path) -> Result:
    """The import of a window of each site."""
    hour = time.time() // 3600 * 3600 - 7200
    windows = [{"site": site, "start": hour, "window_seconds": 3600, "requests": 9} for site in (MINE, THEIRS)]
    (folder / "old.jsonl").write_text("\n".join(map(json.dumps, windows)))
    return crawlhealth(folder, "import", "old.jsonl")


COMMANDS = [
    ["pause", "{}"],
    ["resume", "{}"],
    ["resume", "{}", "--clear"],
    ["limit", "{}", "--concurrency", "0.3"],
    ["accept", "{}"],
    ["accept", "{}", "--undo"],
    ["incidents", "{}"],
    ["label", "{}", "latest", "true"],
    ["review", "--site", "{}"],
    ["export", "--site", "{}"],
]


@pytest.mark.parametrize("command", [pytest.param(one, id=" ".join(one)) for one in COMMANDS])
def test_a_site_of_another_shard_is_turned_down_without_being_told_the_shard(served: Path, command: list[str]) -> None:
    told = crawlhealth(served, *(word.format(THEIRS) for word in command))
    assert (told.exit_code, told.stdout) == (2, "")
    assert ELSEWHERE in told.stderr


@pytest.mark.parametrize("command", [pytest.param(one, id=" ".join(one)) for one in COMMANDS])
def test_a_site_of_its_own_is_taken_without_any_secret(served: Path, command: list[str]) -> None:
    told = crawlhealth(served, *(word.format(MINE) for word in command))
    if command[0] == "label":
        assert f"{MINE} has had no incident" in told.stderr
    else:
        assert (told.exit_code, told.stderr) == (0, "")


def test_import_takes_the_windows_of_its_shard_only(served: Path) -> None:
    told = bring(served)
    assert told.exit_code == 1
    assert told.stdout == "old.jsonl: 1 windows taken, 1 lines not\n"
    assert told.stderr == f"old.jsonl:2: {ELSEWHERE}\n"


def test_a_typo_is_still_told_the_site_that_was_meant(served: Path) -> None:
    assert "did you mean shop2?" in crawlhealth(served, "incidents", "shop22").stderr


def test_who_says_a_shard_is_believed_and_told_of_the_difference(served: Path) -> None:
    asked = crawlhealth(served, "incidents", THEIRS, shard=f"{OTHER}/2")
    assert (asked.exit_code, asked.stdout) == (0, f"no incident of {THEIRS} is on record for this time\n")
    assert asked.stderr == f"data is that of shard {NUMBER} of 2, and you ask as shard {OTHER} of 2\n"
    assert crawlhealth(served, "incidents", MINE, "--shard", f"{OTHER}/2").exit_code == 2


@pytest.mark.parametrize("command", ["serve", "check"])
def test_who_serves_or_checks_needs_the_secrets(served: Path, command: str) -> None:
    told = crawlhealth(served, command)
    assert told.exit_code == 1
    for missing in (*SECRETS, "limited.token"):
        assert missing in told.stderr


def test_what_moves_to_a_new_shard_is_written_by_its_number(tmp_path: Path) -> None:
    """An exporter of everything becomes a shard: the past of what has moved is still here, and is left out."""
    running = exporter(tmp_path)
    with running:
        assert running.get("/api/v1/sites").json()["shard"] is None
        assert "shard" not in running.get("/").text
        running.stop(signal.SIGTERM)
    assert bring(tmp_path).exit_code == 0
    whole = crawlhealth(tmp_path, "export")
    assert (len(whole.stdout.splitlines()), whole.stderr) == (2, "")

    with exporter(tmp_path, "--shard", f"{NUMBER}/2") as running:
        running.stop(signal.SIGTERM)
    own = crawlhealth(tmp_path, "export")
    assert [json.loads(line)["site"] for line in own.stdout.splitlines()] == [MINE]
    assert own.stderr == f"left out: 1 sites of other shards (to write them: --shard {OTHER}/2)\n"
    moved = crawlhealth(tmp_path, "export", "--shard", f"{OTHER}/2")
    assert [json.loads(line)["site"] for line in moved.stdout.splitlines()] == [THEIRS]

    with exporter(tmp_path, "--shard", f"{OTHER}/2") as running:
        running.stop(signal.SIGTERM)
    assert f"this history was of shard {NUMBER} of 2, and is of shard {OTHER} of 2 from now on" in running.log()
    assert crawlhealth(tmp_path, "pause", THEIRS).exit_code == 0
    with exporter(tmp_path) as running:
        running.stop(signal.SIGTERM)
    assert f"this history was of shard {OTHER} of 2, and is of all sites from now on" in running.log()
    assert crawlhealth(tmp_path, "pause", MINE).exit_code == 0


def test_a_folder_that_nobody_served_yet_is_of_all_sites(tmp_path: Path) -> None:
    (tmp_path / "crawlhealth.yml").write_text(CONFIG)
    (tmp_path / "canaries.yml").write_text(CANARIES)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "history.db").touch()
    assert crawlhealth(tmp_path, "pause", THEIRS).exit_code == 0
    assert "belongs to shard" in crawlhealth(tmp_path, "pause", THEIRS, "--shard", f"{NUMBER}/2").stderr


def test_a_history_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "crawlhealth.yml").write_text(CONFIG)
    (tmp_path / "canaries.yml").write_text(CANARIES)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "history.db").write_text("not a database at all, but long enough to be looked at" * 40)
    told = crawlhealth(tmp_path, "incidents", MINE)
    assert told.exit_code == 1
    assert "cannot read the history data/history.db" in told.stderr
