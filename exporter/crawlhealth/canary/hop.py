"""One request and its answer over a bounded line: the adapter that `requests` sends through."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from crawlhealth.canary.answer import Answer
from crawlhealth.canary.attempt import Attempt
from crawlhealth.canary.connect import Connector, Target
from crawlhealth.canary.decode import Body
from crawlhealth.canary.failure import Failure
from crawlhealth.canary.wire import READ_BYTES
from crawlhealth.config import Fetching
from crawlhealth.model import Phase
from crawlhealth.outcome import Reason

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class BoundedAdapter(BaseAdapter):
    """Sends requests through one route, each over a connection of its own, within the bounds of an attempt.

    The attempt comes as the timeout that `requests` passes through. Answers come unread: their `raw` is an Answer.
    Raises Failure only. Thread-safe.
    """

    def __init__(self, connector: Connector, settings: Fetching) -> None:
        super().__init__()
        self._connector = connector
        self._settings = settings

    def send(  # noqa: PLR0917 - the signature of requests
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: object = None,
        verify: object = True,
        cert: object = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send one prepared request and read the head of its answer."""
        attempt = cast("Attempt", timeout)
        attempt.hang_up()
        target, path = split(request.url or "")
        line = attempt.line = self._connector.open(target, attempt)
        attempt.watch.enter(Phase.FIRST_BYTE)
        most = self._settings.max_header_bytes
        line.allow(most + READ_BYTES, Failure(Reason.INVALID_RESPONSE, "the head of the answer is too long"))
        attempt.forwarded = self._connector.forwards(target)
        try:
            line.sendall(self._written(request, target, path))
            answer = Answer(line.makefile("rb"), request.method or "GET", most)
        except Failure as failure:
            raise _blamed(failure, attempt) from None
        if answer.status == requests.codes.proxy_authentication_required and self._connector.proxy is not None:
            raise Failure(Reason.PROXY, "the route's proxy failed: it answered 407")
        response = requests.Response()
        response.status_code = answer.status
        response.headers = CaseInsensitiveDict(answer.joined)
        response.raw = answer
        response.url = request.url or ""
        response.request = request
        return response

    def close(self) -> None:
        """Nothing is kept open."""

    def _written(self, request: requests.PreparedRequest, target: Target, path: str) -> bytes:
        """The request as bytes. Raises Failure for a header that would break its line."""
        headers = dict(request.headers)
        headers.setdefault("Host", target.authority)
        if self._connector.forwards(target):
            path = f"{target.scheme}://{target.authority}{path}"
            if self._connector.proxy is not None and self._connector.proxy.authorization is not None:
                headers["Proxy-Authorization"] = self._connector.proxy.authorization
        lines = [f"{request.method} {path} HTTP/1.1"]
        for name, value in headers.items():
            lines.append(f"{_text(name)}: {_text(value)}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
            raise Failure(Reason.INVALID_RESPONSE, "a header with a line break")
        body = request.body or b""
        return f"{head}\r\n\r\n".encode("latin-1", "replace") + (body.encode() if isinstance(body, str) else body)


def read_body(response: requests.Response, attempt: Attempt, most: int) -> tuple[bytes, Failure | None]:
    """The body, decoded; when it cannot be had whole, the part that came and why the rest did not.

    At most `most` bytes once decoded, and hardly more on the wire.
    """
    answer, line = response.raw, attempt.line
    assert isinstance(answer, Answer), "an answer of the bounded adapter"
    assert line is not None, "an answer is read before the next request"
    attempt.watch.enter(Phase.TRANSFER)
    line.allow(most + most // 4 + 2 * READ_BYTES, Failure(Reason.BODY_TOO_LARGE, f"more than {most} bytes"))
    body: Body | None = None
    try:
        body = Body(response.headers.get("content-encoding", ""), most, attempt.watch.remaining, attempt.grow)
        for piece in answer.pieces():
            body.feed(piece)
        body.finish()
    except Failure as failure:
        return (b"" if body is None else body.data), _blamed(failure, attempt)
    return body.data, None


def _blamed(failure: Failure, attempt: Attempt) -> Failure:
    """A failure laid where it belongs: on a line that ends at the proxy, only the proxy can hang up."""
    if attempt.forwarded and failure.reason is Reason.CONNECTION_RESET:
        return Failure(Reason.PROXY, f"the route's proxy failed: {failure.detail}")
    return failure


@lru_cache(maxsize=16_384)
def split(url: str) -> tuple[Target, str]:
    """Where a request for a URL goes, and the path that it asks for. Raises Failure."""
    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise Failure(Reason.INVALID_RESPONSE, "not an http or https address") from None
    if not parts.hostname:
        raise Failure(Reason.INVALID_RESPONSE, "an address without a host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    authority = host if port == DEFAULT_PORTS[parts.scheme] else f"{host}:{port}"
    path = parts.path or "/"
    return (
        Target(scheme=parts.scheme, host=parts.hostname, port=port, authority=authority),
        f"{path}?{parts.query}" if parts.query else path,
    )


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
