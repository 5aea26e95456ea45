"""Uplink: whether our own connection is down, so that no site is to blame. Pure but for what one watch remembers.

Canaries and traffic are looked at apart: crawlers may have another way out than the exporter. Any answer over HTTP, be
it a refusal, proves the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from crawlhealth.config import UplinkSettings
from crawlhealth.model import CanaryRun
from crawlhealth.outcome import Reason

CONNECTION: Final = frozenset({Reason.DNS, Reason.CONNECTION_REFUSED, Reason.CONNECTION_FAILED, Reason.TIMEOUT})
"""What a fetch ends with when our own uplink is down."""
NO_ANSWER: Final = CONNECTION | {Reason.PROXY, Reason.ADDRESS_REFUSED, Reason.TLS}
"""What proves no uplink: nothing answered over HTTP."""

Lost = Mapping[tuple[str, Reason], float]
"""Requests of traffic that were not answered, ever, by site and reason (of `NO_ANSWER`)."""


def canaries_get_out(
    runs: Iterable[CanaryRun], *, last_success: float | None, now: float, settings: UplinkSettings
) -> bool:
    """Whether the latest runs of all canaries leave room for our own uplink to be up.

    It is down when, since the last answer over HTTP of any site, several sites had nothing but connection errors, and
    that for a while. `last_success` is when any canary last succeeded. Without runs it is up.
    """
    lost: list[tuple[str, float]] = []
    answered = last_success
    for run in runs:
        reason = run.classification.reason
        if reason in CONNECTION:
            lost.append((run.site, run.at))
        elif reason not in NO_ANSWER:
            answered = run.at if answered is None else max(answered, run.at)
    since = [(site, at) for site, at in lost if answered is None or at > answered]
    if len({site for site, _ in since}) < settings.sites:
        return True
    return answered is not None and now - answered < settings.after.total_seconds()


class TrafficWatch:
    """Whether traffic gets out, from how its counters move between evaluations."""

    def __init__(self) -> None:
        self._lost: Lost | None = None
        self._since: tuple[float, float, float] | None = None
        self._sites: set[str] = set()

    def gets_out(self, lost: Lost, total: Callable[[], float], *, now: float, settings: UplinkSettings) -> bool:
        """Whether it did at this evaluation.

        It did not when several sites have had connection errors for a while and none any answer. `total` counts all
        requests of traffic ever; it is asked only while some are lost.
        """
        before, self._lost = self._lost, lost
        if before is None:
            return True
        failing = {key[0] for key, count in lost.items() if key[1] in CONNECTION and count > before.get(key, 0)}
        if self._since is None and not failing:
            return True
        requests, unanswered = total(), sum(lost.values())
        if self._since is None or requests - self._since[1] > unanswered - self._since[2]:
            self._since = (now, requests, unanswered) if failing else None
            self._sites = failing
            return True
        self._sites |= failing
        return len(self._sites) < settings.sites or now - self._since[0] < settings.after.total_seconds()
