"""`/api/v1/sites/NAME/accept`, and the same by the form on a site's page: a person accepts a new normal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from crawlhealth import acceptance
from crawlhealth.config import PushToken, Secret
from crawlhealth.history import Decisions, HistoryError
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted
from crawlhealth.web import posting
from crawlhealth.web.gate import basic_user
from crawlhealth.web.pages import problem_page
from crawlhealth.web.siteanswer import encoded, moment, unknown_site
from crawlhealth.web.sites import as_json

log = logging.getLogger(__name__)


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a POST."""

    since: str | None = None
    note: str = ""
    by: str | None = None


_wanted: Final = msgspec.json.Decoder(_Wanted).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptEndpoints:
    """The endpoints. `names` are the configured sites, `why` says why another is none, `tokens` those that may post.

    `settings` say how baselines are made; `judge` is called when something was accepted or taken back.
    """

    names: Callable[[], Collection[str]]
    why: Callable[[str], str]
    decisions: Decisions
    tokens: Callable[[], Iterable[Secret | PushToken]]
    settings: Callable[[], BaselineSettings]
    judge: Callable[[], None]

    def routes(self) -> list[Route]:
        """Both of them."""
        return [
            Route("/api/v1/sites/{name}/accept", self.api, methods=["POST", "DELETE"]),
            Route("/sites/{name}/accept", self.form, methods=["POST"]),
        ]

    async def api(self, request: Request) -> Response:
        """POST accepts, DELETE takes back what was accepted last; both answer with what is in force then."""
        site = request.path_params["name"]
        try:
            self._admit(request, request.headers.get("authorization", ""))
            if site not in self.names():
                return as_json(unknown_site(site, self.why(site)), status=404)
            if request.method == "DELETE":
                await run_in_threadpool(self._undo, site)
            else:
                wanted = _read(await posting.body(request))
                await run_in_threadpool(self._accept, site, wanted, _user(request))
            now = await run_in_threadpool(self.decisions.accepted)
        except posting.Refused as refused:
            return refused.as_json()
        except ValueError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except HistoryError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        except (TimeoutError, ClientDisconnect):
            return JSONResponse({"error": "the body did not come"}, status_code=408)
        return as_json(encoded({"site": site, "accepted": _answer(now.get(site))}))

    async def form(self, request: Request) -> Response:
        """What the form on the page of a site says; leads back to the page."""
        site = request.path_params["name"]
        back = f"../{quote(site, safe='')}"
        try:
            fields = await posting.form(request)
            token = fields.get("token", "").strip()
            self._admit(request, f"Bearer {token}" if token else request.headers.get("authorization", ""))
            if site not in self.names():
                raise posting.Refused(404, self.why(site))
            if "undo" in fields:
                await run_in_threadpool(self._undo, site)
            else:
                await run_in_threadpool(self._accept, site, _of_form(fields), _user(request))
        except posting.Refused as refused:
            return problem_page(site, refused.reason, refused.status, back=back)
        except ValueError as error:
            return problem_page(site, str(error), 400, back=back)
        except HistoryError as error:
            return problem_page(site, str(error), 503, back=back)
        except (TimeoutError, ClientDisconnect):
            return problem_page(site, "the form did not come", 408, back=back)
        return RedirectResponse(back, status_code=303)

    def _admit(self, request: Request, authorization: str) -> None:
        posting.admit(authorization, request.path_params["name"], self.tokens())
        posting.same_origin(request)

    def _accept(self, site: str, wanted: _Wanted, user: str) -> None:
        now, settings = time.time(), self.settings()
        usual = self.decisions.outside_since(site, now, settings)
        by = wanted.by or user
        accepted = acceptance.parse(site, now=now, usual=usual, since=wanted.since, by=by, note=wanted.note)
        self.decisions.accept(accepted)
        log.info("site %s: %s", site, acceptance.told(accepted))
        self.judge()

    def _undo(self, site: str) -> None:
        if self.decisions.undo_accept(site, time.time()):
            log.info("site %s: what was accepted last is taken back", site)
            self.judge()


def _read(body: bytes) -> _Wanted:
    try:
        return _wanted(body or b"{}")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"the body is not an acceptance: {error}") from None


def _of_form(fields: Mapping[str, str]) -> _Wanted:
    return _Wanted(since=fields.get("since", "").strip() or None, note=fields.get("note", ""), by=fields.get("by"))


def _user(request: Request) -> str:
    """Who asks, by the name that a browser or a client gives with a password."""
    return basic_user(request.headers.get("authorization", "")) or ""


def _answer(accepted: Accepted | None) -> dict[str, str] | None:
    if accepted is None:
        return None
    return {
        "since": moment(accepted.since), "at": moment(accepted.at), "by": accepted.by, "note": accepted.note
    }  # fmt: skip
