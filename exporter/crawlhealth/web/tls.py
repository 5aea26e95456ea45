"""TLS for the server: contexts made of files, replaced while it runs, and which client certificates are let in."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, cast

_ECDHE = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}
_ALWAYS: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Suites of TLS 1.3, which cannot be chosen, as in Go."""
CIPHERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"TLS_ECDHE_{key}_WITH_{name}": f"ECDHE-{key}-{openssl}"
        for key in ("ECDSA", "RSA")
        for name, openssl in _ECDHE.items()
    }
    | dict.fromkeys(_ALWAYS, "")
)
"""Cipher suites as Go names them to OpenSSL's names."""
CURVES: Final[Mapping[str, str]] = MappingProxyType(
    {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
)
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}

ClientAuth = Literal[
    "NoClientCert", "RequestClientCert", "RequireAnyClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
]
_KINDS: Final = ("DNS", "IP Address", "email", "URI")
"""The kinds of subject alternative names, as the ssl module calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsServer:
    """How connections are encrypted, and which clients are let in."""

    cert: str | None = None
    key: str | None = None
    client_ca: str | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None
    client_auth_type: ClientAuth = "NoClientCert"
    client_allowed_sans: tuple[str, ...] = ()
    min_version: Literal["TLS12", "TLS13"] = "TLS12"
    max_version: Literal["TLS12", "TLS13"] = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[str, ...] = ()


class TlsError(Exception):
    """A certificate, key or CA that cannot be used; `name` is the key of the configuration."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def server_context(server: TlsServer) -> ssl.SSLContext:
    """A context for these settings, which have been checked. Reads the files; raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[server.min_version]
    context.maximum_version = _VERSIONS[server.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not server.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    chosen = [CIPHERS[name] for name in server.cipher_suites if CIPHERS[name]]
    if chosen:
        context.set_ciphers(":".join(chosen))
    for curve in server.curve_preferences:
        context.set_ecdh_curve(CURVES[curve])
    context.set_alpn_protocols(["http/1.1"])
    _load_certificate(context, server)
    _load_clients(context, server)
    return context


def _load_certificate(context: ssl.SSLContext, server: TlsServer) -> None:
    for name, file in (("cert_file", server.cert_file), ("key_file", server.key_file)):
        if file is not None:
            _readable(name, file)
    with _as_file(server.cert, server.cert_file) as cert, _as_file(server.key, server.key_file) as key:
        try:
            context.load_cert_chain(cert, key, password=lambda: "")
        except ssl.SSLError as error:
            name = "key_file" if server.key is None else "key"
            raise TlsError(
                name, f"is not the key of the certificate, or one of them is no PEM: {_reason(error)}"
            ) from None


def _load_clients(context: ssl.SSLContext, server: TlsServer) -> None:
    if server.client_auth_type == "NoClientCert":
        return
    required = server.client_auth_type == "RequireAndVerifyClientCert"
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    name = "client_ca" if server.client_ca is not None else "client_ca_file"
    if server.client_ca_file is not None:
        _readable(name, server.client_ca_file)
    try:
        context.load_verify_locations(
            cafile=os.fspath(server.client_ca_file) if server.client_ca_file is not None else None,
            cadata=server.client_ca,
        )
    except ssl.SSLError as error:
        raise TlsError(name, f"has no certificate in PEM: {_reason(error)}") from None


def _readable(name: str, file: Path) -> None:
    try:
        with file.open("rb"):
            return
    except OSError as error:
        raise TlsError(name, f"{file} cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def _as_file(text: str | None, file: Path | None) -> Iterator[str]:
    """The path of a file, or of one that holds a text and that nobody else can read while it is there."""
    if file is not None:
        yield os.fspath(file)
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as held:
        held.write(text or "")
        held.flush()
        yield held.name


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "it cannot be read").replace("_", " ").lower()


class ReplaceableContext(ssl.SSLContext):
    """A context whose new connections are made by `current`: replacing that changes certificates while serving."""

    current: ssl.SSLContext

    @classmethod
    def of(cls, context: ssl.SSLContext) -> ReplaceableContext:
        """One that begins with this context."""
        made = cls(ssl.PROTOCOL_TLS_SERVER)
        made.current = context
        return made

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As SSLContext has it."""
        return self.current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def bears_name(connection: ssl.SSLObject, allowed: Iterable[str]) -> bool:
    """Whether the client's verified certificate has one of these as a subject alternative name, exactly."""
    names = cast(Iterable[tuple[str, str]], (connection.getpeercert() or {}).get("subjectAltName", ()))
    wanted = set(allowed)
    return any(kind in _KINDS and value in wanted for kind, value in names)
