"""The configuration: what is read, what precedes what, and how a broken one is told."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from configured import CANARY, CONFIG, Folder
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.config import Config, PushSettings, PushToken, Route, Secret, Site
from crawlhealth.configfile import ConfigError, load
from crawlhealth.yamlfile.document import MAX_PROBLEMS

SAMPLES = Path(__file__).parents[1] / "canaries"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_an_empty_mapping_is_all_defaults(folder: Folder) -> None:
    assert folder.load("{}", None) == Config(
        data_dir=folder.path / "data", files=(folder.path / "crawlhealth.yml",)
    )  # fmt: skip


def test_everything_is_read(folder: Folder) -> None:
    folder.environ["TOKEN"] = "t0ken"
    config = folder.load(
        """\
        data_dir: ./history
        listen: "[::1]:0"
        routes:
          us: {proxy: {file: secrets/proxy}, timeout: 10s, headers: {X-Route: us}}
        sites:
          books: {hosts: [books.example], routes: [us], refusal_status: [403], max_concurrency: 4, min_gap: 500ms}
        canaries: [c/*.yml]
        score:
          windows: [30m, 2h]
          weights: {hard_block: 40, challenge: 30, soft_block: 20, latency: 10}
        fetch: {max_body_bytes: 2MB, user_agent: me}
        history: {resolution: 10s}
        push: {tokens: [{env: TOKEN}, {token: {env: TOKEN}, sites: [books]}], max_age: 2h}
        """,
        None,
        **{
            "secrets/proxy": "http://u:p4ss@proxy.example:8080\n",
            "c/one.yml": """\
                site: books
                every: 1m
                headers: {Accept: "*/*", X-A: file}
                canaries:
                  - name: a
                    url: https://books.example/a
                    headers: {x-a: {env: TOKEN}}
                    expect:
                      price: {css: "p::text", regex: '(\\d+)', number: {equals: 5, decimal: ","}, record: required}
                """,
        },
    )
    us = Route(
        name="us",
        proxy=Secret("http://u:p4ss@proxy.example:8080"),
        timeout=timedelta(seconds=10),
        headers={"X-Route": "us"},
    )
    assert (config.data_dir, config.listen) == (folder.path / "history", "[::1]:0")
    assert config.routes == {"direct": Route(name="direct"), "us": us}
    assert config.sites["books"] == Site(
        name="books", hosts=("books.example",), routes=("us",), refusal_status=frozenset({403}), max_concurrency=4,
        min_gap=timedelta(milliseconds=500),
    )  # fmt: skip
    (canary,) = config.canaries
    assert (canary.every, canary.timeout_on("us"), canary.routes) == (timedelta(minutes=1), us.timeout, ("us",))
    assert canary.headers == {"Accept": "*/*", "x-a": Secret("t0ken")}
    assert canary.expect == (
        ValueSpec(
            name="price",
            selector=Selector(kind="css", expression="p::text"),
            regex=r"(\d+)",
            checks=(Check(name="number", argument={"equals": 5, "decimal": ","}),),
            required=True,
            decimal=",",
        ),
    )
    assert config.score.windows == (timedelta(minutes=30), timedelta(hours=2))
    assert config.score.weights.hard_block == 40
    assert (config.fetch.max_body_bytes, config.fetch.user_agent) == (2_000_000, "me")
    assert config.history.resolution == timedelta(seconds=10)
    assert config.push == PushSettings(
        tokens=(Secret("t0ken"), PushToken(token=Secret("t0ken"), sites=("books",))), max_age=timedelta(hours=2)
    )
    assert [str(file.relative_to(folder.path)) for file in config.files] == [
        "crawlhealth.yml",
        "c/one.yml",
        "secrets/proxy",
    ]
    assert "p4ss" not in repr(config)
    assert "t0ken" not in repr(config)


@pytest.mark.parametrize(
    ("top", "own", "timeout"),
    [
        pytest.param("timeout: 3s", "timeout: 2s", 2, id="a canary's own timeout"),
        pytest.param("timeout: 3s", "", 3, id="then the file's"),
        pytest.param("", "", 10, id="then the route's"),
        pytest.param("", "routes: [direct]", 20, id="then twenty seconds"),
        pytest.param("", "every: 5s, routes: [direct]", 4, id="but less than the interval"),
    ],
)
def test_timeout_precedence(folder: Folder, top: str, own: str, timeout: float) -> None:
    (canary,) = folder.load(CONFIG, f"{top}\n{CANARY}, {own or 'routes: [us]'}}}\n").canaries
    assert canary.timeout_on(canary.routes[0]) == timedelta(seconds=timeout)


@pytest.mark.parametrize(
    ("top", "own", "routes"),
    [
        pytest.param("routes: [us]", "routes: [direct]", ("direct",), id="a canary's own routes"),
        pytest.param("routes: [us]", "", ("us",), id="then the file's"),
        pytest.param("", "", ("direct", "us"), id="then the site's"),
    ],
)
def test_route_precedence(folder: Folder, top: str, own: str, routes: tuple[str, ...]) -> None:
    (canary,) = folder.load(CONFIG, f"{top}\n{CANARY}{', ' + own if own else ''}}}\n").canaries
    assert canary.routes == routes


def test_all_problems_of_all_files_are_told_at_once_in_order(folder: Folder) -> None:
    said = folder.problems(
        """\
        sites:
          books: {hosts: [books.example]}
        canaries: ["*.yml", none.yml]
        lissten: here
        """,
        None,
        **{
            "a.yml": "site: books\ncanaries:\n  - {name: a, url: 'https://other.example/', every: 1x}\n",
            "b.yml": "a: [\n",
        },
    )
    assert said == [
        "a.yml:3:20: canaries[0].url: the host 'other.example' is in no site's hosts: "
        "add it to the hosts of books (books.example), or mend one",
        "a.yml:3:53: canaries[0].every: '1x' is not a duration: write 30s, 5m, 1h30m or 2d (units ms, s, m, h, d, w)",
        "b.yml:2:1: is not YAML: while parsing a flow node did not find expected node content: check the lines above",
        "crawlhealth.yml:3:21: canaries[1]: 'none.yml' matches no file under FOLDER: mend the pattern, or leave it out",
        "crawlhealth.yml:4:1: lissten: unknown key 'lissten': did you mean listen?",
    ]


def test_render_shows_the_line_and_a_caret(folder: Folder) -> None:
    folder.write({"crawlhealth.yml": "routes: {direct: {}}\nsites:\n  books: {hsots: [books.example]}\n"})
    with pytest.raises(ConfigError) as caught:
        load(folder.path / "crawlhealth.yml", environ={})
    assert caught.value.render().replace(f"{folder.path}/", "") == (
        "crawlhealth.yml:3:11: sites.books.hsots: unknown key 'hsots': did you mean hosts?\n"
        "    3 |   books: {hsots: [books.example]}\n"
        "      |           ^"
    )


@pytest.mark.parametrize(
    "config",
    [
        pytest.param("push: {tokens: [S3CRET]}", id="a token written out"),
        pytest.param("push: {tokens: S3CRET}", id="a token without a list"),
        pytest.param("push: {token: S3CRET}", id="a token under another key"),
        pytest.param("routes: {a: {proxy: 'http://u:S3CRET@h:1'}}", id="a proxy's password written out"),
        pytest.param("routes: {a: {proxy: 'http://u:p@S3CRET@h:1', x: 1}}", id="beside another problem on its line"),
        pytest.param("push: {tokens: ['https://S3CRET']}", id="a token that looks like a URL"),
        pytest.param("push: {tokens: [{env: LINES}]}", id="a token that no header can bear"),
        pytest.param("routes: {a: {headers: {X: S3CRET}, x: 1}}", id="beside an unknown key on its line"),
        pytest.param("routes: {a: {header: {X: S3CRET}}}", id="under a misspelt key"),
        pytest.param(
            "routes: {a: {headers: {X: S3CRET}}}\nroutes: {a: {headers: {X: S3CRET}}}", id="under a key twice"
        ),
        pytest.param("routes:\n  a:\n    headers:\n      X: Basic: S3CRET", id="in a file that is no YAML"),
        pytest.param("push:\n  tokens:\n  - a: S3CRET: b", id="in an item right under its key, no YAML"),
        pytest.param("routes: {a: {proxy: {env: BAD}}}", id="a proxy that is no URL"),
        pytest.param("routes: {a: {headers: {X: {env: LINES}}}}", id="a header that cannot be sent"),
        pytest.param("listen: {env: BAD}", id="an address from outside"),
        pytest.param("sites: {a: {hosts: [{env: BAD}]}}", id="a host from outside"),
        pytest.param("sites: {a: {hosts: [h.example], routes: [{env: BAD}]}}", id="a route from outside"),
        pytest.param("canaries: [{env: BAD}]", id="a pattern from outside"),
        pytest.param("fetch: {user_agent: {env: LINES}}", id="a user agent from outside"),
    ],
)
def test_no_error_shows_a_secret(folder: Folder, config: str) -> None:
    folder.write({"crawlhealth.yml": config})
    environ = {"BAD": "no url S3CRET", "LINES": "S3CRET\r\nX-B: 1"}
    with pytest.raises(ConfigError) as caught:
        load(folder.path / "crawlhealth.yml", environ=environ)
    assert "S3CRET" not in caught.value.render()
    assert "S3CRET" not in repr(caught.value)
    assert all("S3CRET" not in repr(problem) for problem in caught.value.problems)


@pytest.mark.parametrize(
    "make",
    ["missing", "folder", "pipe", "noise", "loop", "canary loop", "long data_dir", "long ca_file", "secret pipe"],
)
def test_odd_files_are_told_not_raised(folder: Folder, make: str) -> None:
    path = folder.path / "crawlhealth.yml"
    if make == "folder":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "noise":
        path.write_bytes(bytes(range(256)) * 100)
    elif make == "loop":
        path.symlink_to(path)
    elif make == "canary loop":
        (folder.path / "c.yml").symlink_to("c.yml")
        path.write_text("canaries: [c.yml]", encoding="utf-8")
    elif make == "long data_dir":
        path.write_text(f"data_dir: {'x' * 256}", encoding="utf-8")
    elif make == "long ca_file":
        path.write_text(f"fetch: {{ca_file: {'x' * 256}}}", encoding="utf-8")
    elif make == "secret pipe":
        os.mkfifo(folder.path / "pipe")
        path.write_text("push: {tokens: [{file: pipe}]}", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path, environ={})
    assert len(caught.value.problems) == 1


def test_a_hostile_number_of_problems_ends_soon(folder: Folder) -> None:
    folder.write({"crawlhealth.yml": "\n".join(f"{'k' * 100}{n}: 1" for n in range(20_000))})
    began = time.perf_counter()
    with pytest.raises(ConfigError) as caught:
        load(folder.path / "crawlhealth.yml", environ={})
    assert len(caught.value.problems) == MAX_PROBLEMS + 1
    assert time.perf_counter() - began < 10


def test_thousands_of_canaries_are_read_in_seconds(folder: Folder) -> None:
    canaries = "".join(
        f"  - name: c{n}\n    url: https://books.example/{n}\n"
        "    expect: {t: {css: 'h1::text', equals: A}, p: {css: 'p.price::text', number: {equals: 5}}}\n"
        for n in range(2000)
    )
    began = time.perf_counter()
    assert len(folder.load(CONFIG, f"site: books\ncanaries:\n{canaries}").canaries) == 2000
    assert time.perf_counter() - began < 10


def test_the_samples_are_read_without_a_problem() -> None:
    config = load(SAMPLES / "crawlhealth.yml", environ={})
    assert {canary.site for canary in config.canaries} == set(config.sites) == {"books", "quotes"}
    assert all(canary.expect for canary in config.canaries)


LEAVES = st.sampled_from([
    "direct", "books", "us", "5m", "0", "-1", "1e999", "true", "~", "https://books.example/", ".*", "c.yml", "([",
    "{env: A}", "{file: a}", "[]", "{}", "'\\0'", "\u20ac", "h1::text", "&a x", "*a",
])  # fmt: skip
KEYS = st.sampled_from([
    "routes", "sites", "canaries", "score", "weights", "bands", "fetch", "hosts", "proxy", "name", "url", "expect",
    "css", "number", "count", "same_on", "every", "timeout", "headers", "site", "listen", "push", "tokens",
    "data_dir", "x",
])  # fmt: skip
FLOW = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(KEYS, inner, max_size=4).map(
            lambda entries: "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, FLOW, max_size=5), st.dictionaries(KEYS, FLOW, max_size=5))
def test_any_file_is_a_configuration_or_a_list_of_problems(
    folder: Folder, config: dict[str, str], canaries: dict[str, str]
) -> None:
    texts = ["\n".join(f"{key}: {value}" for key, value in written.items()) for written in (config, canaries)]
    folder.write({"crawlhealth.yml": CONFIG + texts[0], "c.yml": texts[1]})
    folder.write({"d.yml": "site: books\ncanaries:\n  - {" + texts[1].replace("\n", ", ") + "}"})
    folder.write({"e.yml": texts[0].replace("data_dir", "listen") + "\ncanaries: [c.yml, d.yml]"})
    for name in ("crawlhealth.yml", "e.yml"):
        try:
            loaded: object = load(folder.path / name, environ={"A": "x"})
        except ConfigError as error:
            loaded = error
            places = [(problem.file, problem.line, problem.column) for problem in error.problems]
        else:
            places = []
        assert isinstance(loaded, Config) or places == sorted(places)
        assert all(line >= 1 and column >= 1 for _, line, column in places)
