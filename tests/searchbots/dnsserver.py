"""A real authoritative DNS server on loopback, over UDP and TCP, that can also fail in every way."""

from __future__ import annotations

import socket
import socketserver
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.reversename
import dns.rrset

SERVFAIL = "SERVFAIL"
SILENT = "SILENT"
LAME_NXDOMAIN = "LAME_NXDOMAIN"
LAME_NOTHING = "LAME_NOTHING"
"""Answers in place of records."""

_WORDS = (SERVFAIL, SILENT, LAME_NXDOMAIN, LAME_NOTHING)


class Zone:
    """What is answered: records by name and type, NXDOMAIN for names that have none."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], list[str] | str] = {}
        self.other: Callable[[str, str], list[str] | str | None] = lambda _name, _kind: None
        self.dead: str | None = None
        """What every question gets, whatever it is, while not None."""
        self.asked: Counter[tuple[str, str]] = Counter()

    def put(self, name: str, kind: str, *texts: str) -> None:
        """Records of a name; one text may be a word as SERVFAIL; none: the name exists and has nothing of the type."""
        failure = next((text for text in texts if text in _WORDS), None)
        self._records[dns.name.from_text(name).to_text().lower(), kind] = failure or list(texts)

    def names(self, address: str, *names: str) -> None:
        """The PTR records of an address."""
        put = [name if name in _WORDS else name + "." for name in names]
        self.put(dns.reversename.from_address(address).to_text(), "PTR", *put)

    def respond(self, query: dns.message.Message, *, tcp: bool) -> dns.message.Message | None:
        """The answer to a query, None for silence."""
        question = query.question[0]
        name, kind = question.name.to_text().lower(), dns.rdatatype.to_text(question.rdtype)
        self.asked[name.removesuffix("."), kind] += 1
        response = dns.message.make_response(query)
        response.flags |= dns.flags.AA | dns.flags.RA
        found = self.dead or self._found(name, kind)
        if found == SILENT:
            return None
        if found == SERVFAIL:
            response.set_rcode(dns.rcode.SERVFAIL)
        elif found in (LAME_NXDOMAIN, LAME_NOTHING):
            response.flags &= ~(dns.flags.AA | dns.flags.RA)
            response.set_rcode(dns.rcode.NXDOMAIN if found == LAME_NXDOMAIN else dns.rcode.NOERROR)
        elif found is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
        else:
            assert not isinstance(found, str), "no other words"
            self._fill(response, question.name, kind, found)
        if not tcp and len(response.to_wire(max_size=65535)) > 512:
            response.answer.clear()
            response.flags |= dns.flags.TC
        return response

    def _found(self, name: str, kind: str) -> list[str] | str | None:
        found = self._records.get((name, kind))
        alias = self._records.get((name, "CNAME"))
        if found is None and alias is not None:
            return [f"CNAME {alias[0]}"]
        if found is None:
            found = self.other(name, kind)
        exists = any(known == name for known, _ in self._records)
        return [] if found is None and exists else found

    def _fill(self, response: dns.message.Message, owner: dns.name.Name, kind: str, found: list[str]) -> None:
        while len(found) == 1 and found[0].startswith("CNAME "):
            response.answer.append(dns.rrset.from_text(owner, 300, "IN", "CNAME", found[0][6:]))
            owner = dns.name.from_text(found[0][6:])
            further = self._found(owner.to_text().lower(), kind)
            if further is None:
                response.set_rcode(dns.rcode.NXDOMAIN)
            found = further if isinstance(further, list) else []
        if found:
            response.answer.append(dns.rrset.from_text(owner, 300, "IN", kind, *found))


class _Udp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, sock = self.request
        response = self.server.zone.respond(dns.message.from_wire(data), tcp=False)  # type: ignore[attr-defined]
        if response is not None:
            sock.sendto(response.to_wire(), self.client_address)


class _Tcp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        head = self.request.recv(2)
        if len(head) < 2:
            return
        (size,) = struct.unpack("!H", head)
        data = b""
        while len(data) < size:
            data += self.request.recv(size - len(data))
        response = self.server.zone.respond(dns.message.from_wire(data), tcp=True)  # type: ignore[attr-defined]
        if response is not None:
            wire = response.to_wire(max_size=65535)
            self.request.sendall(struct.pack("!H", len(wire)) + wire)


class _UdpServer(socketserver.UDPServer):
    max_packet_size = 4096

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
        super().server_bind()


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def serving(zone: Zone) -> Iterator[str]:
    """Run it; the address and port as configured."""
    tcp: Any = _TcpServer(("127.0.0.1", 0), _Tcp)
    port = tcp.server_address[1]
    udp: Any = _UdpServer(("127.0.0.1", port), _Udp)
    for server in (udp, tcp):
        server.zone = zone
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        _end(udp, tcp)


@contextmanager
def nameless() -> Iterator[str]:
    """A server in a process of its own that has no name for anything, to be asked thousands of times."""
    process = subprocess.Popen([sys.executable, "-c", _NAMELESS], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.communicate()


_NAMELESS = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
sock.bind(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
while True:
    data, address = sock.recvfrom(4096)
    sock.sendto(data[:2] + bytes([0x81, 0x83]) + data[4:], address)
"""


def _end(*servers: Any) -> None:
    for server in servers:
        server.shutdown()
        server.server_close()
