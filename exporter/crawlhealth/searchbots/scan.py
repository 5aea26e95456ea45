"""Finding the few per cent of lines that matter in big chunks of a log, in one pass over the bytes.

The needles go into one Aho-Corasick automaton (BurntSushi's, by `ahocorasick_rs`), whose vector prefilter passes over
2 GB a second where no needle is; measured on the same text, RE2 came to 0.3 and `re` to 0.8 GB a second.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from crawlhealth.searchbots.model import Bot

DIRECTIVE: Final = b"#Fields:"
"""Begins the line that says what the columns of a W3C log are: always among the lines found."""
_WORD: Final = re.compile(r"[A-Za-z0-9-]+")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Scanner:
    """Yields the lines that may name a bot, or may come from one of some networks; never misses one."""

    def __init__(self, bots: Iterable[Bot], networks: Iterable[Network] = ()) -> None:
        needles = {DIRECTIVE, *needles_of(bots), *(needle for network in networks for needle in text_of(network))}
        self._automaton = BytesAhoCorasick(_shortest(needles), matchkind=MatchKind.LeftmostFirst)

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """Each such line of a chunk of whole lines once, in order, without its end."""
        find, rfind = chunk.find, chunk.rfind
        size, end = len(chunk), 0
        for _, start, after in self._automaton.find_matches_as_indexes(chunk):
            if start < end:
                continue
            begin = rfind(b"\n", end, start) + 1 or end
            end = find(b"\n", after)
            if end < 0:
                end = size
            yield chunk[begin:end]


def needles_of(bots: Iterable[Bot]) -> set[bytes]:
    """What a line has that names one of the bots, however its log writes spaces: the first word of each token."""
    return {match[0].encode() for bot in bots for token in bot.tokens if (match := _WORD.search(token))}


def text_of(network: Network) -> set[bytes]:
    """What every address of a network begins with in text, as far as whole octets or hextets go.

    Of addresses of version 6, whose text may leave out zeros, at most the first two hextets; nothing for a network
    that is wider than that.
    """
    if network.version == 4:
        octets = network.prefixlen // 8
        text = ".".join(str(network.network_address).split(".")[:octets]) + ("." if octets < 4 else "")
        return {text.encode()} if octets >= 2 else set()
    if network.prefixlen < 32:
        return set()
    hextets = [part.lstrip("0") for part in network.network_address.exploded.split(":")[:2]]
    return {":".join(hextets).encode()} if all(hextets) else set()


def _shortest(needles: Iterable[bytes]) -> list[bytes]:
    """The needles without those that have another inside."""
    chosen: list[bytes] = []
    for needle in sorted(needles, key=lambda each: (len(each), each)):
        if not any(other in needle for other in chosen):
            chosen.append(needle)
    return chosen
