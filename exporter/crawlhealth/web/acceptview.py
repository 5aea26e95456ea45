"""What a site's page shows of what people accepted as its normal, and of what they may accept. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crawlhealth import acceptance
from crawlhealth.incident import Incident
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Band, Unknown, Verdict
from crawlhealth.web import words


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptView:
    """What is in force (blank where nothing is), what was before, and since when what is now would be accepted.

    `usual` is blank where there is nothing to accept.
    """

    accepted: str = ""
    when: str = ""
    before: tuple[str, ...] = ()
    usual: str = ""
    follows: str = ""


def accept_view(
    verdict: Verdict | None,
    incidents: Iterable[Incident],
    accepted: Sequence[tuple[Accepted, float | None]],
    *,
    now: float,
    settings: BaselineSettings,
) -> AcceptView:
    """The view at `now`; `incidents` and what was `accepted`, with when that was taken back, are the newest first.

    A new normal can be accepted of a site that is outside its own, or whose first baseline was refused.
    """
    current = next((one for one, undone in accepted if undone is None), None)
    start = next((incident.start for incident in incidents if incident.end is None), None)
    usual = acceptance.begun(verdict, start, now=now, settings=settings)
    return AcceptView(
        accepted="" if current is None else acceptance.told(current),
        when="" if current is None else words.ago(current.at, now),
        before=tuple(_earlier(one, undone) for one, undone in accepted if one is not current),
        usual=f"{words.moment(usual.since)}, {usual.why}" if _open(verdict) else "",
        follows=acceptance.consequence(settings),
    )


def _earlier(accepted: Accepted, undone: float | None) -> str:
    fate = "replaced since" if undone is None else f"taken back {words.moment(undone)}"
    return f"{acceptance.told(accepted)} ({fate})"


def _open(verdict: Verdict | None) -> bool:
    if verdict is None:
        return False
    return verdict.band in (Band.DEGRADING, Band.RESISTING) or verdict.unknown is Unknown.BASELINE_REFUSED
