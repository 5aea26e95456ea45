"""Opening the way to a host: lookup, address policy, proxy, TLS, each timed and bounded by the fetch's watch."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, cast

import certifi
from cryptography import x509
from urllib3.util.ssltransport import SSLTransport

from crawlhealth.canary.addresses import Endpoint, Resolver, is_public, literal, permitted, refusal
from crawlhealth.canary.attempt import Attempt
from crawlhealth.canary.failure import Failure
from crawlhealth.canary.proxies import Proxy, blamed_on_proxy, http_connect, socks5_connect
from crawlhealth.canary.wire import Line, Socket, Watch
from crawlhealth.model import Phase
from crawlhealth.outcome import Reason

_HANDSHAKE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One origin to connect to; `authority` is host and port as a Host header has them."""

    scheme: str
    host: str
    port: int
    authority: str


class Contexts:
    """TLS settings, made once: verifying (the public authorities and the user's own file), and only looking."""

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._lock = threading.Lock()
        self._verifying: ssl.SSLContext | None = None

    @property
    def verifying(self) -> ssl.SSLContext:
        """For answers."""
        with self._lock:
            if self._verifying is None:
                context = ssl.create_default_context(cafile=certifi.where())
                if self._ca_file is not None:
                    context.load_verify_locations(cafile=self._ca_file)
                context.set_alpn_protocols(["http/1.1"])
                self._verifying = context
            return self._verifying

    @cached_property
    def looking(self) -> ssl.SSLContext:
        """For a look at a certificate that does not verify: no request is ever sent over it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


class Connector:
    """Opens lines to origins, directly or through one route's proxy. Thread-safe."""

    def __init__(self, *, contexts: Contexts, resolver: Resolver, proxy: Proxy | None) -> None:
        self._contexts = contexts
        self._resolver = resolver
        self.proxy = proxy

    def forwards(self, target: Target) -> bool:
        """Whether requests go to the proxy itself, with the whole URL (plain HTTP through an HTTP proxy)."""
        return self.proxy is not None and not self.proxy.is_socks and target.scheme == "http"

    def open(self, target: Target, attempt: Attempt) -> Line:
        """A line to the origin, through TLS for https. Raises Failure; what was learnt on the way is in the attempt."""
        line = self._reach(target, attempt)
        if target.scheme != "https":
            return line
        watch = attempt.watch
        watch.enter(Phase.TLS)
        try:
            secured = _handshake(line, target.host, self._contexts.verifying, watch)
        except ssl.SSLCertVerificationError as error:
            line.hang_up()
            self._look(target, attempt)
            raise Failure(Reason.TLS, f"the certificate does not verify: {error.verify_message}") from None
        except Failure as failure:
            line.hang_up()
            if self.proxy is not None and failure.reason is Reason.CONNECTION_RESET:
                # Many proxies say "connected" before they are, and hang up when the site is not there.
                detail = "the route's proxy failed: the tunnel closed before the site spoke"
                raise Failure(Reason.PROXY, detail) from None
            raise
        certificate = secured.getpeercert()
        ends = certificate.get("notAfter") if certificate else None
        if isinstance(ends, str):
            with suppress(ValueError):  # a date that nobody can read is no reason to leave the page
                attempt.not_after[target.host] = float(ssl.cert_time_to_seconds(ends))
        return Line(secured, watch)

    def _reach(self, target: Target, attempt: Attempt) -> Line:
        watch = attempt.watch
        if self.proxy is None:
            watch.enter(Phase.DNS)
            endpoints = permitted(
                self._resolver.lookup(target.host, target.port, watch.remaining()), from_public=attempt.public
            )
            watch.enter(Phase.CONNECT)
            sock, endpoint = _connect(endpoints, watch)
            attempt.address = endpoint.sockaddr[0]
            attempt.public = attempt.public or is_public(endpoint.ip)
            return _line(sock, watch)
        self._check_literal(target, attempt)
        watch.enter(Phase.CONNECT)
        with blamed_on_proxy():
            return self._through_proxy(self.proxy, target, watch)

    def _through_proxy(self, proxy: Proxy, target: Target, watch: Watch) -> Line:
        endpoints = self._resolver.lookup(proxy.host, proxy.port, watch.remaining())
        sock, _ = _connect(endpoints, watch)
        line = _line(sock, watch)
        try:
            if proxy.scheme == "https":
                line = _line(_handshake(line, proxy.host, self._contexts.verifying, watch), watch)
            if proxy.is_socks:
                socks5_connect(line, proxy, target.host, target.port)
            elif target.scheme == "https":
                http_connect(line, proxy, target.host, target.port)
        except BaseException:
            sock.close()
            raise
        return line

    def _check_literal(self, target: Target, attempt: Attempt) -> None:
        """The address policy where the proxy resolves names: an address written as such is judged, a name is public."""
        ip = literal(target.host)
        problem = None if ip is None else refusal(ip)
        if ip is not None and problem is None and attempt.public and not is_public(ip):
            problem = "not public, after a public one"
        if problem is not None:
            raise Failure(Reason.ADDRESS_REFUSED, f"{target.host} is {problem}")
        attempt.public = attempt.public or ip is None or is_public(ip)
        attempt.address = "through the proxy"

    def _look(self, target: Target, attempt: Attempt) -> None:
        """Read the end of a certificate that did not verify, with a second handshake; if that fails, nothing."""
        watch = attempt.watch
        try:
            line = self._reach_again(target, attempt)
        except Failure:
            return
        try:
            secured = _handshake(line, target.host, self._contexts.looking, watch)
            der = secured.getpeercert(binary_form=True)
            if der:
                end = x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()
                attempt.not_after[target.host] = end
        except (Failure, ssl.SSLError, ValueError, OverflowError):
            pass  # what the verification said is told anyway
        finally:
            line.hang_up()

    def _reach_again(self, target: Target, attempt: Attempt) -> Line:
        watch = attempt.watch
        if self.proxy is not None:
            with blamed_on_proxy():
                return self._through_proxy(self.proxy, target, watch)
        endpoints = self._resolver.lookup(target.host, target.port, watch.remaining())
        sock, _ = _connect(permitted(endpoints, from_public=attempt.public), watch)
        return _line(sock, watch)


def _line(sock: Socket, watch: Watch) -> Line:
    line = Line(sock, watch)
    line.allow(_HANDSHAKE_BYTES, Failure(Reason.INVALID_RESPONSE, "endless handshake"))
    return line


def _connect(endpoints: list[Endpoint], watch: Watch) -> tuple[socket.socket, Endpoint]:
    """A connection to the first endpoint that takes one; each gets its share of the time that is left."""
    failure = Failure(Reason.CONNECTION_FAILED, "no address")
    for position, endpoint in enumerate(endpoints):
        sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
        try:
            sock.settimeout(watch.remaining() / (len(endpoints) - position))
            sock.connect(endpoint.sockaddr)
        except OSError as error:
            sock.close()
            failure = _connect_failure(error, watch)
        except BaseException:
            sock.close()
            raise
        else:
            return sock, endpoint
    raise failure


def _connect_failure(error: OSError, watch: Watch) -> Failure:
    if isinstance(error, TimeoutError):
        return watch.timeout()
    if isinstance(error, ConnectionRefusedError):
        return Failure(Reason.CONNECTION_REFUSED, "the connection was refused")
    if isinstance(error, ConnectionResetError):
        return Failure(Reason.CONNECTION_RESET, "the connection was reset")
    name = errno.errorcode.get(error.errno or 0, "unknown")
    return Failure(Reason.CONNECTION_FAILED, f"cannot connect: {error.strerror or name}")


def _handshake(line: Line, host: str, context: ssl.SSLContext, watch: Watch) -> ssl.SSLSocket:
    """TLS over a line. Raises SSLCertVerificationError or Failure."""
    sock = line.socket
    try:
        if isinstance(sock, socket.socket) and not isinstance(sock, ssl.SSLSocket):
            sock.settimeout(watch.remaining())
            return context.wrap_socket(sock, server_hostname=host)
        through = SSLTransport(line, context, server_hostname=host)  # type: ignore[arg-type]  # a line has what it uses
        return cast("ssl.SSLSocket", through)  # it has what is used of one
    except ssl.SSLCertVerificationError:
        raise
    except TimeoutError:
        raise watch.timeout() from None
    except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
        raise Failure(Reason.CONNECTION_RESET, "the connection was reset during the TLS handshake") from None
    except ssl.SSLError as error:
        raise Failure(Reason.TLS, f"no TLS: {error.reason or 'the other side closed the connection'}") from None
    except (OSError, ValueError) as error:
        raise Failure(Reason.TLS, f"no TLS: {type(error).__name__}") from None
