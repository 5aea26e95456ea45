"""Incidents over HTTP: to read them, and to say whether they were some, by the API or by the form on a site's page."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from crawlhealth import incidentanswer, labels, quantities
from crawlhealth.config import PushToken, Secret
from crawlhealth.history import Decisions, HistoryError
from crawlhealth.incident import Incident
from crawlhealth.maintenance import moment
from crawlhealth.web import posting
from crawlhealth.web.pages import problem_page
from crawlhealth.web.siteanswer import encoded, unknown_site
from crawlhealth.web.sites import as_json

DEFAULT_LIMIT: Final = 100
MOST: Final = 1000
"""So many incidents are in an answer at most."""
DEFAULT_SINCE: Final = "30d"


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a POST."""

    label: str
    note: str = ""
    reason: str | None = None


_wanted: Final = msgspec.json.Decoder(_Wanted).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEndpoints:
    """The endpoints. `names` are the configured sites, `why` says why another is none, `tokens` those that may post."""

    names: Callable[[], Collection[str]]
    why: Callable[[str], str]
    decisions: Decisions
    tokens: Callable[[], Iterable[Secret | PushToken]]

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/api/v1/incidents", self.every, methods=["GET"]),
            Route("/api/v1/sites/{name}/incidents", self.of_site, methods=["GET"]),
            Route("/api/v1/sites/{name}/incidents/{start}/label", self.label, methods=["POST"]),
            Route("/sites/{name}/incidents/{start}/label", self.form, methods=["POST"]),
        ]

    async def every(self, request: Request) -> Response:
        """The incidents of all sites that lasted at any moment since a time, newest first."""
        now = time.time()
        try:
            since = _since(request.query_params.get("since", DEFAULT_SINCE), now)
            return await self._answer(_limit(request), now, since=since)
        except ValueError as error:
            return _error(400, str(error))
        except HistoryError as error:
            return _error(503, str(error))

    async def of_site(self, request: Request) -> Response:
        """The incidents of one site, newest first."""
        site = request.path_params["name"]
        if site not in self.names():
            return as_json(unknown_site(site, self.why(site)), status=404)
        try:
            return await self._answer(_limit(request), time.time(), site=site)
        except ValueError as error:
            return _error(400, str(error))
        except HistoryError as error:
            return _error(503, str(error))

    async def label(self, request: Request) -> Response:
        """Label an incident, as JSON says."""
        try:
            site = self._admitted(request, request.headers.get("authorization", ""))
            try:
                wanted = _wanted(await posting.body(request))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise ValueError(f"the body is not a label: {error}") from None
            labelled = await run_in_threadpool(self._labelled, site, request.path_params["start"], wanted)
        except posting.Refused as refused:
            return refused.as_json()
        except ValueError as error:
            return _error(400, str(error))
        except HistoryError as error:
            return _error(503, str(error))
        except (TimeoutError, ClientDisconnect):
            return _error(408, "the body did not come")
        return as_json(encoded(incidentanswer.answer(labelled, time.time())))

    async def form(self, request: Request) -> Response:
        """Label an incident, as the form of its site's page says, and lead back to the page."""
        name = request.path_params["name"]
        try:
            posting.same_origin(request)
            fields = await posting.form(request)
            token = fields.get("token", "").strip()
            site = self._admitted(request, f"Bearer {token}" if token else request.headers.get("authorization", ""))
            wanted = _Wanted(
                label=fields.get("label", ""), note=fields.get("note", ""), reason=fields.get("reason") or None
            )
            await run_in_threadpool(self._labelled, site, request.path_params["start"], wanted)
        except posting.Refused as refused:
            return problem_page(name, refused.reason, refused.status)
        except ValueError as error:
            return problem_page(name, str(error), 400)
        except HistoryError as error:
            return problem_page(name, str(error), 503)
        except (TimeoutError, ClientDisconnect):
            return problem_page(name, "the form did not come", 408)
        return RedirectResponse(f"../../../{quote(site, safe='')}#incidents", status_code=303)

    def _admitted(self, request: Request, authorization: str) -> str:
        """The site that may be posted of. Raises Refused."""
        site: str = request.path_params["name"]
        posting.admit(authorization, site, self.tokens())
        posting.same_origin(request)
        if site not in self.names():
            raise posting.Refused(404, self.why(site))
        return site

    def _labelled(self, site: str, start: str, wanted: _Wanted) -> Incident:
        """The incident with its new label. Raises ValueError, Refused, HistoryError."""
        incident = self.decisions.incident(site, start)
        if incident is None:
            raise posting.Refused(404, f"{site} has no incident of {start}: see /api/v1/sites/{site}/incidents")
        said = labels.parse(site, incident.start, wanted.label, now=time.time(), note=wanted.note, reason=wanted.reason)
        self.decisions.label(said)
        return self.decisions.incident(site, incident.name) or incident

    async def _answer(self, limit: int, now: float, *, site: str | None = None, since: float = 0.0) -> Response:
        def said() -> bytes:
            found = self.decisions.incidents(site=site, since=since, limit=limit)
            return encoded({"incidents": [incidentanswer.answer(incident, now) for incident in found]})

        return as_json(await run_in_threadpool(said))


def _limit(request: Request) -> int:
    written = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not (written.isascii() and written.isdigit() and len(written) < 10 and 1 <= int(written) <= MOST):
        raise ValueError(f"limit: write a whole number from 1 to {MOST}")
    return int(written)


def _since(written: str, now: float) -> float:
    try:
        return moment(written) if "T" in written else now - quantities.duration(written).total_seconds()
    except ValueError:
        raise ValueError("since: write a moment as in 2026-12-01T22:00:00Z, or a duration as in 30d") from None


def _error(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status_code=status)
