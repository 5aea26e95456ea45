"""Who a visitor is by published ranges: that is said at once, and files that are not good make nobody fake."""

from __future__ import annotations

import json
import time
from pathlib import Path

from click.testing import CliRunner

from crawlhealth.cli import main
from crawlhealth.searchbots.model import Identity
from searchbots.dnsserver import Zone, serving
from searchbots.verifying import Clock, bot, verifying

GOOD, GOOD6 = "66.249.66.1", "2001:4860:4801:10::1"


def test_ranges_prove_at_once_and_the_dns_is_not_asked(tmp_path: Path) -> None:
    folder = tmp_path / "ranges"
    folder.mkdir()
    prefixes = [{"ipv4Prefix": "66.249.66.0/27"}, {"ipv6Prefix": "2001:4860:4801:10::/64"}]
    (folder / "common-crawlers.json").write_text(json.dumps({"creationTime": "2026-01-01", "prefixes": prefixes}))
    (folder / "duckduckbot.json").write_text(json.dumps({"prefixes": [{"ipv4Prefix": "20.191.45.212/32"}]}))
    zone = Zone()
    clock = Clock(time.time())
    with serving(zone) as server, verifying(server, tmp_path, ranges=folder, clock=clock) as bench:
        assert bench.verifier.identify(GOOD, bot("Googlebot")) is Identity.VERIFIED
        assert bench.verifier.identify(GOOD6, bot("Googlebot")) is Identity.VERIFIED
        assert bench.verifier.identify("20.191.45.212", bot("DuckDuckBot")) is Identity.VERIFIED
        assert bench.verifier.identify("20.191.45.213", bot("DuckDuckBot")) is Identity.FAKE
        assert not zone.asked
        assert bench.who("66.249.66.32", "Googlebot") is Identity.FAKE, "neither in the ranges nor in the DNS"
        clock.now += 100 * 86_400
        assert bench.verifier.identify("20.191.45.213", bot("DuckDuckBot")) is Identity.UNVERIFIED, "an old file"
        assert bench.verifier.identify("20.191.45.212", bot("DuckDuckBot")) is Identity.VERIFIED


def test_a_file_of_ranges_is_read_again_when_it_changes(tmp_path: Path) -> None:
    folder = tmp_path / "ranges"
    folder.mkdir()
    file = folder / "duckduckbot.json"
    zone = Zone()
    clock = Clock(time.time())
    with serving(zone) as server, verifying(server, tmp_path, ranges=folder, clock=clock) as bench:
        duck = bot("DuckDuckBot")
        assert bench.verifier.identify("20.191.45.213", duck) is Identity.UNVERIFIED
        for text, identity in (
            ('{"prefixes": [{"ipv4Prefix": "20.191.45.213/32"}]}', "verified"),
            ('{"prefixes": [{"ipv4Prefix": "20.191.45.213/3', "verified"),  # cut off: the last good one holds
            ('{"prefixes": [{"ipv4Prefix": "20.191.45.214/32"}, {"ipv4Prefix": "9.9.9.0/24"}]}', "fake"),
        ):
            file.write_text(text)
            clock.now += 61
            bench.verifier.renew()
            assert bench.verifier.identify("20.191.45.213", duck) == identity
        file.unlink()
        clock.now += 61
        bench.verifier.renew()
        assert bench.verifier.identify("20.191.45.213", duck) is Identity.UNVERIFIED


def test_a_file_of_ranges_that_cannot_be_read_makes_nobody_fake(tmp_path: Path) -> None:
    folder = tmp_path / "ranges"
    folder.mkdir()
    prefixes = json.dumps({"prefixes": [{"ipv4Prefix": "17.241.208.160/27"}]})
    (folder / "applebot.json").write_text(prefixes)
    (folder / "user-triggered-fetchers-google.json").write_text(prefixes)
    broken = ("bingbot.json", "user-triggered-fetchers.json")
    for name in broken:
        (folder / name).symlink_to(name)  # leads to itself
    clock = Clock(time.time())
    with serving(Zone()) as server, verifying(server, tmp_path, ranges=folder, clock=clock) as bench:
        assert bench.who("17.241.208.161", "Applebot") is Identity.VERIFIED, "its own file is good"
        assert bench.who("11.0.0.9", "Applebot") is Identity.FAKE
        assert bench.who("11.0.0.9", "bingbot") is Identity.UNVERIFIED, "its ranges may name it"
        assert bench.who("11.0.0.9", "Google user-triggered") is Identity.UNVERIFIED, "one of its files may"
        for name in broken:
            (folder / name).unlink()
            (folder / name).write_text(prefixes)
        clock.now += 61
        bench.verifier.renew()
        assert bench.who("11.0.0.9", "bingbot") is Identity.FAKE
        assert bench.who("11.0.0.9", "Google user-triggered") is Identity.FAKE


def test_while_the_folder_of_ranges_cannot_be_read_nobody_is_fake_by_the_dns_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ranges"
    folder.symlink_to(folder)
    clock = Clock(time.time())
    with serving(Zone()) as server, verifying(server, tmp_path, ranges=folder, clock=clock) as bench:
        assert bench.who("11.0.0.9", "Applebot") is Identity.UNVERIFIED
        assert bench.who("11.0.0.9", "YandexBot") is Identity.FAKE, "no ranges could prove it"
        folder.unlink()
        folder.mkdir()
        clock.now += 61
        bench.verifier.renew()
        assert bench.who("11.0.0.9", "Applebot") is Identity.FAKE, "there is none of Applebot's: the DNS decides"
        folder.rmdir()
        clock.now += 61
        bench.verifier.renew()
        assert bench.who("11.0.0.9", "Applebot") is Identity.UNVERIFIED


def test_check_names_the_files_of_ranges_that_are_not_good(tmp_path: Path) -> None:
    folder = tmp_path / "ranges"
    folder.mkdir()
    (folder / "bingbot.json").symlink_to("bingbot.json")
    (folder / "gptbot.json").write_text("<html>")
    (folder / "duckduckbot.json").write_text('["20.191.45.212/32"]')
    config = tmp_path / "crawlhealth.yml"
    config.write_text("sites: {books: {hosts: [books.example]}}\nsearchbots: {ranges: ./ranges}\n")
    run = CliRunner().invoke(main, ["check", "--config", str(config)])
    assert run.output.replace(str(tmp_path), "FOLDER").splitlines() == [
        "ranges FOLDER/ranges/bingbot.json cannot be read: Too many levels of symbolic links: it is left out",
        "ranges FOLDER/ranges/gptbot.json is not JSON: it is left out",
    ]
    assert run.exit_code == 1
    (folder / "bingbot.json").unlink()
    (folder / "gptbot.json").unlink()
    run = CliRunner().invoke(main, ["check", "--config", str(config)])
    assert run.output.endswith(": good\n")
    assert run.exit_code == 0
