"""Bodies as servers write them: character sets, entities, letters of both sizes; and what is kept as evidence."""

from __future__ import annotations

import pytest

from crawlhealth.classify.text import MAX_ENTITIES, charset, readable, unescape
from crawlhealth.outcome import Outcome, Reason
from responses import judged, page, prose

CHECK = page("百度安全验证", "<p>请完成验证</p>")
DENIAL = page("Access Denied", "Reference #18.7d6ce17.1634769670.34c13c3d")
AMAZON = page("x", '<form method="get" action="/errors/validateCaptcha" name="">')
META = '<meta http-equiv="Content-Type" content="text/html; charset=gb2312">'
IN_META = page("百度安全验证", "", META).encode("gb18030")
HEX = "".join(f"&#x{ord(c):X};" if ord(c) > 127 else c for c in CHECK).encode()
NO_ENTITIES = b"?a=1&b=2&copy=3; & &; &#; &#x; &#99999999; &#0;"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(CHECK.encode(), "text/html", id="UTF-8 that says nothing"),
        pytest.param(CHECK.encode("utf-8-sig"), "text/html; charset=gbk", id="UTF-8 with its mark, against the header"),
        pytest.param(CHECK.encode("gb18030"), "text/html; charset=GB2312", id="gb18030 as gb2312, in the header"),
        pytest.param(CHECK.encode("gb18030"), 'text/html; charset="gbk"', id="gbk in quotes"),
        pytest.param(IN_META, "text/html", id="gb2312 in meta"),
        pytest.param(IN_META, "text/html; charset=nonsense", id="gb2312 in meta, nonsense in the header"),
        pytest.param(CHECK.encode("utf-16"), "text/html", id="UTF-16 with its mark"),
        pytest.param(CHECK.encode("utf-16-le"), "text/html", id="UTF-16 LE without a mark"),
        pytest.param(CHECK.encode("utf-16-be"), "text/html; charset=utf-16be", id="UTF-16 BE"),
        pytest.param(CHECK.encode(), "text/html; charset=utf-7", id="UTF-8 that calls itself UTF-7"),
        pytest.param(CHECK.encode("ascii", "xmlcharrefreplace"), "text/html", id="entities"),
        pytest.param(HEX, "text/html", id="hex entities"),
    ],
)
def test_a_title_is_read_in_any_character_set(body: bytes, content_type: str) -> None:
    came = judged(body, headers={"content-type": content_type})

    assert came.reason is Reason.BAIDU_CHALLENGE
    assert came.evidence.title == "百度安全验证"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(DENIAL.upper(), id="upper case"),
        pytest.param(DENIAL.lower(), id="lower case"),
        pytest.param(DENIAL.replace("Access Denied", "\n  Access\t\n Denied  "), id="white space in the title"),
        pytest.param(DENIAL.replace("<title>", '<title data-x="1">'), id="attributes on the title"),
        pytest.param(DENIAL.replace("Access Denied", "Access&nbsp;Denied"), id="a space that does not break"),
        pytest.param("".join(f"&#{ord(c)};" if c in "# ." else c for c in DENIAL), id="entities for signs"),
        pytest.param("".join(f"&#x{ord(c):x};" if c in "#." else c for c in DENIAL), id="hex entities for signs"),
        pytest.param(DENIAL.replace("Reference #", "<b>Reference</b> #"), id="tags between the words"),
        pytest.param(DENIAL.replace("Reference #", "Reference\n  #"), id="a line between the words"),
        pytest.param("<!--[if lt IE 7]> <html> <![endif]-->" + DENIAL, id="a conditional comment before it"),
        pytest.param("\0\0" + DENIAL, id="NUL bytes before it"),
        pytest.param(b"\xff\xfd\x80 ".decode("latin-1") + DENIAL, id="letters before it"),
        pytest.param("<svg><title>Close</title></svg>" + DENIAL, id="a drawing's title before it"),
    ],
)
def test_a_block_page_is_known_in_any_writing(body: str) -> None:
    assert judged(body, 403).reason is Reason.AKAMAI_BLOCK


@pytest.mark.parametrize(
    "form",
    [
        pytest.param('<form method="get" action="/errors/validateCaptcha">', id="double quotes"),
        pytest.param("<FORM ACTION='/errors/validateCaptcha'>", id="single quotes, upper case"),
        pytest.param("<form\n  action=/errors/validateCaptcha\n>", id="no quotes, lines"),
        pytest.param('<form action = "https://www.shop.example/errors/validateCaptcha">', id="an absolute address"),
    ],
)
def test_a_tag_is_known_in_any_writing(form: str) -> None:
    assert judged(page("x", form)).reason is Reason.AMAZON_CHALLENGE


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(b"a&#35;b&#x23;c&#X23;d", b"a#b#c#d", id="numbers"),
        pytest.param(b"&amp;&quot;&apos;&nbsp;&hellip;", b"&\"' ...", id="names"),
        pytest.param(b"&lt;b&gt; &#60;b&#62; &#x3c;", b"&lt;b&gt; &#60;b&#62; &#x3c;", id="a shown tag stays shown"),
        pytest.param(b"&amp;#35; &amp;lt;", b"&#35; &lt;", id="only once"),
        pytest.param(
            NO_ENTITIES,
            NO_ENTITIES,
            id="no entity",
        ),
        pytest.param(b"&#55296;&#-35;&#+35;&#3_5;", b"&#55296;&#-35;&#+35;&#3_5;", id="no character"),
    ],
)
def test_entities(written: bytes, read: bytes) -> None:
    assert unescape(written) == read


def test_entities_beyond_the_bound_stay_as_written() -> None:
    page = unescape(b"&#35;" * (MAX_ENTITIES + 10))

    assert page.count(b"#") == MAX_ENTITIES + 10
    assert page.endswith(b"&#35;" * 9)


@pytest.mark.parametrize("label", ["hex", "rot13", "unicode_escape", "utf-7", "idna", "zlib", "\0", "a" * 5_000, "é"])
def test_a_label_that_is_no_character_set_of_pages_is_not_followed(label: str) -> None:
    assert charset(b"<p>x</p>", f"text/html; charset={label}") == "utf-8"
    assert charset(f'<meta charset="{label}">'.encode()) == "utf-8"


def test_a_page_of_plain_letters_that_calls_itself_utf_16_is_read_as_it_is() -> None:
    assert judged(AMAZON, headers={"content-type": "text/html; charset=utf-16"}).outcome is Outcome.CHALLENGE


def test_bytes_that_are_no_text_do_not_stop_reading() -> None:
    for codec in ("utf-8", "gb18030", "shift_jis", "euc-kr", "big5", "iso-2022-jp", "koi8-r", "windows-1252"):
        assert readable(bytes(range(256)) * 20, f"text/html; charset={codec}")


def test_evidence_shows_what_a_person_needs() -> None:
    headers = {"server": "AkamaiGHost", "retry-after": "30", "date": "now", "content-type": "text/html"}
    came = judged(DENIAL, 403, headers=headers)

    assert came.evidence.status == 403
    assert came.evidence.title == "Access Denied"
    assert came.evidence.marker == "akamai: denial with a reference"
    assert came.evidence.where == "title"
    assert came.evidence.excerpt == "Access Denied"
    assert came.evidence.headers == (("content-type", "text/html"), ("retry-after", "30"), ("server", "AkamaiGHost"))
    assert came.evidence.vendors == ("akamai",)


def test_an_excerpt_stands_around_the_marker_in_its_own_letters() -> None:
    gate = '<i>Before</i><form action="/errors/validateCaptcha"><b>After</b>'
    came = judged(page("x", prose(3_000) + gate))

    assert gate in came.evidence.excerpt
    assert len(came.evidence.excerpt) <= 240


def test_evidence_keeps_no_secret() -> None:
    came = judged(
        AMAZON,
        headers={
            "set-cookie": "session=hidden; path=/, __cf_bm=hidden",
            "cookie": "hidden",
            "authorization": "hidden",
            "x-api-key": "hidden",
            "www-authenticate": "hidden",
            "location": "https://me:hidden@shop.example/a?token=hidden",
            "server": "cloudflare",
        },
        redirects=["https://me:hidden@shop.example/product/7"],
    )

    assert "hidden" not in repr(came)
    assert came.evidence.final_url == "https://shop.example/product/7"
    assert ("location", "https://shop.example/a") in came.evidence.headers


def test_evidence_is_short_and_printable() -> None:
    headers = {f"x-kpsdk-{n}": "v" * 10_000 + "\r\n\x1b" for n in range(500)} | {"server": "\x00\x1b[2J" + "s" * 9_000}
    came = judged(page("T\x1b[31m\u202e" * 900, "<b>"), 403, headers=headers)
    kept = [came.evidence.title, came.evidence.excerpt, *(value for _, value in came.evidence.headers)]

    assert all(text.isprintable() and len(text) <= 240 for text in kept)
    assert len(came.evidence.headers) <= 24
