"""Redis PING, over its own protocol: connect, TLS where asked for, AUTH, PING, within one deadline."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from crawlhealth.searchbotsettings import Dependency

PORT: Final = 6379
LONGEST_ANSWER: Final = 1024


class RedisError(Exception):
    """No PONG: the message says why, and never holds a password."""


def ping(dependency: Dependency, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Ask for a PONG. Raises RedisError."""
    parts = urlsplit(dependency.url)
    host, port = parts.hostname or "", parts.port or PORT
    deadline = clock() + dependency.timeout.total_seconds()

    def left() -> float:
        seconds = deadline - clock()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    try:
        with socket.create_connection((host, port), timeout=left()) as plain:
            sock: socket.socket = plain
            if parts.scheme == "rediss":
                plain.settimeout(left())
                cafile = None if dependency.ca_file is None else str(dependency.ca_file)
                sock = ssl.create_default_context(cafile=cafile).wrap_socket(plain, server_hostname=host)
            with sock:
                _talk(sock, dependency, left)
    except TimeoutError:
        raise RedisError(f"no answer within {dependency.timeout.total_seconds():g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise RedisError(f"its certificate is not good: {error.verify_message}") from None
    except (OSError, ValueError) as error:
        raise RedisError(getattr(error, "strerror", None) or str(error) or type(error).__name__) from None


def _talk(sock: socket.socket, dependency: Dependency, left: Callable[[], float]) -> None:
    if dependency.password is not None:
        name = (dependency.username,) if dependency.username else ()
        answer = _ask(sock, ("AUTH", *name, dependency.password.reveal()), left)
        if answer != b"+OK":
            raise RedisError(f"it refuses the password: {_word(answer)}")
    answer = _ask(sock, ("PING",), left)
    if answer != b"+PONG":
        raise RedisError(f"it answers a PING with {_word(answer)}")


def _ask(sock: socket.socket, words: tuple[str, ...], left: Callable[[], float]) -> bytes:
    """Send one command; the line it is answered with."""
    encoded = [word.encode() for word in words]
    sock.settimeout(left())
    sock.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded))
    answer = b""
    while not answer.endswith(b"\r\n"):
        if len(answer) > LONGEST_ANSWER:
            raise RedisError("it does not speak the protocol of Redis")
        sock.settimeout(left())
        more = sock.recv(LONGEST_ANSWER)
        if not more:
            raise RedisError("it closed the connection")
        answer += more
    return answer[:-2]


def _word(answer: bytes) -> str:
    """The kind of an error, as in NOAUTH: what follows may hold anything."""
    word = re.match(rb"[-+]*([!-~]*)", answer[:32])
    return (word[1].decode() if word else "") or "nothing"
