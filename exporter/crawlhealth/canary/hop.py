"""One request and its answer over a bounded line: the adapter that `requests` sends through."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, InvalidChunkLength

from crawlhealth.canary.connect import Connector, Target, Trail
from crawlhealth.canary.decode import Body
from crawlhealth.canary.failure import Failure
from crawlhealth.canary.wire import READ_BYTES, Line, Watch
from crawlhealth.config import Fetching
from crawlhealth.model import Phase
from crawlhealth.outcome import Reason

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PROXY_AUTHENTICATION_REQUIRED: Final = 407


class OneHop(requests.Session):
    """A session for one fetch: nothing from the environment, one adapter, and no redirect followed by itself."""

    def __init__(self, adapter: BoundedAdapter) -> None:
        super().__init__()
        self.trust_env = False
        self.mount("http://", adapter)
        self.mount("https://", adapter)
        self.cookies.set_policy(DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain))

    def get_redirect_target(self, _response: requests.Response) -> None:
        """None: the fetch follows redirects, one by one, under its own rules."""
        return


class BoundedAdapter(BaseAdapter):
    """Sends requests of one fetch, each over a connection of its own, within the bounds of its watch.

    The answer comes unread (`read_body`). Raises Failure only.
    """

    def __init__(self, *, connector: Connector, settings: Fetching, watch: Watch, trail: Trail) -> None:
        super().__init__()
        self._connector = connector
        self._settings = settings
        self._watch = watch
        self._trail = trail
        self._line: Line | None = None

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
        self.close()
        target, path = _split(request.url or "")
        line = self._line = self._connector.open(target, self._watch, self._trail)
        self._watch.enter(Phase.FIRST_BYTE)
        most = self._settings.max_header_bytes
        line.allow(most + READ_BYTES, Failure(Reason.INVALID_RESPONSE, f"a response head over {most} bytes"))
        connection = _Connection(target, line)
        headers = dict(request.headers)
        if self._connector.forwards(target):
            path = f"http://{connection.authority}{path}"
            if self._connector.proxy is not None and self._connector.proxy.authorization is not None:
                headers["Proxy-Authorization"] = self._connector.proxy.authorization
        try:
            connection.request(
                request.method or "GET", path, body=request.body, headers=headers,
                preload_content=False, decode_content=False,
            )  # fmt: skip
            raw = connection.getresponse()
        except http.client.RemoteDisconnected:
            raise Failure(Reason.CONNECTION_RESET, "the connection was closed without an answer") from None
        except (http.client.HTTPException, HTTPError, ValueError) as error:
            raise Failure(Reason.INVALID_RESPONSE, f"not a valid HTTP answer ({type(error).__name__})") from None
        if raw.status == _PROXY_AUTHENTICATION_REQUIRED and self._connector.proxy is not None:
            raise Failure(Reason.PROXY, "the route's proxy failed: it answered 407")
        return _response(request, raw)

    def close(self) -> None:
        """Close the connection of the last request."""
        if self._line is not None:
            self._line.hang_up()
            self._line = None

    def read_body(self, response: requests.Response) -> tuple[bytes, Failure | None]:
        """The body, decoded; when it cannot be had whole, the part that came and why the rest did not."""
        assert self._line is not None, "an answer is read before the next request"
        self._watch.enter(Phase.TRANSFER)
        most = self._settings.max_body_bytes
        too_large = Failure(Reason.BODY_TOO_LARGE, f"more than {most} bytes")
        self._line.allow(most + most // 4 + 2 * READ_BYTES, too_large)
        raw: BaseHTTPResponse = response.raw
        body: Body | None = None
        try:
            body = Body(response.headers.get("content-encoding", ""), most, self._watch.remaining)
            if (raw.length_remaining or 0) > most:
                raise too_large
            for piece in raw.stream(READ_BYTES, decode_content=False):
                body.feed(piece)
            body.finish()
        except Failure as failure:
            return (b"" if body is None else body.data), failure
        except InvalidChunkLength:
            return (b"" if body is None else body.data), Failure(Reason.INVALID_RESPONSE, "invalid chunk length")
        except (http.client.HTTPException, HTTPError, ValueError):
            return (b"" if body is None else body.data), Failure(Reason.TRUNCATED_BODY, "the body ends too early")
        return body.data, None


class _Answer(http.client.HTTPResponse):
    """An answer that may be preceded by any interim one (1xx), which the standard library knows of 100 alone."""

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]  # as urllib3 does: no public way
            if not 100 <= status < 200 or status == http.client.SWITCHING_PROTOCOLS:
                return version, status, reason
            http.client._read_headers(self.fp)  # type: ignore[attr-defined]  # bounded, as for the answer itself


class _Connection(HTTPConnection):
    """urllib3's connection over a line that is open already."""

    response_class = _Answer

    def __init__(self, target: Target, line: Line) -> None:
        super().__init__(target.host, target.port, timeout=None)
        self.default_port = DEFAULT_PORTS[target.scheme]  # type: ignore[misc]  # of the origin's scheme
        self.sock: Any = line
        host = f"[{target.host}]" if ":" in target.host else target.host
        self.authority = host if target.port == self.default_port else f"{host}:{target.port}"

    def connect(self) -> None:
        """Never: a line serves one request."""
        raise http.client.NotConnected


def _split(url: str) -> tuple[Target, str]:
    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise Failure(Reason.INVALID_RESPONSE, "not an http or https address") from None
    if not parts.hostname:
        raise Failure(Reason.INVALID_RESPONSE, "an address without a host")
    path = parts.path or "/"
    return (
        Target(scheme=parts.scheme, host=parts.hostname, port=port),
        f"{path}?{parts.query}" if parts.query else path,
    )


def _response(request: requests.PreparedRequest, raw: BaseHTTPResponse) -> requests.Response:
    response = requests.Response()
    response.status_code = raw.status
    response.headers = CaseInsensitiveDict(raw.headers)
    response.raw = raw
    response.url = request.url or ""
    response.request = request
    return response
