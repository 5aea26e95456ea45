"""Metrics that the rules read and the exporter will have with its search-bot part: names and labels are a contract."""

from __future__ import annotations

from typing import Final

from crawlhealth.metrics import MetricSpec

SEARCHBOTS: Final = tuple(
    MetricSpec("crawlhealth_" + name, kind, help, labels)
    for name, kind, help, labels in (
        (
            "searchbot_visits_total", "counter", "Visits of search bots by who they are.",
            ("tenant", "domain", "bot", "identity", "status_class"),
        ),
        (
            "searchbot_last_visit_timestamp_seconds", "gauge", "When a verified bot last came.",
            ("tenant", "domain", "bot"),
        ),
        (
            "searchbot_dispatches_total", "counter", "Where visits were sent.",
            ("tenant", "domain", "bot", "target", "decision"),
        ),
        ("searchbot_share_ratio", "gauge", "Share of a bot's visits that a target got.", ("tenant", "bot", "target")),
        ("searchbot_share_expected_ratio", "gauge", "The share it should get.", ("tenant", "bot", "target")),
        ("target_quota", "gauge", "Visits that a target may get today.", ("tenant", "target")),
        ("target_quota_used", "gauge", "Visits that it got today.", ("tenant", "target")),
        ("dispatch_arrivals_total", "counter", "Visits in the target's own log.", ("tenant", "bot", "target")),
        ("log_lag_seconds", "gauge", "How far the reader of a log is behind.", ("log",)),
    )
)  # fmt: skip
