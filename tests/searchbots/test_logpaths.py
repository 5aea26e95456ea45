"""What the check of a configuration says of the paths of logs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from configured import CONFIG, Folder


def written(folder: Path, *paths: str) -> str:
    (folder / "logs" / "sub").mkdir(parents=True)
    (folder / "logs" / "here.log").write_text("")
    os.mkfifo(folder / "logs" / "pipe")
    (folder / "same").symlink_to(folder / "logs")
    logs = "".join(f"\n    - {{path: '{path}', name: n{number}}}" for number, path in enumerate(paths))
    return CONFIG + f"searchbots:\n  logs:{logs}\n"


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        pytest.param(("logs/a.log", "logs/a.log"), "each line would count twice", id="the same path"),
        pytest.param(("logs/a.log", "same/a.log"), "each line would count twice", id="the same by a link"),
        pytest.param(("logs/a.log", "logs/*.log"), "whose lines would count twice", id="a pattern that matches it"),
        pytest.param(("logs/*.log", "logs/a.log"), "whose lines would count twice", id="the pattern first"),
        pytest.param(("logs/**/*.log", "logs/here.log"), "whose lines would count twice", id="a pattern over folders"),
        pytest.param(("logs/sub",), "is a folder and no log", id="a folder"),
        pytest.param(("logs/pipe",), "is a pipe and no log", id="a pipe"),
    ],
)
def test_paths_that_cannot_be_right(tmp_path: Path, paths: tuple[str, ...], message: str) -> None:
    assert message in "\n".join(Folder(tmp_path).problems(written(tmp_path, *paths)))


def test_paths_side_by_side_are_good(tmp_path: Path) -> None:
    config = Folder(tmp_path).load(written(tmp_path, "logs/a.log", "logs/a-2.log", "logs/b*.log", "logs/*/a.log"))
    assert len(config.searchbots.logs) == 4
