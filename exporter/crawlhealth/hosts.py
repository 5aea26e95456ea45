"""Which site a host belongs to: exact names, or `.suffix` for all names below it; a port counts only if written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_NAME: Final = re.compile(r"\.?(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_](?:[a-z0-9_-]{0,62})")
_ADDRESS: Final = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*")


@dataclass(frozen=True, slots=True)
class Host:
    """One host as compared: lower case, IDNA, no final dot, IPv6 without brackets; `port` None stands for all."""

    name: str
    port: int | None = None


def normal_name(name: str) -> str:
    """A host name as it is compared."""
    name = name.lower().rstrip(".")
    if name.isascii():
        return name
    dot, name = ("." if name.startswith(".") else ""), name.removeprefix(".")
    try:
        return dot + name.encode("idna").decode("ascii")
    except UnicodeError:
        return dot + name


def parse(written: str) -> Host:
    """A host as written in a site's `hosts`; ValueError says what to write instead."""
    if "://" in written or "/" in written:
        raise ValueError("is a URL: write only the host, as in books.toscrape.com")
    if "*" in written:
        raise ValueError("has a star: write .example.com for all names below example.com")
    if "@" in written:
        raise ValueError("has a user name: write only the host")
    name, port = written, ""
    if written.startswith("["):
        name, _, port = written[1:].partition("]")
        port = port.removeprefix(":")
    elif written.count(":") == 1:
        name, _, port = written.partition(":")
    name = normal_name(name)
    if len(name) > 253 or not (_NAME.fullmatch(name) or _ADDRESS.fullmatch(name)):
        raise ValueError("is not a host name: write it as in books.toscrape.com or .toscrape.com")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise ValueError("has a port that is not a number from 1 to 65535")
    return Host(name, int(port) if port else None)


class HostIndex:
    """Looks up the site of a host. Hosts that cannot be parsed are left out."""

    def __init__(self, sites: Mapping[str, Iterable[str]]) -> None:
        self._sites: dict[str, list[tuple[int | None, str]]] = {}
        for site, written in sites.items():
            for host in written:
                try:
                    parsed = parse(host)
                except ValueError:
                    continue
                self._sites.setdefault(parsed.name, []).append((parsed.port, site))

    def site(self, host: str, port: int | None = None) -> str | None:
        """The site of a host and port, None if no site has it. The longest name wins, then a written port."""
        for name in _covering(normal_name(host)):
            found = [entry for entry in self._sites.get(name, ()) if entry[0] is None or entry[0] == port]
            if found:
                return max(found, key=lambda entry: entry[0] is not None)[1]
        return None

    def clashes(self, site: str, host: Host) -> Iterator[str]:
        """Other sites that have this host too."""
        for name in _covering(host.name):
            for port, other in self._sites.get(name, ()):
                if other != site and (port is None or host.port is None or port == host.port):
                    yield other


def _covering(name: str) -> Iterator[str]:
    """The name itself and every suffix that covers it: `a.b.c`, `.b.c`, `.c`."""
    yield name
    at = name.find(".", 1)
    while at > 0 and ":" not in name:
        yield name[at:]
        at = name.find(".", at + 1)
