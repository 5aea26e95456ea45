"""Whatever is posted: never a 500, every item accounted for, and every counter what the accepted items say."""

from __future__ import annotations

import gzip
import json
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from running import Exporter, plain_session, total

CONFIG = "sites: {books: {hosts: [books.example]}, quotes: {hosts: [.quotes.example]}}\nroutes: {us: {}}\n"
FEW = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
pages = st.text(max_size=50) | st.sampled_from(
    ["<title>Just a moment...</title>", "<p>content", "<" * 5000, "<!--" * 2000, "&amp;" * 3000, "\x00\ufeff<html>"]
)
urls = st.sampled_from(
    ["https://books.example/x", "http://a.quotes.example", "//books.example", "http://[::1", "x", "http://é.example",
     "https://books.example:99999/", "https://books.example/login", "javascript:alert(1)", ""]
)  # fmt: skip
likely = {
    "site": st.sampled_from(["books", "quotes", "nobody", ""]),
    "url": urls,
    "final_url": urls,
    "route": st.sampled_from(["direct", "us", "moon"]),
    "outcome": st.sampled_from(["ok", "hard_block", "challenge", "soft_block", "error", "OK"]),
    "reason": st.sampled_from(["http_403", "timeout", "proxy", "connection_reset", "served", "custom", "whim"]),
    "status": st.sampled_from([200, 301, 403, 404, 429, 500, 503, 0, 999, 1000, -1]),
    "headers": st.dictionaries(st.sampled_from(["Server", "cf-mitigated", "Set-Cookie", "content-type", "\n"]), pages),
    "body": pages,
    "body_base64": st.sampled_from(["", "PGh0bWw+", "?", "//79"]),
    "seconds": st.floats(0, 100) | st.sampled_from([-1, 1e300]),
    "bytes": st.integers(0, 10**9) | st.sampled_from([-1, 10**12, 2**63]),
    "count": st.integers(1, 1000) | st.sampled_from([0, 10**9, 2**70]),
    "retries": st.integers(0, 5),
    "credits": st.sampled_from([0, 0.25, 1.5, -1]),
    "records_valid": st.integers(0, 50) | st.none(),
    "records_invalid": st.integers(0, 3),
    "fields_missing": st.lists(st.text(max_size=5), max_size=2),
    "page_type": st.text(max_size=10),
}


@st.composite
def observations(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(likely)), unique=True, max_size=9))
    item: dict[str, Any] = {name: draw(likely[name]) for name in names}
    if draw(st.integers(0, 9)):
        item.setdefault("site", "books")
        item["at"] = time.time() - draw(st.integers(0, 20_000))
    if draw(st.integers(0, 9)) == 0:
        item[draw(st.sampled_from([*likely, "at", "extra"]))] = draw(anything)
    return item


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with Exporter(tmp_path_factory.mktemp("fuzz"), CONFIG) as running:
        yield running


def sums(exporter: Exporter) -> tuple[float, ...]:
    """Requests, bytes, retries, credits, valid and invalid records, accepted and rejected items."""
    samples = exporter.samples()
    names = ("requests_total", "response_bytes_total", "retries_total", "credits_total")
    values = [total(samples, "crawlhealth_" + name, source="traffic") or 0.0 for name in names]
    values += [total(samples, "crawlhealth_records_total", result=result) or 0.0 for result in ("valid", "invalid")]
    values += [
        total(samples, "crawlhealth_push_items_total", result=result) or 0.0 for result in ("accepted", "rejected")
    ]
    return tuple(values)


def strict(items: list[dict[str, Any]]) -> bool:
    """Whether JSON can say them: it has no Infinity, which Python writes all the same."""
    try:
        json.dumps(items, allow_nan=False)
    except ValueError:
        return False
    return True


@FEW
@example(items=[{"site": None}, {"site": math.inf}], form="array", coding="")
@given(items=st.lists(observations(), min_size=1, max_size=12), form=st.sampled_from(["lines", "array"]),
       coding=st.sampled_from(["", "gzip", "zstd"]))  # fmt: skip
def test_counters_are_the_sums_of_accepted_items(
    exporter: Exporter, items: list[dict[str, Any]], form: str, coding: str
) -> None:
    before = sums(exporter)
    texts = [json.dumps(item) for item in items]
    body = ("\n".join(texts) if form == "lines" else f"[{','.join(texts)}]").encode()
    coded = {"": body, "gzip": gzip.compress(body), "zstd": zstandard.compress(body)}[coding]
    headers = {"content-type": "application/json", **({"content-encoding": coding} if coding else {})}
    answer = exporter.post("/api/v1/observations", data=coded, headers=headers)
    assert answer.status_code in (200, 400), answer.text
    said = answer.json()
    if form == "array" and not strict(items):  # is no JSON array
        assert (answer.status_code, sorted(said)) == (400, ["error"])
        assert sums(exporter) == before
        return
    rejected = {rejected["index"] for rejected in said["rejected"]}
    accepted = [item for index, item in enumerate(items) if index not in rejected]
    assert (len(accepted), len(rejected)) == (said["accepted"], said["rejected_items"])
    assert answer.status_code == (200 if accepted else 400)
    expected = [
        sum(item.get("count", 1) for item in accepted),
        *(sum(item.get(name) or 0 for item in accepted)
          for name in ("bytes", "retries", "credits", "records_valid", "records_invalid")),
        len(accepted),
        len(rejected),
    ]  # fmt: skip
    differences = [after - then for after, then in zip(sums(exporter), before, strict=True)]
    assert differences == pytest.approx(expected, rel=1e-12)


@FEW
@given(
    body=st.binary(max_size=2000) | st.lists(anything, max_size=5).map(lambda some: json.dumps(some).encode()),
    kind=st.sampled_from(["application/json", "application/x-ndjson", "text/plain", "application/json;;", "x", ""]),
    coding=st.sampled_from(["", "gzip", "zstd", "identity", "br", "gzip, gzip", "GZIP"]),
    key=st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300),
    path=st.sampled_from(["/api/v1/observations", "/api/v1/windows", "/api/v1/windows?x=1"]),
)
def test_noise_is_refused_and_counts_nothing(
    exporter: Exporter, body: bytes, kind: str, coding: str, key: str | None, path: str
) -> None:
    before = sums(exporter)[:6]
    headers = {"content-type": kind, "content-encoding": coding}
    if key is not None:
        headers["idempotency-key"] = key.strip()
    with plain_session() as session:
        answer = session.post(exporter.url + path, data=body, headers=headers, timeout=20)
    assert answer.status_code in (400, 413, 415, 422), answer.text  # 422: an example before had the same key
    assert isinstance(answer.json(), dict)
    assert sums(exporter)[:6] == before


def test_the_exporter_is_well_after_all_of_it(exporter: Exporter) -> None:
    assert exporter.get("/-/healthy").status_code == 200
    assert "Traceback" not in exporter.log()
