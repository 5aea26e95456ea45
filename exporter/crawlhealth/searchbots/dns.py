"""DNS: an address's names, and whether they lead back to it, asked within a deadline."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import dns.asyncresolver
import dns.exception
import dns.flags
import dns.message
import dns.nameserver
import dns.rdatatype
import dns.resolver
import dns.reversename

from crawlhealth.searchbots.facts import Facts, Forward, Reverse
from crawlhealth.searchbots.names import IP, plain

MOST_NAMES: Final = 16
"""So many names of one address are followed; a machine of an operator has one."""
TRIES: Final = 2
"""A packet that is lost is sent again once."""
WHOLE: Final = 5
"""An address may take so many timeouts in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question that was asked, and what came of it, to be explained."""

    type: str
    name: str
    answer: str


_STRANGER: Final = "a server that is neither the zone's own nor asks others"

Told = Callable[[Question], None]


class Dns:
    """Asks name servers: those given, as (address, port), or the system's. Used in one event loop."""

    def __init__(self, servers: Iterable[tuple[str, int]], *, timeout: float) -> None:
        self._whole = timeout * WHOLE
        given = [dns.nameserver.Do53Nameserver(address, port) for address, port in servers]
        self._problem = ""
        try:
            self._resolver = dns.asyncresolver.Resolver(configure=not given)
        except dns.resolver.NoResolverConfiguration:
            self._resolver = dns.asyncresolver.Resolver(configure=False)
            self._problem = "no name server: name one under searchbots.resolver.servers"
        if given:
            self._resolver.nameservers = list(given)
        self._resolver.timeout = timeout
        self._resolver.lifetime = timeout * TRIES

    async def facts(
        self, ip: IP, followed: Callable[[str], bool], *, now: float, told: Told = lambda _question: None
    ) -> Facts:
        """What is to be known of an address; those of its names are followed back that `followed` takes."""
        came: list[tuple[str, Forward]] = []
        left: list[str] = []
        try:
            async with asyncio.timeout(self._whole):
                reverse, names = await self._ask(dns.reversename.from_address(str(ip)), "PTR", told)
                left = sorted({name for name in map(plain, names) if followed(name)})
                for name in left[:MOST_NAMES]:
                    came.append((name, await self._forward(name, ip, told)))
                    if came[-1][1] is Forward.CONFIRMED:
                        break
        except TimeoutError:
            if not left:
                return Facts(at=now, reverse=Reverse.FAILED)
            reverse = Reverse.NAMES
        if not any(forward is Forward.CONFIRMED for _, forward in came):
            came += [(name, Forward.FAILED) for name in left[len(came) : MOST_NAMES + 1]]
        return Facts(at=now, reverse=reverse, forwards=tuple(came))

    async def _forward(self, name: str, ip: IP, told: Told) -> Forward:
        """Whether a name leads back: asked in the address's own family first, and in the other for what it lacks."""
        own, other = ("A", "AAAA") if ip.version == 4 else ("AAAA", "A")
        came, found = await self._ask(name, own, told)
        if any(_same(address, ip) for address in found):
            return Forward.CONFIRMED
        if found:
            return Forward.OTHER
        if came is Reverse.NXDOMAIN:
            return Forward.NONE
        second, more = await self._ask(name, other, told)
        if any(_same(address, ip) for address in more):
            return Forward.CONFIRMED
        if Reverse.FAILED in (came, second):
            return Forward.FAILED
        return Forward.OTHER if more else Forward.NONE

    async def _ask(self, name: dns.name.Name | str, kind: str, told: Told) -> tuple[Reverse, tuple[str, ...]]:
        """One question, CNAMEs followed: what came, and the texts of the answers."""
        texts: tuple[str, ...] = ()
        try:
            if self._problem:
                raise ValueError(self._problem)
            answer = await self._resolver.resolve(name, kind, search=False)
            texts = tuple(record.to_text() for record in answer)
            came, said = Reverse.NAMES, ", ".join(texts)
        except dns.resolver.NXDOMAIN as error:
            came, said = _no_such_name(error)
        except dns.resolver.NoAnswer as error:
            came, said = Reverse.NODATA, "nothing of that type"
            if not _knows(error.kwargs["response"]):
                came, said = Reverse.FAILED, f"{said}, says {_STRANGER}"
        except dns.exception.Timeout:
            came, said = Reverse.FAILED, "no answer in time"
        except dns.resolver.NoNameservers as error:
            came, said = Reverse.FAILED, _refusal(error)
        except (dns.exception.DNSException, OSError, ValueError) as error:
            came, said = Reverse.FAILED, str(error) or type(error).__name__
        told(Question(type=kind, name=plain(str(name)), answer=said))
        return came, texts


def _no_such_name(error: dns.resolver.NXDOMAIN) -> tuple[Reverse, str]:
    """An NXDOMAIN, which says that there is no such name only where it is clean: no alias's, of a server that knows."""
    said = "no such name (NXDOMAIN)"
    for response in error.kwargs["responses"].values():
        if not _knows(response):
            return Reverse.FAILED, f"{said}, says {_STRANGER}"
        if response.answer:
            return Reverse.FAILED, f"an alias (CNAME) that leads to {said}"
    return Reverse.NXDOMAIN, said


def _knows(response: dns.message.Message) -> bool:
    """Whether a server that has nothing may know it: the zone is its own, or it asks others. A lame one cannot."""
    return bool(response.flags & (dns.flags.AA | dns.flags.RA))


def _same(text: str, ip: IP) -> bool:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return False
    return found == ip or (found.version == 6 and found.ipv4_mapped == ip)


def _refusal(error: dns.resolver.NoNameservers) -> str:
    """The last reason for which a server's answer was none: SERVFAIL, REFUSED, or what the network said."""
    last = error.kwargs.get("errors") or [("", False, 0, "no name server answered", None)]
    return str(last[-1][3]) or type(last[-1][3]).__name__
