"""What is installed: all of the package, and nothing it needs left undeclared; and scripts that say what is missing."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import crawlhealth

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "exporter" / "crawlhealth"
INSTALLED = Path(crawlhealth.__file__).parent


def files(folder: Path) -> set[str]:
    """The files below a folder, without caches: hidden ones and compiled ones."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(name) for name in names if not any(part.startswith((".", "__pycache__")) for part in name.parts)}


def test_every_file_of_the_package_is_installed_and_no_other() -> None:
    assert files(INSTALLED) == files(SOURCE)


def test_the_version_and_the_command_are_what_the_metadata_says() -> None:
    distribution = importlib.metadata.distribution("crawlhealth")
    assert distribution.version == crawlhealth.__version__
    [command] = distribution.entry_points.select(group="console_scripts", name="crawlhealth")
    assert callable(command.load())


def imported(path: Path) -> set[str]:
    """The top-level modules that a source file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"crawlhealth", "_typeshed"}


def undeclared(folder: Path, *extras: str) -> set[str]:
    """What the Python files of a folder import and neither the package nor these extras of it declare."""
    declared = {
        re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
        for requirement in importlib.metadata.requires("crawlhealth") or []
        if "extra ==" not in requirement
        or any(f"extra == '{extra}'" in requirement.replace('"', "'") for extra in extras)
    }
    owners = importlib.metadata.packages_distributions()
    beside = [ROOT / "tests"] if folder == ROOT / "bench" else []  # benchmarks borrow what runs the exporter
    ours = {path.stem for place in (folder, *beside) for path in place.iterdir()}
    return {
        f"{path.relative_to(folder)}: {module}"
        for path in folder.rglob("*.py")
        for module in imported(path) - ours
        if not {owner.lower().replace("_", "-") for owner in owners.get(module, [module])} & declared
    }


def test_every_library_that_is_imported_is_a_declared_dependency() -> None:
    assert {found for found in undeclared(SOURCE) if not found.startswith(("scrapy/", "bundle/preview/"))} == set()
    assert undeclared(SOURCE / "scrapy", "scrapy") == set()
    assert undeclared(SOURCE / "bundle" / "preview", "preview") == set()


@pytest.mark.parametrize("folder", ["tests", "bench"])
def test_what_runs_beside_the_package_needs_nothing_but_the_extra_dev(folder: str) -> None:
    assert undeclared(ROOT / folder, "dev") == set()


def test_importing_any_module_starts_nothing_and_prints_nothing() -> None:
    """In a fresh interpreter: no thread, no output, no file but what Python itself writes."""
    modules = sorted(
        ".".join(("crawlhealth", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in SOURCE.rglob("*.py")
        if path.name != "__main__.py"
    )
    program = (
        "import importlib, sys, threading\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *modules], check=False, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with the programs that scripts need to say something, and no Python, apt-get or Prometheus."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "env", "id", "cat", "cksum", "mktemp", "rm"):
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return folder


def script(name: str, programs: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with nothing but these programs, and with an environment that does not exist yet."""
    environ = {**os.environ, "PATH": str(programs), "CRAWLHEALTH_VENV": str(folder / "venv")}
    environ.pop("PYTHON", None)
    return subprocess.run(
        [str(ROOT / "script" / name)], check=False, capture_output=True, text=True, timeout=60, env=environ, cwd=folder
    )


def pretend(programs: Path, name: str, text: str) -> None:
    (programs / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
    (programs / name).chmod(0o755)


def test_the_tests_name_the_programs_that_are_missing(programs: Path, tmp_path: Path) -> None:
    result = script("test", programs, tmp_path)
    assert result.returncode == 1
    told = result.stderr.splitlines()[1:]
    assert [line for line in told if "nginx" not in line] == [  # that one is looked for where Debian puts it, too
        "prometheus prometheus",
        "promtool prometheus",
        "alertmanager prometheus-alertmanager",
        "amtool prometheus-alertmanager",
        "chromium chromium",
        "redis-server redis-server",
    ]


def test_a_demo_without_python_says_which_one_it_needs(programs: Path, tmp_path: Path) -> None:
    pretend(programs, "python3", "exit 1")
    result = script("demo", programs, tmp_path)
    assert result.returncode == 1
    assert "Python 3.11 or newer is needed" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_a_python_that_cannot_make_environments_is_told_what_to_install(programs: Path, tmp_path: Path) -> None:
    pretend(programs, "python3", 'case "$2" in *ensurepip*) exit 1 ;; *) exit 0 ;; esac')
    result = script("demo", programs, tmp_path)
    assert result.returncode == 1
    assert "install python3-venv" in result.stderr
