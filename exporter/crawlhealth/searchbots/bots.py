"""The bots that are told apart, as data: what names each in a user agent, and how its operator lets it be proven."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from crawlhealth.searchbots.model import Bot, Method

_GOOGLE: Final = (".googlebot.com",)
_GOOGLE_GEO: Final = ("geo-crawl-*.geo.googlebot.com",)
_GOOGLE_OWN: Final = ("crawl-*.googlebot.com",)  # geo-crawl-… stands in Google's cloud, among its customers
_YANDEX: Final = (".yandex.ru", ".yandex.net", ".yandex.com")
_YANDEX_FAMILY: Final = (
    "YandexBot", "YandexImages", "YandexMobileBot", "YandexAccessibilityBot", "YandexRenderResourcesBot",
    "YandexVideo", "YandexMedia", "YandexFavicons", "YandexWebmaster", "YandexDirect", "YandexMetrika",
)  # fmt: skip


def _google(name: str) -> Bot:
    """A crawler of the common kind."""
    return Bot(
        name=name,
        tokens=(name,),
        method=Method.BOTH,
        suffixes=_GOOGLE,
        patterns=_GOOGLE_GEO,
        ranges=("common-crawlers.json",),
        own_networks=_GOOGLE_OWN,
        search_engine=True,
    )


def _google_special(name: str) -> Bot:
    return Bot(
        name=name,
        tokens=(name,),
        method=Method.BOTH,
        patterns=("rate-limited-proxy-*.google.com",),
        ranges=("special-crawlers.json",),
    )


def _yandex(name: str) -> Bot:
    return Bot(name=name, tokens=(name,), method=Method.DNS, suffixes=_YANDEX)


def _ranges(name: str, file: str, *, search_engine: bool = False) -> Bot:
    return Bot(name=name, tokens=(name,), method=Method.RANGES, ranges=(file,), search_engine=search_engine)


BOTS: Final[tuple[Bot, ...]] = (
    _google("Googlebot"),
    _google("GoogleOther"),
    _google("Google-InspectionTool"),
    _google("Storebot-Google"),
    _google_special("AdsBot-Google"),
    _google_special("Mediapartners-Google"),
    _google_special("APIs-Google"),
    Bot(
        name="Google user-triggered",
        tokens=("FeedFetcher-Google", "Google-Read-Aloud", "Google-Site-Verification", "GoogleProducer"),
        method=Method.RANGES,
        ranges=("user-triggered-fetchers*.json",),
    ),
    Bot(
        name="bingbot",
        tokens=("bingbot",),
        method=Method.BOTH,
        suffixes=(".search.msn.com",),
        ranges=("bingbot.json",),
        search_engine=True,
    ),
    Bot(
        name="Baiduspider",
        tokens=("Baiduspider",),
        method=Method.DNS,
        suffixes=(".baidu.com", ".baidu.jp"),
        forward_may_lack=True,
    ),
    Bot(
        name="Sogou web spider",
        tokens=("Sogou web spider",),
        method=Method.DNS,
        patterns=("sogouspider-*.crawl.sogou.com",),
    ),
    Bot(name="360Spider", tokens=("360Spider",), method=Method.NONE),
    Bot(
        name="Bytespider",
        tokens=("Bytespider", "ToutiaoSpider"),
        method=Method.DNS,
        patterns=("bytespider-*.crawl.bytedance.com",),
    ),
    Bot(
        name="Yisouspider",
        tokens=("Yisouspider", "YisouSpider"),
        method=Method.DNS,
        patterns=("shenmaspider-*.crawl.sm.cn",),
    ),
    *map(_yandex, _YANDEX_FAMILY),
    Bot(
        name="Applebot",
        tokens=("Applebot",),
        method=Method.BOTH,
        suffixes=(".applebot.apple.com",),
        ranges=("applebot.json",),
        own_networks=("*.applebot.apple.com",),
        search_engine=True,
    ),
    _ranges("DuckDuckBot", "duckduckbot.json", search_engine=True),
    Bot(name="SeznamBot", tokens=("SeznamBot",), method=Method.DNS, suffixes=(".seznam.cz",)),
    Bot(
        name="PetalBot",
        tokens=("PetalBot",),
        method=Method.DNS,
        suffixes=(".petalsearch.com", ".aspiegel.com"),
    ),
    Bot(
        name="Yahoo! Slurp",
        tokens=("Yahoo! Slurp",),
        method=Method.DNS,
        suffixes=(".crawl.yahoo.net", ".yse.yahoo.net"),
    ),
    _ranges("GPTBot", "gptbot.json"),
    _ranges("OAI-SearchBot", "searchbot.json"),
    _ranges("ChatGPT-User", "chatgpt-user.json"),
    _ranges("ClaudeBot", "claudebot.json"),
    _ranges("PerplexityBot", "perplexitybot.json"),
    Bot(
        name="CCBot",
        tokens=("CCBot",),
        method=Method.DNS,
        suffixes=(".crawl.commoncrawl.org",),
    ),
    Bot(
        name="Amazonbot",
        tokens=("Amazonbot",),
        method=Method.DNS,
        suffixes=(".crawl.amazonbot.amazon",),
    ),
)
"""Sources: each operator's own page on how to verify its crawler; what hosts of Sogou and Yisou are called is observed,
not published.

A proof serves its network only where nobody else can be a neighbour: Google's crawlers outside its cloud, and Apple's
17.0.0.0/8. CCBot and Amazonbot rent from AWS; bingbot shares /24s with Azure; Baidu, Sogou, Bytedance and Alibaba stand
in data centres of carriers and clouds, PetalBot in Huawei's; next to Google's special crawlers are proxies that act for
people. Those are looked up one by one."""

MAX_AGENTS: Final = 4096
"""User agents remembered with their bot; hostile ones make a clean sheet, nothing worse."""


def named(name: str, bots: Iterable[Bot] = BOTS) -> Bot | None:
    """The bot of a name, whatever its case; None where there is none."""
    return next((bot for bot in bots if bot.name.lower() == name.lower()), None)


class Agents:
    """Which bot a user agent names: that whose token comes first in it."""

    def __init__(self, bots: Iterable[Bot] = BOTS) -> None:
        self._tokens = tuple((token.encode(), bot) for bot in bots for token in bot.tokens)
        self._known: dict[bytes, Bot | None] = {}

    def bot(self, agent: bytes) -> Bot | None:
        """The bot named by a user agent as the visitor sent it, None where it names none."""
        known = self._known
        if agent in known:
            return known[agent]
        if len(known) >= MAX_AGENTS:
            known.clear()
        found = [(agent.find(token), bot) for token, bot in self._tokens]
        bot = min((pair for pair in found if pair[0] >= 0), key=lambda pair: pair[0], default=(0, None))[1]
        known[agent] = bot
        return bot
