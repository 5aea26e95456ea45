"""Names of machines: whether one is a bot's, and whether it was made from its address."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

from crawlhealth.searchbots.model import Bot

IP = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST: Final = 253
"""Characters of a name; a longer one is nobody's."""
NETWORK_BITS: Final = {4: 24, 6: 64}
_PRIVATE: Final = tuple(
    ipaddress.ip_network(written)
    for written in (
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
_HOST: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+")
"""What a machine's name looks like: nothing that only an escape could write."""


def canonical(address: str) -> IP | None:
    """An address in its plain form: IPv4 also where it is mapped into IPv6, no zone; None for what is none."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(ip, ipaddress.IPv6Address):
        return ip.ipv4_mapped or (ipaddress.IPv6Address(int(ip)) if ip.scope_id else ip)
    return ip


def is_private(ip: IP) -> bool:
    """Whether an address lies in a private network, where only one's own machines are."""
    return any(ip in network for network in _PRIVATE if network.version == ip.version)


def plain(name: str) -> str:
    """A name as it is compared: lower case, no dot at the end."""
    return name.removesuffix(".").lower()


def fits(name: str, bot: Bot) -> bool:
    """Whether a plain name is one of the bot's: suffixes hold on label boundaries, a `*` stays within its label."""
    if len(name) > LONGEST or not _HOST.fullmatch(name):
        return False
    if any(name.endswith(suffix) and len(name) > len(suffix) for suffix in bot.suffixes):
        return True
    return any(_pattern(pattern).fullmatch(name) for pattern in bot.patterns)


def serves_network(name: str, bot: Bot) -> bool:
    """Whether a plain name that is proven is one of the bot's own networks, where no stranger can be a neighbour."""
    return fits(name, bot) and any(_pattern(pattern).fullmatch(name) for pattern in bot.own_networks)


def derived(name: str, ip: IP) -> bool:
    """Whether a name holds the address it belongs to, as `crawl-66-249-66-1.googlebot.com` does."""
    label = re.sub(r"[^0-9a-f]+", "-", name.partition(".")[0]) if ip.version == 6 else name.replace(".", "-")
    if ip.version == 4:
        octets = str(ip).split(".")
        padded = [octet.zfill(3) for octet in octets]
        return any(re.search(rf"(?<!\d){'-'.join(form)}(?!\d)", label) for form in (octets, padded, octets[::-1]))
    written = str(ip).split(":")
    full = ip.exploded.split(":")
    return any("-".join(form) in label for form in (written, full, [part.lstrip("0") or "0" for part in full]))


def network(ip: IP) -> str:
    """The /24 or /64 that an address lies in."""
    return str(ipaddress.ip_network((ip, NETWORK_BITS[ip.version]), strict=False))


@lru_cache(maxsize=1024)
def _pattern(written: str) -> re.Pattern[str]:
    return re.compile("[a-z0-9-]+".join(map(re.escape, written.split("*"))))
