"""`crawlhealth probe` on a canary whose structure must stay: what it is now, and how much of the first it has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from crawlhealth.demo.site import PracticeSite
from running import Exporter

CONFIG = "data_dir: data\nsites: {shop: {hosts: [127.0.0.1]}}\ncanaries: [canaries.yml]\n"


def probe(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "crawlhealth.cli",
        "probe",
        "shop/list",
        "--config",
        str(folder / "crawlhealth.yml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_probe_shows_the_structure_and_compares_it_with_what_the_exporter_knows(tmp_path: Path) -> None:
    with PracticeSite() as site:
        (tmp_path / "crawlhealth.yml").write_text(CONFIG, encoding="utf-8")
        (tmp_path / "canaries.yml").write_text(
            "site: shop\nevery: 12h\ncanaries:\n"
            f"  - {{name: list, url: '{site.url('/')}', expect: {{layout: {{css: body, unchanged: true}}}}}}\n",
            encoding="utf-8",
        )
        first = probe(tmp_path)
        assert first.returncode == 0, first.stderr + first.stdout
        assert re.search(r"structure [0-9a-f]{8}, as it was first\n    good      unchanged: True", first.stdout)
        assert not (tmp_path / "data").exists(), "a probe keeps nothing"
        with Exporter(tmp_path, CONFIG) as exporter:
            other = "<body><main><article class=x><h2>Thing</h2></article></main></body>"
            pushed = exporter.post("/api/v1/canaries/shop/list", json={"status": 200, "body": other})
            assert pushed.json()["success"], "what is seen first is right"
            changed = probe(tmp_path)
        assert changed.returncode == 1
        assert re.search(r"structure [0-9a-f]{8}, \d+% of [0-9a-f]{8}, which was first, 20", changed.stdout)
        assert "WRONG     expected at least 80% of the structure of" in changed.stdout
