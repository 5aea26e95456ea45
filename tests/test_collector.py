from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry, generate_latest

from crawlhealth import metrics
from crawlhealth.checks import Selector, ValueSpec
from crawlhealth.collector import Exposition, HealthCollector, show
from crawlhealth.config import Canary, Config, HistorySettings, MetricsSettings, Route, Site
from crawlhealth.history import Committed, History, StoredRun, Timings
from crawlhealth.model import Phase, ValueResult
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.series import Text
from crawlhealth.verdict import (
    Advice,
    Band,
    BandState,
    Baseline,
    Cost,
    Diagnosis,
    Override,
    OverrideKind,
    Penalty,
    Rates,
    Signal,
    Verdict,
    Window,
)
from samples import DAY, NOW, observation, run

PRICE = ValueSpec(name="price", selector=Selector(kind="css", expression=".price::text"))
FRONT = Canary(name="front", site="books", url="https://books.example/", expect=(PRICE,))
CONFIG = Config(
    routes={"direct": Route(name="direct"), "dc-us": Route(name="dc-us")},
    sites={"books": Site(name="books", hosts=("books.example",), routes=("direct", "dc-us"))},
    canaries=(FRONT,),
)
VERDICT = Verdict(
    site="books",
    at=NOW,
    state=BandState(band=Band.DEGRADING, since=NOW - 60),
    score=66,
    score_raw=75,
    smoothed=66.2,
    parser_score=97,
    penalties=(
        Penalty(signal=Signal.CHALLENGE, points=25.0, now=0.34, baseline=0.02),
        Penalty(signal=Signal.REFUSED_CAP, points=8.5, now=0.34, baseline=0.02),
    ),
    window=Window(
        seconds=3600,
        requests=100,
        extractions=60,
        rates=Rates(hard_block=0.0, challenge=0.34, soft_block=0.0, latency_p95=0.5, extraction=0.05),
    ),
    baseline=Baseline(
        hours=312, newest=NOW - DAY, rates=Rates(hard_block=0.0, challenge=0.02, soft_block=0.0, latency_p95=0.4)
    ),
    route_refused={"direct": 0.34},
    route_error={"direct": 0.01},
)


def exposed(
    config: Config = CONFIG, committed: Committed | None = None, verdicts: tuple[Verdict, ...] = (), now: float = NOW
) -> str:
    snapshot = Exposition(config=config, committed=committed or Committed(), verdicts=verdicts, now=now)
    registry = CollectorRegistry()
    registry.register(HealthCollector(lambda: snapshot))
    theirs = generate_latest(registry).decode()
    text = Text()
    show(snapshot, text)
    assert "".join(text.pieces(generate_latest)) == theirs, "our own text is that of prometheus_client"
    return theirs


def series(text: str, name: str) -> set[str]:
    """The series of one metric as "labels value", without its name."""
    lines = re.findall(rf"^crawlhealth_{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
    return {f"{labels} {value}".strip() for labels, value in lines}


def names(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.open(tmp_path / "history.db", HistorySettings(), now=NOW)
    yield opened
    opened.close()


def test_a_new_exporter_shows_zeros_for_what_is_configured_and_nothing_it_does_not_know() -> None:
    text = exposed()
    assert names(text) == {
        "crawlhealth_requests_total", "crawlhealth_extractions_total", "crawlhealth_records_total",
        "crawlhealth_history_write_failures_total", "crawlhealth_history_size_bytes",
    }  # fmt: skip
    assert "nan" not in text.lower()
    requests = series(text, "requests_total")
    assert all(line.endswith(" 0.0") for line in requests)
    strata = {re.sub(r'outcome="\w+",', "", line) for line in requests}
    assert strata == {
        'route="direct",site="books",source="canary" 0.0', 'route="direct",site="books",source="traffic" 0.0',
        'route="dc-us",site="books",source="traffic" 0.0',
    }  # fmt: skip
    assert len(requests) == 3 * len(Outcome)


def test_a_verdict_as_gauges() -> None:
    text = exposed(verdicts=(VERDICT,))
    expected = {
        "score": {'site="books" 66.0'},
        "score_raw": {'site="books" 75.0'},
        "parser_score": {'site="books" 97.0'},
        "band": {
            'band="normal",site="books" 0.0', 'band="degrading",site="books" 1.0', 'band="resisting",site="books" 0.0',
            'band="unknown",site="books" 0.0',
        },
        "band_held": {'site="books" 0.0'},
        "band_since_timestamp_seconds": {'site="books" 1.79603994e+09'},
        "penalty_points": {'signal="challenge",site="books" 25.0', 'signal="refused_cap",site="books" 8.5'},
        "signal_ratio": {
            'signal="hard_block",site="books" 0.0', 'signal="challenge",site="books" 0.34',
            'signal="soft_block",site="books" 0.0', 'signal="refused",site="books" 0.34',
            'signal="extraction",site="books" 0.05',
        },
        "signal_baseline_ratio": {
            'signal="hard_block",site="books" 0.0', 'signal="challenge",site="books" 0.02',
            'signal="soft_block",site="books" 0.0', 'signal="refused",site="books" 0.02',
        },
        "latency_p95_seconds": {'site="books" 0.5'},
        "latency_p95_baseline_seconds": {'site="books" 0.4'},
        "window_requests": {'site="books" 100.0'},
        "window_seconds": {'site="books" 3600.0'},
        "baseline_seconds": {'site="books" 1.1232e+06'},
        "baseline_age_seconds": {'site="books" 86400.0'},
        "route_refused_ratio": {'route="direct",site="books" 0.34'},
        "error_ratio": {'route="direct",site="books" 0.01'},
    }  # fmt: skip
    assert {name: series(text, name) for name in expected} == expected


def test_less_detail_leaves_the_score_and_what_follows_from_it(history: History) -> None:
    history.add(observation())
    history.commit(NOW)
    shown = exposed(replace(CONFIG, metrics=MetricsSettings(detail="score")), history.committed(), (VERDICT,))
    assert names(shown) == {
        "crawlhealth_score", "crawlhealth_score_raw", "crawlhealth_parser_score", "crawlhealth_band",
        "crawlhealth_band_held", "crawlhealth_band_since_timestamp_seconds", "crawlhealth_diagnosis",
        "crawlhealth_advice_concurrency_ratio", "crawlhealth_advice_revisit_multiplier",
        "crawlhealth_advice_cost_multiplier", "crawlhealth_advice_paused", "crawlhealth_history_write_failures_total",
        "crawlhealth_history_last_commit_timestamp_seconds", "crawlhealth_history_size_bytes",
    }  # fmt: skip
    assert series(shown, "score") == {'site="books" 66.0'}


def test_what_follows_from_a_verdict_as_gauges() -> None:
    cost = Cost(requests=1.5, retries=0.25, bytes=900.0, credits=0.5)
    assert VERDICT.window is not None
    concluded = replace(
        VERDICT,
        diagnosis=Diagnosis.SITE,
        advice=Advice(concurrency_ratio=0.3, revisit_multiplier=2.4, cost_multiplier=1.48),
        override=Override(site="books", kind=OverrideKind.LIMIT, at=NOW, until=NOW + 60, concurrency=0.3),
        maintenance=True,
        window=structs.replace(VERDICT.window, cost=cost),
    )
    text = exposed(verdicts=(concluded,))
    expected = {
        "diagnosis": {'diagnosis="site",site="books" 1.0'},
        "advice_concurrency_ratio": {'site="books" 0.3'},
        "advice_revisit_multiplier": {'site="books" 2.4'},
        "advice_cost_multiplier": {'site="books" 1.48'},
        "advice_paused": {'site="books" 0.0'},
        "override_until_timestamp_seconds": {'kind="limit",site="books" 1.79604006e+09'},
        "maintenance": {'site="books" 1.0'},
        "requests_per_record": {'site="books" 1.5'},
        "retries_per_record": {'site="books" 0.25'},
        "bytes_per_record": {'site="books" 900.0'},
        "credits_per_record": {'site="books" 0.5'},
        "requests_per_record_baseline": set(),
    }
    assert {name: series(text, name) for name in expected} == expected
    quiet = exposed(verdicts=(VERDICT,))
    for name in ("override_until_timestamp_seconds", "maintenance", "requests_per_record"):
        assert series(quiet, name) == set(), name


def test_an_unknown_score_is_absent_and_its_band_is_said() -> None:
    unknown = Verdict(site="books", at=NOW, state=BandState(since=NOW))
    text = exposed(verdicts=(unknown,))
    for name in ("score", "score_raw", "parser_score", "penalty_points", "signal_ratio", "window_requests"):
        assert series(text, name) == set(), name
    assert 'band="unknown",site="books" 1.0' in series(text, "band")


def test_requests_of_traffic_and_canaries(history: History) -> None:
    history.add(observation(outcome=Outcome.OK, seconds=0.02, extracted=True, count=3))
    history.add(observation(outcome=Outcome.OK, seconds=0.2, extracted=False))
    history.add(observation(outcome=Outcome.CHALLENGE, reason=Reason.CLOUDFLARE_CHALLENGE, seconds=9.0))
    history.add(
        replace(observation(route="dc-us"), bytes=500, retries=2, credits=0.5, records_valid=20, records_invalid=1)
    )
    history.commit(NOW)
    text = exposed(committed=history.committed())
    assert {
        'outcome="ok",route="direct",site="books",source="traffic" 4.0',
        'outcome="challenge",route="direct",site="books",source="traffic" 1.0',
        'outcome="ok",route="dc-us",site="books",source="traffic" 1.0',
    } <= series(text, "requests_total")
    assert series(text, "request_reasons_total") == {
        'reason="cloudflare_challenge",site="books",source="traffic" 1.0'
    }  # fmt: skip
    assert series(text, "request_duration_seconds_count") == {'site="books",source="traffic" 4.0'}, "ok ones only"
    assert 'le="0.0215",site="books",source="traffic" 3.0' in series(text, "request_duration_seconds_bucket")
    assert series(text, "response_bytes_total") == {'route="dc-us",site="books",source="traffic" 500.0'}
    assert series(text, "retries_total") == {'route="dc-us",site="books",source="traffic" 2.0'}
    assert series(text, "credits_total") == {'route="dc-us",site="books",source="traffic" 0.5'}
    assert {'result="ok",site="books",source="traffic" 3.0', 'result="failed",site="books",source="traffic" 1.0'} <= (
        series(text, "extractions_total")
    )
    assert series(text, "records_total") == {'result="valid",site="books" 20.0', 'result="invalid",site="books" 1.0'}
    assert series(text, "last_observation_timestamp_seconds") == {'site="books",source="traffic" 1.79604e+09'}


def value(name: str, number: float | None, *, ok: bool) -> ValueResult:
    return ValueResult(name=name, ok=ok, missing=False, number=number)


CANARY_RUN = replace(
    run(),
    phases={Phase.DNS: 0.01, Phase.CONNECT: 0.02},
    values=(value("price", 51.77, ok=True),),
    not_after={"books.example": NOW + DAY, "cdn.elsewhere.example": NOW},
)


def with_run(one: StoredRun, canary: str = "front", route: str = "direct") -> Committed:
    return Committed(
        runs={("books", canary, route): one},
        counters={(metrics.CANARY_RUNS.name, ("books", canary, route, "ok")): 3.0},
    )


def test_a_canary_run_as_gauges() -> None:
    text = exposed(committed=with_run(StoredRun(run=CANARY_RUN, last_success=NOW - 5)))
    of = 'canary="front",{}route="direct",site="books"'
    plain = of.format("")
    assert series(text, "canary_success") == {f"{plain} 1.0"}
    assert series(text, "canary_decoy_suspect") == {f"{plain} 0.0"}
    assert series(text, "canary_last_run_timestamp_seconds") == {f"{plain} 1.79604e+09"}
    assert series(text, "canary_interval_seconds") == {f"{plain} 300.0"}
    assert series(text, "canary_last_success_timestamp_seconds") == {f"{plain} 1.796039995e+09"}
    assert series(text, "canary_value_ok") == {f'{plain},value="price" 1.0'}
    assert series(text, "canary_value") == {f'{plain},value="price" 51.77'}
    assert series(text, "canary_duration_seconds") == {
        of.format('phase="dns",') + " 0.01", of.format('phase="connect",') + " 0.02",
    }  # fmt: skip
    assert series(text, "canary_runs_total") == {of.format('outcome="ok",') + " 3.0"}
    assert series(text, "tls_not_after_timestamp_seconds") == {'host="books.example",site="books" 1.7961264e+09'}, (
        "a foreign host at the end of a redirect is no label"
    )


def test_values_are_absent_unless_the_page_was_ok() -> None:
    refused = replace(run(outcome=Outcome.HARD_BLOCK), values=(value("price", 1.0, ok=True),))
    text = exposed(committed=with_run(StoredRun(run=refused)))
    assert series(text, "canary_value") == series(text, "canary_value_ok") == set()
    assert series(text, "canary_last_success_timestamp_seconds") == set(), "it never succeeded"


@pytest.mark.parametrize(
    ("config", "gone"),
    [
        pytest.param(
            replace(CONFIG, sites={}, canaries=()), {'site="books"'}, id="a site that left takes its series along"
        ),
        pytest.param(replace(CONFIG, canaries=()), {'canary="front"'}, id="a canary that left"),
        pytest.param(
            replace(CONFIG, routes={"dc-us": Route(name="dc-us")}, canaries=(replace(FRONT, routes=("dc-us",)),),
                    sites={"books": Site(name="books", hosts=("books.example",), routes=("dc-us",))}),
            {'route="direct"'}, id="a route that left",
        ),
        pytest.param(
            replace(CONFIG, canaries=(replace(FRONT, expect=()),)), {'value="price"'}, id="a value that left"
        ),
    ],
)  # fmt: skip
def test_what_leaves_the_configuration_leaves_the_next_scrape(history: History, config: Config, gone: set[str]) -> None:
    history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, seconds=1))
    history.add(observation(source=Source.CANARY, seconds=1))
    history.add_run(CANARY_RUN)
    history.count(metrics.CANARY_RUNS, ("books", "front", "direct", "ok"))
    history.count(metrics.TRANSITIONS, ("books", "normal", "degrading"))
    history.commit(NOW)
    before = exposed(committed=history.committed(), verdicts=(VERDICT,))
    after = exposed(config, committed=history.committed(), verdicts=(VERDICT,))
    for label in gone:
        assert label in before
        assert label not in after


def test_how_late_canaries_start_is_a_histogram_and_skipped_ones_are_counted(history: History) -> None:
    assert "canary_skipped" not in exposed(committed=history.committed())
    history.observe(metrics.SCHEDULE_LAG, (), 0.002)
    history.observe(metrics.SCHEDULE_LAG, (), 0.2)
    history.count(metrics.SKIPPED, ())
    history.commit(NOW)
    text = exposed(committed=history.committed())
    lag = series(text, "canary_schedule_lag_seconds_bucket")
    assert {'le="0.001" 0.0', 'le="0.00215" 1.0', 'le="+Inf" 2.0'} <= lag
    assert series(text, "canary_skipped_total") == {"1.0"}


def test_no_series_appears_twice_and_every_name_is_declared(history: History) -> None:
    for source in Source:
        for route in CONFIG.routes:
            history.add(replace(observation(source=source, route=route, seconds=0.1), bytes=1, retries=1, credits=1.0))
    history.add_run(CANARY_RUN)
    history.count(metrics.TRANSITIONS, ("books", "normal", "degrading"))
    history.commit(NOW)
    text = exposed(committed=history.committed(), verdicts=(VERDICT,))
    lines = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    assert names(text) <= {spec.name for spec in metrics.ALL}


def test_a_histogram_of_nothing_has_no_series() -> None:
    committed = Committed(timings={(metrics.SCHEDULE_LAG.name, ()): Timings()})
    assert "lag" not in exposed(committed=committed)
