"""A made-up past of search bots on two tenants' domains, and of the exporter itself. One bot's visits have halved."""

from __future__ import annotations

from dashboards.courses import Course, Past, course, turning, wave

TENANTS = (
    ("acme", "shop.acme.example", ("Googlebot", "bingbot", "Baiduspider")),
    ("zen", "zen.example", ("Googlebot",)),
)
IDENTITIES = {"verified": 1.0, "fake": 0.12, "unverified": 0.02, "stealth": 0.03, "unverifiable": 0.01}
STATUSES = {"2xx": 0.9, "3xx": 0.06, "4xx": 0.03, "5xx": 0.01}
TARGETS = {"eu": 0.7, "us": 0.3}
DECISIONS = {"sent": 0.88, "stayed": 0.12, "over_quota": 0.0}
DOWN = (-30.0, -26.0)
"""When the target `us` was down."""
LAGS = {"0.001": 0.55, "0.01": 0.8, "0.1": 0.97, "1.0": 1.0, "+Inf": 1.0}


def put_bots(past: Past) -> None:
    """Visits, where they went, and what they need."""
    for tenant, domain, bots in TENANTS:
        for number, bot in enumerate(bots):
            _visits(past, {"tenant": tenant, "domain": domain, "bot": bot}, number)
        for target, used in (("eu", 0.94), ("us", 0.4)):
            of = {"tenant": tenant, "target": target}
            past.put("target_quota", 8000.0, **of)
            past.put("target_quota_used", 8000 * used * (0.9 if tenant == "acme" else 0.7) * past.day(), **of)
        days = 20 if tenant == "zen" else 200
        past.put("domain_expiry_timestamp_seconds", past.at(24 * past.scale * days), domain=domain)
        past.put("redirect_loop", 0.0, domain=domain)
        past.put("domain_expiry_lookup_success", 1.0, domain=domain)
    for target in TARGETS:
        past.put("target_up", _between(DOWN, 0.0, 1.0) if target == "us" else 1.0, target=target)
    past.put("dependency_up", 1.0, name="redis")
    past.put("log_lag_seconds", 2 * wave(5, 0.5), log="access.log")
    past.count("log_lines_total", 52_000.0, log="access.log")
    past.count("log_unreadable_lines_total", 12.0, log="access.log")
    past.count("log_verification_cache_total", 49_000.0, result="hit")
    past.count("log_verification_cache_total", 800.0, result="miss")
    past.put("log_verification_waiting", 3 * wave(6, 0.3))


def _between(times: tuple[float, float], inside: float, outside: float) -> Course:
    return turning(times[0], outside, turning(times[1], inside, outside))


def _visits(past: Past, of: dict[str, str], number: int) -> None:
    rate = (260.0 - 70 * number) * wave(24, 0.4)
    if of["bot"] == "Baiduspider":
        rate = rate * turning(-14, 1.0, 0.4)
    for identity, part in IDENTITIES.items():
        for status, share in STATUSES.items():
            past.count("searchbot_visits_total", part * share * rate, **of, identity=identity, status_class=status)
    past.put("domain_bot:searchbot_visits:increase1h", rate, **of)
    past.put("searchbot_last_visit_timestamp_seconds", past.ago(72), **of)
    to = {"tenant": of["tenant"], "bot": of["bot"]}
    for target, weight in TARGETS.items():
        up = _between(DOWN, 0.0, 1.0) if target == "us" else course(1.0)
        for decision, part in DECISIONS.items():
            served = part * weight * rate * (up if decision == "sent" else 1.0)
            past.count("searchbot_dispatches_total", served, **of, target=target, decision=decision)
        refused = 0.88 * weight * rate * (1.0 + -1.0 * up)
        past.count("searchbot_dispatches_total", refused, **of, target=target, decision="target_down")
        past.count("dispatch_arrivals_total", 0.86 * weight * rate * up, **to, target=target)
        off = 0.15 if of["bot"] == "bingbot" else 0.01
        past.put("searchbot_share_ratio", weight + (off if target == "eu" else -off), **to, target=target)
        past.put("searchbot_share_expected_ratio", weight, **to, target=target)


def put_exporter(past: Past) -> None:
    """What the exporter says of itself."""
    for name, value in (("resident_memory_bytes", 1.9e8), ("start_time_seconds", past.at(-50))):
        past.put(f"process_{name}", value)
    past.count("process_cpu_seconds_total", 190.0 / past.scale)
    past.put("build_info", 1.0, version="0.1.0", python="3.13.1")
    past.put("shards", 1.0, shard="1")
    past.put("uplink_up", 1.0)
    past.put("evaluation_timestamp_seconds", past.ago(4))
    past.put("config_last_reload_successful", 1.0)
    past.put("config_last_reload_success_timestamp_seconds", past.at(-50))
    past.count("history_write_failures_total", 0.0)
    past.put("history_last_commit_timestamp_seconds", past.ago(1))
    past.put("history_size_bytes", 4.1e8)
    for result, rate in (("accepted", 3600.0), ("duplicate", 12.0), ("rejected", 6.0), ("busy", 1.0)):
        past.count("push_batches_total", rate, result=result)
        if result != "busy":
            past.count("push_items_total", 40 * rate, result=result)
    past.put("push_queue_items", 20 * wave(6, 0.5))
    past.count("canary_skipped_total", 0.2)
    for bound, share in LAGS.items():
        past.count("canary_schedule_lag_seconds_bucket", 380 * share, le=bound)
    past.count("canary_schedule_lag_seconds_count", 380.0)
    past.count("canary_schedule_lag_seconds_sum", 4.0)
