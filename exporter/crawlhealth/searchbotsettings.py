"""What users may write under `searchbots`, with every default."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from crawlhealth.secret import Secret

LOG_FORMATS: Final = (
    "combined", "common", "vhost", "nginx_json", "caddy", "traefik", "w3c", "cloudfront", "alb",
)  # fmt: skip
"""Formats of access logs that have a name."""
DEFAULT_TENANT: Final = "default"
"""Whose everything is where no tenants are configured."""

OTHER_TARGET: Final = "other"
"""What a target is called that is not configured."""

RANGE_FILES: Final = (
    "applebot.json", "bingbot.json", "chatgpt-user.json", "claudebot.json", "common-crawlers.json", "duckduckbot.json",
    "gptbot.json", "perplexitybot.json", "searchbot.json", "special-crawlers.json", "user-triggered-fetchers*.json",
)  # fmt: skip
"""What the operators' files of ranges are called, `*` for any letters: a file of another name is no bot's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSource:
    """Where a file of ranges is fetched anew, and how often."""

    url: str
    every: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """Who is asked for names of addresses: `servers` as address or address:port, else the system's.

    `timeout` is how long one question may take, `concurrency` how many addresses are looked up at once.
    """

    servers: tuple[str, ...] = ()
    timeout: timedelta = timedelta(seconds=2)
    concurrency: int = 64

    @property
    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """The servers as (address, port)."""
        return tuple(map(endpoint, self.servers))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """One access log, or several of one kind: `path` may have `*`, what is rotated away from it is found beside it.

    `format` is a name, or the text of an nginx `log_format`. Visits belong to `domain`, or to that of `domains` which
    the line names as its host, else to "other". `trusted_proxies` are networks whose X-Forwarded-For is believed. With
    a `target` it is the log of a server that visits are sent to. `name` is its label in metrics, else its path.
    """

    path: Path
    format: str = "combined"
    tenant: str = DEFAULT_TENANT
    domain: str = ""
    domains: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    target: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """What it is called in metrics."""
        return self.name or str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many visits a target may get in a day (UTC): `day` of them, or by the week with a `ramp`.

    The last step of a ramp holds on. Its first week `begins` on a date as in 2026-12-01, else on the day of the first
    visit that was sent.
    """

    day: int | None = None
    ramp: tuple[int, ...] = ()
    begins: str = ""

    @property
    def first_day(self) -> date | None:
        """When the ramp begins, as written. Raises ValueError."""
        day = date.fromisoformat(self.begins) if self.begins else None
        if day is not None and day.isoformat() != self.begins:  # weeks, and dates without hyphens
            raise ValueError("no date as in 2026-12-01")
        return day


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server that visits of search bots are sent to, and looked at once a minute.

    `weight` is its part of those that are sent, beside the weights of the same tenant's other targets.
    """

    name: str
    url: str
    tenant: str = DEFAULT_TENANT
    weight: float | None = None
    quota: Quota | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Whose domains these are, and the bearer tokens that may send and see what was dispatched from them."""

    name: str
    domains: tuple[str, ...] = ()
    tokens: tuple[Secret, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSettings:
    """Which domains of the user's own are looked after.

    `names` are host names, or origins as in http://shop.example:8080. `rdap` is the service that tells the end of a
    registration: `domain/NAME` is put after it. `redirects` and `expiry` switch off what is not wanted.
    """

    names: tuple[str, ...] = ()
    rdap: str = "https://rdap.org/"
    redirects: bool = True
    expiry: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A service that the dispatcher needs: a redis:// or rediss:// URL, and what it takes to be let in."""

    name: str
    url: str
    username: str = ""
    password: Secret | None = None
    ca_file: Path | None = None
    timeout: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchbotSettings:
    """Search bots on the user's own domains. `ranges` is the folder of the operators' files of addresses.

    With `stealth`, browsers from a search engine's ranges are looked for as well.
    """

    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    logs: tuple[LogSettings, ...] = ()
    stealth: bool = True
    ranges: Path | None = None
    refresh: Mapping[str, RangeSource] = field(default_factory=dict)
    resolver: ResolverSettings = field(default_factory=ResolverSettings)
    targets: Mapping[str, Target] = field(default_factory=dict)
    domains: DomainSettings = field(default_factory=DomainSettings)
    dependencies: Mapping[str, Dependency] = field(default_factory=dict)

    @property
    def tenant_names(self) -> tuple[str, ...]:
        """All tenants: those that are configured, else those that logs and targets name, and the default."""
        if self.tenants:
            return tuple(self.tenants)
        named = (*(log.tenant for log in self.logs), *(target.tenant for target in self.targets.values()))
        return tuple(dict.fromkeys((DEFAULT_TENANT, *named)))

    @property
    def watched_domains(self) -> tuple[str, ...]:
        """The domains that are looked after: those of `domains`, then the tenants' others."""
        owned = (domain for tenant in self.tenants.values() for domain in tenant.domains)
        return tuple(dict.fromkeys((*self.domains.names, *owned)))

    @property
    def read_logs(self) -> tuple[LogSettings, ...]:
        """The logs as they are read: one that names no domain has those of its tenant."""
        return tuple(
            log
            if log.domain or log.domains or log.tenant not in self.tenants
            else replace(log, domains=self.tenants[log.tenant].domains)
            for log in self.logs
        )

    def domains_of(self, tenant: str) -> tuple[str, ...]:
        """The domains that visits of a tenant may be of, in lower case."""
        if tenant in self.tenants and self.tenants[tenant].domains:
            names: tuple[str, ...] = self.tenants[tenant].domains
        else:
            own = (name for log in self.logs if log.tenant == tenant for name in (log.domain, *log.domains) if name)
            names = (*own, *(() if self.tenants else self.domains.names))
        return tuple(
            dict.fromkeys((urlsplit(name).hostname or "" if "://" in name else name).lower() for name in names)
        )


def endpoint(written: str) -> tuple[str, int]:
    """A name server: `192.0.2.53`, `127.0.0.1:5353`, `[::1]:5353`. ValueError says what to write instead."""
    address, port = written, "53"
    if written.startswith("["):
        address, _, port = written[1:].partition("]")
        port = port.removeprefix(":") or "53"
    elif written.count(":") == 1:
        address, _, port = written.partition(":")
    try:
        ipaddress.ip_address(address)
        number = int(port) if port.isascii() and port.isdigit() else 0
    except ValueError:
        number = 0
    if not 0 < number < 65_536:
        raise ValueError("is no name server: write its address, as in 192.0.2.53 or 127.0.0.1:5353")
    return address, number
