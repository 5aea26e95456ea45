"""Reading access logs: lines a second on one core, beside mtail and goaccess.

`python bench/logs.py [LINES]` (default 1,000,000): combined lines of 215 bytes on average, 13 % of them of search bots.
crawlhealth reads them end to end (from the file to the sums of a report), once without looking for browsers from
published ranges and once with it, and again as `serve` does: into the history on disk. mtail runs a program that counts
the same tokens, goaccess its own report of combined lines. All rates are per second of processor time, system time
included, the best of three. Exits 1 when a bound is broken: 1,000,000 and 500,000 lines a second, 10 x mtail, 25 x
goaccess, 150 MB. A program that is not installed is not compared with; MTAIL and GOACCESS may name one elsewhere.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LINES = 1_000_000
RATE_BOUND, STEALTH_BOUND, MTAIL_BOUND, GOACCESS_BOUND, MEMORY_BOUND = 1_000_000, 500_000, 10.0, 25.0, 150.0
REPEAT = 3
BOTS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/130.0.6723.69 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
    "Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)",
    "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
)
NAMED = re.compile(rb"Googlebot|bingbot|Baiduspider|YandexBot|Sogou web|GPTBot")
RANGES = (
    "66.249.64.0/19", "192.178.4.0/24", "34.118.66.0/28", "2001:4860:4801:10::/60", "157.55.39.0/24", "207.46.13.0/24",
    "40.77.167.0/24", "13.66.139.0/24", "13.66.144.0/24", "52.167.144.0/24", "13.67.10.16/28", "20.191.45.212/32",
    "17.241.208.160/27", "17.22.237.0/24", "17.241.75.0/24", "20.43.120.16/28", "40.80.242.63/32", "52.231.148.0/28",
)  # fmt: skip
MTAIL = (
    "counter visits by bot, status\n"
    r'/" (?P<status>\d{3}) .*(?P<bot>Googlebot|bingbot|Baiduspider|Sogou web spider|360Spider|Bytespider|YandexBot'
    "|Applebot|GPTBot)/ {\n  visits[$bot][$status]++\n}\n"
)
CHILD = """
import ipaddress, os, re, sys, time
from pathlib import Path
how, log = sys.argv[1], Path(sys.argv[2])
from crawlhealth.searchbots import formats
from crawlhealth.searchbots.bots import named
from crawlhealth.searchbots.report import Report
from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbots.source import whole_lines
from crawlhealth.searchbots.visits import LogReader, Stealth
from crawlhealth.searchbotsettings import LogSettings, SearchbotSettings
networks = [ipaddress.ip_network(each) for each in sys.argv[3].split(",")]
google = named("Googlebot")
def owner(address):
    ip = ipaddress.ip_address(address)
    return google if any(ip in network for network in networks) else None
begin = time.process_time()
if how == "serve":
    settings = SearchbotSettings(logs=(LogSettings(path=log, name="log"),))
    service = LogService(Path(sys.argv[4]) / "history.db", lambda: settings, clock=time.time)
    service.read()
    lines = sum(value for (name, _), value in service.store.counters.items() if name.endswith("log_lines_total"))
    visits = sum(value for (name, _), value in service.store.counters.items() if name.endswith("visits_total"))
    service.stop()
else:
    report, reader = Report(), LogReader(
        formats.reader("combined"), stealth=Stealth(networks, owner) if how == "stealth" else None
    )
    with log.open("rb", buffering=0) as file:
        for chunk in whole_lines(file):
            report.add(reader.visits(chunk))
    lines, visits = reader.lines, sum(seen.visits for seen in report.bots.values())
spent = time.process_time() - begin
memory = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(spent, int(lines), int(visits), memory / 1024)
"""


def write(path: Path, lines: int) -> None:
    """A log of browsers and bots, from many addresses each."""
    chance = random.Random(7)
    browsers = [
        f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.0.0"
        " Safari/537.36"
        for version in range(100, 131)
    ]
    people = [f"{chance.randint(1, 223)}.{chance.randint(0, 255)}.{chance.randint(0, 255)}.9" for _ in range(20_000)]
    bots = [f"66.249.{chance.randint(64, 95)}.{chance.randint(1, 254)}" for _ in range(1500)]
    with path.open("w") as file:
        for number in range(lines):
            bot = chance.random() < 0.13
            seconds = number // 12
            time = f"30/Nov/2026:{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d} +0000"
            path_ = f"/{chance.choice(('shop', 'item', 'news'))}/{chance.randint(1, 99_999)}.html"
            referer = "-" if bot or chance.random() < 0.6 else f"https://www.example.com/?q={chance.randint(1, 10**6)}"
            file.write(
                f'{chance.choice(bots if bot else people)} - - [{time}] "GET {path_} HTTP/1.1"'
                f' {chance.choice((200, 200, 200, 304, 404))} {chance.randint(200, 90_000)} "{referer}"'
                f' "{chance.choice(BOTS if bot else browsers)}"\n'
            )


def ours(how: str, log: Path) -> tuple[float, int, float]:
    """Processor seconds, visits and MB of one reading, the best of some."""
    best, visits, memory = float("inf"), 0, 0.0
    for _ in range(REPEAT):
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run(
                [sys.executable, "-c", CHILD, how, str(log), ",".join(RANGES), folder],
                check=True, capture_output=True, text=True,
            ).stdout.split()  # fmt: skip
        best, visits, memory = min(best, float(said[0])), int(said[2]), max(memory, float(said[3]))
    return best, visits, memory


def theirs(command: list[str]) -> float:
    """Processor seconds of a program, its start included, the best of some."""
    best = float("inf")
    for _ in range(REPEAT):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def found(variable: str, name: str) -> str | None:
    """Where a program to compare with is."""
    return os.environ.get(variable) or shutil.which(name)


def main(lines: int) -> int:
    """Read, compare, and judge."""
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "access.log"
        write(log, lines)
        with log.open("rb") as file:
            expected = sum(bool(NAMED.search(line)) for line in file)
        print(f"{lines:,} lines of {log.stat().st_size / lines:.0f} bytes, {expected / lines:.1%} of bots")
        rates: dict[str, float] = {}
        for how, least in (("plain", RATE_BOUND), ("stealth", STEALTH_BOUND), ("serve", 0)):
            seconds, visits, memory = ours(how, log)
            rates[how] = lines / seconds
            print(f"crawlhealth, {how:<8} {rates[how]:>12,.0f} lines/s  {memory:4.0f} MB", flush=True)
            broken += [f"{how}: fewer than {least:,} lines a second"] * (rates[how] < least)
            broken += [f"{how}: {visits} visits of {expected}"] * (visits != expected)
            broken += [f"{how}: more than {MEMORY_BOUND} MB"] * (memory > MEMORY_BOUND)
        (folder / "bots.mtail").write_text(MTAIL)
        mtail, goaccess = found("MTAIL", "mtail"), found("GOACCESS", "goaccess")
        commands = {
            "mtail": (mtail, ["--progs", name, "--logs", str(log), "--one_shot", "--logtostderr"], MTAIL_BOUND),
            "goaccess": (
                goaccess,
                [str(log), "--log-format=COMBINED", "-o", f"{name}/out.json", "--no-global-config", "--no-progress"],
                GOACCESS_BOUND,
            ),
        }
        for other, (program, arguments, bound) in commands.items():
            if program is None:
                print(f"{other} is not installed (Debian: {other}): not compared with")
                continue
            their_rate = lines / theirs([program, *arguments])
            times = rates["plain"] / their_rate
            print(f"{other:<21} {their_rate:>12,.0f} lines/s  crawlhealth has {times:.1f} x", flush=True)
            broken += [f"less than {bound} x {other}"] * (times < bound)
    for problem in broken:
        print(f"BROKEN: {problem}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else LINES))
