"""Fleet scoring: the score in PromQL from the counters alone, summed over all exporters and crawlers.

It carries out the `robust` method with the defaults of the configuration: four windows of exponentially weighted
counts, the same margins, penalties, refused cap, lowest window, latched bands, resets of longer windows when a band
changes, and a normal of good hours of two weeks without the last day. A test feeds one history to both and compares.

What PromQL cannot do, or does in another way:

- Nothing is said by route: the normal is the site's, so that traffic which moves to another route may cost points. One
  route against another is told by the alerts on routes, which read counters.
- There is no early warning (`crawlhealth_drift_z`), no parser score, no cost of a record, no diagnosis, no plain score,
  no accepted normal, no refused first normal, no season and no settings: nobody answers a person's `accept`, so that
  after a change that lasts the normal comes back only as levels are learnt anew. Alerts on those read the gauges of the
  exporter that knows the site (CrawlTargetDrifting, CrawlParserFailing, CrawlCostDoubled, CrawlBaselineFrozen), and are
  silent where crawlers are scraped and no exporter judges. The advice is the exporter's, from the exporter's score.
- p95 is read from the published buckets (a ratio of 1.47), as if values lay evenly within one, where the exporter has
  eight finer ones. Latency is timed every five minutes, in windows of 30 minutes and 6 hours.
- The median of two weeks is renewed every five minutes from hours as they are known to be good, six hours after their
  end, not once a day. Hours with few requests count as six or twenty-four together, overlapping, where the exporter
  puts them one after another until there are 50: a quiet site has its normal after a day, not after 24 such blocks,
  and its dispersion is a little less. How latency rises of itself is read of any 24 hours, not of calendar days.
- Dwell is by the clock: `for an hour under 80` is every evaluation of that hour, however few requests came in it; but
  while none come, no band begins or ends.
- Resolution is a minute: what came in five minutes is added as if evenly.
- A Prometheus that was down begins its windows anew after an hour; counters that nobody scraped are lost to it.
- Rules cannot be filled in for the past (`promtool tsdb create-blocks-from rules` knows no rule that reads itself): a
  normal takes 30 hours of running, and 48 to leave out the last day. Keep 30 days, or 20 at least.
"""

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
