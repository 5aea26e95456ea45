"""Every problem of a configuration: its file, line, column, path and remedy."""

# ruff: noqa: E501 - a message is told, and looked for, on one line

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from configured import CANARY, CONFIG, Folder
from crawlhealth.config import Config
from crawlhealth.yamlfile.binding import MAX_NAMES_SHOWN

_NAMES = sorted(field.name for field in fields(Config) if field.name not in ("files", "shard", "elsewhere"))
KEYS = ", ".join(_NAMES[:MAX_NAMES_SHOWN]) + (", …" if len(_NAMES) > MAX_NAMES_SHOWN else "")
"""The keys of the configuration as an error lists them."""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param("sitse: {}", ["1:1: sitse: unknown key 'sitse': did you mean sites?"], id="an unknown key"),
        pytest.param(
            "zzz: 1",
            [f"1:1: zzz: unknown key 'zzz': write one of {KEYS}"],
            id="a key like none",
        ),
        pytest.param("- a", ["1:1: needs keys and values: write key: value lines under it"], id="a list"),
        pytest.param(
            "blocks:\n"
            "  - {name: a, where: selector, pattern: div p, outcome: challenge}\n"
            "  - {name: a, where: header, outcome: soft_block}\n"
            "  - {name: c, where: title, header: x, pattern: '(', outcome: error}\n"
            "  - {name: d, where: body, outcome: error}\n"
            "  - {name: e, where: body, pattern: '(?:[a-z]{1,500}x){2}[a-z]{0,900}', outcome: error}",
            [
                "2:41: blocks[0].pattern: ' p' cannot be read here: write one element, for instance form#gate, div.captcha or script[src*=challenge]",
                "3:5: blocks[1]: needs header: write the name of the header, as in header: x-gate",
                "3:12: blocks[1].name: the marker 'a' stands twice: rename one",
                "4:37: blocks[2].header: belongs to where: header, not to where: title: leave it out",
                "4:49: blocks[2].pattern: the pattern does not compile: missing ): ( (RE2 has no look-around and no back-references)",
                "5:5: blocks[3]: needs pattern: add it",
                "6:37: blocks[4].pattern: is too large once compiled: shorten it, above all what counts ({n,m})",
            ],
            id="markers",
        ),
        pytest.param(
            "blocks: [{name: b, where: title, pattern: a, outcome: refused}]",
            [
                "1:55: blocks[0].outcome: 'refused' is not known here: write one of challenge, error, hard_block, ok, soft_block"
            ],
            id="a marker of something that is no outcome",
        ),
        pytest.param(
            "sites:\n  a: {hosts: a.example}", ["2:14: sites.a.hosts: needs a list: write [a.example]"], id="no list"
        ),
        pytest.param("sites:\n  a: {}", ["2:6: sites.a: needs hosts: add it"], id="a missing key"),
        pytest.param(
            "sites:\n  a: {host: [a.example]}", ["2:7: sites.a.host: unknown key 'host': did you mean hosts?"],
            id="a missing key that was misspelt is told once",
        ),
        pytest.param(
            "sites:\n  a: {hosts: [b.example]}\n  b: {hosts: ['b.example:80']}",
            [
                "2:15: sites.a.hosts[0]: also belongs to the site 'b': a host has one site",
                "3:15: sites.b.hosts[0]: also belongs to the site 'a': a host has one site",
            ],
            id="a host of two sites",
        ),
        pytest.param(
            "sites:\n  a: {hosts: [.example]}\n  b: {hosts: [b.example, 'http://c']}",
            [
                "3:15: sites.b.hosts[0]: also belongs to the site 'a': a host has one site",
                "3:26: sites.b.hosts[1]: 'http://c' is a URL: write only the host, as in books.toscrape.com",
            ],
            id="a host under another site's suffix",
        ),
        pytest.param(
            "routes: {dc-us: {}}\nsites:\n  a: {hosts: [a.example], routes: [dc_us, direct, direct]}",
            [
                "3:36: sites.a.routes[0]: there is no route 'dc_us': did you mean dc-us?",
                "3:51: sites.a.routes[2]: the route 'direct' stands twice: keep one",
            ],
            id="an unknown route and one twice",
        ),
        pytest.param(
            "routes:\n  a: {proxy: 'socks4://h:1'}",
            [
                "2:14: routes.a.proxy: needs one of the schemes http, https, socks5, socks5h: "
                "write for instance socks5h://host:1080"
            ],
            id="a proxy scheme",
        ),
        pytest.param(
            "routes:\n  a: {proxy: 'http://h'}",
            ["2:14: routes.a.proxy: names no port: write for instance socks5h://host:1080"], id="a proxy without port",
        ),
        pytest.param(
            "routes:\n  direct: {proxy: 'http://h:1'}",
            ["2:19: routes.direct.proxy: direct is the route without a proxy: give this one another name"],
            id="direct with a proxy",
        ),
        pytest.param(
            "push: {tokens: [{env: LINES}]}",
            ["1:17: push.tokens[0]: has a character that no bearer token can have: use ASCII letters and digits"],
            id="a token that no header can bear",
        ),
        pytest.param(
            "push:\n  tokens: [{token: {env: LINES}, sites: [boks]}, {token: {env: TOKEN}, sites: []}]\n  max_age: 91d\n"
            "  max_waiting_bytes: 1MB\nhistory: {keep_push_keys: 0s}",
            [
                "2:20: push.tokens[0].token: has a character that no bearer token can have: use ASCII letters and digits",
                "2:42: push.tokens[0].sites[0]: no site 'boks' is configured: there is none",
                "2:79: push.tokens[1].sites: is empty: name the sites that it may push",
                "3:12: push.max_age: is longer than history.keep_hours: what is pushed must be kept",
                "4:22: push.max_waiting_bytes: must be at least 16000000",
                "5:27: history.keep_push_keys: must be more than 0: write for instance 15s",
            ],
            id="what pushes cannot be",
        ),
        pytest.param(
            "data_dir: crawlhealth.yml/data",
            ["1:11: data_dir: 'FOLDER/crawlhealth.yml/data' cannot be used (Not a directory): name another folder"],
            id="a data_dir under a file",
        ),
        pytest.param(
            'data_dir: "a\\0"\nlisten: "a\\0:1"',
            [
                "1:11: data_dir: 'FOLDER/a\\x00' cannot be used (embedded null byte): name another folder",
                "2:9: listen: is not an address to listen on: write host:port, as in 127.0.0.1:9877 or [::1]:9877",
            ],
            id="names with a NUL",
        ),
        pytest.param(
            "score:\n  weights: {hard_block: 36}", ["2:12: score.weights: the weights sum to 101: make them sum to 100"],
            id="weights",
        ),
        pytest.param(
            "score:\n  bands: {degrading: 40}",
            [
                "2:10: score.bands: must rise from 0 to 100 in this order: "
                "resisting, leave_resisting, degrading, leave_degrading"
            ],
            id="bands out of order",
        ),
        pytest.param(
            "score:\n  windows: [3h, 1h]",
            ["2:12: score.windows: must be durations that grow: write for instance [10m, 30m, 2h, 6h]"],
            id="windows out of order",
        ),
        pytest.param(
            "score:\n  baseline: {exclude_last: 20d}",
            ["2:28: score.baseline.exclude_last: must be shorter than length (14d)"], id="nothing left of a baseline",
        ),
        pytest.param(
            "score:\n  baseline: {level: 50, least_score: 920, min_total: 0, every: 0s, quiet: -1h}",
            [
                "2:21: score.baseline.level: must be a share from 0 to 1: 0.5 is the median",
                "2:38: score.baseline.least_score: must be a score from 0 to 100: write for instance 92",
                "2:54: score.baseline.min_total: must be at least 1",
                "2:64: score.baseline.every: must be more than 0: write for instance 15s",
                "2:75: score.baseline.quiet: '-1h' is not a duration: write 30s, 5m, 1h30m or 2d (units ms, s, m, h, d, w)",
            ],
            id="a baseline of nonsense",
        ),
        pytest.param(
            "score:\n  method: best\n  drift_threshold: 0\n  margins: {noise: -1, rare: 90}",
            [
                "2:11: score.method: 'best' is not known here: did you mean robust?",
                "3:20: score.drift_threshold: must be over 0 and at most 10 standard deviations: write for instance 4",
                "4:20: score.margins.noise: must be a number of standard deviations from 0 to 10: write for instance 1.0",
                "4:30: score.margins.rare: must be a number of standard deviations from 0 to 10: write for instance 1.0",
            ],
            id="a method and margins of nonsense",
        ),
        pytest.param(
            "history: {resolution: 7s, keep_hours: 10d}",
            [
                "1:23: history.resolution: must fill an hour exactly: write for instance 1m, 10s or 1s",
                "1:39: history.keep_hours: must be at least 15d, which the score reads",
            ],
            id="a history too short and rows that fill no hour",
        ),
        pytest.param(
            "score: {evaluate_every: 15, min_requests: ten, smoothing: [5m]}",
            [
                "1:25: score.evaluate_every: '15' is not a duration: write 15s (units ms, s, m, h, d, w)",
                "1:43: score.min_requests: 'ten' is not a whole number: write one, as in 10",
                "1:59: score.smoothing: needs one value: write a duration such as 5m",
            ],
            id="values of other types",
        ),
        pytest.param(
            "listen: 9877",
            ["1:9: listen: is not an address to listen on: write host:port, as in 127.0.0.1:9877 or [::1]:9877"],
            id="a port alone",
        ),
        pytest.param(
            "canaries: [none/*.yml]",
            ["1:12: canaries[0]: 'none/*.yml' matches no file under FOLDER: mend the pattern, or leave it out"],
            id="a pattern without a match",
        ),
        pytest.param(
            "canaries: ['crawlhealth.y*']",
            ["1:12: canaries[0]: 'crawlhealth.y*' matches no file under FOLDER: mend the pattern, or leave it out"],
            id="a pattern that matches only the configuration",
        ),
        pytest.param(
            "fetch: {ca_file: ca.pem, max_concurrency: 0, max_body_bytes: 5 apples, user_agent: \"a\\nb\"}",
            [
                "1:18: fetch.ca_file: there is no file 'FOLDER/ca.pem'",
                "1:43: fetch.max_concurrency: must be at least 1",
                "1:62: fetch.max_body_bytes: '5 apples' is not a size: write a number of bytes, or 500KB, 5MB, 64KiB",
                "1:84: fetch.user_agent: must say who fetches, in plain ASCII on one line",
            ],
            id="limits",
        ),
        pytest.param(
            "push: {tokens: [hunter2, {env: NONE}, {file: none}, {env: EMPTY}]}",
            [
                "1:17: push.tokens[0]: is a secret and must not stand here: write {env: NAME} or {file: path}",
                "1:26: push.tokens[1]: the environment variable 'NONE' is not set: set it",
                "1:39: push.tokens[2]: the file 'FOLDER/none' cannot be read: there is no such file",
                "1:53: push.tokens[3]: 'EMPTY' holds nothing: put a value into it",
            ],
            id="secrets",
        ),
        pytest.param(
            "x: &x {hosts: [a.example]}\nsites:\n  a: {<<: *x}",
            [
                f"1:1: x: unknown key 'x': write one of {KEYS}",
                "3:6: sites.a: needs hosts: add it",
                "3:7: sites.a['<<']: merge keys are not YAML 1.2: write the keys out",
            ],
            id="merge keys",
        ),
        pytest.param(
            "sites:\n  a/b: {hosts: [a.example], refusal_status: [200], max_concurrency: 0}",
            [
                "2:3: sites['a/b']: a name has 1 to 100 characters, no slash and no blanks around it: write another",
                "2:45: sites['a/b'].refusal_status: 200 is no refusal: write statuses from 300 to 599",
                "2:69: sites['a/b'].max_concurrency: must be at least 1",
            ],
            id="a name that cannot stand in an address, and limits of a site",
        ),
    ],
)  # fmt: skip
def test_problems_of_the_configuration(folder: Folder, config: str, said: list[str]) -> None:
    folder.environ |= {"EMPTY": "", "LINES": "a\r\nb", "TOKEN": "t0ken"}
    assert folder.problems(config, None) == [f"crawlhealth.yml:{line}" for line in said]


@pytest.mark.parametrize(
    ("canaries", "said"),
    [
        pytest.param("", ["1:1: is empty"], id="an empty file"),
        pytest.param(
            "site: books", ["1:1: canaries: needs a list of canaries: write - name: … and url: … under it"], id="no canaries"
        ),
        pytest.param(
            "site: bokos\ncanaries:\n  - {name: a, url: 'https://books.example/'}",
            ["1:7: site: there is no site 'bokos': did you mean books?"], id="an unknown site is told once",
        ),
        pytest.param(
            "canaries:\n  - {}",
            [
                "2:5: canaries[0]: needs name: add it",
                "2:5: canaries[0]: needs site: write it here, or once at the top of the file",
                "2:5: canaries[0]: needs url: add it",
            ],
            id="nothing in it",
        ),
        pytest.param(CANARY + ", evry: 5m}", ["3:47: canaries[0].evry: unknown key 'evry': did you mean every?"], id="a key"),
        pytest.param(
            CANARY + ", routes: [dirct]}", ["3:56: canaries[0].routes[0]: there is no route 'dirct': did you mean direct?"],
            id="an unknown route",
        ),
        pytest.param(
            CANARY + ", every: 20s, timeout: 20s}",
            [
                "3:68: canaries[0].timeout: the timeout (20s) must be shorter than every (20s): "
                "shorten it, or fetch less often"
            ],
            id="a timeout as long as the interval",
        ),
        pytest.param(
            CANARY + ", every: 10s}",
            [
                "3:54: canaries[0].every: the timeout of the route 'us' (10s) must be shorter than every (10s): "
                "shorten it, or fetch less often"
            ],
            id="a route's timeout as long as the interval",
        ),
        pytest.param(
            "site: books\ncanaries:\n  - {name: a, url: 'https://quotes.example/'}\n  - {name: b, url: 'https://x.quotes.example/'}",
            [
                "3:20: canaries[0].url: the host 'quotes.example' is in no site's hosts: "
                "add it to the hosts of books (books.example), or mend one",
                "4:20: canaries[1].url: the host 'x.quotes.example' belongs to the site 'quotes': "
                "add it to the hosts of books (books.example), or mend one",
            ],
            id="hosts of no site and of another",
        ),
        pytest.param(
            "site: books\ncanaries:\n  - {name: a, url: 'ftp://books.example/'}\n  - {name: b, url: 'https://me:pw@books.example/'}",
            [
                "3:20: canaries[0].url: is not an http or https URL: write for instance https://books.toscrape.com/",
                "4:20: canaries[1].url: holds a user name or password: write headers: {Authorization: {env: NAME}} instead",
            ],
            id="URLs that are not fetched",
        ),
        pytest.param(
            CANARY + "}\n  - {name: a, url: 'https://books.example/'}",
            ["4:12: canaries[1].name: the site 'books' has a canary 'a' already (FOLDER/c.yml:3): rename one"], id="a name twice",
        ),
        pytest.param(
            CANARY + ", method: HEAD, body: x, expect: {t: {css: a}}}",
            [
                "3:55: canaries[0].method: HEAD answers have no body to read values from: write GET",
                "3:67: canaries[0].body: is sent by POST only: add method: POST",
            ],
            id="a method that does not fit",
        ),
        pytest.param(
            CANARY + ", headers: {'a b': x, Host: y, X-A: \"a\\r\\nb\"}, cookies: {a: 'b;c'}}",
            [
                "3:57: canaries[0].headers['a b']: is not a header name: write it as in Accept-Language",
                "3:67: canaries[0].headers.Host: is set by the fetch itself: leave it out",
                "3:81: canaries[0].headers.X-A: has a character that a header cannot carry: write plain ASCII on one line",
                "3:105: canaries[0].cookies.a: has a character that a cookie cannot carry: percent-encode it",
            ],
            id="headers and cookies that cannot be sent",
        ),
    ],
)  # fmt: skip
def test_problems_of_canaries(folder: Folder, canaries: str, said: list[str]) -> None:
    assert folder.problems(CONFIG, canaries) == [f"c.yml:{line}" for line in said]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param("{css: 'p['}", "14: {}.css: the css selector does not compile: ", id="a css selector"),
        pytest.param("{xpath: '//p['}", "16: {}.xpath: the xpath selector does not compile: ", id="an xpath"),
        pytest.param("{xpath: 'foo(1)'}", "16: {}.xpath: the xpath selector does not compile: ", id="an xpath function"),
        pytest.param("{jmespath: 'a[?'}", "19: {}.jmespath: the jmespath selector does not compile: ", id="a jmespath"),
        pytest.param("{jsonld: 'f(a)'}", "17: {}.jsonld: the jsonld selector does not compile: Unknown function", id="jsonld"),
        pytest.param("{css: p, regex: '('}", "24: {}.regex: the pattern does not compile: missing ): (", id="a pattern"),
        pytest.param("{css: p, matches: '(?!a)'}", "26: {}.matches: the pattern does not compile: ", id="a matched pattern"),
        pytest.param("{css: p, xpath: //p}", "8: {}: has css and xpath: keep one of them", id="two selectors"),
        pytest.param("{equals: a}", "8: {}: needs one of css, xpath, jmespath, jsonld: ", id="no selector"),
        pytest.param("{csss: p}", "9: {}.csss: unknown key 'csss': did you mean css?", id="an unknown key"),
        pytest.param("{css: p, equals: 5}", '25: {}.equals: compares text: write "5" in quotes', id="a number as text"),
        pytest.param("{css: p, number: 5}", "25: {}.number: needs a mapping: write {equals: 51.77}, ", id="a bare number"),
        pytest.param("{css: p, equals: }", "25: {}.equals: compares text: write one text in quotes", id="an empty check"),
        pytest.param("{css: p, absent: true, count: {at_most: 0}}", "25: {}.absent: no other check can hold", id="absent"),
        pytest.param("{css: p, record: must}", "25: {}.record: 'must' is not known here: write one of optional", id="record"),
        pytest.param("{css: p, same_on: [direct]}", "26: {}.same_on: compares routes with one another", id="one route"),
        pytest.param("{css: p, same_on: []}", "26: {}.same_on: compares routes with one another", id="no route"),
        pytest.param("{css: p, same_on: [direct, uss]}", "35: {}.same_on[1]: 'uss' is not a route of this canary: "
                     "did you mean us?, or add it to routes", id="a route that is not the canary's"),
        pytest.param("{css: p, unchanged: yes}", "28: {}.unchanged: cannot be read: write true, {within", id="unchanged"),
        pytest.param("{css: p, unchanged: {within_percent: 100}}", "28: {}.unchanged: within_percent is from 0", id="all"),
        pytest.param("{css: p, unchanged: {since: 2026-12-01}}", "28: {}.unchanged: since is not a time", id="no zone"),
        pytest.param("{css: 'p::text', unchanged: true}", "36: {}.unchanged: looks at elements: leave ::text", id="a text"),
        pytest.param("p::text", '8: {}: needs a selector: write', id="a bare selector"),
    ],
)  # fmt: skip
def test_problems_of_values(folder: Folder, value: str, said: str) -> None:
    (problem,) = folder.problems(CONFIG, CANARY + f", expect: {{\n    v: {value}}}}}\n")
    assert problem.startswith(f"c.yml:4:{said.replace('{}', 'canaries[0].expect.v')}")
