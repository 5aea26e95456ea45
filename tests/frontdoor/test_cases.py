"""What users of such tools have suffered from, through the real front door: a site, an exporter, /metrics."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.certificates import Flaw, identity
from crawlhealth.demo.site import PracticeSite
from running import Exporter, total
from waiting import until

OUTCOMES = "crawlhealth_canary_runs_total"

PAGES = [
    ("challenge-200", "/~challenge:cloudflare_body/", "challenge", "cloudflare_challenge", "a challenge with 200"),
    ("challenge-429", "/product/19", "challenge", "cloudflare_challenge", "429 with cf-mitigated is a challenge"),
    ("imperva-stub", "/~imperva_stub/", "challenge", "imperva_challenge", "a script-only stub with 200 is a challenge"),
    ("contact-form", "/contact", "ok", None, "a form with a recaptcha script is content"),
    ("article", "/article-on-captchas", "ok", None, "prose about captchas is content"),
    ("default-page", "/~redirect_default_page/product/1", "soft_block", None, "a redirect to a host's default page"),
    ("login", "/product/18", "soft_block", "redirected_login", "a redirect to the login"),
    ("block-page", "/~block_page/product/1", "soft_block", None, "a block page with 200"),
    ("heading", "/~block_page/product/2", "soft_block", None, "a block page's own heading is not the expected one"),
    ("forbidden", "/~status:403/product/1", "hard_block", "http_403", "403 is a hard block"),
    ("reset", "/~reset/product/1", "hard_block", "connection_reset", "a reset is a hard block"),
    ("unavailable", "/~status:503/product/1", "error", "http_503", "503 alone is a broken site"),
    ("gone", "/no-such-page", "ok", "http_404", "404 is not hostility"),
    ("gzip", "/~encoded:gzip/product/1", "ok", None, "gzip is decoded before matching"),
    ("br", "/~encoded:br/product/1", "ok", None, "br is decoded before matching"),
    ("zstd", "/~encoded:zstd/product/1", "ok", None, "zstd is decoded before matching"),
    ("endless", "/~endless/", "error", "body_too_large", "an endless body is cut"),
    ("bomb", "/~bomb:gzip/", "error", "body_too_large", "a gzip bomb is cut"),
    ("bomb-br", "/~bomb:br/", "error", "body_too_large", "a brotli bomb is cut"),
    ("bomb-zstd", "/~bomb:zstd/", "error", "body_too_large", "a zstd bomb is cut"),
    ("drip", "/~drip:0.2/", "error", "timeout", "a drip does not outlive the deadline"),
    ("truncated", "/~truncated/product/1", "error", "truncated_body", "a body shorter than announced"),
    ("loop", "/~endless_redirects/", "error", "too_many_redirects", "redirects without an end"),
    ("nested", "/~nested_divs/", "error", "page_too_complex", "a page too complex to read in time"),
]  # fmt: skip

EXPECTED = {"nested": 'css: "body div div p", present: true', "heading": 'css: "h1::text", equals: "Linen apron"'}
NOTHING_EXPECTED = ("contact-form", "article", "gone", "challenge-429")


@pytest.fixture(scope="module")
def site() -> Iterator[PracticeSite]:
    with PracticeSite() as practice:
        yield practice


@pytest.fixture(scope="module")
def every_page(site: PracticeSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """One exporter that has fetched each page of PAGES at least once."""
    folder = tmp_path_factory.mktemp("pages")
    canaries = "\n".join(
        f"""
  - name: {name}
    url: {site.url(path)}
    expect: {{value: {{{EXPECTED.get(name, 'css: "p.price::text", present: true')}}}}}"""
        for name, path, *_ in PAGES
        if name not in NOTHING_EXPECTED
    ) + "\n".join(
        f"""
  - {{name: {name}, url: "{site.url(path)}"}}"""
        for name, path, *_ in PAGES
        if name in NOTHING_EXPECTED
    )
    (folder / "canaries.yml").write_text(f"site: shop\nevery: 4s\ntimeout: 3s\ncanaries:{canaries}\n")
    site.behave(
        Behaviour(kind=Kind.CHALLENGE, path="/product/19", status=429),
        Behaviour(kind=Kind.REDIRECT_LOGIN, path="/product/18"),
    )
    config = """
        sites: {shop: {hosts: [127.0.0.1], max_concurrency: 50, min_gap: 0s}}
        canaries: [canaries.yml]
        history: {commit_every: 200ms}
        """
    with Exporter(folder, config) as exporter:
        until(
            lambda: _ran(exporter) >= {name for name, *_ in PAGES}, 40, "every canary ran once",
            lambda: f"ran: {sorted(_ran(exporter))}\n{exporter.log()}",
        )  # fmt: skip
        yield exporter


def _ran(exporter: Exporter) -> set[str]:
    return {
        dict(labels)["canary"] for (name, labels), value in exporter.samples().items() if name == OUTCOMES and value > 0
    }


@pytest.mark.parametrize(
    ("canary", "outcome", "reason"),
    [pytest.param(name, outcome, reason, id=says) for name, _, outcome, reason, says in PAGES],
)
def test_what_comes_of_a_page(every_page: Exporter, canary: str, outcome: str, reason: str | None) -> None:
    samples = every_page.samples()
    outcomes = {
        dict(labels)["outcome"]
        for (name, labels), _ in samples.items()
        if name == OUTCOMES and ("canary", canary) in labels
    }
    assert outcomes == {outcome}
    if reason is not None:
        assert total(samples, "crawlhealth_request_reasons_total", reason=reason, source="canary")


def test_a_value_is_absent_unless_the_page_was_ok(every_page: Exporter) -> None:
    samples = every_page.samples()
    assert total(samples, "crawlhealth_canary_value", canary="gzip") == 48.5
    assert total(samples, "crawlhealth_canary_value_ok", canary="gzip") == 1
    assert total(samples, "crawlhealth_canary_value_ok", canary="challenge-200") is None
    assert total(samples, "crawlhealth_canary_success", canary="challenge-200") == 0


def test_a_new_site_is_unknown_and_not_zero(every_page: Exporter) -> None:
    samples = every_page.samples()
    assert total(samples, "crawlhealth_score") is None
    assert total(samples, "crawlhealth_band", band="unknown") == 1
    assert total(samples, "crawlhealth_band", band="resisting") == 0
    assert not [key for key, value in samples.items() if math.isnan(value)]


@pytest.mark.parametrize("path", ["/", "/sites/shop"])
def test_pages_show_reasons_and_no_markup_of_what_was_fetched(every_page: Exporter, path: str) -> None:
    page = every_page.get(path)
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    if path != "/":
        assert "cloudflare_challenge" in page.text.replace(" ", "_")


def test_phases_add_up_over_redirects_and_end_where_the_connection_did(site: PracticeSite, tmp_path: Path) -> None:
    """Three redirects: the phases' sum is the total; a refused connection has no later phase."""
    (tmp_path / "canaries.yml").write_text(
        f"""
site: shop
every: 1h
timeout: 3s
canaries:
  - {{name: hops, url: "{site.url("/~redirects:3/product/2")}"}}
  - {{name: refused, url: "http://127.0.0.1:1/"}}
"""
    )
    result = _probe(tmp_path, "sites: {shop: {hosts: [127.0.0.1]}}\ncanaries: [canaries.yml]\n", "shop")
    hops, refused = result
    assert len(hops["redirects"]) == 3
    assert sum(hops["phases"].values()) == pytest.approx(hops["seconds"], rel=0.2, abs=0.005)
    assert refused["reason"] == "connection_refused"
    assert {"tls", "first_byte", "transfer"}.isdisjoint(refused["phases"])
    assert not [line for line in refused["metrics"] if 'phase="first_byte"' in line or 'phase="transfer"' in line]


def test_an_ad_hoc_probe_takes_only_configured_sites(tmp_path: Path) -> None:
    (tmp_path / "crawlhealth.yml").write_text("sites: {shop: {hosts: [127.0.0.1]}}\n")
    done = _run("probe", "http://169.254.169.254/latest", "--config", str(tmp_path / "crawlhealth.yml"))
    assert done.returncode == 2
    assert "no site" in done.stderr


def test_a_dead_proxy_is_the_routes_failure(site: PracticeSite, tmp_path: Path) -> None:
    (tmp_path / "canaries.yml").write_text(
        f"""
site: shop
every: 1s
timeout: 900ms
canaries:
  - {{name: home, url: "{site.url()}", expect: {{n: {{css: article.product, count: {{equals: 20}}}}}}}}
"""
    )
    config = """
        routes: {dead: {proxy: {env: DEAD_PROXY}}}
        sites: {shop: {hosts: [127.0.0.1], routes: [direct, dead], min_gap: 0s}}
        canaries: [canaries.yml]
        history: {commit_every: 200ms}
        """
    secret = "http://user:hunter2secret@127.0.0.1:1"
    with Exporter(tmp_path, config, environ={"DEAD_PROXY": secret}) as exporter:
        exporter.wait_for(OUTCOMES, 1, route="dead", outcome="error")
        exporter.wait_for(OUTCOMES, 1, route="direct", outcome="ok")
        samples = exporter.samples()
        assert total(samples, "crawlhealth_request_reasons_total", reason="proxy")
        assert not total(samples, "crawlhealth_requests_total", outcome="hard_block")
        shown = exporter.get("/metrics").text + exporter.get("/").text + exporter.log()
        assert "hunter2secret" not in shown
    probed = _run("probe", "shop", "--config", str(exporter.path), "--json", environ={"DEAD_PROXY": secret})
    assert "hunter2secret" not in probed.stdout + probed.stderr


def test_tokens_and_passwords_are_in_no_output(site: PracticeSite, tmp_path: Path) -> None:
    """A header token and a cookie reach the site and nothing else."""
    (tmp_path / "token").write_text("filesecret77\n")
    (tmp_path / "canaries.yml").write_text(
        f"""
site: shop
every: 1s
timeout: 900ms
headers: {{x-token: {{env: CANARY_TOKEN}}}}
cookies: {{session: {{file: token}}}}
canaries:
  - {{name: home, url: "{site.url("/~redirects:1/")}"}}
  - {{name: broken, url: "{site.url("/~reset/")}"}}
"""
    )
    config = """
        sites: {shop: {hosts: [127.0.0.1], min_gap: 0s}}
        canaries: [canaries.yml]
        history: {commit_every: 200ms}
        """
    environ = {"CANARY_TOKEN": "envsecret88"}
    site.forget()
    with Exporter(tmp_path, config, environ=environ) as exporter:
        exporter.wait_for(OUTCOMES, 1, canary="home")
        exporter.wait_for(OUTCOMES, 1, canary="broken")
        shown = exporter.get("/metrics").text + exporter.get("/").text + exporter.log()
    probed = _run("probe", "shop", "--config", str(exporter.path), environ=environ)
    shown += probed.stdout + probed.stderr
    sent = [logged.headers for logged in site.requests("/")]
    assert any(headers.get("x-token") == "envsecret88" for headers in sent)
    assert any("filesecret77" in headers.get("cookie", "") for headers in sent)
    for secret in ("envsecret88", "filesecret77"):
        assert secret not in shown


def test_user_info_in_an_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "crawlhealth.yml").write_text("sites: {shop: {hosts: [127.0.0.1]}}\ncanaries: [canaries.yml]\n")
    (tmp_path / "canaries.yml").write_text(
        'site: shop\ncanaries: [{name: home, url: "http://reader:userinfosecret@127.0.0.1/"}]\n'
    )
    checked = _run("check", "--config", str(tmp_path / "crawlhealth.yml"))
    assert checked.returncode == 1
    assert "user name or password" in checked.stderr
    assert "userinfosecret" not in checked.stdout + checked.stderr


def test_the_end_of_a_certificate_is_told_when_it_has_passed(tmp_path: Path) -> None:
    """An expired certificate is an error of TLS and keeps its end on /metrics; a good one has its own."""
    now = datetime.now(UTC)
    good, bad = (identity(flaw, tmp_path, now=now) for flaw in (Flaw.NONE, Flaw.EXPIRED))
    with PracticeSite(tls=good.context) as served, PracticeSite(tls=bad.context, addresses=("127.0.0.2",)) as lapsed:
        (tmp_path / "canaries.yml").write_text(
            f"""
every: 1s
timeout: 900ms
canaries:
  - {{site: good, name: home, url: "{served.url()}"}}
  - {{site: bad, name: home, url: "{lapsed.url()}"}}
"""
        )
        config = f"""
            fetch: {{ca_file: {good.ca_file}}}
            sites: {{good: {{hosts: [127.0.0.1]}}, bad: {{hosts: [127.0.0.2]}}}}
            canaries: [canaries.yml]
            history: {{commit_every: 100ms}}
            """
        with Exporter(tmp_path, config) as exporter:
            exporter.wait_for(OUTCOMES, 1, site="good")
            exporter.wait_for(OUTCOMES, 1, site="bad")
            samples = exporter.samples()
    assert total(samples, OUTCOMES, site="good", outcome="ok")
    assert total(samples, "crawlhealth_request_reasons_total", site="bad", reason="tls")
    assert total(samples, "crawlhealth_canary_duration_seconds", site="bad", phase="first_byte") is None
    ends = "crawlhealth_tls_not_after_timestamp_seconds"
    assert total(samples, ends, site="bad", host="127.0.0.2") == pytest.approx(bad.not_after, abs=1)
    assert total(samples, ends, site="good", host="127.0.0.1") == pytest.approx(good.not_after, abs=1)
    assert bad.not_after < now.timestamp() < good.not_after


@pytest.mark.parametrize("how", ["SIGHUP", "POST"])
def test_a_broken_file_leaves_the_old_configuration_running(site: PracticeSite, tmp_path: Path, how: str) -> None:
    def config(name: str, more: str = "") -> str:
        (tmp_path / f"{name}.yml").write_text(
            f'site: shop\nevery: 500ms\ntimeout: 400ms\ncanaries: [{{name: {name}, url: "{site.url()}"}}]\n'
        )
        return f"""
            sites: {{shop: {{hosts: [127.0.0.1], min_gap: 0s}}}}
            canaries: [{name}.yml]
            history: {{commit_every: 100ms}}
            {more}
            """

    def reload(expected: float) -> None:
        if how == "SIGHUP":
            exporter.send(signal.SIGHUP)
        else:
            assert exporter.post("/-/reload").status_code == (200 if expected else 400)
        until(
            lambda: exporter.value("crawlhealth_config_last_reload_successful") == expected,
            5,
            f"reload metric {expected}",
        )

    with Exporter(tmp_path, config("first")) as exporter:
        exporter.wait_for(OUTCOMES, 2, canary="first")
        read_at = exporter.value("crawlhealth_config_last_reload_success_timestamp_seconds")
        exporter.write(config("second", "sietes: {}"))
        reload(0)
        assert exporter.value("crawlhealth_config_last_reload_success_timestamp_seconds") == read_at
        before = exporter.value(OUTCOMES, canary="first")
        assert before is not None
        exporter.wait_for(OUTCOMES, before + 2, canary="first")  # it keeps probing, and its counters
        assert exporter.value(OUTCOMES, canary="second") is None
        # two swaps within one second: a rename, then a symlink put in its place
        exporter.write(config("second"))
        reload(1)
        target = tmp_path / "real.yml"
        exporter.write(config("third"))
        exporter.path.rename(target)
        link = tmp_path / "link"
        os.symlink(target, link)
        link.rename(exporter.path)
        reload(1)
        exporter.wait_for(OUTCOMES, 1, canary="third")
        until(lambda: exporter.value(OUTCOMES, canary="first") is None, 5, "the canary that went leaves /metrics")


@pytest.mark.alone
def test_hanging_sites_do_not_disturb_the_others(tmp_path: Path) -> None:
    """200 sites every 4 s, 20 of them hanging until the timeout: the healthy keep their cadence, spread out."""
    addresses = [f"127.0.7.{number}" for number in range(1, 201)]
    with PracticeSite(addresses=addresses) as many:
        (tmp_path / "sites").mkdir()
        for number, address in enumerate(addresses):
            path = "/~hang/" if number < 20 else "/"
            (tmp_path / "sites" / f"{number}.yml").write_text(
                f"site: s{number}\nevery: 4s\ntimeout: 3s\n"
                f'canaries: [{{name: home, url: "{many.url(path, host=address)}"}}]\n'
            )
        sites = ", ".join(f"s{number}: {{hosts: [{address}]}}" for number, address in enumerate(addresses))
        with Exporter(
            tmp_path, f"sites: {{{sites}}}\ncanaries: [sites/*.yml]\nhistory: {{commit_every: 200ms}}\n"
        ) as exporter:
            exporter.wait_for(OUTCOMES, 180 * 3, seconds=40, outcome="ok")
            samples = exporter.samples()
        assert total(samples, OUTCOMES, outcome="error", site="s3")
        lag = "crawlhealth_canary_schedule_lag_seconds"
        count = total(samples, lag + "_count")
        assert count
        assert (total(samples, lag + "_bucket", le="0.1") or 0) >= 0.95 * count
        starts = sorted(logged.monotonic for logged in many.requests())
    healthy = [count for (name, labels), count in samples.items() if name == OUTCOMES and ("outcome", "ok") in labels]
    assert max(healthy) - min(healthy) <= 1  # every healthy site ran as often as any other
    second = [sum(1 for at in starts if at // 1 == edge) for edge in range(int(starts[0]) + 1, int(starts[-1]))]
    assert max(second) <= 3 * (len(starts) / (starts[-1] - starts[0]))


COMPRESSED = """
    sites: {shop: {hosts: [127.0.0.1], max_concurrency: 20, min_gap: 0s}}
    canaries: [canaries.yml]
    history: {resolution: 1s, commit_every: 100ms}
    score:
      evaluate_every: 250ms
      windows: [3s, 20s]
      enter_after: {degrading: 500ms, resisting: 500ms}
      leave_after: {degrading: 1s, resisting: 0s}
    """


def _judged(site: PracticeSite, folder: Path) -> Exporter:
    """An exporter on a compressed clock, with two weeks of good history and twenty required values a second."""
    canaries = "\n".join(
        f'  - {{name: p{number}, url: "{site.url(f"/product/{number}")}", '
        f'expect: {{price: {{css: "p.price::text", record: required, number: {{at_least: 1}}}}}}}}'
        for number in range(1, 21)
    )
    (folder / "canaries.yml").write_text(f"site: shop\nevery: 1s\ntimeout: 900ms\ncanaries:\n{canaries}\n")
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    rows = (
        {
            "site": "shop", "route": "direct", "source": "traffic", "window_seconds": 3600, "requests": 500,
            "start": (hour - timedelta(hours=back)).strftime("%Y-%m-%dT%H:%M:%SZ"), "challenge": 5,
            "latency_seconds": {"p50": 0.02, "p95": 0.5}, "extractions_ok": 490, "extractions_failed": 5,
        }
        for back in range(1, 14 * 24)
    )  # fmt: skip
    (folder / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    exporter = Exporter(folder, COMPRESSED)
    imported = _run("import", "--config", str(exporter.path), str(folder / "history.jsonl"))
    assert imported.returncode == 0, imported.stderr
    return exporter


def test_hostility_and_extraction_stay_apart(tmp_path: Path) -> None:
    """Challenges with 200 lower health and leave the parser score; blank values lower the parser score alone."""
    with PracticeSite() as site, _judged(site, tmp_path) as exporter:
        until(lambda: exporter.value("crawlhealth_score") == 100, 20, "a score of 100", exporter.log)
        assert exporter.value("crawlhealth_parser_score") == 100
        assert not exporter.value("crawlhealth_requests_total", source="traffic")  # the import moved no counter

        site.behave(Behaviour(kind=Kind.CHALLENGE, vendor="cloudflare_body", share=0.4))
        until(lambda: (exporter.value("crawlhealth_score") or 100) <= 70, 20, "health falls", exporter.log)
        until(lambda: exporter.value("crawlhealth_band", band="degrading") == 1, 10, "the band follows", exporter.log)
        samples = exporter.samples()
        assert total(samples, "crawlhealth_parser_score") == 100
        assert total(samples, "crawlhealth_penalty_points", signal="challenge") == pytest.approx(25)
        assert not total(samples, "crawlhealth_penalty_points", signal="hard_block")

        site.behave(Behaviour(kind=Kind.BLANK_VALUES))
        until(lambda: exporter.value("crawlhealth_score") == 100, 60, "health recovers", exporter.log)
        until(
            lambda: (exporter.value("crawlhealth_parser_score") or 0) <= 5, 20, "the parser score falls", exporter.log
        )
        assert exporter.value("crawlhealth_score") == 100
        assert exporter.value("crawlhealth_canary_decoy_suspect") == 0


def test_stopping_loses_nothing(tmp_path: Path) -> None:
    """SIGTERM ends cleanly; what was counted is there after the next start, band and totals alike."""
    with PracticeSite() as site, _judged(site, tmp_path) as exporter:
        until(lambda: exporter.value("crawlhealth_score") == 100, 20, "a score", exporter.log)
        enough = "enough for a score after a slow start"
        until(lambda: (exporter.value("crawlhealth_requests_total", outcome="ok") or 0) >= 150, 30, enough)
        before = exporter.samples()
        assert exporter.stop() == 0
        exporter.start()
        after = exporter.samples()
        for (name, labels), value in before.items():
            if name.startswith("crawlhealth_") and name.endswith(("_total", "_count", "_bucket")):
                assert after[name, labels] >= value
        assert total(after, "crawlhealth_band_since_timestamp_seconds") == total(
            before, "crawlhealth_band_since_timestamp_seconds"
        )


def _probe(folder: Path, config: str, target: str) -> list[dict[str, Any]]:
    (folder / "crawlhealth.yml").write_text(config)
    done = _run("probe", target, "--config", str(folder / "crawlhealth.yml"), "--json")
    assert done.stdout, done.stderr
    explained: list[dict[str, Any]] = json.loads(done.stdout)
    return explained


def _run(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crawlhealth.cli", *arguments],
        capture_output=True, text=True, timeout=60, env={**os.environ, **(environ or {})}, check=False,
    )  # fmt: skip


def test_help_is_there_for_every_command() -> None:
    listed = _run("--help").stdout
    for command in ("serve", "check", "probe", "import", "demo", "bundle"):
        assert command in listed
        assert "Example" in _run(command, "--help").stdout


def test_a_missing_configuration_is_told_with_the_option_that_names_one(tmp_path: Path) -> None:
    missing = _run("check", "--config", str(tmp_path / "none.yml"))
    assert missing.returncode == 1
    assert "none.yml:1:1: there is no such file\nname your configuration with --config\n" in missing.stderr


def test_alerts_link_to_where_the_runbooks_are_served(tmp_path: Path) -> None:
    assert _run("bundle", "--out", str(tmp_path), "--runbook-base", "https://wiki.example/crawl/").returncode == 0
    rules = (tmp_path / "alerting/rules/exporter.yml").read_text()
    assert "runbook_url: https://wiki.example/crawl/CrawlExporterDown.md" in rules
    assert "crawlhealth.invalid" not in rules
