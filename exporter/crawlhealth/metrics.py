"""Every metric's name, type, help text and labels: the one place. The names are a contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)

HISTOGRAM_FIRST: Final = 0.01
HISTOGRAM_LAST: Final = 46.4
"""The published bounds of `crawlhealth_request_duration_seconds`, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricSpec:
    """One metric: `name` as written in queries (counters with `_total`). There is one object of each."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    def gauge(self) -> GaugeMetricFamily:
        """A new, empty family of this gauge."""
        assert self.kind == "gauge", self.name
        return GaugeMetricFamily(self.name, self.help, labels=self.labels)

    def counter(self) -> CounterMetricFamily:
        """A new, empty family of this counter."""
        assert self.kind == "counter", self.name
        return CounterMetricFamily(self.name, self.help, labels=self.labels)

    def histogram(self) -> HistogramMetricFamily:
        """A new, empty family of this histogram."""
        assert self.kind == "histogram", self.name
        return HistogramMetricFamily(self.name, self.help, labels=self.labels)

    def info(self) -> InfoMetricFamily:
        """A new, empty family of this info metric."""
        assert self.kind == "info", self.name
        return InfoMetricFamily(self.name.removesuffix("_info"), self.help)


def _gauge(name: str, help: str, *labels: str) -> MetricSpec:
    return MetricSpec("crawlhealth_" + name, "gauge", help, labels)


def _counter(name: str, help: str, *labels: str) -> MetricSpec:
    return MetricSpec("crawlhealth_" + name, "counter", help, labels)


def _histogram(name: str, help: str, *labels: str) -> MetricSpec:
    return MetricSpec("crawlhealth_" + name, "histogram", help, labels)


# What came of requests
REQUESTS = _counter("requests_total", "Requests by what came of them.", "site", "route", "source", "outcome")
REASONS = _counter(
    "request_reasons_total", "Requests that were not simply served, by reason.", "site", "source", "reason"
)
DURATION = _histogram("request_duration_seconds", "Time to a complete answer, ok responses only.", "site", "source")
BYTES = _counter("response_bytes_total", "Bytes of answers, decoded.", "site", "route", "source")
RETRIES = _counter("retries_total", "Requests that were repeats of a failed one.", "site", "route", "source")
CREDITS = _counter("credits_total", "Paid credits spent on requests.", "site", "route", "source")
EXTRACTIONS = _counter(
    "extractions_total", "Served pages on which extraction worked or failed.", "site", "source", "result"
)
RECORDS = _counter("records_total", "Records extracted from traffic.", "site", "result")
LAST_OBSERVATION = _gauge("last_observation_timestamp_seconds", "Time of the latest observation.", "site", "source")

# Signals and score
SIGNAL = _gauge("signal_ratio", "Share of answered requests in the present window, by signal.", "site", "signal")
SIGNAL_BASELINE = _gauge("signal_baseline_ratio", "The same share in the site's own normal.", "site", "signal")
SIGNAL_LOWER = _gauge(
    "signal_lower_bound_ratio", "The share less what chance and the site's own swings explain: what is scored.",
    "site", "signal",
)  # fmt: skip
DRIFT = _gauge(
    "drift_z", "Early warning: how far a signal has moved above its normal, in standard deviations.", "site", "signal"
)
ERROR_RATIO = _gauge("error_ratio", "Share of requests that ended in an error, in the present window.", "site", "route")
LATENCY = _gauge("latency_p95_seconds", "95th percentile of the time to an ok response, in the present window.", "site")
LATENCY_BASELINE = _gauge("latency_p95_baseline_seconds", "The same percentile in the site's own normal.", "site")
PENALTY = _gauge("penalty_points", "Points that a signal costs off 100.", "site", "signal")
SCORE = _gauge("score", "Health score, 0 to 100; absent while unknown.", "site")
SCORE_RAW = _gauge("score_raw", "The plain formula without cap and smoothing; absent while unknown.", "site")
PARSER_SCORE = _gauge("parser_score", "How well extraction works against its own normal, 0 to 100.", "site")
BAND = _gauge("band", "1 for the site's present band, 0 for the others.", "site", "band")
BAND_HELD = _gauge("band_held", "1 while the band is kept without a score.", "site")
BAND_SINCE = _gauge("band_since_timestamp_seconds", "When the present band began.", "site")
TRANSITIONS = _counter("band_transitions_total", "Changes of band.", "site", "from", "to")
INCIDENTS = _counter("incidents_total", "Incidents that began: stays outside normal.", "site")
WINDOW_REQUESTS = _gauge("window_requests", "Weighted requests in the present window.", "site")
WINDOW_SECONDS = _gauge("window_seconds", "Half-life of the present window.", "site")
BASELINE_SECONDS = _gauge("baseline_seconds", "How much time the baseline is made of.", "site")
BASELINE_AGE = _gauge("baseline_age_seconds", "Time since the newest hour of the baseline.", "site")
BASELINE_ACCEPTED = _gauge(
    "baseline_accepted_timestamp_seconds", "When a person accepted what the site does as its normal; else absent.",
    "site",
)  # fmt: skip
ROUTE_REFUSED = _gauge(
    "route_refused_ratio", "Share of requests refused in the present window, by route.", "site", "route"
)

# What follows from it
DIAGNOSIS = _gauge("diagnosis", "1 for where the site's fault lies; none when there is none.", "site", "diagnosis")
ADVICE_CONCURRENCY = _gauge("advice_concurrency_ratio", "Share of its usual concurrency a crawler should use.", "site")
ADVICE_REVISIT = _gauge("advice_revisit_multiplier", "Factor on the intervals between visits.", "site")
ADVICE_COST = _gauge("advice_cost_multiplier", "What a served page costs against normal.", "site")
ADVICE_PAUSED = _gauge("advice_paused", "1 while only canaries should go on.", "site")
OVERRIDE_UNTIL = _gauge(
    "override_until_timestamp_seconds", "When a person's decision ends; absent without one.", "site", "kind"
)
MAINTENANCE = _gauge("maintenance", "1 during a planned stop of the site, else absent.", "site")
REQUESTS_PER_RECORD = _gauge("requests_per_record", "Requests of traffic for one valid record.", "site")
REQUESTS_PER_RECORD_BASELINE = _gauge("requests_per_record_baseline", "The same in the site's own normal.", "site")
RETRIES_PER_RECORD = _gauge("retries_per_record", "Retries for one valid record.", "site")
RETRIES_PER_RECORD_BASELINE = _gauge("retries_per_record_baseline", "The same in the site's own normal.", "site")
BYTES_PER_RECORD = _gauge("bytes_per_record", "Bytes for one valid record.", "site")
BYTES_PER_RECORD_BASELINE = _gauge("bytes_per_record_baseline", "The same in the site's own normal.", "site")
CREDITS_PER_RECORD = _gauge("credits_per_record", "Paid credits for one valid record.", "site")
CREDITS_PER_RECORD_BASELINE = _gauge("credits_per_record_baseline", "The same in the site's own normal.", "site")

# Canaries
CANARY_SUCCESS = _gauge(
    "canary_success", "1 if the last run was served and every value was right.", "site", "canary", "route"
)
CANARY_DECOY = _gauge(
    "canary_decoy_suspect",
    "1 if the last run was served as content and a value on it was wrong.",
    "site",
    "canary",
    "route",
)
CANARY_RUNS = _counter("canary_runs_total", "Canary runs by what came of them.", "site", "canary", "route", "outcome")
CANARY_VALUE_OK = _gauge(
    "canary_value_ok", "1 if the value was right, 0 if wrong or missing; absent unless the page was ok.",
    "site", "canary", "route", "value",
)  # fmt: skip
CANARY_VALUE = _gauge(
    "canary_value", "The number seen; absent unless the page was ok.", "site", "canary", "route", "value"
)
CANARY_LAST_RUN = _gauge("canary_last_run_timestamp_seconds", "When the canary last ran.", "site", "canary", "route")
CANARY_LAST_SUCCESS = _gauge(
    "canary_last_success_timestamp_seconds", "When the canary last succeeded.", "site", "canary", "route"
)
CANARY_INTERVAL = _gauge(
    "canary_interval_seconds", "The time that should lie between two runs.", "site", "canary", "route"
)
CANARY_DURATION = _gauge(
    "canary_duration_seconds", "Duration of the last run's phases; a phase not reached has no series.",
    "site", "canary", "route", "phase",
)  # fmt: skip
TLS_NOT_AFTER = _gauge(
    "tls_not_after_timestamp_seconds", "End of the certificate's validity, also when past.", "site", "host"
)
CANARY_LATE = _gauge(
    "canary_late", "1 while a pushed canary has not arrived within its time, 0 else.", "site", "canary", "route"
)
SCHEDULE_LAG = _histogram("canary_schedule_lag_seconds", "How late canary runs start, politeness waits aside.")
SKIPPED = _counter("canary_skipped_total", "Canary runs skipped because the one before was still waiting or running.")

# Search bots: who they are, and what their visits need
VERIFICATION_KNOWN = _gauge("log_verification_addresses", "Addresses of visitors of which something is known.")
VERIFICATION_WAITING = _gauge("log_verification_waiting", "Addresses that wait to be looked up, or are being.")
VERIFICATION_CACHE = _counter(
    "log_verification_cache_total", "Questions who a visitor is, by whether the answer was known.", "result"
)
VERIFICATION_LOOKUPS = _counter(
    "log_verification_lookups_total",
    "Addresses looked up by result; refused are those that found no room to wait.", "result",
)  # fmt: skip
RANGES_TIME = _gauge("log_ranges_timestamp_seconds", "When a file of published ranges was written.", "file")
RANGES_GOOD = _gauge(
    "log_ranges_good",
    "0 while a file of ranges is not good or cannot be fetched anew; `*`: while the folder cannot be read.",
    "file",
)
TARGET_UP = _gauge("target_up", "1 if the target answered the last probe.", "target")
TARGET_PROBES = _counter("target_probes_total", "Probes of a target by what came of them.", "target", "result")
TARGET_SECONDS = _gauge("target_response_seconds", "How long the last probe's answer took.", "target")
DOMAIN_EXPIRY = _gauge("domain_expiry_timestamp_seconds", "End of a domain's registration.", "domain")
DOMAIN_LOOKUP = _gauge(
    "domain_expiry_lookup_timestamp_seconds", "When the end of a domain's registration was last told.", "domain"
)
DOMAIN_GOOD = _gauge(
    "domain_expiry_lookup_success", "0 while the end cannot be looked up; what was told last holds.", "domain"
)
REDIRECT_LOOP = _gauge("redirect_loop", "1 if a domain's redirects lead back to itself.", "domain")
DEPENDENCY_UP = _gauge("dependency_up", "1 if a service that is needed answers.", "name")

# Search bots
SEARCHBOT_VISITS = _counter(
    "searchbot_visits_total", "Visits of search bots by who they are.",
    "tenant", "domain", "bot", "identity", "status_class",
)  # fmt: skip
VISITS_RECORDED: Final = "domain_bot:searchbot_visits"
"""What the recording rules of a verified bot's visits begin with."""
SEARCHBOT_LAST = _gauge(
    "searchbot_last_visit_timestamp_seconds", "When a verified bot last came.", "tenant", "domain", "bot"
)
SEARCHBOT_DISPATCHES = _counter(
    "searchbot_dispatches_total", "Where visits were sent.", "tenant", "domain", "bot", "target", "decision"
)
SHARE = _gauge(
    "searchbot_share_ratio", "Share of a bot's visits that a target got, of those sent in six hours.",
    "tenant", "bot", "target",
)  # fmt: skip
SHARE_EXPECTED = _gauge(
    "searchbot_share_expected_ratio", "The share it should get by its weight.", "tenant", "bot", "target"
)
TARGET_QUOTA = _gauge("target_quota", "Visits that a target may get today (UTC).", "tenant", "target")
TARGET_QUOTA_USED = _gauge("target_quota_used", "Visits that were sent to it today.", "tenant", "target")
DISPATCH_ARRIVALS = _counter("dispatch_arrivals_total", "Visits in the target's own log.", "tenant", "bot", "target")
LOG_LINES = _counter("log_lines_total", "Lines read of a log.", "log")
LOG_UNREADABLE = _counter("log_unreadable_lines_total", "Lines of a log that could not be read.", "log")
LOG_BYTES = _counter("log_bytes_total", "Bytes read of a log.", "log")
LOG_LAG = _gauge("log_lag_seconds", "How far the reader of a log is behind.", "log")
LOG_LAG_BYTES = _gauge("log_lag_bytes", "Bytes of a log that were there and not read yet.", "log")

# The exporter itself
BUILD = MetricSpec("crawlhealth_build_info", "info", "Version of the exporter.", ("version", "python"))
SHARDS = _gauge("shards", "How many shards there are, under the number of this one.", "shard")
UPLINK = _gauge("uplink_up", "0 while our own connection is down, so that no site is to blame.")
EVALUATION = _gauge("evaluation_timestamp_seconds", "When the verdicts were last computed.")
RELOAD_SUCCESSFUL = _gauge("config_last_reload_successful", "1 if the last attempt to read the configuration worked.")
RELOAD_TIME = _gauge(
    "config_last_reload_success_timestamp_seconds", "When the configuration was last read with success."
)
HISTORY_FAILURES = _counter("history_write_failures_total", "Commits of the history that failed; they are tried again.")
HISTORY_COMMIT = _gauge("history_last_commit_timestamp_seconds", "When the history was last committed.")
HISTORY_SIZE = _gauge("history_size_bytes", "Size of the history on disk.")
PUSH_BATCHES = _counter(
    "push_batches_total", "Pushes by what came of them: accepted, duplicate, rejected or busy.", "result"
)
PUSH_ITEMS = _counter(
    "push_items_total", "Items of pushes by what came of them: accepted, duplicate or rejected.", "result"
)
PUSH_QUEUE = _gauge("push_queue_items", "Pushed items that are counted and not on disk yet.")

ALL: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, MetricSpec))
