"""Incidents of a real exporter: on the command line, over HTTP and on the page, and what a person says of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import sync_playwright

from crawlhealth.cli import main
from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, History
from crawlhealth.incident import Incident
from crawlhealth.verdict import NEUTRAL, Advice, Band, BandState, Diagnosis, Signal, Verdict
from running import Exporter

CONFIG = """\
sites:
  books: {hosts: [books.example]}
  "two words": {hosts: [quotes.example]}
score: {evaluate_every: 200ms}
push:
  tokens:
    - {env: TOKEN}
    - {token: {env: QUOTES}, sites: ["two words"]}
"""
ENVIRON = {"TOKEN": "geheim", "QUOTES": "leise"}
HOUR = 3600
OPEN = float(int(time.time()) - 2 * HOUR)
OLD = OPEN - 100 * HOUR
FORM = {"label": "false-alarm", "note": "their sale", "reason": "latency"}


def name(start: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start))


def begin(folder: Path, *, tokens: bool = True) -> Exporter:
    """An exporter, not started: books had an incident and has one, the other site had one at the same time."""
    (folder / "data").mkdir(parents=True)
    history = History.open(folder / "data" / FILE_NAME, HistorySettings(), now=OLD)

    def put(site: str, start: float, end: float | None, score: int | None) -> None:
        incident = Incident(
            site=site, start=start, end=end, worst_score=score, worst_band=Band.RESISTING, worst_at=start + HOUR,
            first_reason=None if score is None else Signal.CHALLENGE, diagnosis=Diagnosis.SITE,
            warned_at=start - 5 * HOUR, reasons=((start, ((Signal.CHALLENGE, 25.0),)),),
            advice=((start, Advice(concurrency_ratio=0.0, revisit_multiplier=4.0, cost_multiplier=10.0, paused=True)),),
            resisting_at=start, paused_seconds=0.0 if end is None else end - start,
        )  # fmt: skip
        band, at = (Band.RESISTING, start) if end is None else (Band.NORMAL, end)
        advice = incident.advice[0][1] if end is None else NEUTRAL
        state = BandState(band=band, since=at, held=end is None)
        history.put_verdict(Verdict(site=site, at=at, state=state, advice=advice), incident)
        assert history.commit(at)

    put("books", OLD, OLD + 3 * HOUR, 12)
    put("two words", OLD, OLD + HOUR, 44)
    put("books", OPEN, None, None)
    history.close()
    config = CONFIG if tokens else CONFIG.partition("push:")[0]
    return Exporter(folder, config, environ=ENVIRON)


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with begin(tmp_path_factory.mktemp("incidents")) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without an exporter that runs."""
    return begin(tmp_path_factory.mktemp("commands")).folder


def crawlhealth(folder: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*arguments, "--config", str(folder / "crawlhealth.yml")], env=ENVIRON)
    return done.exit_code, (done.stdout or done.stderr).strip()


def incidents(exporter: Exporter, path: str = "/api/v1/sites/books/incidents") -> list[Any]:
    found: list[Any] = exporter.get(path).json()["incidents"]
    return found


# the command line


def test_incidents_are_listed_newest_first(folder: Path) -> None:
    code, said = crawlhealth(folder, "incidents")
    lines = said.splitlines()
    assert code == 0
    assert lines[0].split() == ["site", "start", "lasted", "worst", "first", "reason", "diagnosis", "label"]
    assert [line.split("  ")[0] for line in lines[1:]] == ["books", "books", "two words"]
    assert re.search(r" 2h(\d+m)? so far ", lines[1]), "the suite may have been running for a while"
    assert lines[2].split() == ["books", name(OLD), "3h", "12", "resisting", "challenge", "site", "-"]
    assert crawlhealth(folder, "incidents", "books", "--since", "10h")[1].count("resisting") == 1
    assert crawlhealth(folder, "incidents", "--until", "2000h") == (0, "no incident is on record for this time")


def test_incidents_are_told_to_machines(folder: Path) -> None:
    code, said = crawlhealth(folder, "incidents", "books", "--json")
    still, old = json.loads(said)
    assert (code, still["end"], still["worst_score"], still["first_reason"]) == (0, None, None, None)
    assert (old["start"], old["end"], old["seconds"]) == (name(OLD), name(OLD + 3 * HOUR), 3 * HOUR)
    assert old["reasons"] == [{"at": name(OLD), "reasons": [{"signal": "challenge", "points": 25.0}]}]


def test_a_label_is_shown_and_counts_in_the_review(folder: Path) -> None:
    code, said = crawlhealth(folder, "label", "books", name(OLD), "true", "--note", "they said so", "--reason",
                             "challenge")  # fmt: skip
    assert (code, said) == (0, f"books: the incident of {name(OLD)} is labelled true")
    assert crawlhealth(folder, "label", "two words", "latest", "false-alarm")[0] == 0
    assert "true: they said so" in crawlhealth(folder, "incidents", "books")[1]
    code, said = crawlhealth(folder, "review")
    assert code == 0
    assert "all sites: 3 incidents, 1 of them still on" in said
    assert "labels        1 true, 1 false alarm, 1 unlabelled: precision 50%" in said
    assert "3 had an early warning, 5h before the band; the worst came 1h after it began (medians)" in said
    assert "first reason  1 right, 0 wrong, 2 unknown" in said
    assert "two words: 1 incident" in said
    found = json.loads(crawlhealth(folder, "review", "--site", "books", "--json")[1])
    assert (found["overall"]["precision"], found["overall"]["warning_to_band"]) == (1.0, 5 * HOUR)
    assert list(found["sites"]) == ["books"]


def test_a_review_of_nothing_says_so(folder: Path) -> None:
    code, said = crawlhealth(folder, "review", "--since", "1h")
    assert (code, said.splitlines()[1]) == (0, "no incident began in this time")
    found = json.loads(crawlhealth(folder, "review", "--since", "1h", "--json")[1])
    assert (found["overall"]["incidents"], found["overall"]["precision"], found["sites"]) == (0, None, {})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["label", "books", "2020-01-01T00:00:00Z", "true"], f"write latest, or one of {name(OPEN)}, ",
                     id="another start"),
        pytest.param(["label", "books", "noon", "true"], "'noon' is no start of an incident", id="no start"),
        pytest.param(["label", "books", "latest", "maybe"], "'maybe' is not one of", id="no label"),
        pytest.param(["label", "bokos", "latest", "true"], "no site 'bokos': did you mean books?", id="no site"),
        pytest.param(["incidents", "bokos"], "did you mean books?", id="no site to list"),
        pytest.param(["review", "--since", "often"], "'often' is no time: write", id="no time"),
        pytest.param(["review", "--until", "60d"], "--until: write a moment later", id="no stretch of time"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_told_and_exits_2(folder: Path, arguments: list[str], said: str) -> None:
    code, text = crawlhealth(folder, *arguments)
    assert code == 2
    assert said in " ".join(text.split())


def test_without_a_history_a_command_says_so_and_exits_1(tmp_path: Path) -> None:
    Exporter(tmp_path, CONFIG)
    for command in ("incidents", "review"):
        code, said = crawlhealth(tmp_path, command)
        assert code == 1
        assert "has the exporter run with this data_dir?" in said


def test_a_label_is_taken_beside_a_running_exporter(exporter: Exporter) -> None:
    command = [sys.executable, "-m", "crawlhealth.cli", "label", "books", name(OLD), "true", "--note", "by hand"]
    subprocess.run(command, cwd=exporter.folder, env={**os.environ, **ENVIRON}, check=True, timeout=60)
    assert incidents(exporter)[1]["label"]["note"] == "by hand"


# HTTP


def test_the_exporter_goes_on_with_the_open_incident_and_counts_it_once(exporter: Exporter) -> None:
    still, old = incidents(exporter)
    assert (still["start"], still["end"], still["paused_seconds"] > 2 * HOUR - 1) == (name(OPEN), None, True)
    assert (old["start"], old["paused_seconds"]) == (name(OLD), 3 * HOUR)
    assert exporter.value("crawlhealth_incidents_total", site="books") == 2
    assert exporter.value("crawlhealth_incidents_total", site="two words") == 1


def test_incidents_are_read_by_site_and_by_time(exporter: Exporter) -> None:
    assert [each["site"] for each in incidents(exporter, "/api/v1/incidents")] == ["books", "books", "two words"]
    assert [each["start"] for each in incidents(exporter, "/api/v1/incidents?since=3h")] == [name(OPEN)]
    assert len(incidents(exporter, "/api/v1/incidents?limit=2")) == 2
    assert len(incidents(exporter, "/api/v1/sites/books/incidents?limit=1")) == 1
    assert len(incidents(exporter, "/api/v1/sites/two%20words/incidents")) == 1
    unknown = exporter.get("/api/v1/sites/none/incidents")
    assert (unknown.status_code, unknown.json()["error"][:12]) == (404, "unknown site")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("since=soon", "since: write a moment", id="since"),
        pytest.param("limit=0", "limit: write a whole number from 1 to 1000", id="none at all"),
        pytest.param("limit=1e9", "limit: write a whole number from 1 to 1000", id="no whole number"),
    ],
)
def test_a_question_that_cannot_be_meant_is_told_why(exporter: Exporter, query: str, said: str) -> None:
    found = exporter.get(f"/api/v1/incidents?{query}")
    assert found.status_code == 400
    assert said in found.json()["error"]


def label(exporter: Exporter, body: object, *, start: str = "", site: str = "books", token: str = "geheim",
          headers: dict[str, str] | None = None) -> tuple[int, Any]:  # fmt: skip
    answer = exporter.post(
        f"/api/v1/sites/{site}/incidents/{start or name(OLD)}/label", json=body,
        headers={"authorization": f"Bearer {token}", **(headers or {})},
    )  # fmt: skip
    return answer.status_code, answer.json()


def test_a_person_labels_an_incident_over_http(exporter: Exporter) -> None:
    status, said = label(exporter, {"label": "false-alarm", "note": "their  sale", "reason": "latency"})
    assert (status, said["start"]) == (200, name(OLD))
    assert said["label"] == {**said["label"], "label": "false-alarm", "note": "their sale", "reason": "latency"}
    assert incidents(exporter)[1]["label"] == said["label"]
    assert label(exporter, {"label": "true"}, start="latest")[1]["start"] == name(OPEN)
    assert label(exporter, {"label": "true"}, site="two%20words", token="leise")[0] == 200


@pytest.mark.parametrize(
    ("token", "status"),
    [
        pytest.param("falsch", 401, id="a wrong token"),
        pytest.param("leise", 403, id="the token of another site"),
    ],
)
def test_only_those_with_a_token_label(exporter: Exporter, token: str, status: int) -> None:
    assert label(exporter, {"label": "true"}, token=token)[0] == status
    assert exporter.post(f"/api/v1/sites/books/incidents/{name(OLD)}/label", json={"label": "true"}).status_code == 401


@pytest.mark.parametrize(
    ("body", "start", "status", "said"),
    [
        pytest.param({"label": "maybe"}, "", 400, "label: write true or false-alarm", id="no such label"),
        pytest.param({"label": "true", "why": 1}, "", 400, "the body is not a label: ", id="no such field"),
        pytest.param({"label": "true", "reason": "x"}, "", 400, "reason: write one of", id="no such reason"),
        pytest.param({"label": "true", "note": "x" * 20_000}, "", 400, "longer than 16384 bytes", id="too long"),
        pytest.param({"label": "true"}, "noon", 400, "'noon' is no start of an incident", id="no start"),
        pytest.param({"label": "true"}, "2020-01-01T00:00:00Z", 404, "books has no incident of", id="another start"),
    ],
)
def test_a_label_that_cannot_be_meant_is_told_why(
    exporter: Exporter, body: object, start: str, status: int, said: str
) -> None:
    found, answer = label(exporter, body, start=start)
    assert found == status
    assert said in answer["error"]


# the page


def post(exporter: Exporter, fields: dict[str, str], *, headers: dict[str, str] | None = None, start: str = "") -> Any:
    path = f"/sites/books/incidents/{start or name(OLD)}/label"
    return exporter.post(path, data=fields, headers=headers, allow_redirects=False)


def test_the_form_labels_and_leads_back_to_the_page(exporter: Exporter) -> None:
    answer = post(exporter, {**FORM, "token": "geheim"}, headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, answer.headers["location"]) == (303, "../../../books#incidents")
    page = exporter.get("/sites/books")
    assert "their sale" in page.text
    assert 'name="token"' in page.text
    assert "geheim" not in page.text
    assert page.headers["referrer-policy"] == "same-origin", "else browsers do not say that the form is ours"


@pytest.mark.parametrize(
    ("fields", "headers", "status", "said"),
    [
        pytest.param({}, {}, 401, "a bearer token from push.tokens is needed", id="no token"),
        pytest.param({"token": "leise"}, {}, 403, "this token is for other sites", id="another site's token"),
        pytest.param(
            {"token": "geheim"}, {"sec-fetch-site": "cross-site"}, 403, "of other origins", id="from elsewhere"
        ),
        pytest.param(
            {"token": "geheim"}, {"origin": "http://evil.example"}, 403, "of other origins", id="an old browser"
        ),
        pytest.param({"token": "geheim"}, {"origin": "null"}, 403, "of other origins", id="a page without an origin"),
        pytest.param({"token": "geheim", "label": "x"}, {}, 400, "label: write true or false-alarm", id="no label"),
        pytest.param({"token": "geheim", "note": "x" * 20_000}, {}, 400, "longer than", id="too long"),
        pytest.param({"token": "geheim"}, {"content-type": "text/plain"}, 400, "a form is expected", id="no form"),
    ],
)
def test_a_form_that_is_not_taken_says_why_on_a_page(
    exporter: Exporter, fields: dict[str, str], headers: dict[str, str], status: int, said: str
) -> None:
    before = incidents(exporter)[1]["label"]
    answer = post(exporter, {"label": "true", "note": "not taken", **fields}, headers=headers)
    assert answer.status_code == status
    assert said in answer.text
    assert 'href="../../../books"' in answer.text
    assert incidents(exporter)[1]["label"] == before


def test_an_incident_that_is_none_is_told_on_a_page_as_text(exporter: Exporter) -> None:
    answer = post(exporter, {**FORM, "token": "geheim"}, start="%3Cb%3E")
    assert answer.status_code == 400
    assert "<b>" not in answer.text


def test_a_person_labels_on_a_phone(tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "this test needs Chromium on the PATH (Debian package chromium)"
    with begin(tmp_path / "phone", tokens=False) as exporter, sync_playwright() as playwright:
        # a name that is no loopback address: the browser then sends an Origin and no Sec-Fetch-Site
        options = ["--no-sandbox", "--host-resolver-rules=MAP crawl.example 127.0.0.1", "--no-proxy-server"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_context(viewport={"width": 400, "height": 900}, java_script_enabled=False).new_page()
        page.goto(exporter.url.replace("127.0.0.1", "crawl.example") + "/sites/books")
        entry = page.locator("details", has_text="12 resisting")
        entry.locator("summary").click()
        entry.get_by_label("it was").select_option("a false alarm")
        entry.get_by_label("first reason").select_option("latency")
        entry.get_by_label("note").fill("their sale was on")
        assert entry.get_by_label("token").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        entry.get_by_role("button").click()
        assert page.url.endswith("/sites/books#incidents")
        assert page.locator("details", has_text="12 resisting").get_by_text("false alarm").first.is_visible()
        said = incidents(exporter)[1]["label"]
        assert (said["label"], said["reason"], said["note"]) == ("false-alarm", "latency", "their sale was on")
        browser.close()
