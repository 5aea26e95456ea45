"""Made-up sites with a past: every metric of the contract that is of a site.

`news` is refused outright since an hour, `shop` degrades by challenges since three, `maps` has a bad route, `wiki` a
broken parser, `forum` a decoy, `archive` has no score, and `books` and `quotes` are fine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboards.courses import HOUR, Course, Past, course, rising, turning, wave
from dashboards.madebots import put_bots, put_exporter

OUTCOMES = ("ok", "hard_block", "challenge", "soft_block", "error")
SHARES = ("hard_block", "challenge", "soft_block")
REASONS = {"http_403": "hard_block", "cloudflare_challenge": "challenge", "login_page": "soft_block"}
ROUTES = ("direct", "dc-us")
BANDS = ("normal", "degrading", "resisting", "unknown")
BOUNDS = ("0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "+Inf")
PHASES = {"dns": 0.01, "connect": 0.03, "tls": 0.05, "first_byte": 0.2, "transfer": 0.08}
COSTS = {"requests": 1.2, "retries": 0.1, "bytes": 9000.0, "credits": 0.4}
CHANGES = 0.3
"""Hours until the band follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site: when it turned, and what then costs points; nothing where nothing does."""

    name: str
    turned: float = math.inf
    points: Mapping[str, float] = field(default_factory=dict)
    band: str = "normal"
    fault: str = "none"
    parser: float = 98.0
    judged: bool = True
    bad_route: bool = False
    decoy: bool = False

    @property
    def begun(self) -> float:
        """When its band began; long ago where it never changed."""
        return self.turned + CHANGES if self.judged and self.band != "normal" else -math.inf

    def share(self, signal: str) -> float:
        """The share of requests that it ends in."""
        return self.points.get(signal, 0.0) / 100

    @property
    def crawled(self) -> Course:
        """The share of the usual traffic that it gets: none while it is paused."""
        return turning(self.begun, 1.0, 0.0) if self.band == "resisting" else course(1.0)

    @property
    def failing(self) -> float:
        """The share of extractions that fail in the end."""
        return 1 - self.parser / 98.0

    @property
    def refused(self) -> float:
        """The share that is refused in the end."""
        return sum(self.share(signal) for signal in SHARES)


SITES = (
    Site(name="news", turned=-0.9, points={"hard_block": 35, "challenge": 12, "refused_cap": 21}, band="resisting",
         fault="site"),
    Site(name="shop", turned=-3.2, points={"challenge": 21, "soft_block": 9, "latency": 6}, band="degrading",
         fault="site"),
    Site(name="maps", turned=-2.0, points={"hard_block": 13}, fault="route", bad_route=True),
    Site(name="wiki", turned=-5.0, parser=31.0, fault="parser"),
    Site(name="forum", turned=-1.0, decoy=True, fault="decoy"),
    Site(name="archive", judged=False, band="unknown"),
    Site(name="books"),
    Site(name="quotes"),
)  # fmt: skip


def made(now: float, scale: float = 1.0) -> Past:
    """Everything, up to now."""
    past = Past(now, scale)
    for number, site in enumerate(SITES):
        _verdict(past, site)
        if site.judged:
            _judged(past, site, number)
        _requests(past, site, number)
        _traffic(past, site, number)
        _canaries(past, site, number)
    put_bots(past)
    put_exporter(past)
    return past


def _verdict(past: Past, site: Site) -> None:
    name = {"site": site.name}
    for band in BANDS:
        shown = turning(site.begun, float(band == "normal"), float(band == site.band))
        past.put("band", shown, **name, band=band)
        past.put("site_band:crawlhealth_band", shown, **name, band=band)
    past.put("band_held", 0.0, **name)
    since = turning(site.begun, past.at(-150), past.at(max(site.begun, -100)))
    past.put("band_since_timestamp_seconds", since, **name)
    past.count("band_transitions_total", 0.01, **name, **{"from": "normal", "to": "degrading"})
    past.count("incidents_total", 0.01, **name)
    for fault in {"none", site.fault}:
        first, then = (1.0 if fault == held else None for held in ("none", site.fault))
        past.put("diagnosis", turning(site.turned, first, then), **name, diagnosis=fault)
    pace = {"resisting": 0.0, "degrading": 0.55}.get(site.band, 1.0)
    for what, advised in (
        ("concurrency_ratio", pace),
        ("revisit_multiplier", 4 - 3 * pace),
        ("cost_multiplier", 2 - pace),
    ):
        past.put(f"advice_{what}", turning(site.begun, 1.0, advised), **name)
    past.put("advice_paused", turning(site.begun, 0.0, float(pace == 0)), **name)
    if site.name == "shop":
        past.put("baseline_accepted_timestamp_seconds", past.at(-20), **name)
        past.put("override_until_timestamp_seconds", past.at(5), **name, kind="limit")
    if site.name == "quotes":
        past.put("maintenance", turning(-14, None, turning(-13, 1.0, None)), **name)


def _judged(past: Past, site: Site, number: int) -> None:
    name, bad = {"site": site.name}, rising(site.turned)
    swing = wave(2.1 + number / 10, 0.3)
    score = 99 + -1.0 * swing + -sum(site.points.values()) * bad
    for prefix in ("", "site:crawlhealth_"):
        past.put(f"{prefix}score", score, **name)
        past.put(f"{prefix}score_raw", score + 4 * bad, **name)
        past.put(f"{prefix}parser_score", turning(site.turned, 98.0, site.parser), **name)
    for signal in ("hard_block", "challenge", "soft_block", "latency", "refused_cap"):
        points = site.points.get(signal, 0.0) * bad
        past.put("penalty_points", points, **name, signal=signal)
        past.put("site_signal:crawlhealth_penalty_points", points, **name, signal=signal)
    for signal in (*SHARES, "refused", "extraction"):
        high = {"extraction": (98 - site.parser) / 100, "refused": site.refused}.get(signal, site.share(signal))
        past.put("signal_ratio", 0.012 * swing + high * bad, **name, signal=signal)
        past.put("signal_baseline_ratio", 0.012, **name, signal=signal)
        if signal != "extraction":
            past.put("signal_lower_bound_ratio", 0.9 * high * bad, **name, signal=signal)
            past.put("drift_z", 0.6 * swing + 25 * high * bad, **name, signal=signal)
    past.put("drift_z", 0.6 * swing + 0.7 * site.points.get("latency", 0.0) * bad, **name, signal="latency")
    past.put("latency_p95_seconds", 0.6 * swing + 0.1 * site.points.get("latency", 0.0) * bad, **name)
    past.put("latency_p95_baseline_seconds", 0.58, **name)
    for what, value in (("window_requests", 400.0), ("window_seconds", 1800.0), ("baseline_seconds", 312 * HOUR)):
        past.put(what, value, **name)
    past.put("baseline_age_seconds", 25 * HOUR, **name)
    for cost, usual in COSTS.items():
        past.put(f"{cost}_per_record", usual * (1 + (sum(site.points.values()) / 30 + 2 * site.failing) * bad), **name)
        past.put(f"{cost}_per_record_baseline", usual, **name)


def _daily(number: int) -> Course:
    """Requests in an hour."""
    return (900.0 + 150 * number) * wave(24, 0.35)


def _requests(past: Past, site: Site, number: int) -> None:
    name, bad, daily = {"site": site.name}, rising(site.turned), _daily(number)
    for route in ROUTES:
        worse = 3.0 if site.bad_route and route == "dc-us" else 0.0 if site.bad_route else 1.0
        for outcome in OUTCOMES:
            part = 0.008 + site.share(outcome) * worse * bad
            if outcome == "ok":
                part = 0.968 + -site.refused * worse * bad
            for source, weight in (("traffic", 0.45), ("canary", 0.05)):
                labels = {**name, "route": route, "source": source, "outcome": outcome}
                many = weight * daily * part * (site.crawled if source == "traffic" else 1.0)
                past.count("requests_total", many, **labels)
                past.put("site_route_outcome:crawl_requests:increase1h", many, **labels)
        many = 0.45 * daily * site.crawled + 0.05 * daily
        past.put("site_route:crawl_requests:increase1h", many, **name, route=route)
        past.put("route_refused_ratio", 0.024 + min(0.97, site.refused * worse) * bad, **name, route=route)
        past.put("error_ratio", 0.008, **name, route=route)
        for what, amount in (("response_bytes", 9e6), ("retries", 12.0), ("credits", 90.0)):
            past.count(f"{what}_total", amount, **name, route=route, source="traffic")
    past.put("site:crawl_refused:ratio1h", 0.024 + site.refused * bad, **name)


def _traffic(past: Past, site: Site, number: int) -> None:
    name, bad, daily = {"site": site.name}, rising(site.turned), _daily(number)
    for reason, signal in REASONS.items():
        rate = site.crawled * daily * (0.008 + site.share(signal) * bad)
        past.count("request_reasons_total", rate, **name, source="traffic", reason=reason)
    for place, bound in enumerate(BOUNDS):
        full = site.crawled * min(1.0, (place + 1) / 5)
        past.count("request_duration_seconds_bucket", full * daily, **name, source="traffic", le=bound)
    past.count("request_duration_seconds_count", site.crawled * daily, **name, source="traffic")
    past.count("request_duration_seconds_sum", 0.4 * site.crawled * daily, **name, source="traffic")
    left = site.crawled * (1 + -site.failing * bad)
    for result, part in (("ok", left), ("failed", site.failing * bad + 0.01)):
        past.count("extractions_total", part * daily, **name, source="traffic", result=result)
    got = left * (1 + -site.refused * bad)
    for result, many in (("valid", 19.0), ("invalid", 0.1)):
        past.count("records_total", many * daily * got, **name, result=result)
    for source in ("traffic", "canary"):
        past.put("last_observation_timestamp_seconds", past.ago(30), **name, source=source)
    for prefix, times in (("site:crawl_requests", 0.9), ("site:crawl_records", 19.0)):
        share = got if prefix.endswith("records") else site.crawled
        past.put(f"{prefix}:increase1h", times * daily * share, **name)
        past.put(f"{prefix}:increase1h_reference", times * daily, **name)


def _canaries(past: Past, site: Site, number: int) -> None:
    for canary in ("home", "product"):
        for route in ROUTES:
            labels = {"site": site.name, "canary": canary, "route": route}
            refused = site.band == "resisting" or (site.bad_route and route == "dc-us")
            wrong = site.decoy and canary == "product" and route == "direct"
            past.put("canary_success", turning(site.turned, 1.0, float(not (refused or wrong))), **labels)
            past.put("canary_decoy_suspect", turning(site.turned, 0.0, float(wrong)), **labels)
            past.count("canary_runs_total", 11.5, **labels, outcome="ok")
            past.count("canary_runs_total", 0.5, **labels, outcome="error")
            past.put("canary_last_run_timestamp_seconds", past.ago(180), **labels)
            last = past.at(max(site.turned, -200)) if refused or wrong else past.ago(180)
            past.put("canary_last_success_timestamp_seconds", turning(site.turned, past.ago(180), last), **labels)
            past.put("canary_interval_seconds", 300.0 / past.scale, **labels)
            past.put("canary_late", 0.0, **labels)
            for phase, seconds in PHASES.items():
                past.put("canary_duration_seconds", seconds * wave(6, 0.4), **labels, phase=phase)
            price = 10.0 + 3 * number
            right, seen = (None, None) if refused else (float(not wrong), price * (1.4 if wrong else 1))
            past.put("canary_value_ok", turning(site.turned, 1.0, right), **labels, value="price")
            past.put("canary_value", turning(site.turned, price, seen), **labels, value="price")
    ends = past.at(24 * (9 + 20 * number) * past.scale)
    past.put("tls_not_after_timestamp_seconds", ends, site=site.name, host=f"{site.name}.example")
