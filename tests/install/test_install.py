"""The container image and the systemd unit, as far as they can be tried without a container engine or systemd."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlhealth import config
from running import Exporter

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "exporter" / "install" / "Containerfile"
UNIT = ROOT / "exporter" / "install" / "crawlhealth.service"
PAGE = "<h1>Shop</h1>"
CONFIG = """
data_dir: data
sites: {shop: {hosts: [shop.example]}}
canaries: [canaries.yml]
score: {evaluate_every: 200ms}
history: {commit_every: 100ms}
"""
CANARIES = """
site: shop
fetch: push
canaries: [{name: home, url: "https://shop.example/", expect: {title: {css: "h1::text", equals: Shop}}}]
"""


def steps() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each with what follows it."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest.strip()) for name, rest in re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE)]


def last_stage() -> dict[str, str]:
    """The last of each instruction in the stage that becomes the image."""
    found: dict[str, str] = {}
    for name, rest in steps():
        found = {} if name == "FROM" else {**found, name: rest}
    return found


def test_the_image_is_built_of_what_the_tree_has_and_of_all_the_package_needs(tmp_path: Path) -> None:
    for name, rest in steps():
        if name == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            for source in sources:
                place = tmp_path / target
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, place)
    build = [
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        "wheels",
        ".",
    ]
    subprocess.run([sys.executable, *build], check=True, cwd=tmp_path, timeout=120)
    [wheel] = (tmp_path / "wheels").iterdir()
    assert wheel.name.startswith("crawlhealth-")


def test_a_build_is_sent_what_it_copies_and_nothing_else_of_the_tree() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        source
        for name, rest in steps()
        if name == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert (lines[0], let_in) == ("*", copied)


def test_the_image_runs_as_nobody_in_particular_and_writes_to_its_volume_only() -> None:
    stage = last_stage()
    user, group = stage["USER"].split(":")
    assert min(int(user), int(group)) > 0  # a number: Kubernetes can only tell then that it is not root
    assert stage["VOLUME"] == stage["WORKDIR"] == "/var/lib/crawlhealth"
    assert not [rest for name, rest in steps() if name == "ADD"]


def test_the_image_listens_where_the_exporter_does() -> None:
    assert last_stage()["EXPOSE"] == config.DEFAULT_LISTEN.rpartition(":")[2]


def test_the_command_of_the_image_is_one_of_ours() -> None:
    stage = last_stage()
    [program], arguments = json.loads(stage["ENTRYPOINT"]), json.loads(stage["CMD"])
    assert program == "crawlhealth"
    told = subprocess.run(
        [sys.executable, "-m", "crawlhealth.cli", *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    assert (told.returncode, told.stderr.splitlines()[-1]) == (1, "name your configuration with --config")


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    (tmp_path / "canaries.yml").write_text(CANARIES)
    with Exporter(tmp_path, CONFIG) as running:
        yield running


def test_the_health_check_of_the_image_tells_health(exporter: Exporter) -> None:
    interpreter, *arguments = json.loads(last_stage()["HEALTHCHECK"].partition("CMD ")[2])
    assert interpreter == "python"
    port = exporter.url.rpartition(":")[2]
    check = [sys.executable, *(argument.replace("9877", port) for argument in arguments)]
    assert check[-1].count(port) == 1
    environ = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
    assert subprocess.run(check, check=False, timeout=30, env=environ).returncode == 0
    exporter.stop()
    assert subprocess.run(check, check=False, timeout=30, env=environ, capture_output=True).returncode != 0


def works(exporter: Exporter) -> None:
    """It fetches or takes canaries, parses their pages, and has them on disk."""
    answer = exporter.post("/api/v1/canaries/shop/home", json={"status": 200, "body": PAGE})
    assert (answer.status_code, answer.json()["success"]) == (200, True), answer.text + exporter.log()
    assert exporter.value("crawlhealth_canary_success", site="shop") == 1
    assert exporter.value("crawlhealth_history_write_failures_total") == 0
    assert exporter.stop() == 0


READ_ONLY = (
    'mount --bind "$1" "$1" && mount -o remount,ro,bind / && shift && exec setpriv --no-new-privs --inh-caps=-all '
    '--bounding-set=-all "$@"'
)


def test_it_runs_on_a_read_only_root_without_a_privilege(tmp_path: Path) -> None:
    """As the image and the unit have it: only the data directory can be written, /tmp neither."""
    data = tmp_path / "data"
    data.mkdir()
    within = ["unshare", "--mount", "--map-root-user", "sh", "-c", READ_ONLY, "sh", str(data)]
    try:
        tried = subprocess.run([*within, "touch", str(tmp_path / "x")], check=False, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("unshare is not here")
    if b"Read-only file system" not in tried.stderr:
        pytest.skip(f"no read-only root can be had here: {tried.stderr.decode()}")
    (tmp_path / "canaries.yml").write_text(CANARIES)
    with Exporter(tmp_path, CONFIG, within=within) as running:
        works(running)


NOTHING_NEW_TO_EXECUTE = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    sys.exit("not here")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_it_runs_where_no_memory_may_be_both_written_and_executed(tmp_path: Path) -> None:
    """MemoryDenyWriteExecute of the unit, as the kernel has it from Linux 6.3 on (PR_SET_MDWE)."""
    within = [sys.executable, "-c", NOTHING_NEW_TO_EXECUTE]
    if subprocess.run([*within, "true"], check=False, timeout=30).returncode:
        pytest.skip("this kernel cannot")
    (tmp_path / "canaries.yml").write_text(CANARIES)
    with Exporter(tmp_path, CONFIG, within=within) as running:
        works(running)


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys keep their case
    parser.read_string(UNIT.read_text())
    return parser


def test_the_unit_runs_our_command_and_reloads_by_our_signal() -> None:
    service = unit()["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "crawlhealth"
    assert arguments == json.loads(last_stage()["CMD"])
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert f"/var/lib/{service['StateDirectory']}" == service["WorkingDirectory"]


def analyze(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """systemd-analyze on the unit, whose program need not be installed."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    copy = folder / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/crawlhealth/bin/crawlhealth", "/bin/true"))
    return subprocess.run(
        ["systemd-analyze", *arguments, str(copy)], check=False, capture_output=True, text=True, timeout=60
    )


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    told = analyze("verify", "--man=no", folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")


def test_systemd_finds_the_unit_well_confined(tmp_path: Path) -> None:
    """An exposure of 2 or less, on its scale of 10; what is left is the network, which it is for."""
    told = analyze("security", "--offline=true", "--threshold=20", "--no-pager", folder=tmp_path)
    if "unrecognized option" in told.stderr:
        pytest.skip("this systemd-analyze judges no files")
    assert told.returncode == 0, told.stdout + told.stderr
