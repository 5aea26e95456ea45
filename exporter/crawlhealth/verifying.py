"""`crawlhealth verify`: who an address is, with every step that tells."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from crawlhealth.config import Config
from crawlhealth.options import load
from crawlhealth.searchbots.bots import BOTS, named
from crawlhealth.searchbots.dns import Dns, Question
from crawlhealth.searchbots.facts import Facts
from crawlhealth.searchbots.model import Bot, Identity, Method
from crawlhealth.searchbots.names import IP, canonical, fits
from crawlhealth.searchbots.rangefolder import RangeFolder
from crawlhealth.searchbots.ranges import Ranges
from crawlhealth.searchbots.verify import by_dns, by_ranges
from crawlhealth.searchbotsettings import SearchbotSettings

DEFAULT = Path("crawlhealth.yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Who an address is, taken for one bot, and why."""

    bot: Bot
    identity: Identity
    why: str
    ranges: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What was asked of an address, and what it means for each bot it was taken for."""

    address: IP
    questions: tuple[Question, ...]
    found: tuple[Explained, ...]


@click.command(epilog="Example: crawlhealth verify 66.249.66.1 --as Googlebot")
@click.argument("address")
@click.option("--as", "name", metavar="BOT", help="The bot it calls itself; by default, whichever it can be.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file; crawlhealth.yml.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(address: str, name: str | None, path: Path | None, as_json: bool) -> None:
    """Tell whether an address is the search bot that it calls itself, and by which step.

    Asks the name servers and the published ranges of the configuration, or the system's name servers where there is
    none. Exits 1 unless it is verified.
    """
    ip = canonical(address)
    if ip is None:
        raise click.UsageError(f"{address!r} is no address: write one as in 66.249.66.1")
    bot = None if name is None else named(name)
    if name is not None and bot is None:
        raise click.UsageError(f"no bot {name!r} is known: write one of {', '.join(bot.name for bot in BOTS)}")
    config = Config() if path is None and not DEFAULT.exists() else load(path or DEFAULT)
    explanation = explain(ip, BOTS if bot is None else (bot,), config.searchbots, now=time.time())
    if bot is None:
        explanation = _proven(explanation)
    click.echo(json.dumps(as_dict(explanation), indent=2) if as_json else as_text(explanation))
    sys.exit(0 if any(each.identity is Identity.VERIFIED for each in explanation.found) else 1)


def explain(ip: IP, bots: Iterable[Bot], settings: SearchbotSettings, *, now: float) -> Explanation:
    """Look everything up once, and judge the address as each of the bots. The DNS is asked only where it decides."""
    folder = RangeFolder(BOTS)
    folder.read(settings.ranges)
    chosen = tuple(bots)
    questions: list[Question] = []
    facts: Facts | None = None
    if any(by_ranges(bot, ip, folder.ranges, now)[0] is None for bot in chosen):
        dns = Dns(settings.resolver.endpoints, timeout=settings.resolver.timeout.total_seconds())
        followed = lambda name: any(fits(name, bot) for bot in BOTS)  # noqa: E731 - one line, used once
        facts = asyncio.run(dns.facts(ip, followed, now=now, told=questions.append))
    found = tuple(_judged(bot, ip, folder.ranges, facts, now) for bot in chosen)
    return Explanation(address=ip, questions=tuple(questions), found=found)


def _judged(bot: Bot, ip: IP, ranges: Ranges, facts: Facts | None, now: float) -> Explained:
    identity, why = by_ranges(bot, ip, ranges, now)
    said = ranges.holds(bot, ip, now)[1] if bot.method in (Method.RANGES, Method.BOTH) else ""
    if identity is None:
        assert facts is not None, "asked where the DNS decides"
        identity, why = by_dns(bot, ip, facts, ranges)
    return Explained(bot=bot, identity=identity, why=why, ranges=said)


def _proven(explanation: Explanation) -> Explanation:
    """Of all bots, those that the address is."""
    found = tuple(each for each in explanation.found if each.identity is Identity.VERIFIED)
    return Explanation(address=explanation.address, questions=explanation.questions, found=found)


def as_text(explanation: Explanation) -> str:
    """The explanation as people read it, one step a line."""
    lines = [str(explanation.address)]
    lines += [f"  ranges of {each.bot.name}: {each.ranges}" for each in explanation.found if each.ranges]
    lines += [f"  {asked.type:<5}{asked.name}: {asked.answer}" for asked in explanation.questions]
    lines += [f"{each.bot.name}: {each.identity.value} ({each.why})" for each in explanation.found]
    if not explanation.found:
        lines.append("no bot that can be proven; name the one it calls itself with --as")
    return "\n".join(lines)


def as_dict(explanation: Explanation) -> dict[str, object]:
    """The same for programs."""
    return {
        "address": str(explanation.address),
        "questions": [
            {"type": asked.type, "name": asked.name, "answer": asked.answer} for asked in explanation.questions
        ],
        "bots": [
            {
                "bot": each.bot.name,
                "identity": each.identity.value,
                "why": each.why,
                "method": each.bot.method.value,
                "ranges": each.ranges or None,
            }
            for each in explanation.found
        ],
    }
