"""The Alertmanager configuration: who is told, how often, and what stays quiet because something worse is known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from crawlhealth.bundle.model import Options
from crawlhealth.bundle.yamltext import dump, duration

PAGE = "crawlhealth-page"
NOTIFY = "crawlhealth-notify"
SHORTEST = timedelta(milliseconds=500)


def files(options: Options) -> Mapping[str, str]:
    """The configuration, as relative path to text."""
    return {"alerting/alertmanager.yml": alertmanager(options)}


def alertmanager(options: Options) -> str:
    """Critical alerts go to the webhook `page_url`, the rest to `notify_url`; durations are divided by `time_scale`."""

    def scaled(length: timedelta) -> str:
        return duration(max(SHORTEST, length / options.time_scale))

    return dump(
        {
            "route": {
                "receiver": NOTIFY,
                "group_by": ["alertname", "site"],
                "group_wait": scaled(timedelta(seconds=30)),
                "group_interval": scaled(timedelta(minutes=5)),
                "repeat_interval": scaled(timedelta(hours=12)),
                "routes": [
                    {
                        "matchers": ['severity="critical"'],
                        "receiver": PAGE,
                        "group_wait": scaled(timedelta(seconds=10)),
                        "repeat_interval": scaled(timedelta(hours=4)),
                    }
                ],
            },
            "inhibit_rules": [
                _quiet(because="CrawlTargetResisting", targets="CrawlTargetDegrading"),
                _quiet(because="CrawlTargetDegrading", targets="CrawlParserFailing"),
                _quiet_all(because="CrawlUplinkDown", targets="CrawlTarget.+|CrawlCanary.+|CrawlParserFailing"),
            ],
            "receivers": [_webhook(PAGE, options.page_url), _webhook(NOTIFY, options.notify_url)],
        }
    )


def _quiet(*, because: str, targets: str) -> dict[str, Any]:
    """While `because` fires for a site, `targets` of the same site is not sent."""
    return {
        "source_matchers": [f'alertname="{because}"'],
        "target_matchers": [f'alertname="{targets}"'],
        "equal": ["site"],
    }


def _quiet_all(*, because: str, targets: str) -> dict[str, Any]:
    """While `because` fires, no alert whose name matches `targets` is sent, whatever its site."""
    return {"source_matchers": [f'alertname="{because}"'], "target_matchers": [f'alertname=~"{targets}"']}


def _webhook(name: str, url: str) -> dict[str, Any]:
    return {"name": name, "webhook_configs": [{"url": url, "send_resolved": True}]}
