"""Content codings: whatever way a body is cut into pieces, it comes out whole and bounded."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.canary.decode import Body
from crawlhealth.canary.failure import Failure
from crawlhealth.outcome import Reason

PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress, "": bytes}


@given(
    coding=st.sampled_from(sorted(PACK)),
    content=st.one_of(st.binary(max_size=5_000), st.integers(0, 300_000).map(bytes)),
    cut=st.integers(1, 4_000),
)
def test_a_body_comes_out_as_it_went_in(coding: str, content: bytes, cut: int) -> None:
    packed = PACK[coding](content)
    body = Body(coding, 1_000_000, lambda: None)
    for start in range(0, len(packed), cut):
        body.feed(packed[start : start + cut])
    body.finish()
    assert body.data == content


@given(coding=st.sampled_from(sorted(PACK)), noise=st.binary(min_size=1, max_size=3_000))
def test_noise_never_raises_anything_but_a_failure(coding: str, noise: bytes) -> None:
    body = Body(coding, 1_000, lambda: None)
    try:
        body.feed(noise)
        body.finish()
        reason = None
    except Failure as failure:
        reason = failure.reason
    assert reason in {None, Reason.UNDECODABLE_BODY, Reason.TRUNCATED_BODY, Reason.BODY_TOO_LARGE}
    assert len(body.data) <= 1_000


def test_the_clock_is_looked_at_between_steps() -> None:
    class Late(Exception):
        pass

    def tick() -> None:
        raise Late

    with pytest.raises(Late):
        Body("gzip", 1_000_000, tick).feed(gzip.compress(b"x" * 1000))
