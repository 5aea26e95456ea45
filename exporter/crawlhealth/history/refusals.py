"""The last refusals with their evidence: the latest few of every kind, so that one frequent kind hides no rare one.

They are for people and stand only on disk: read when a page is asked for.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from crawlhealth.model import CanaryRun, Refusal
from crawlhealth.outcome import Source

KEPT_OF_A_KIND = 3
"""How many refusals of one site, route, source and reason are kept: the latest."""

log = logging.getLogger(__name__)

Kind = tuple[str, str, Source, str]
"""site, route, source, reason: as many as the configuration and the closed list of reasons allow."""
Refusals = dict[Kind, tuple[Refusal, ...]]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Refusal).decode


def of_run(run: CanaryRun) -> Refusal:
    """What proves that a canary run was refused."""
    return Refusal(
        site=run.site,
        route=run.route,
        source=Source.CANARY,
        at=run.at,
        outcome=run.classification.outcome,
        reason=run.classification.reason,
        evidence=run.classification.evidence,
        canary=run.canary,
    )


def gather(refusals: Refusals, refusal: Refusal) -> None:
    """Add one to those that wait for the disk, and forget those of its kind that are not among the latest."""
    kind = (refusal.site, refusal.route, refusal.source, refusal.reason.value)
    known = (*refusals.get(kind, ()), refusal)
    refusals[kind] = tuple(sorted(known, key=lambda one: one.at)[-KEPT_OF_A_KIND:])


def put(connection: sqlite3.Connection, refusals: Mapping[Kind, Iterable[Refusal]]) -> None:
    """Write refusals, and delete those of their kinds that are not among the latest any more."""
    for (site, route, source, reason), latest in refusals.items():
        kind = (site, route, source.value, reason)
        connection.executemany(
            "INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?, ?, ?)",
            ((*kind, refusal.at, _encode(refusal)) for refusal in latest),
        )
        connection.execute(
            "DELETE FROM refusals WHERE site = ?1 AND route = ?2 AND source = ?3 AND reason = ?4 AND at <"
            " (SELECT min(at) FROM (SELECT at FROM refusals WHERE site = ?1 AND route = ?2 AND source = ?3"
            " AND reason = ?4 ORDER BY at DESC LIMIT ?5))",
            (*kind, KEPT_OF_A_KIND),
        )


def read(connection: sqlite3.Connection, site: str, limit: int) -> Iterable[Refusal]:
    """The latest refusals of a site, newest first; one that cannot be read any more is left out."""
    rows = connection.execute("SELECT refusal FROM refusals WHERE site = ? ORDER BY at DESC LIMIT ?", (site, limit))
    for (blob,) in rows:
        try:
            yield _decode(blob)
        except msgspec.MsgspecError as error:
            log.warning("a refusal of %s cannot be read: %s", site, error)


def prune(connection: sqlite3.Connection, *, before: float, limit: int) -> int:
    """Delete up to `limit` refusals from before a time; how many."""
    return connection.execute(
        "DELETE FROM refusals WHERE (site, route, source, reason, at) IN"
        " (SELECT site, route, source, reason, at FROM refusals WHERE at < ? LIMIT ?)",
        (before, limit),
    ).rowcount
