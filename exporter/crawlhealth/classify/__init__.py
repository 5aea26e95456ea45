"""From a response, or a failed fetch, to its outcome, reason and evidence. Pure; linear in the body."""

from __future__ import annotations

from collections.abc import Sequence

from crawlhealth.classify.decide import Question, decide, failed
from crawlhealth.classify.evidence import address, clean
from crawlhealth.config import Block
from crawlhealth.model import Classification, Response
from crawlhealth.outcome import Reason

__all__ = ["classify", "failure"]


def classify(
    response: Response,
    *,
    hosts: Sequence[str],
    refusal_status: frozenset[int],
    extracted: bool | None,
    usual_bytes: float | None = None,
    expects_json: bool = False,
    size: int | None = None,
    blocks: tuple[Block, ...] = (),
) -> Classification:
    """What came of a request that was answered.

    `hosts` are the site's (exact, or `.suffix`; none: a redirect to another host is not judged). `extracted` is True
    when at least one expected value was found on the page, False when values were expected and none was found, None
    when nothing was expected. `usual_bytes` is the median size of the canary's last ok bodies, None while unknown.
    `size` is that of the whole body where `response` has only a part of it.
    `blocks` are the user's own markers (config.blocks); they come before all others, in their order.
    """
    return decide(
        Question(
            response=response,
            hosts=hosts,
            refusal_status=refusal_status,
            extracted=extracted,
            usual_bytes=usual_bytes,
            expects_json=expects_json,
            size=size,
            blocks=blocks,
        )
    )


def failure(reason: Reason, *, detail: str = "", status: int | None = None, final_url: str = "") -> Classification:
    """What came of a request that brought no usable response: a reset is a hard block, anything else an error.

    `detail` must be free of secrets; it is kept as evidence, on one short line.
    """
    return failed(reason, clean(detail), status, address(final_url))
