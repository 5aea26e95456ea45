"""A folder with a configuration in it, for tests that read one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

from crawlhealth.config import Config
from crawlhealth.configfile import ConfigError, load

SITES = "sites:\n  books: {hosts: [books.example], routes: [direct, us]}\n  quotes: {hosts: [.quotes.example]}\n"
ROUTES = "routes:\n  us: {proxy: 'socks5h://127.0.0.1:1080', timeout: 10s}\n"
CONFIG = ROUTES + SITES + "canaries: [c.yml]\n"
CANARY = "site: books\ncanaries:\n  - {name: a, url: 'https://books.example/a'"


@dataclass
class Folder:
    """A folder with a configuration in it."""

    path: Path
    environ: dict[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(dedent(text), encoding="utf-8")

    def load(self, config: str = CONFIG, canaries: str | None = CANARY + "}\n", **files: str) -> Config:
        self.write({"crawlhealth.yml": config, **({} if canaries is None else {"c.yml": canaries}), **files})
        return load(self.path / "crawlhealth.yml", environ=self.environ)

    def problems(self, config: str = CONFIG, canaries: str | None = CANARY + "}\n", **files: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.load(config, canaries, **files)
        assert str(caught.value) == "\n".join(map(str, caught.value.problems))
        return (
            re.sub(f"^{self.path}/", "", str(caught.value), flags=re.M).replace(str(self.path), "FOLDER").splitlines()
        )
