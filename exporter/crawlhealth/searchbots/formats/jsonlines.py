"""One JSON object a line: nginx with `escape=json` and any keys of these, Caddy, Traefik."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from crawlhealth.searchbots.formats.clock import Clock, Moment, unix
from crawlhealth.searchbots.formats.entry import Entry, Format, count_unreadable

_ADDRESS: Final = ("remote_addr", "client_ip", "remote_ip", "ClientHost", "client", "ip", "address")
_TIME: Final = ("time_iso8601", "StartUTC", "ts", "msec", "@timestamp", "time", "timestamp", "time_local")
_STATUS: Final = ("status", "DownstreamStatus", "OriginStatus", "status_code")
_AGENT: Final = ("http_user_agent", "user_agent", "request_User-Agent", "agent", "ua")
_HOST: Final = ("host", "http_host", "server_name", "RequestHost", "vhost")
_FORWARDED: Final = ("http_x_forwarded_for", "x_forwarded_for", "request_X-Forwarded-For", "xff")
_METHOD: Final = ("request_method", "RequestMethod", "method")
_PATH: Final = ("request_uri", "RequestPath", "uri", "path")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode  # whatever a log has: each value is looked at

Fields = Mapping[str, Any]


class JsonLines:
    """A reader of such lines; which server wrote one is seen by its keys."""

    def __init__(self, name: str = "json") -> None:
        self.name = name
        self._clock = Clock()

    @property
    def state(self) -> bytes:
        """Nothing: every line speaks for itself."""
        return b""

    def resume(self, state: bytes) -> None:
        """Nothing to go on with."""

    def read(self, line: bytes) -> Entry | None:
        """What a line says; None where it cannot be read. Bytes that are no UTF-8 are read as well as they can be."""
        try:
            try:
                found = _decode(line)
            except msgspec.DecodeError:
                found = _decode(line.decode("utf-8", "replace").encode())
            request = found.get("request")
            fields = _caddy(found, request) if isinstance(request, dict) else found
            at, day = self._time(fields)
            return Entry(
                address=_bytes(fields, _ADDRESS),
                at=at,
                day=day,
                status=int(_first(fields, _STATUS)),
                agent=_bytes(fields, _AGENT, b""),
                request=_request(fields),
                host=_bytes(fields, _HOST, b""),
                forwarded=_bytes(fields, _FORWARDED, b""),
                target=str(fields.get("target") or "")[:200],
                decision=str(fields.get("decision") or "")[:200],
            )
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return None

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many lines of a chunk cannot be read: each is looked at, a cut line would look like a whole one."""
        return count_unreadable(self, chunk)

    def _time(self, fields: Fields) -> Moment:
        value = _first(fields, _TIME)
        if isinstance(value, int | float):
            return unix(float(value) / (1000 if value > 1e11 else 1))
        text = str(value).encode()
        if text[2:3] == b"/":
            return self._clock.common(text)
        return unix(float(text)) if text.replace(b".", b"", 1).isdigit() else self._clock.iso(text)


def nginx_json() -> Format:
    """What nginx writes with `escape=json`."""
    return JsonLines("nginx_json")


def caddy() -> Format:
    """What Caddy writes."""
    return JsonLines("caddy")


def traefik() -> Format:
    """What Traefik writes with `format: json`."""
    return JsonLines("traefik")


def _caddy(found: Fields, request: Fields) -> Fields:
    """Caddy's entry in flat words; its `client_ip` has its own trusted proxies behind it."""
    written = request.get("headers")
    headers = {str(name).lower(): values for name, values in written.items()} if isinstance(written, dict) else {}
    return {
        **{key: request.get(key) for key in ("client_ip", "remote_ip", "host", "method", "uri")},
        "ts": found.get("ts"),
        "status": found.get("status"),
        "user_agent": ", ".join(headers.get("user-agent") or ()),
        "xff": ", ".join(headers.get("x-forwarded-for") or ()),
        "target": found.get("target"),
        "decision": found.get("decision"),
    }


def _request(fields: Fields) -> bytes:
    request = fields.get("request")
    if isinstance(request, str):
        return request.encode()
    return b" ".join((_bytes(fields, _METHOD, b"-"), _bytes(fields, _PATH, b"-")))


def _first(fields: Fields, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON holds anything
    """The first of some keys that says something. Raises KeyError."""
    for key in keys:
        value = fields.get(key)
        if value is not None and value != "":
            return value
    raise KeyError(keys[0])


def _bytes(fields: Fields, keys: tuple[str, ...], default: bytes | None = None) -> bytes:
    try:
        return str(_first(fields, keys)).encode("utf-8", "replace")
    except KeyError:
        if default is None:
            raise
        return default
