"""`--web.config.file` in the format of Prometheus' own exporters: TLS, client certificates, passwords, headers, a rate.

Keys, their meaning and their defaults are those of github.com/prometheus/exporter-toolkit/blob/master/docs/
web-configuration.md. What a Python server cannot do is an error here, and never silently less than what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from crawlhealth.configfile import ConfigError
from crawlhealth.web import tls
from crawlhealth.web.tls import TlsServer
from crawlhealth.yamlfile.binding import Binder
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import quoted

MAX_COST: Final = 16
"""A bcrypt hash of a higher cost takes longer than a scrape may."""

_VERIFYING: Final = ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
_BCRYPT: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_HEADERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Content-Security-Policy": (),
        "Strict-Transport-Security": (),
        "X-Content-Type-Options": ("", "nosniff"),
        "X-Frame-Options": ("", "deny", "sameorigin"),
        "X-XSS-Protection": (),
    }
)
"""The headers that may be set, with the only values of those that have few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """Headers for every answer, a blank one to leave it out. HTTP/2 is not spoken, whatever `http2` allows."""

    http2: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `burst` requests at once, and one more every `interval` (0 for no limit)."""

    interval: timedelta = timedelta(0)
    burst: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFile:
    """The whole file. `basic_auth_users` are bcrypt hashes by user."""

    tls_server_config: TlsServer | None = None
    http_server_config: HttpServer = field(default_factory=HttpServer)
    basic_auth_users: Mapping[str, str] = field(default_factory=dict)
    rate_limit: RateLimit = field(default_factory=RateLimit)


def load(path: Path, *, environ: Mapping[str, str]) -> WebFile:
    """The web configuration at `path`; its relative paths start at its folder. Raises ConfigError with every problem.

    Certificates are not read yet (see tls.server_context).
    """
    document = Document.read(path)
    found: WebFile | None = None
    if document.root is not None:
        found = Binder(document, environ=environ).record(document.root, WebFile)
    if found is not None:
        if found.tls_server_config is not None:
            _check_tls(document, found.tls_server_config)
        _check_headers(document, found.http_server_config.headers)
        _check_users(document, found.basic_auth_users)
        if found.rate_limit.burst < 0 or (found.rate_limit.interval and not found.rate_limit.burst):
            document.report(("rate_limit", "burst"), "lets no request through: write at least 1")
    if document.problems or found is None:
        raise ConfigError(replace(problem, source="") for problem in document.problems)  # a line may hold a secret
    return found


def _check_tls(document: Document, server: TlsServer) -> None:
    steps: Steps = ("tls_server_config",)
    for name in ("cert", "key"):
        _check_one_of(document, server, name, needed=True)
    _check_one_of(document, server, "client_ca", needed=server.client_auth_type in _VERIFYING)
    has_ca = server.client_ca is not None or server.client_ca_file is not None
    if server.client_auth_type == "NoClientCert" and has_ca:
        name = "client_ca" if server.client_ca is not None else "client_ca_file"
        document.report(
            (*steps, name), "has no effect: write client_auth_type: RequireAndVerifyClientCert, or remove it"
        )
    if server.client_auth_type in ("RequestClientCert", "RequireAnyClientCert"):
        document.report(
            (*steps, "client_auth_type"),
            "asks for certificates and does not verify them, which is not possible here:"
            " write RequireAndVerifyClientCert or VerifyClientCertIfGiven",
        )
    if server.client_allowed_sans and server.client_auth_type != "RequireAndVerifyClientCert":
        document.report(
            (*steps, "client_allowed_sans"), "needs certificates: write client_auth_type: RequireAndVerifyClientCert"
        )
    if server.min_version > server.max_version:
        document.report((*steps, "min_version"), f"is above max_version ({server.max_version}): lower it")
    for name, known in (("cipher_suites", tls.CIPHERS), ("curve_preferences", tls.CURVES)):
        for number, written in enumerate(getattr(server, name)):
            if written not in known:
                message = f"{quoted(written)} is not known: write one of {', '.join(sorted(known))}"
                document.report((*steps, name, number), message)
    if len(server.curve_preferences) > 1:
        document.report((*steps, "curve_preferences", 1), "only one curve can be preferred here: keep the first")


def _check_one_of(document: Document, server: TlsServer, name: str, *, needed: bool) -> None:
    inline, file = getattr(server, name), getattr(server, f"{name}_file")
    if inline is not None and file is not None:
        document.report(("tls_server_config", name), f"stands beside {name}_file: keep one of them")
    elif needed and inline is None and file is None:
        document.report(("tls_server_config",), f"needs {name}_file: add it")


def _check_headers(document: Document, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        steps = ("http_server_config", "headers", name)
        if name not in _HEADERS:
            document.report(steps, f"{quoted(name)} cannot be set: write one of {', '.join(_HEADERS)}", key=True)
        elif _HEADERS[name] and value not in _HEADERS[name]:
            document.report(steps, f"does not exist: write {' or '.join(filter(None, _HEADERS[name]))}")
        elif not value.isascii() or not value.isprintable():
            document.report(steps, "has characters that a header cannot carry: remove them")


def _check_users(document: Document, users: Mapping[str, str]) -> None:
    for user, hashed in users.items():
        steps = ("basic_auth_users", user)
        match = _BCRYPT.fullmatch(hashed)
        if match is None:
            document.report(steps, "is not a bcrypt hash: write what `htpasswd -nBC 10 USER` prints after the colon")
        elif not 4 <= int(match.group(1)) <= MAX_COST:
            document.report(steps, f"has a cost of {int(match.group(1))}: hash it again with a cost from 10 to 12")
        if ":" in user or not user:
            document.report(steps, "no client can send this name: write one without a colon", key=True)
