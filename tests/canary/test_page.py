"""Values read off pages: selectors as parsel has them, JSON, JSON-LD, encodings."""

from __future__ import annotations

import pytest

from crawlhealth.canary.page import Page
from crawlhealth.checks import Seen, Selector, ValueSpec

HTML = """<!doctype html><html><head><meta charset="utf-8"><title>Shop</title>
<script type="application/ld+json">{"@type": "Product", "name": "Kettle",
 "offers": {"price": 89.9, "sizes": ["S", "M"]}}</script>
<script type="application/ld+json">{"@graph": [{"@type": "Person", "name": "Ann"}]}</script>
<script type="application/ld+json">{broken</script></head>
<body><h1 class="big title">  Copper
   kettle </h1><p class="price">£89.90</p><ul><li></li><li>two</li><li>three</li></ul><a href="/x?a=1&amp;b=2">link</a>
<img src="k.png"></body></html>"""


def seen(
    kind: str, expression: str, body: bytes = HTML.encode(), content_type: str = "text/html", **options: str
) -> Seen:
    spec = ValueSpec(name="v", selector=Selector(kind=kind, expression=expression), **options)  # type: ignore[arg-type]
    return Page(body, content_type).seen(spec)


@pytest.mark.parametrize(
    ("kind", "expression", "text", "count"),
    [
        pytest.param("css", "h1::text", "Copper kettle", 1, id="the text of an element, white space collapsed"),
        pytest.param("css", "h1", "Copper kettle", 1, id="an element stands for its text"),
        pytest.param("css", "a::attr(href)", "/x?a=1&b=2", 1, id="an attribute"),
        pytest.param("css", "li", "two", 3, id="the first that is not blank, all counted"),
        pytest.param("css", ".none::text", None, 0, id="nothing"),
        pytest.param("css", "h1:contains('kettle')", "Copper kettle", 1, id="parsel's dialect"),
        pytest.param("xpath", "//h1[has-class('title')]/text()", "Copper kettle", 1, id="parsel's function"),
        pytest.param("xpath", "//p[re:test(., '^£\\d')]/text()", "£89.90", 1, id="a regular expression in XPath"),
        pytest.param("xpath", "count(//li)", "3", 1, id="a number that XPath computes"),
        pytest.param("xpath", "count(//li) = 3", "true", 1, id="a truth that XPath computes"),
        pytest.param("xpath", "string(//title)", "Shop", 1, id="a text that XPath computes"),
        pytest.param("jsonld", "offers.price", "89.9", 1, id="a number in JSON-LD"),
        pytest.param("jsonld", "name", "Kettle", 2, id="every block and every member of a graph"),
        pytest.param("jsonld", "offers.sizes", "S", 2, id="a list counts its members"),
        pytest.param("jmespath", "name", None, 0, id="a page that is not JSON"),
    ],
)
def test_selectors(kind: str, expression: str, text: str | None, count: int) -> None:
    found = seen(kind, expression)
    assert (found.text, found.count) == (text, count)


@pytest.mark.parametrize(
    ("body", "expression", "text", "number"),
    [
        pytest.param(b'{"a": {"b": 1.5}}', "a.b", "1.5", 1.5, id="a number is a number"),
        pytest.param(b'{"a": "1.234,50 EUR"}', "a", "1.234,50 EUR", 1234.5, id="a number in a text"),
        pytest.param(b'\xef\xbb\xbf{"a": true}', "a", "true", None, id="a byte order mark and a truth"),
        pytest.param(b'{"a": null}', "a", None, None, id="null is nothing"),
        pytest.param(b'{"a": ""}', "a", "", None, id="an empty text is there"),
        pytest.param(b'{"a": {"b": 1}}', "a", '{"b": 1}', 1.0, id="an object is its text"),
        pytest.param(b"[" * 100_000, "a", None, None, id="lists in lists without end"),
        pytest.param(b'{"a": 1', "a", None, None, id="JSON that breaks off"),
        pytest.param(b"\xff\xfe\x00", "a", None, None, id="noise"),
        pytest.param(b'{"a": 1' + b"0" * 400 + b"}", "a", "1" + "0" * 400, None, id="a number beyond all numbers"),
        pytest.param(b'{"a": 1e999}', "a", "Infinity", None, id="infinity is no number"),
        pytest.param(b'{"a": NaN}', "a", "NaN", None, id="nor is what is none"),
        pytest.param(b'{"a": 1e999}', "ceil(a)", None, None, id="a function that fails on infinity"),
        pytest.param(b'[{"a": 1}, {"a": "x"}]', "max_by(@, &a)", None, None, id="a function that cannot compare"),
        pytest.param(b'{"a": "x\\ud800y"}', "a", "x\ufffd\ufffd\ufffdy", None, id="half a character"),
        pytest.param(b'{"a": "x\ny"}', "a", "x y", None, id="a line break in a text"),
        pytest.param('{"a": "中文"}'.encode("gb18030"), "a", "中文", None, id="the charset of the header"),
        pytest.param(b'{"a": 5}', "sum(a)", None, None, id="a function that does not like the page"),
    ],
)
def test_json(body: bytes, expression: str, text: str | None, number: float | None) -> None:
    found = seen("jmespath", expression, body, "application/json; charset=gbk")
    assert (found.text, found.number) == (text, number)


@pytest.mark.parametrize(
    ("block", "name"),
    [
        pytest.param('[{"@graph": [{"name": "Ann"}]}]', "Ann", id="a graph in a list"),
        pytest.param('{"@graph": {"name": "Ann"}}', "Ann", id="a graph of one"),
        pytest.param('{"name": "Ann", "@graph": [{"x": 1}]}', "Ann", id="a graph beside other things"),
        pytest.param('{"about": "a\nb", "name": "Ann"}', "Ann", id="a line break in a text"),
        pytest.param('//<![CDATA[\n{"name": "Ann"}\n//]]>', "Ann", id="in a section of an older age"),
        pytest.param('<!-- {"name": "Ann"} -->', "Ann", id="in a comment"),
        pytest.param('{"name": "Ann"};', "Ann", id="with a semicolon"),
        pytest.param("[" * 5_000, None, id="lists without end"),
    ],
)
@pytest.mark.parametrize("kind", ["application/ld+json", "application/LD+JSON; charset=utf-8"])
def test_json_ld_as_sites_write_it(block: str, name: str | None, kind: str) -> None:
    page = f'<script type="{kind}">{block}</script>'.encode()
    assert seen("jsonld", "name", page).text == name


def test_one_block_on_which_an_expression_fails_hides_no_other() -> None:
    page = "".join(f'<script type="application/ld+json">{block}</script>' for block in ('{"x": 1}', '{"name": "Ann"}'))
    assert seen("jsonld", "name[?contains(@, 'A')] || to_string(contains(name, 'A'))", page.encode()).text == "true"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        pytest.param("//p[re:test(., '(')]", None, id="a regular expression that is none"),
        pytest.param("//comment()", "outside", id="a comment outside of the page"),
        pytest.param("/..", None, id="above the page"),
    ],
)
def test_xpath_that_fails_on_the_page_finds_nothing(expression: str, text: str | None) -> None:
    assert seen("xpath", expression, b"<!--outside--><html><p>x</p></html>").text == text


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param("<p>Grüße</p>".encode("latin-1"), "text/html; charset=ISO-8859-1", id="charset of the header"),
        pytest.param(b'<meta charset="windows-1252"><p>Gr\xfc\xdfe</p>', "text/html", id="charset of the page"),
        pytest.param("<p>Grüße</p>".encode(), "text/html", id="UTF-8 without a word"),
        pytest.param("\ufeff<p>Grüße</p>".encode("utf-16-le"), "text/html", id="a byte order mark"),
        pytest.param("<p>Gr\x00üße</p>".encode(), "text/html; charset=utf-8", id="NUL bytes"),
        pytest.param(
            "<p>Grüße</p>\udcff".encode("utf-8", "surrogateescape"),
            "text/html; charset=nonsense",
            id="an unknown charset",
        ),
        pytest.param("<p>Grüße</p>".encode(), "text/html; charset=rot13", id="a codec of Python's that makes no text"),
        pytest.param("<p>Grüße</p>".encode(), "text/html; charset=idna", id="a codec of Python's for names"),
        pytest.param(
            '<meta charset="utf-16"><p>Grüße</p>'.encode(), "text/html", id="a page that cannot be what it says"
        ),
    ],
)
def test_encodings(body: bytes, content_type: str) -> None:
    assert seen("css", "p::text", body, content_type).text == "Grüße"


@pytest.mark.parametrize("body", [b"", b"\x00", b"<", b"\xff" * 1000, b"<!--", b"<![CDATA["])
def test_pages_that_are_hardly_any(body: bytes) -> None:
    assert seen("css", "h1::text", body).text is None
    assert seen("jsonld", "name", body).text is None
