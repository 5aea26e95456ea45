"""The Alertmanager configuration: who is told, how often, and what stays quiet because something worse is known.

Critical alerts page, warnings are tickets, `info` comes as a digest in working hours. A message is about one alert of
one site; the group labels part sites of one name. Inhibition is by those labels too: one region's uplink mutes no
other region's sites, if a group label tells the regions apart.

All of our routing is one route below the root, which no other alert takes: it can be put into a tree that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from crawlhealth.bundle import messages
from crawlhealth.bundle.model import Options, Severity
from crawlhealth.bundle.yamltext import dump, duration

PAGE: Final = "crawlhealth-page"
NOTIFY: Final = "crawlhealth-notify"
DIGEST: Final = "crawlhealth-digest"
WORKING_HOURS: Final = "crawlhealth-working-hours"
SHORTEST: Final = timedelta(milliseconds=500)
"""Compressed clocks stop here: alerts of one moment must still meet in Alertmanager before one of them is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """While `because` fires, `targets` with the same labels `equal` are not told. A label that both lack is the same.

    `$site` stands for the group labels and `site`, `$group` for the group labels alone.
    """

    because: str
    targets: tuple[str, ...]
    equal: tuple[str, ...] = ("$site",)


INHIBITIONS: Final = (
    Quiet(
        because="CrawlTargetResisting",
        targets=(
            "CrawlTargetDegrading", "CrawlTargetDrifting", "CrawlRouteFailing", "CrawlLatencyHigh",
            "CrawlParserFailing", "CrawlCostDoubled", "CrawlCanaryFailing", "CrawlVolumeHalved", "CrawlRecordsHalved",
        ),
    ),
    Quiet(
        because="CrawlTargetDegrading",
        targets=("CrawlTargetDrifting", "CrawlLatencyHigh", "CrawlParserFailing", "CrawlCostDoubled"),
    ),
    Quiet(because="CrawlErrorsHigh", targets=("CrawlRouteErrorsHigh", "CrawlCanaryFailing")),
    Quiet(
        because="CrawlCanaryWrongValue",
        targets=("CrawlCanaryDisagreement",),
        equal=("$site", "canary"),
    ),
    Quiet(because="CrawlVolumeHalved", targets=("CrawlVolumeDeclining",)),
    Quiet(
        because="CrawlBotSilent",
        targets=("CrawlBotVisitsHalved", "CrawlBotVisitsDeclining"),
        equal=("$group", "tenant", "domain", "bot"),
    ),
    Quiet(
        because="CrawlBotVisitsHalved",
        targets=("CrawlBotVisitsDeclining",),
        equal=("$group", "tenant", "domain", "bot"),
    ),
    Quiet(
        because="CrawlExporterDown",
        targets=("CrawlExporterStale", "CrawlScrapeFailing"),
        equal=("$group", "job", "instance"),
    ),
    Quiet(
        because="CrawlHistoryFailing",
        targets=("CrawlPushBusy", "CrawlPushRejected"),
        equal=("$group", "job", "instance"),
    ),
)  # fmt: skip
"""What is told once, by the alert that says most. The lesser alert goes on firing: its end is no recovery."""

OURS: Final = 'alertname=~"Crawl[A-Z].+"'
"""The matcher of every alert of the bundle, and of no other."""
UPLINK: Final = "CrawlUplinkDown"
"""While it fires nothing is told of any site with the same group labels; it comes before anything can be."""
OUTAGE: Final = Quiet(
    because="CrawlUplinkOutage",
    targets=(
        "CrawlErrorsHigh", "CrawlRouteErrorsHigh", "CrawlCanaryFailing", "CrawlCanaryLate", "CrawlCanaryStale",
        "CrawlVolumeHalved", "CrawlRecordsHalved", "CrawlScoreUnknown",
    ),
    equal=("$group",),
)  # fmt: skip
"""What an outage leaves behind in counts of an hour: not told afterwards either, of any site. Refusals are."""


def files(options: Options) -> Mapping[str, str]:
    """The configuration and the texts of messages, as relative path to text."""
    return {"alerting/alertmanager.yml": alertmanager(options), messages.PATH: messages.template(options)}


def alertmanager(options: Options) -> str:
    """The configuration, with durations divided by `time_scale`. On a compressed clock every hour is a working hour."""
    return dump(
        {
            "templates": [messages.PATH.removeprefix("alerting/")],
            "route": {"receiver": NOTIFY, "routes": [_ours(options)]},
            "inhibit_rules": [_uplink(options), *(_quiet(one, options) for one in (OUTAGE, *INHIBITIONS))],
            "time_intervals": [
                {
                    "name": WORKING_HOURS,
                    "time_intervals": [
                        {"weekdays": ["monday:friday"], "times": [{"start_time": "08:00", "end_time": "18:00"}]}
                    ],
                }
            ],
            "receivers": [
                _webhook(PAGE, options.page_url),
                _webhook(NOTIFY, options.notify_url),
                _webhook(DIGEST, options.digest_url, send_resolved=False),
            ],
        }
    )


def _ours(options: Options) -> dict[str, Any]:
    """The route of our alerts, with one for each severity below it.

    Only the digest waits for working hours: Alertmanager never tells the end of an alert that ended while its route
    was inactive, and a ticket would stay open.
    """

    def waits(wait: timedelta, interval: timedelta, repeat: timedelta) -> dict[str, str]:
        lengths = {"group_wait": wait, "group_interval": interval, "repeat_interval": repeat}
        return {key: duration(max(SHORTEST, length / options.time_scale)) for key, length in lengths.items()}

    hours = {"active_time_intervals": [WORKING_HOURS]} if options.time_scale == 1.0 else {}
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    return {
        "matchers": [OURS],
        "receiver": NOTIFY,
        "group_by": [*options.group_labels, "site", "alertname"],
        **waits(minute / 2, 5 * minute, 12 * hour),
        "routes": [
            {
                "matchers": [_severity(Severity.CRITICAL)],
                "receiver": PAGE,
                **waits(minute / 6, 5 * minute, 4 * hour),
            },
            {
                "matchers": [_severity(Severity.WARNING)],
                "receiver": NOTIFY,
                **waits(minute / 2, 5 * minute, 24 * hour),
            },
            {
                "matchers": [_severity(Severity.INFO)],
                "receiver": DIGEST,
                "group_by": [*options.group_labels, "severity"],
                **waits(10 * minute, 4 * hour, 72 * hour),
                **hours,
            },
        ],
    }


def _severity(severity: Severity) -> str:
    return f'severity="{severity}"'


def _uplink(options: Options) -> dict[str, Any]:
    return {
        "source_matchers": [f'alertname="{UPLINK}"'],
        "target_matchers": [OURS, 'site=~".+"'],
        **_equal(("$group",), options),
    }


def _quiet(quiet: Quiet, options: Options) -> dict[str, Any]:
    return {
        "source_matchers": [f'alertname="{quiet.because}"'],
        "target_matchers": [_named(quiet.targets)],
        **_equal(quiet.equal, options),
    }


def _equal(written: Sequence[str], options: Options) -> dict[str, list[str]]:
    """The labels that must be the same, each once: a group label may be one that the alert has of its own."""
    stands_for = {"$site": (*options.group_labels, "site"), "$group": options.group_labels}
    labels = dict.fromkeys(label for one in written for label in stands_for.get(one, (one,)))
    return {"equal": list(labels)} if labels else {}


def _named(names: Sequence[str]) -> str:
    return f'alertname="{names[0]}"' if len(names) == 1 else f'alertname=~"{"|".join(names)}"'


def _webhook(name: str, url: str, *, send_resolved: bool = True) -> dict[str, Any]:
    return {"name": name, "webhook_configs": [{"url": url, "send_resolved": send_resolved}]}
