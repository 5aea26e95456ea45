"""Every format of access log: what a line says, whatever bytes are in it, and that fields never shift."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.searchbots import formats
from crawlhealth.searchbots.formats import FORMATS
from crawlhealth.searchbots.visits import LogReader
from crawlhealth.searchbotsettings import LOG_FORMATS

NOON = 1_796_040_003.0
"""2026-11-30T12:00:03Z."""
BING = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"
TIME = "30/Nov/2026:12:00:03 +0000"
COMBINED = f'192.0.2.7 - - [{TIME}] "GET /a?b=c HTTP/1.1" 304 0 "-" "{BING}"'
CADDY = {
    "level": "info",
    "ts": NOON,
    "request": {
        "remote_ip": "10.0.0.1", "client_ip": "192.0.2.7", "method": "GET", "host": "shop.example", "uri": "/a?b=c",
        "headers": {"User-Agent": [BING]},
    },
    "status": 304,
}  # fmt: skip
TRAEFIK = {
    "ClientHost": "192.0.2.7", "DownstreamStatus": 304, "OriginStatus": 200, "RequestHost": "shop.example",
    "RequestMethod": "GET", "RequestPath": "/a?b=c", "StartUTC": "2026-11-30T12:00:03Z", "request_User-Agent": BING,
}  # fmt: skip
NGINX_JSON = {
    "time_iso8601": "2026-11-30T13:00:03+01:00", "remote_addr": "192.0.2.7", "request": "GET /a?b=c HTTP/1.1",
    "status": "304", "http_user_agent": BING, "host": "shop.example", "target": "money", "decision": "sent",
}  # fmt: skip
ALB = (
    "h2 2026-11-30T12:00:03.000000Z app/lb/50dc 192.0.2.7:2817 10.0.0.66:9000 0.0 0.037 0.0 304 304 34 366"
    f' "GET https://shop.example:443/a?b=c HTTP/2.0" "{BING}" ECDHE-RSA TLSv1.2 arn:aws "Root=1-58" "shop.example"'
    ' "-" 1 2026-11-30T12:00:03.000000Z "forward" "-" "-" "10.0.0.66:9000" "200" "-" "-"'
)
IIS = (
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status cs-host",
    f"2026-11-30 12:00:03 10.0.0.9 GET /a b=c 443 192.0.2.7 {BING.replace(' ', '+')} 304 shop.example",
)
CLOUDFRONT = (
    "2026-11-30\t12:00:03\tFRA2\t1045\t192.0.2.7\tGET\td1.cloudfront.net\t/a\t304\t-\t"
    f"{BING.replace(' ', '%20')}\tb=c\t-\tHit\tid==\tshop.example\thttps\t20\t0.1"
)
OWN = '$host $remote_addr [$time_local] "$request" $status "$http_user_agent" $request_time'


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param("combined", [COMBINED], id="combined"),
        pytest.param("combined", [COMBINED + ' "203.0.113.9, 10.0.0.1"'], id="nginx main, with X-Forwarded-For"),
        pytest.param("combined", [COMBINED + " 0.003 "], id="combined and fields after it"),
        pytest.param("combined", [COMBINED[:-1]], id="cut off at its end"),
        pytest.param("combined", [COMBINED.replace("- -", "- Jane Doe")], id="a user name with a blank"),
        pytest.param("vhost", ["shop.example:443 " + COMBINED], id="vhost with a port"),
        pytest.param("vhost", ["shop.example " + COMBINED], id="vhost"),
        pytest.param("nginx_json", [json.dumps(NGINX_JSON)], id="nginx JSON"),
        pytest.param("caddy", [json.dumps(CADDY)], id="Caddy"),
        pytest.param("traefik", [json.dumps(TRAEFIK)], id="Traefik"),
        pytest.param("w3c", IIS, id="W3C"),
        pytest.param("cloudfront", [CLOUDFRONT], id="CloudFront"),
        pytest.param("cloudfront", [CLOUDFRONT.replace("%20", "%2520")], id="CloudFront, encoded twice"),
        pytest.param("alb", [ALB], id="ALB"),
        pytest.param(OWN, [f'shop.example 192.0.2.7 [{TIME}] "GET /a?b=c HTTP/1.1" 304 "{BING}" 0.1'], id="own"),
    ],
)
def test_a_line_says_who_when_what_and_how_it_went(name: str, lines: list[str]) -> None:
    form = formats.reader(name)
    entry = [form.read(line.encode()) for line in lines][-1]
    assert entry is not None
    assert (entry.address, entry.at, entry.day, entry.status) == (b"192.0.2.7", NOON, "2026-11-30", 304)
    assert (entry.agent.decode(), entry.method, entry.path) == (BING, "GET", "/a?b=c")
    if name not in ("combined",):
        assert entry.host == b"shop.example"
    text = "".join(line + "\n" for line in lines).encode()
    assert form.unreadable(text, len(lines)) == 0


def test_a_dispatchers_decision_is_read_from_a_json_line() -> None:
    entry = formats.reader("nginx_json").read(json.dumps(NGINX_JSON).encode())
    assert entry is not None
    assert (entry.target, entry.decision) == ("money", "sent")


def test_the_names_in_the_configuration_are_those_that_are_read() -> None:
    assert set(FORMATS) == set(LOG_FORMATS)


def test_common_lines_name_no_bot_and_can_be_read() -> None:
    form = formats.reader("common")
    line = COMBINED.partition(' "-"')[0]
    lines = [line, line.replace(" 304 0", " 304 -")]
    entries = [form.read(line.encode()) for line in lines]
    assert all(entry is not None and entry.agent == b"" for entry in entries)
    assert form.unreadable("".join(line + "\n" for line in lines).encode(), 2) == 0


@pytest.mark.parametrize(
    ("written", "agent"),
    [
        pytest.param(rb"evil \"quoted\" bingbot", b'evil "quoted" bingbot', id="escaped quotes"),
        pytest.param(rb"evil \x22quoted\x22 bingbot", b'evil "quoted" bingbot', id="nginx writes them as x22"),
        pytest.param(rb"a \\ b", rb"a \ b", id="a backslash"),
        pytest.param(b"caf\xe9 bingbot", b"caf\xe9 bingbot", id="latin-1"),
        pytest.param(b"\x00\x1f\x8b\xff", b"\x00\x1f\x8b\xff", id="binary"),
        pytest.param(rb"\" 200 1 \"-\" \"Googlebot", b'" 200 1 "-" "Googlebot', id="a line inside the agent"),
        pytest.param(rb"\xE6\x90\x9C", "搜".encode(), id="UTF-8 as nginx writes it"),
    ],
)
def test_what_a_visitor_sends_stays_in_its_field(written: bytes, agent: bytes) -> None:
    line = COMBINED.encode().replace(BING.encode(), written)
    entry = formats.reader("combined").read(line)
    assert entry is not None
    assert (entry.agent, entry.status) == (agent, 304)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(COMBINED.replace(BING, 'a "raw" quote'), id="raw quotes in the agent"),
        pytest.param(COMBINED.replace("/a?b=c", '/" 200 1 "-" "Googlebot'), id="raw quotes in the path"),
        pytest.param(COMBINED.replace("/a?b=c", '/a"b'), id="one raw quote in the path"),
        pytest.param(COMBINED.replace("304", "abc"), id="a status that is none"),
        pytest.param(COMBINED.replace("Nov", "Nob"), id="a month that is none"),
        pytest.param(COMBINED.replace("12:00:03", "12:00:99"), id="a second that is none"),
        pytest.param(COMBINED.replace("30/", "31/"), id="a day that is none"),
        pytest.param(COMBINED[:60], id="cut in the middle"),
        pytest.param("", id="empty"),
        pytest.param('""""" [] \\', id="noise"),
    ],
)
def test_a_line_that_cannot_be_read_is_none_and_counted(line: str) -> None:
    form = formats.reader("combined")
    assert form.read(line.encode()) is None
    reader = LogReader(form)
    assert len(list(reader.visits(f"{COMBINED}\n{line}\n{COMBINED}\n".encode()))) == 2
    assert (reader.lines, reader.unreadable) == (3, 1 if line else 0)


def test_json_with_bytes_that_are_no_utf8_is_read() -> None:
    line = json.dumps(CADDY).encode().replace(b"bingbot/2.0", b"bingbot/2.0 caf\xe9")
    entry = formats.reader("caddy").read(line)
    assert entry is not None
    assert b"bingbot/2.0 caf" in entry.agent


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"[1]", id="a list"),
        pytest.param(b'{"status": 200}', id="without address and time"),
        pytest.param(b'{"request": {"headers": 5}, "ts": 1, "status": 200}', id="headers that are none"),
        pytest.param(b'{"ts": 1e300, "remote_addr": "192.0.2.1", "status": 200}', id="a time that is none"),
        pytest.param(b"[" * 100_000, id="very deep"),
    ],
)
def test_json_that_is_no_entry_is_none(line: bytes) -> None:
    assert formats.reader("caddy").read(line) is None


def test_fields_may_change_in_mid_file() -> None:
    form = formats.reader("w3c")
    first = [
        *IIS,
        "#Software: IIS",
        "#Fields: time date sc-status c-ip cs(User-Agent) cs-method cs-uri-stem cs-uri-query",
    ]
    text = [*first, f"12:00:03 2026-11-30 404 192.0.2.8 {BING.replace(' ', '+')} GET /b -"]
    chunk = "\r\n".join([*text, ""]).encode()
    assert form.unreadable(chunk, len(text)) == 0
    entries = [form.read(line.encode()) for line in text]
    found = [(entry.address, entry.status, entry.path) for entry in entries if entry]
    assert found == [(b"192.0.2.7", 304, "/a?b=c"), (b"192.0.2.8", 404, "/b")]


def test_addresses_of_version_6_are_read() -> None:
    entry = formats.reader("alb").read(ALB.replace("192.0.2.7:", "[2001:db8::7]:").encode())
    assert entry is not None
    assert entry.address == b"2001:db8::7"
    combined = formats.reader("combined").read(COMBINED.replace("192.0.2.7", "2001:db8::7").encode())
    assert combined is not None
    assert combined.address == b"2001:db8::7"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("$status $http_user_agent $time_local", "lacks $remote_addr", id="no address"),
        pytest.param("$remote_addr $status $http_user_agent", "lacks $time_local", id="no time"),
        pytest.param("$remote_addr $time_local $status", "lacks $http_user_agent", id="no agent"),
        pytest.param("$remote_addr$time_local $status $http_user_agent", "right after another", id="two that touch"),
        pytest.param("combinde", "there is no format", id="a name that is none"),
    ],
)
def test_a_format_that_cannot_be_used_says_why(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="^.*" + problem.replace("$", r"\$")):
        formats.reader(text)


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        pytest.param([COMBINED], "combined", id="combined"),
        pytest.param(["shop.example:80 " + COMBINED], "vhost", id="vhost"),
        pytest.param([json.dumps(CADDY)], "nginx_json", id="any JSON is read by its keys"),
        pytest.param(IIS, "w3c", id="W3C"),
        pytest.param(["#Version: 1.0", CLOUDFRONT], "cloudfront", id="CloudFront"),
        pytest.param([ALB], "alb", id="ALB"),
        pytest.param(["noise"], "combined", id="nothing that is known"),
    ],
)
def test_the_format_of_a_log_is_found_out(lines: list[str], name: str) -> None:
    assert formats.detected(line.encode() for line in lines) == name


@given(st.sampled_from(sorted(FORMATS)), st.binary(max_size=300).map(lambda line: line.replace(b"\n", b" ")))
def test_no_bytes_make_a_reader_fail(name: str, line: bytes) -> None:
    form = formats.reader(name)
    form.read(line)
    form.read(COMBINED.encode()[:60] + line)
    assert form.unreadable(line + b"\n", 1) in (0, 1)


@given(st.binary(max_size=60).filter(lambda agent: not set(agent) & set(b'"\\\n\r')))
def test_any_agent_without_quotes_is_read_as_it_is(agent: bytes) -> None:
    entry = formats.reader("combined").read(COMBINED.encode().replace(BING.encode(), agent))
    assert entry is not None
    assert entry.agent == agent
