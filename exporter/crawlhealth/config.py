"""What users may write, with every default: immutable, and without a word about files (see configfile)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from crawlhealth.checks import ValueSpec
from crawlhealth.hosts import HostIndex
from crawlhealth.outcome import Outcome
from crawlhealth.scoresettings import AdviceSettings, ScoreSettings
from crawlhealth.searchbotsettings import SearchbotSettings
from crawlhealth.secret import Secret as Secret  # noqa: PLC0414 - exported again, for those who use a configuration
from crawlhealth.shard import Shard, number_of

DIRECT = "direct"
"""The route that always exists: no proxy."""
DEFAULT_LISTEN = "127.0.0.1:9877"
DEFAULT_EVERY = timedelta(minutes=5)
DEFAULT_TIMEOUT = timedelta(seconds=20)
DEFAULT_USER_AGENT = "crawlhealth/0.1 (canary; +https://crawlhealth.invalid/about)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One way out. `proxy` is an http, https, socks5 or socks5h URL; without one the route is direct."""

    name: str
    proxy: Secret | None = None
    timeout: timedelta | None = None
    headers: Mapping[str, str | Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One crawl target. `hosts` are exact names, or `.suffix` for all names below it; a port counts only if written."""

    name: str
    hosts: tuple[str, ...]
    routes: tuple[str, ...] = (DIRECT,)
    refusal_status: frozenset[int] = frozenset({401, 403, 406, 429, 451})
    max_concurrency: int = 2
    min_gap: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A page whose right answer we know, fetched on a timer through each of its routes.

    `timeouts` has the routes whose own timeout counts: those of a canary that was given none itself. With `fetch: push`
    nothing is fetched: the user's own crawler sends what it got, about once in `every`.
    """

    name: str
    site: str
    url: str
    every: timedelta = DEFAULT_EVERY
    timeout: timedelta = DEFAULT_TIMEOUT
    timeouts: Mapping[str, timedelta] = field(default_factory=dict)
    routes: tuple[str, ...] = (DIRECT,)
    method: Literal["GET", "POST", "HEAD"] = "GET"
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    cookies: Mapping[str, str | Secret] = field(default_factory=dict)
    body: str | None = None
    page_type: str = ""
    fetch: Literal["pull", "push"] = "pull"
    expect: tuple[ValueSpec, ...] = ()

    @property
    def late_after(self) -> timedelta:
        """How long after the last arrival a pushed canary is late: half of `every` is grace."""
        return self.every * 1.5

    def timeout_on(self, route: str) -> timedelta:
        """How long a fetch through a route may take in all."""
        return self.timeouts.get(route, self.timeout)

    @property
    def same_on(self) -> frozenset[str]:
        """The routes that are fetched together because a value must agree between them."""
        return frozenset(route for value in self.expect for route in value.same_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A marker of the user's own: what it proves where it stands, whatever the status.

    `pattern` is RE2, blind to case; with `where: selector` it selects one element instead. A redirect pattern sees
    `host/path`, a header marker names its `header` (no pattern: the header itself is the marker).
    """

    name: str
    where: Literal["header", "title", "body", "redirect", "selector"]
    outcome: Outcome
    pattern: str = ""
    header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """Limits of every canary fetch, and how it introduces itself."""

    user_agent: str = DEFAULT_USER_AGENT
    max_body_bytes: int = 5_000_000
    max_header_bytes: int = 65_536
    max_redirects: int = 10
    max_concurrency: int = 512
    extract_timeout: timedelta = timedelta(seconds=2)
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A planned stop of some sites (all, where none is named), which is no incident.

    Without `days`, `start` and `end` are moments as in 2026-12-01T22:00:00Z; with them, times of day in UTC as in
    22:00, on each of these days; an end before the start is on the next day.
    """

    start: str
    end: str
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = ()
    sites: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkSettings:
    """How a fault of our own connection is told from faults of sites.

    It is down when at least `sites` sites had only connection errors, and nothing answered, for `after`; or when the
    page at `reference`, fetched every `every`, brings no answer twice in a row.
    """

    reference: str | None = None
    every: timedelta = timedelta(seconds=30)
    sites: int = 3
    after: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """How long what is kept. `resolution` is the width of the finest rows."""

    resolution: timedelta = timedelta(minutes=1)
    commit_every: timedelta = timedelta(seconds=1)
    keep_minutes: timedelta = timedelta(hours=6)
    keep_hours: timedelta = timedelta(days=90)
    keep_push_keys: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushToken:
    """A bearer token that may post for these sites only."""

    token: Secret
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """How much /metrics shows of a site: everything, or the score, the band and the advice, beside its canaries."""

    detail: Literal["full", "score"] = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    """Who may post, and how much. A token alone may post for every site.

    `max_age` is how old what is pushed may be, `max_waiting_bytes` how much of it may be in memory at once.
    """

    tokens: tuple[Secret | PushToken, ...] = ()
    max_age: timedelta = timedelta(hours=6)
    max_waiting_bytes: int = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One whole, valid configuration. `files` are all files it was read from.

    With a `shard`, `sites` and `canaries` are those of the shard alone, and `elsewhere` has the sites of the others.
    """

    data_dir: Path = Path("data")
    listen: str = DEFAULT_LISTEN
    routes: Mapping[str, Route] = field(default_factory=lambda: {DIRECT: Route(name=DIRECT)})
    sites: Mapping[str, Site] = field(default_factory=dict)
    canaries: tuple[Canary, ...] = ()
    blocks: tuple[Block, ...] = ()
    score: ScoreSettings = field(default_factory=ScoreSettings)
    fetch: Fetching = field(default_factory=Fetching)
    history: HistorySettings = field(default_factory=HistorySettings)
    push: PushSettings = field(default_factory=PushSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    advice: AdviceSettings = field(default_factory=AdviceSettings)
    maintenance: tuple[Maintenance, ...] = ()
    uplink: UplinkSettings = field(default_factory=UplinkSettings)
    searchbots: SearchbotSettings = field(default_factory=SearchbotSettings)
    files: tuple[Path, ...] = ()
    shard: Shard | None = None
    elsewhere: Mapping[str, Site] = field(default_factory=dict)

    def part(self, shard: Shard) -> Config:
        """What of a whole configuration belongs to a shard."""
        mine = {name: site for name, site in self.sites.items() if shard.has(name)}
        return replace(
            self,
            sites=mine,
            canaries=tuple(canary for canary in self.canaries if canary.site in mine),
            shard=shard,
            elsewhere={name: site for name, site in self.sites.items() if name not in mine},
        )

    @property
    def share(self) -> str:
        """What of the configured sites is here, in words; nothing where there are no shards."""
        if self.shard is None:
            return ""
        return f"shard {self.shard}: {len(self.sites)} of the {len(self.sites) + len(self.elsewhere)} sites configured"

    def owner(self, site: str) -> Shard | None:
        """The other shard that a configured site belongs to; None for one of `sites`, and for one that nobody knows."""
        if self.shard is None or site not in self.elsewhere:
            return None
        return Shard(number_of(site, self.shard.count), self.shard.count)

    def unknown(self, site: str) -> str:
        """Why a site is not one of `sites`: it belongs to another shard, or nobody knows it."""
        owner = self.owner(site)
        if self.shard is None or owner is None:
            return f"unknown site: {site[:100]!r}"
        return f"the site {site!r} belongs to shard {owner}, and this is shard {self.shard.number}"


def host_site(sites: Mapping[str, Site], host: str, port: int | None = None) -> str | None:
    """The name of the site that a host (and port, the scheme's own if none was written) belongs to, None if none."""
    return HostIndex({name: site.hosts for name, site in sites.items()}).site(host, port)
