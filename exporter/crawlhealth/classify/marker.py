"""What a rule is made of: markers, where they must stand, and what they mean together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from crawlhealth.outcome import Outcome, Reason


class Kind(StrEnum):
    """What a rule proves. Only enforcement classifies; the other two are hints of a vendor."""

    ENFORCEMENT = "enforcement"
    SENSOR = "sensor"
    PRESENCE = "presence"


class Where(IntEnum):
    """Where a marker must stand, most trusted first.

    MARKUP is tags outside of comments, scripts, styles and text areas; CODE is script tags and the scripts a browser
    would run; DATA is a JSON or XML body; TEXT is what a reader sees; ANY is the raw body, good enough for a hint.
    """

    REDIRECT = 0
    HEADER = 1
    MARKUP = 2
    CODE = 3
    DATA = 4
    TITLE = 5
    TEXT = 6
    ANY = 7


class Act(StrEnum):
    """What the page does, before its status decides between the outcomes.

    CHALLENGE is a challenge with any status. BLOCK is a hard block with an error status, else a soft block. DENIAL is a
    block page of no known vendor: a soft block with 2xx, a hard block with 4xx other than 404 and 410, nothing with
    5xx. NOT_CONTENT is a soft block with 2xx, nothing otherwise. ORIGIN_ERROR is a vendor's page about a broken site.
    CUSTOM is the outcome that the user's own marker says, with any status.
    """

    CHALLENGE = "challenge"
    BLOCK = "block"
    DENIAL = "denial"
    NOT_CONTENT = "not_content"
    ORIGIN_ERROR = "origin_error"
    CUSTOM = "custom"
    HINT = "hint"


class Room(IntEnum):
    """How many characters a reader may see on a page for a rule to hold; more than that is content.

    BARE pages hold besides next to no element that could carry content (see `page.Page.fits`).
    """

    BARE = 80
    SCANT = 300
    THIN = 1_500
    LEAN = 5_000
    ANY = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A pattern (RE2 on bytes, blind to case) and the place it must stand in.

    A HEADER marker names its `header` (`x-kpsdk-*` for any that begins so). A REDIRECT pattern sees `host/path` without
    a query, a TITLE pattern the title with white space collapsed. A `lead` marker must be the first of
    the visible text: a page that quotes the words has others before them.
    """

    where: Where
    pattern: str
    header: str = ""
    lead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table: all of `needs` together prove `act`, on a page with no more than `room` to read.

    `errors_only` rules hold with an error status only, and not with one that sites put on pages of their own (400, 404,
    410): their words alone are no proof on a page that was served. `outcome` is that of a CUSTOM rule.
    """

    name: str
    kind: Kind
    act: Act
    needs: tuple[Marker, ...]
    vendor: str = ""
    reason: Reason = Reason.SERVED
    room: Room = Room.ANY
    errors_only: bool = False
    outcome: Outcome | None = None

    @property
    def trust(self) -> Where:
        """The place of its first marker, the one that tells."""
        return self.needs[0].where

    @property
    def reads_body(self) -> bool:
        """Whether any of its markers stands in the body."""
        return any(marker.where > Where.HEADER for marker in self.needs)


def redirect(pattern: str) -> Marker:
    """A marker on `host/path` of a redirect's target."""
    return Marker(where=Where.REDIRECT, pattern=pattern)


def header(name: str, pattern: str = "") -> Marker:
    """A marker on the value of a header; an empty pattern asks for the header only."""
    return Marker(where=Where.HEADER, pattern=pattern, header=name)


def title(pattern: str) -> Marker:
    """A marker on the title."""
    return Marker(where=Where.TITLE, pattern=pattern)


def markup(pattern: str) -> Marker:
    """A marker on tags."""
    return Marker(where=Where.MARKUP, pattern=pattern)


def code(pattern: str) -> Marker:
    """A marker on script tags and running scripts."""
    return Marker(where=Where.CODE, pattern=pattern)


def text(pattern: str, *, lead: bool = False) -> Marker:
    """A marker on the visible text."""
    return Marker(where=Where.TEXT, pattern=pattern, lead=lead)


def data(pattern: str) -> Marker:
    """A marker on a JSON or XML body."""
    return Marker(where=Where.DATA, pattern=pattern)


def anywhere(pattern: str) -> Marker:
    """A marker on the raw body."""
    return Marker(where=Where.ANY, pattern=pattern)


def challenge(reason: Reason, name: str, *needs: Marker, room: Room = Room.ANY, errors_only: bool = False) -> Rule:
    """A row that proves a challenge; its name begins with the vendor and a colon."""
    return _enforcement(Act.CHALLENGE, reason, name, needs, room=room, errors_only=errors_only)


def block(reason: Reason, name: str, *needs: Marker, room: Room = Room.ANY, errors_only: bool = False) -> Rule:
    """A row that proves a vendor's block page."""
    return _enforcement(Act.BLOCK, reason, name, needs, room=room, errors_only=errors_only)


def broken(reason: Reason, name: str, *needs: Marker, room: Room = Room.ANY) -> Rule:
    """A row that proves a vendor's page about a broken origin."""
    return _enforcement(Act.ORIGIN_ERROR, reason, name, needs, room=room)


def denial(name: str, *needs: Marker, room: Room = Room.THIN) -> Rule:
    """A row that proves a block page of no known vendor."""
    return _enforcement(Act.DENIAL, Reason.GENERIC_BLOCK, name, needs, room=room)


def not_content(reason: Reason, name: str, *needs: Marker, room: Room = Room.THIN) -> Rule:
    """A row that proves a page which stands in the place of the content."""
    return _enforcement(Act.NOT_CONTENT, reason, name, needs, room=room)


def sensor(vendor: str, *needs: Marker) -> Rule:
    """A row for a bot defence's script on a page that was served: a hint."""
    return Rule(name=f"{vendor}: sensor", kind=Kind.SENSOR, act=Act.HINT, needs=needs, vendor=vendor)


def presence(vendor: str, *needs: Marker) -> Rule:
    """A row for a network or firewall that is there: a hint."""
    return Rule(name=f"{vendor}: presence", kind=Kind.PRESENCE, act=Act.HINT, needs=needs, vendor=vendor)


def _enforcement(
    act: Act, reason: Reason, name: str, needs: tuple[Marker, ...], *, room: Room, errors_only: bool = False
) -> Rule:
    return Rule(
        name=name,
        kind=Kind.ENFORCEMENT,
        act=act,
        needs=needs,
        vendor=name.partition(":")[0],
        reason=reason,
        room=room,
        errors_only=errors_only,
    )
