"""The whole part under a real exporter: what /metrics says of targets, domains, dependencies and verification."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from rawserver import RawServer
from running import Exporter
from searchbots.dnsserver import SERVFAIL, Zone, serving
from searchbots.webserver import moved, web
from waiting import until


def answer(connection: object, server: RawServer) -> None:
    server.head(connection)  # type: ignore[arg-type]  # a socket
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")  # type: ignore[attr-defined]


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[RawServer]:
    """A server with a certificate of an authority in `ca.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with RawServer(answer, tls=context) as server:
        yield server


def test_metrics(tmp_path: Path, secure: RawServer) -> None:
    events = [{"eventAction": "expiration", "eventDate": "2027-03-01T00:00:00Z"}]
    with web() as one, web() as two, serving(Zone()) as dns, web() as rdap:
        one.answer = lambda _method, _path: moved(two.url())
        two.answer = lambda _method, _path: moved(one.url(host="localhost"))
        rdap.answer = lambda _method, path: (
            200 if "shop" in path else 404,
            {},
            json.dumps({"events": events}).encode(),
        )
        config = f"""
            sites: {{books: {{hosts: [books.example]}}}}
            fetch: {{ca_file: ca.pem}}
            searchbots:
              ranges: ./ranges
              resolver: {{servers: ['{dns}']}}
              targets:
                good: {{url: '{rdap.url()}'}}
                down: {{url: 'http://127.0.0.1:1/'}}
              domains:
                names: ['http://localhost:{one.port}', 'http://127.0.0.1:{two.port}', 'https://localhost:{secure.port}',
                        shop.invalid, other.invalid]
                rdap: '{rdap.url("/")}'
              dependencies: {{redis: {{url: 'redis://127.0.0.1:1'}}}}
        """
        (tmp_path / "ranges").mkdir()
        (tmp_path / "ranges" / "duckduckbot.json").write_text('{"prefixes": ["20.191.45.212"]}')
        (tmp_path / "ranges" / "bingbot.json").write_text("<html>")
        (tmp_path / "ranges" / "applebot.json").symlink_to("applebot.json")
        exporter = Exporter(tmp_path, config).start()
        try:
            exporter.wait_for("crawlhealth_redirect_loop", 2)
            exporter.wait_for("crawlhealth_domain_expiry_timestamp_seconds", 1_803_859_200, domain="shop.invalid")
            exporter.wait_for("crawlhealth_tls_not_after_timestamp_seconds", 1, host="localhost")
            until(lambda: exporter.value("crawlhealth_dependency_up") == 0, 10, "Redis is known")
            value = exporter.value
            until(lambda: value("crawlhealth_target_up", target="down") == 0, 10, "the target is known")
            assert value("crawlhealth_target_up", target="good") == 1
            assert value("crawlhealth_target_probes_total", target="down", result="connect") == 1
            assert value("crawlhealth_target_response_seconds", target="down") is None
            assert value("crawlhealth_redirect_loop", domain=f"localhost:{one.port}") == 1
            assert value("crawlhealth_redirect_loop", domain=f"localhost:{secure.port}") == 0
            assert value("crawlhealth_domain_expiry_timestamp_seconds", domain="other.invalid") is None
            until(
                lambda: value("crawlhealth_domain_expiry_lookup_success", domain="other.invalid") == 0, 10, "it failed"
            )
            assert value("crawlhealth_domain_expiry_lookup_success", domain="shop.invalid") == 1
            assert value("crawlhealth_log_ranges_good", file="bingbot.json") == 0
            assert value("crawlhealth_log_ranges_good", file="applebot.json") == 0
            assert value("crawlhealth_log_ranges_good", file="duckduckbot.json") == 1
            assert value("crawlhealth_log_ranges_good", file="*") is None
            assert value("crawlhealth_log_verification_waiting") == 0
        finally:
            exporter.stop()
        assert "Traceback" not in exporter.log()


def test_a_folder_of_ranges_that_is_not_there_yet_shows(tmp_path: Path) -> None:
    config = """
        searchbots:
          ranges: ./ranges
          refresh: {bingbot.json: {url: 'http://127.0.0.1:1/'}}
    """
    exporter = Exporter(tmp_path, config).start()
    try:
        exporter.wait_for("crawlhealth_log_ranges_good", 0, file="*")
        until(
            lambda: exporter.value("crawlhealth_log_ranges_good", file="bingbot.json") == 0, 10, "its fetch has failed"
        )
    finally:
        exporter.stop()


def test_visits_are_counted_by_who_came_once_that_is_known(tmp_path: Path) -> None:
    zone = Zone()
    zone.names("66.249.66.1", "crawl-66-249-66-1.googlebot.com")
    zone.put("crawl-66-249-66-1.googlebot.com", "A", "66.249.66.1")
    zone.names("11.0.0.6", SERVFAIL)
    line = '{} - - [01/Dec/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0 (compatible; {}/2.1)"\n'
    visitors = [("66.249.66.1", "Googlebot")] * 3 + [("11.0.0.9", "Googlebot"), ("11.0.0.6", "Googlebot")]
    log = tmp_path / "access.log"
    log.write_text("".join(line.format(*visitor) for visitor in [*visitors, ("11.0.0.7", "360Spider")]))
    with serving(zone) as dns:
        config = f"""
            searchbots:
              logs: [{{path: access.log, domain: shop.example}}]
              resolver: {{servers: ['{dns}']}}
        """
        exporter = Exporter(tmp_path, config).start()
        try:
            for identity, number in (("verified", 3), ("fake", 1), ("unverified", 1), ("unverifiable", 1)):
                exporter.wait_for("crawlhealth_searchbot_visits_total", number, identity=identity)
            assert exporter.value("crawlhealth_searchbot_visits_total") == 6
        finally:
            exporter.stop()
