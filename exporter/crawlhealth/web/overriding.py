"""`/api/v1/sites/NAME/override`: what a person decides in place of the advice."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from crawlhealth import overrides
from crawlhealth.config import PushToken, Secret
from crawlhealth.history import HistoryError
from crawlhealth.verdict import Override
from crawlhealth.web import posting
from crawlhealth.web.siteanswer import answer, encoded, tag, unknown_site
from crawlhealth.web.sites import SitesState, as_json


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a POST."""

    kind: str
    until: str | None = None
    concurrency_ratio: float | None = None
    note: str = ""


_wanted: Final = msgspec.json.Decoder(_Wanted).decode


def override_endpoint(
    state: SitesState, tokens: Callable[[], Iterable[Secret | PushToken]]
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint: POST decides, DELETE leaves it to the advice again. `tokens` are those that may."""

    async def override(request: Request) -> Response:
        site = request.path_params["name"]
        try:
            posting.admit(request.headers.get("authorization", ""), site, tokens())
            posting.same_origin(request)
        except posting.Refused as refused:
            return refused.as_json()
        if site not in state.names():
            return as_json(unknown_site(site, state.why(site)), status=404)
        try:
            if request.method == "DELETE":
                await run_in_threadpool(state.end, site)
            else:
                await run_in_threadpool(state.put, _decided(site, await posting.body(request)))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except HistoryError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        except (TimeoutError, ClientDisconnect):
            return JSONResponse({"error": "the body did not come"}, status_code=408)
        verdict = state.verdicts().get(site)
        return as_json(encoded(answer(site, verdict)), tag=tag(verdict))

    return override


def _decided(site: str, body: bytes) -> Override:
    """The override in a body. Raises ValueError that says what to write."""
    try:
        wanted = _wanted(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"the body is not an override: {error}") from None
    return overrides.parse(
        site,
        wanted.kind,
        now=time.time(),
        until=wanted.until,
        concurrency=wanted.concurrency_ratio,
        note=wanted.note,
    )
