"""POST and GET /api/v1/dispatches of a real exporter: whose token may what, limits, and kills at any moment."""

from __future__ import annotations

import gzip
import json
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import requests.auth

from running import Exporter, plain_session

CONFIG = """
    push: {tokens: [{env: ALL}, {token: {env: SITES}, sites: [books]}]}
    sites: {books: {hosts: [books.example]}}
    searchbots:
      tenants:
        acme: {domains: [shop.example], tokens: [{env: ACME}]}
        zeta: {domains: [zeta.example], tokens: [{env: ZETA}]}
      targets:
        money: {url: 'http://127.0.0.1:1/', tenant: acme, weight: 1, quota: {ramp: [500, 800], begins: 2020-01-01}}
        away: {url: 'http://127.0.0.1:2/', tenant: zeta}
      domains: {redirects: false, expiry: false}
"""
ENVIRON = {"ALL": "all-of-it", "SITES": "sites-only", "ACME": "acme-token", "ZETA": "zeta-token"}
PATH = "/api/v1/dispatches"
POSTS = 60


class Bearer(requests.auth.AuthBase):
    """A bearer token in place of a user and password."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


ITEM = {"domain": "shop.example", "bot": "Googlebot", "target": "money", "decision": "sent", "count": 1}


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with Exporter(tmp_path_factory.mktemp("exporter"), CONFIG, environ=ENVIRON) as exporter:
        yield exporter


def send(exporter: Exporter, body: object, token: str = "acme-token", **headers: str) -> requests.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", "Authorization": f"Bearer {token}", **headers}
    return exporter.post(PATH, data=data, headers=given)


def test_a_tenant_sends_and_sees_its_own_only(exporter: Exporter) -> None:
    answer = send(exporter, [ITEM | {"count": 3}, ITEM | {"domain": "zeta.example"}, ITEM | {"target": "away"}])
    assert (answer.status_code, answer.json()["accepted"], answer.json()["rejected_items"]) == (200, 1, 2)
    assert exporter.value("crawlhealth_searchbot_dispatches_total", tenant="acme", decision="sent") == 3
    assert exporter.value("crawlhealth_searchbot_dispatches_total", tenant="zeta") is None
    assert exporter.value("crawlhealth_target_quota", target="money") == 800
    headers = {"Authorization": "Bearer acme-token"}
    assert exporter.get(PATH, headers=headers).json() == {
        "tenants": {
            "acme": {
                "domains": ["shop.example"],
                "targets": {
                    "money": {
                        "used_today": 3,
                        "quota_today": 800,
                        "bots": {"Googlebot": {"share": 1.0, "expected": 1.0}},
                    }
                },
            }
        }
    }
    assert exporter.get(PATH, headers={"Authorization": "Bearer zeta-token"}).json()["tenants"].keys() == {"zeta"}
    assert exporter.get(PATH, headers={"Authorization": "Bearer all-of-it"}).json()["tenants"].keys() == {
        "acme",
        "zeta",
    }


@pytest.mark.parametrize(
    ("token", "body", "headers", "status", "said"),
    [
        pytest.param("", [ITEM], {}, 401, "a bearer token of a tenant", id="no token"),
        pytest.param("acme-toke", [ITEM], {}, 401, "a bearer token of a tenant", id="a wrong token"),
        pytest.param("sites-only", [ITEM], {}, 401, "a bearer token of a tenant", id="a token for sites"),
        pytest.param("zeta-token", [ITEM], {}, 403, "none of the domains of 'zeta'", id="another tenant's"),
        pytest.param("zeta-token", [ITEM | {"tenant": "acme"}], {}, 403, "not for the tenant 'acme'", id="as another"),
        pytest.param("all-of-it", [ITEM], {}, 422, "needs tenant", id="of which tenant"),
        pytest.param("acme-token", [ITEM | {"bot": "Nobody"}], {}, 422, "'Nobody' is not known", id="an unknown bot"),
        pytest.param("acme-token", b"[]", {}, 400, "the body holds no item", id="nothing"),
        pytest.param("acme-token", b"[1", {}, 400, "not a JSON array", id="half an array"),
        pytest.param("acme-token", b"not JSON", {}, 422, "malformed", id="no JSON"),
        pytest.param("acme-token", [ITEM], {"Content-Type": "text/plain"}, 415, "Content-Type", id="another type"),
        pytest.param("acme-token", b" " * 1_000_001, {}, 413, "more than 1000000 bytes", id="too large"),
        pytest.param("acme-token", gzip.compress(b" " * 1_000_001), {"Content-Encoding": "gzip"}, 413, "decoded",
                     id="a bomb"),
        pytest.param("acme-token", [0] * 10_001, {}, 413, "more than 10000 items", id="too many"),
        pytest.param("acme-token", [ITEM], {"Idempotency-Key": "k" * 256}, 400, "Idempotency-Key", id="a long key"),
    ],
)  # fmt: skip
def test_refusals(
    exporter: Exporter, token: str, body: object, headers: dict[str, str], status: int, said: str
) -> None:
    before = exporter.value("crawlhealth_searchbot_dispatches_total")
    answer = send(exporter, body, token, **headers)
    assert answer.status_code == status, answer.text
    assert said in answer.text
    assert "shop.example" not in answer.text or token != "zeta-token" or "shop.example" in json.dumps(body)
    assert exporter.value("crawlhealth_searchbot_dispatches_total") == before


def test_a_tenants_token_is_good_for_nothing_else(exporter: Exporter) -> None:
    headers = {"Authorization": "Bearer acme-token", "Content-Type": "application/json"}
    assert exporter.post("/api/v1/observations", data="[]", headers=headers).status_code == 401
    assert exporter.post("/-/reload", headers=headers).status_code == 401


def test_a_key_counts_once_and_is_of_its_sender(exporter: Exporter) -> None:
    body = [ITEM | {"tenant": "acme", "decision": "over_quota", "count": 5}]
    for token, headers in (("acme-token", ""), ("acme-token", "true"), ("all-of-it", "")):
        answer = send(exporter, body, token, **{"Idempotency-Key": "a"})
        assert (answer.status_code, answer.headers.get("idempotent-replayed", "")) == (200, headers)
    assert exporter.value("crawlhealth_searchbot_dispatches_total", decision="over_quota") == 10
    assert send(exporter, [ITEM], **{"Idempotency-Key": "a"}).status_code == 422


def test_behind_passwords_a_tenants_token_lets_through_to_dispatches_alone(tmp_path: Path) -> None:
    hashed = "$2b$04$58JpHwtgRWwtKAT5vZ3vZeuDoqyaj2TlUbJF0cxBVAMp5QcFoZoW6"  # bcrypt of x
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{admin: '{hashed}'}}\n")
    arguments = ("--web.config.file", str(tmp_path / "web.yml"))
    with Exporter(tmp_path, CONFIG, environ=ENVIRON, arguments=arguments, asking={"auth": ("admin", "x")}) as exporter:
        assert exporter.post(PATH, json=[ITEM], auth=Bearer("acme-token")).status_code == 200
        for path in ("/api/v1/sites", "/metrics", "/"):
            assert exporter.get(path, auth=Bearer("acme-token")).status_code == 401
        assert exporter.get(PATH, auth=Bearer("acme-toke")).status_code == 401
        assert exporter.get(PATH, auth=("admin", "x")).status_code == 401, "a password is no tenant's token"


def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path, CONFIG, environ=ENVIRON)
    done = threading.Event()
    acknowledged = [0]
    chance = random.Random(7)
    exporter.start()

    def dispatch() -> None:
        session = plain_session()
        for number in range(POSTS):
            headers = {"Content-Type": "application/json", "Authorization": "Bearer acme-token",
                       "Idempotency-Key": str(number)}  # fmt: skip
            while not done.is_set():
                try:
                    answer = session.post(
                        exporter.url + PATH, data=json.dumps([ITEM | {"count": number}]), headers=headers, timeout=5
                    )
                except requests.RequestException:
                    done.wait(0.02)
                    continue
                if answer.status_code == 200:
                    acknowledged[0] += number
                    break
        done.set()

    sender = threading.Thread(target=dispatch)
    sender.start()
    try:
        for _ in range(2):
            done.wait(chance.uniform(0.1, 0.3))
            exporter.stop(signal.SIGKILL)
            exporter.start()
        assert done.wait(30), "all were taken"
        assert acknowledged[0] == sum(range(POSTS))
        assert exporter.value("crawlhealth_searchbot_dispatches_total") == sum(range(POSTS))
        assert exporter.value("crawlhealth_target_quota_used", target="money") == sum(range(POSTS))
    finally:
        done.set()
        sender.join()
        exporter.stop()
