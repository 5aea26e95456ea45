"""A person accepts a new normal: by command, over HTTP and by the form on the page of a real exporter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import requests
from playwright.sync_api import sync_playwright

from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, Decisions, History
from crawlhealth.incident import Incident
from crawlhealth.verdict import Band, BandState, Verdict
from running import Exporter
from waiting import until

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
AUTHORISED = {"authorization": "Bearer geheim"}
STARTED = float(int(time.time()) - 7200)
"""When the incident of books began."""


def begin(folder: Path) -> Exporter:
    """An exporter, not started, whose site books has been resisting for an hour, and outside normal for two."""
    (folder / "data").mkdir(parents=True)
    history = History.open(folder / "data" / FILE_NAME, HistorySettings(), now=STARTED)
    state = BandState(band=Band.RESISTING, since=STARTED + 3600, held=True)
    incident = Incident(site="books", start=STARTED, worst_band=Band.RESISTING, worst_at=STARTED + 3600)
    history.put_verdict(Verdict(site="books", at=STARTED + 3600, state=state), incident)
    history.commit(STARTED + 3600)
    history.close()
    return Exporter(folder, CONFIG, environ=ENVIRON)


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with begin(tmp_path_factory.mktemp("accepting")) as exporter:
        yield exporter


@pytest.fixture(autouse=True)
def _with_nothing_accepted(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "exporter" in request.fixturenames:
        exporter: Exporter = request.getfixturevalue("exporter")
        while undo(exporter)[1]["accepted"] is not None:
            pass


def accept(
    exporter: Exporter, body: object, *, site: str = "books", token: str = "geheim", **headers: str
) -> tuple[int, dict]:  # type: ignore[type-arg]  # whatever was answered
    answer = exporter.post(
        f"/api/v1/sites/{site}/accept", json=body, headers={"authorization": f"Bearer {token}", **headers}
    )
    return answer.status_code, answer.json()


def undo(exporter: Exporter) -> tuple[int, dict]:  # type: ignore[type-arg]
    answer = exporter.delete("/api/v1/sites/books/accept", headers=AUTHORISED)
    return answer.status_code, answer.json()


def metric(exporter: Exporter) -> float | None:
    return exporter.value("crawlhealth_baseline_accepted_timestamp_seconds", site="books")


def form(exporter: Exporter, fields: dict[str, str], **headers: str) -> requests.Response:
    return exporter.post("/sites/books/accept", data=fields, headers=headers, allow_redirects=False)


def crawlhealth(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "crawlhealth.cli", *arguments], cwd=folder, env={**os.environ, **ENVIRON},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, (done.stdout or done.stderr).strip()


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def test_what_is_accepted_on_the_command_line_is_followed_shown_and_taken_back(exporter: Exporter) -> None:
    begun = time.time()
    code, said = crawlhealth(exporter.folder, "accept", "books", "--by", "anna", "--note", "their new shop")
    assert (code, said) == (
        0,
        f"books: what it does since {moment(STARTED)} (when it left its normal) is its normal, by anna.\n"
        "Its baseline is made of the hours since then, 6 at least and the last 1d too, until there are 14d of them."
        " `crawlhealth accept books --undo` takes it back.",
    )
    until(lambda: (metric(exporter) or 0) >= begun - 1, 20, "the next evaluation knows it")
    page = exporter.get("/sites/books").text
    assert f"Accepted as normal since {moment(STARTED)} by anna: their new shop" in page
    assert "take back what was accepted" in page

    assert crawlhealth(exporter.folder, "accept", "books", "--since", "2h", "--by", "ben")[0] == 0
    until(lambda: "by ben" in exporter.get("/sites/books").text, 20, "a later one takes its place")
    code, said = crawlhealth(exporter.folder, "accept", "books", "--undo")
    assert said == (
        "books: taken back; in force again: Accepted as normal since"
        f" {moment(STARTED)} by anna: their new shop"
    )  # fmt: skip
    code, said = crawlhealth(exporter.folder, "accept", "books", "--undo")
    assert (code, said) == (0, "books: taken back; its baseline is made as usual again")
    until(lambda: metric(exporter) is None, 20, "the next evaluation knows that too")
    assert "Accepted before" in exporter.get("/sites/books").text
    assert crawlhealth(exporter.folder, "accept", "books", "--undo") == (0, "books: nothing was accepted")


def test_a_site_within_its_normal_is_accepted_from_now_on_by_who_is_logged_in(exporter: Exporter) -> None:
    code, said = crawlhealth(exporter.folder, "accept", "two words")
    assert code == 0
    assert "(now, since it is not outside its normal)" in said
    assert ", by " in said
    assert crawlhealth(exporter.folder, "accept", "two words", "--undo")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["bokos"], "there is no site 'bokos': did you mean books?", id="no such site"),
        pytest.param(["books", "--since", "soon"], "since: is not a duration", id="no such time"),
        pytest.param(["books", "--undo", "--note", "x"], "--undo takes no other option", id="a note on taking back"),
        pytest.param(["books", "--note", "x" * 501], "note: write at most 500 characters", id="a novel"),
    ],
)
def test_what_cannot_be_meant_is_told_and_exits_2(exporter: Exporter, arguments: list[str], said: str) -> None:
    code, text = crawlhealth(exporter.folder, "accept", *arguments)
    assert code == 2
    assert said in text


def test_it_is_accepted_over_http_and_in_force_at_once(exporter: Exporter) -> None:
    status, said = accept(exporter, {"note": " their new\n shop", "by": "anna"})
    assert (status, said["site"]) == (200, "books")
    first = said["accepted"]
    assert first == {
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(STARTED)), "at": first["at"], "by": "anna",
        "note": "their new shop",
    }  # fmt: skip
    assert metric(exporter) == pytest.approx(time.time(), abs=10)
    assert accept(exporter, {"since": "2026-11-30T10:00:00+01:00"})[1]["accepted"]["since"] == "2026-11-30T09:00:00Z"
    assert undo(exporter) == (200, {"site": "books", "accepted": first}), "the one before is in force again"
    assert undo(exporter) == (200, {"site": "books", "accepted": None})
    assert undo(exporter) == (200, {"site": "books", "accepted": None})
    assert metric(exporter) is None
    assert exporter.post("/api/v1/sites/books/accept", headers=AUTHORISED).status_code == 200, "without a body"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(
            {"since": "9999-01-01T00:00:00Z"}, "since: write a year of this time", id="no year of ours",
        ),
        pytest.param(
            {"since": "2200-01-01T00:00:00Z"},
            "since: is in the future: write an earlier moment, or so long ago as in 2h", id="a time to come",
        ),
        pytest.param({"by": "x" * 101}, "by: write at most 100 characters", id="a long name"),
        pytest.param(
            {"why": "x"}, "the body is not an acceptance: Object contains unknown field `why`", id="an unknown field"
        ),
        pytest.param([1], "the body is not an acceptance: Expected `object`, got `array`", id="something else"),
        pytest.param({"note": "x" * 20_000}, "the body is longer than 16384 bytes", id="a flood"),
    ],
)  # fmt: skip
def test_what_cannot_be_accepted_is_told_why(exporter: Exporter, body: object, reason: str) -> None:
    assert accept(exporter, body) == (400, {"error": reason})
    assert metric(exporter) is None


@pytest.mark.parametrize(
    ("site", "token", "status"),
    [
        pytest.param("books", "", 401, id="no token"),
        pytest.param("books", "leise", 403, id="the token of another site"),
        pytest.param("bokos", "geheim", 404, id="no such site"),
    ],
)
def test_who_may_accept(exporter: Exporter, site: str, token: str, status: int) -> None:
    assert accept(exporter, {}, site=site, token=token)[0] == status
    headers = {"authorization": f"Bearer {token}"}
    assert exporter.delete(f"/api/v1/sites/{site}/accept", headers=headers).status_code == status
    assert metric(exporter) is None


def test_a_page_of_somebody_else_cannot_accept(exporter: Exporter) -> None:
    assert accept(exporter, {}, **{"sec-fetch-site": "cross-site"})[0] == 403
    answer = form(exporter, {"token": "geheim"}, origin="http://evil.example")
    assert (answer.status_code, "posts from pages of other origins" in answer.text) == (403, True)
    assert metric(exporter) is None


def test_the_form_on_the_page_accepts_and_takes_back(exporter: Exporter) -> None:
    page = exporter.get("/sites/books").text
    assert f"Without a time: since {moment(STARTED)}, when it left its normal." in page
    assert 'name="token" required' in page
    answer = form(exporter, {"token": "geheim", "since": " ", "note": "<b>shop", "by": "anna"})
    assert (answer.status_code, answer.headers["location"]) == (303, "../books")
    page = exporter.get("/sites/books").text
    assert f"Accepted as normal since {moment(STARTED)} by anna: &lt;b&gt;shop" in page
    answer = form(exporter, {"token": "geheim", "undo": "1"})
    assert answer.status_code == 303
    assert "Accepted as normal since" not in exporter.get("/sites/books").text.partition("Accepted before")[0]


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        pytest.param({"token": "falsch"}, 401, "a bearer token from push.tokens is needed", id="a wrong token"),
        pytest.param({"token": "leise"}, 403, "this token is for other sites", id="the token of another site"),
        pytest.param({"token": "geheim", "since": "soon"}, 400, "since: is not a duration", id="no such time"),
    ],
)
def test_a_form_that_is_not_taken_says_why(exporter: Exporter, fields: dict[str, str], status: int, said: str) -> None:
    answer = form(exporter, fields)
    assert answer.status_code == status
    assert said in answer.text
    assert 'href="../books"' in answer.text
    assert metric(exporter) is None


def test_a_site_within_its_normal_has_no_form(exporter: Exporter) -> None:
    assert "Accept what this site does now" not in exporter.get("/sites/two words").text


def test_command_and_api_at_once_lose_nothing(exporter: Exporter) -> None:
    known = len(decisions_of(exporter))

    def by_command() -> None:
        for _ in range(2):
            assert crawlhealth(exporter.folder, "accept", "books", "--by", "command")[0] == 0

    thread = Thread(target=by_command)
    thread.start()
    for _ in range(8):
        assert accept(exporter, {"by": "api"})[0] == 200
    thread.join()
    names = decisions_of(exporter)[: len(decisions_of(exporter)) - known]
    assert (names.count("api"), names.count("command")) == (8, 2)


def decisions_of(exporter: Exporter) -> list[str]:
    """Who accepted something of books, newest first."""
    decisions = Decisions.open(exporter.folder / "data" / FILE_NAME, now=time.time())
    try:
        return [one.by for one, _ in decisions.accepted_of("books")]
    finally:
        decisions.close()


def test_it_outlives_a_crash(tmp_path: Path) -> None:
    with begin(tmp_path / "crash") as exporter:
        assert accept(exporter, {"by": "anna"})[0] == 200
        at = metric(exporter)
        exporter.stop(9)
        exporter.start()
        assert metric(exporter) == at
        assert "by anna" in exporter.get("/sites/books").text


def test_a_person_accepts_with_a_phone(tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "this test needs Chromium on the PATH (Debian package chromium)"
    with begin(tmp_path / "phone") as exporter, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 900}, java_script_enabled=False)
        page.goto(exporter.url + "/sites/books")
        page.get_by_text("Accept what this site does now as its normal").click()
        page.get_by_label("name").fill("anna")
        page.get_by_label("token").locator("visible=true").fill("geheim")
        page.get_by_role("button", name="accept", exact=True).click()
        assert page.url == exporter.url + "/sites/books"
        page.get_by_text(f"Accepted as normal since {moment(STARTED)} by anna").wait_for(timeout=20_000)
        page.get_by_label("token").locator("visible=true").first.fill("falsch")
        page.get_by_role("button", name="take back what was accepted").click()
        assert page.get_by_role("heading", name="This was not taken").is_visible()
        page.get_by_role("link", name="back to books").click()
        page.get_by_label("token").locator("visible=true").first.fill("geheim")
        page.get_by_role("button", name="take back what was accepted").click()
        assert page.get_by_text("Accepted as normal since").locator("visible=true").count() == 0
        assert metric(exporter) is None
        browser.close()
