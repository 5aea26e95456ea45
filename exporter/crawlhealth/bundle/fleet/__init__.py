"""Fleet scoring: the score in PromQL from the counters alone, summed over all exporters and crawlers."""

from __future__ import annotations

from datetime import timedelta

from crawlhealth.bundle.fleet.bands import ALERTS, BANDS
from crawlhealth.bundle.fleet.normal import LEARNING, LEARNT_FROM
from crawlhealth.bundle.fleet.scores import SCORED, SLOWNESS
from crawlhealth.bundle.fleet.windows import COUNTED, TIMES
from crawlhealth.bundle.model import Group, Options, Scoring

MINUTE = timedelta(minutes=1)
SELDOM = timedelta(minutes=5)


def groups(options: Options) -> tuple[Group, ...]:
    """The rules of the score, its normal and its bands."""
    if options.scoring is not Scoring.FLEET:
        return ()
    return (
        Group(file="fleet", name="crawlhealth-fleet-times", rules=(*TIMES, *SLOWNESS), interval=SELDOM),
        Group(file="fleet", name="crawlhealth-fleet-normal", rules=(*LEARNING, *LEARNT_FROM), interval=SELDOM),
        Group(file="fleet", name="crawlhealth-fleet-windows", rules=COUNTED, interval=MINUTE),
        Group(file="fleet", name="crawlhealth-fleet-score", rules=SCORED, interval=MINUTE),
        Group(file="fleet", name="crawlhealth-fleet-bands", rules=(*BANDS, *ALERTS), interval=MINUTE),
    )
