"""What every post of a person's decision goes through: tokens, the page it comes from, and the limits of its body."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crawlhealth.config import PushToken, Secret
from crawlhealth.traffic.tokens import granted

MAX_BODY_BYTES: Final = 16_384
MAX_FIELDS: Final = 20
READ_SECONDS: Final = 10.0


class Refused(Exception):
    """A post that is not taken: the status and what to say."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def as_json(self) -> Response:
        """The answer of the API."""
        return JSONResponse({"error": self.reason}, status_code=self.status)


def admit(authorization: str, site: str, tokens: Iterable[Secret | PushToken]) -> None:
    """Raise Refused unless an Authorization header grants posts for a site."""
    grant = granted(authorization, tokens)
    if grant is None:
        raise Refused(401, "a bearer token from push.tokens is needed")
    if grant.sites is not None and site not in grant.sites:
        raise Refused(403, "this token is for other sites")


def same_origin(request: Request) -> None:
    """Raise Refused for what a page of somebody else makes a browser post; where no browser says so, it passes."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        own = site in ("same-origin", "none")
    else:
        origin = request.headers.get("origin")
        own = origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    if not own:
        raise Refused(403, "posts from pages of other origins are not taken")


async def body(request: Request) -> bytes:
    """The body, read within its limits. Raises ValueError for one too long, TimeoutError for one that does not come."""
    return await asyncio.wait_for(_read(request), READ_SECONDS)


async def form(request: Request) -> Mapping[str, str]:
    """The fields of a page's form. Raises as `body` does."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise ValueError("a form is expected")
    try:
        text = (await body(request)).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except UnicodeDecodeError:
        raise ValueError("the form is not UTF-8") from None


async def _read(request: Request) -> bytes:
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > MAX_BODY_BYTES:
            raise ValueError(f"the body is longer than {MAX_BODY_BYTES} bytes")
    return read
