"""The rule engines that rules are tried on: those installed, and those that script/engines has fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMETHEUS = ("2.42", "2.53", "3.5")
"""Of Debian 12, of Debian 13, and the present one for the long term."""
VICTORIA = ("1.112", "1.145")
"""Of Debian 13 and after it. Those before 1.91 do not know `keep_firing_for`."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One version of one kind of engine; what it is called in the table."""

    kind: str
    version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"

    def program(self, name: str) -> str:
        """The path of one of its programs; skips the test where it is not to be had."""
        for folder in folders():
            path = folder / name if folder is not None else shutil.which(name)
            if path and Path(path).is_file() and _version(str(path), folder, self.kind).startswith(f"{self.version}."):
                return str(path)
        pytest.skip(f"{name} {self.version} is not to be had: script/engines fetches it")


def folders() -> tuple[Path | None, ...]:
    """Where to look: what is installed (None), then what was fetched."""
    fetched = Path(os.environ.get("CRAWLHEALTH_ENGINES", ROOT / ".cache" / "engines"))
    return (None, *sorted(path for path in fetched.glob("*") if path.is_dir()))


@cache
def _version(program: str, folder: Path | None, kind: str) -> str:
    """The version of a program: what it says itself, or the Debian package that it came with."""
    if kind == "Prometheus":
        said = subprocess.run([program, "--version"], check=False, capture_output=True, text=True, timeout=60)
        found = re.search(r"version (\S+)", said.stdout + said.stderr)
        return found[1] if found else ""
    stamp = folder / ".victoria-metrics" if folder is not None else None
    if stamp is None or not stamp.is_file():
        return ""
    return stamp.read_text().partition("_")[2]


ENGINES = [
    *(Engine("Prometheus", version) for version in PROMETHEUS),
    *(Engine("VictoriaMetrics", version) for version in VICTORIA),
]
