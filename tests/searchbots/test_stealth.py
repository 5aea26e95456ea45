"""Browsers from search engines' published addresses: found in a log by files as the operators write them, made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.model import Identity
from crawlhealth.searchbots.rangefolder import RangeFolder
from crawlhealth.searchbots.stealth import Suspects
from crawlhealth.searchbotsettings import LogSettings
from searchbots.logwriting import BROWSER, GOOGLE, Reading, line

FILES: dict[str, object] = {
    "common-crawlers.json": {
        "creationTime": "2026-11-01T22:00:57.000000",
        "prefixes": [
            *({"ipv6Prefix": f"2001:db8:4801:{number:x}::/64"} for number in range(16, 148)),
            *({"ipv4Prefix": f"198.51.{high}.{low}/27"} for high in (100, 101) for low in range(0, 256, 32)),
        ],
    },
    "bingbot.json": {"creationTime": "2026-11-01T10:00:00.121331", "prefixes": [{"ipv4Prefix": "192.0.2.192/26"}]},
    "duckduckbot.json": {
        "creationTime": "2026-11-01T12:44:58.000000",
        "prefixes": [{"ipv4Prefix": f"203.0.113.{number}/32"} for number in range(1, 255, 2)],
    },
    "applebot.json": {"creationTime": "2026-11-01T00:00:00", "prefixes": [{"ipv4Prefix": "192.0.2.64/27"}]},
    "gptbot.json": {"creationTime": "2026-11-01T00:00:00", "prefixes": [{"ipv4Prefix": "192.0.2.0/28"}]},
    "claudebot.json": {"prefixes": [{"ipv4Prefix": "192.0.2.16/28", "ipv6Prefix": ""}]},
}


@pytest.fixture
def ranges(tmp_path: Path) -> RangeFolder:
    """Of all operators, as they stand in the configuration's folder."""
    place = tmp_path / "ranges"
    place.mkdir()
    for name, document in FILES.items():
        (place / name).write_text(json.dumps(document, indent=4))
    folder = RangeFolder(BOTS)
    folder.read(place)
    assert folder.problems == {}
    return folder


def seen(tmp_path: Path, ranges: RangeFolder, address: str, agent: str) -> list[tuple[str, str]]:
    """The bots and identities of a visit, beside an innocent one."""
    path = tmp_path / "access.log"
    path.write_text(line(1, address="8.8.8.8", agent=BROWSER) + line(2, address=address, agent=agent))
    suspects = Suspects(lambda: ranges.ranges, lambda: True)
    reading = Reading(tmp_path, LogSettings(path=path, name="shop"), stealth=suspects)
    reading.service.read()
    found = [labels for name, labels in reading.store.counters if name == "crawlhealth_searchbot_visits_total"]
    reading.service.stop()
    return [(bot, identity) for _, _, bot, identity, _ in found]


@pytest.mark.parametrize(
    ("address", "whose"),
    [
        pytest.param("198.51.101.255", "Googlebot", id="Google's last of IPv4"),
        pytest.param("2001:db8:4801:93::7", "Googlebot", id="Google's last of IPv6"),
        pytest.param("192.0.2.192", "bingbot", id="Bing's first"),
        pytest.param("203.0.113.77", "DuckDuckBot", id="DuckDuckGo's, one by one"),
        pytest.param("203.0.113.78", None, id="a neighbour of DuckDuckGo's"),
        pytest.param("2001:db8:4801:94::1", None, id="behind Google's last"),
        pytest.param("192.0.2.5", None, id="an assistant's crawler is no search engine"),
    ],
)
def test_a_plain_browser(tmp_path: Path, ranges: RangeFolder, address: str, whose: str | None) -> None:
    assert seen(tmp_path, ranges, address, BROWSER) == ([(whose, Identity.STEALTH)] if whose else [])


def test_who_names_a_bot_is_not_hiding(tmp_path: Path, ranges: RangeFolder) -> None:
    assert seen(tmp_path, ranges, "198.51.100.1", GOOGLE) == [("Googlebot", Identity.UNVERIFIED)]


def test_the_same_object_until_the_ranges_change_and_none_while_it_is_not_wanted(
    tmp_path: Path, ranges: RangeFolder
) -> None:
    wanted = True
    suspects = Suspects(lambda: ranges.ranges, lambda: wanted)
    first = suspects()
    assert first is not None
    assert suspects() is first
    (tmp_path / "ranges" / "bingbot.json").write_text(json.dumps({"prefixes": [{"ipv4Prefix": "192.0.2.128/26"}]}))
    assert ranges.read(tmp_path / "ranges")
    second = suspects()
    assert second is not None
    assert (first.owner("192.0.2.130"), getattr(second.owner("192.0.2.130"), "name", "")) == (None, "bingbot")
    wanted = False
    assert suspects() is None
