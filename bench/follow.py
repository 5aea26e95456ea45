"""How many crawlers can follow a site by long-polls: memory for each, and how soon all of them hear of a change.

    python bench/follow.py [CLIENTS]

A real `crawlhealth serve` with one site; the clients wait on connections of their own, from one event loop beside it on
the same machine. The change is an override. Beside it: how long a scrape takes while all of them wait. Exits 1 when a
bound is broken.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from running import Exporter

CONFIG = "sites:\n  books: {hosts: [books.example]}\n"
OVERRIDE = {"kind": "limit", "concurrency_ratio": 0.5, "until": "1h"}


MAX_KILOBYTES = 40
"""Memory of the exporter for one that waits."""
MAX_SECONDS = 5
"""Until the last of them has heard of a change."""


async def follow(exporter: Exporter, clients: int) -> bool:
    """Whether the bounds hold."""
    host, _, port = exporter.url.removeprefix("http://").rpartition(":")
    process = psutil.Process(exporter.pid)
    before = process.memory_info().rss
    tag = exporter.get("/api/v1/sites/books").headers["etag"]
    request = f"GET /api/v1/sites/books?wait=60s HTTP/1.1\r\nhost: x\r\nif-none-match: {tag}\r\n\r\n".encode()

    async def ask() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        await writer.drain()
        return reader, writer

    async def hear(reader: asyncio.StreamReader) -> float:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return time.monotonic()

    waiting = []
    for first in range(0, clients, 200):
        waiting += await asyncio.gather(*(ask() for _ in range(first, min(clients, first + 200))))
    listening = [asyncio.create_task(hear(reader)) for reader, _ in waiting]
    await asyncio.sleep(2)
    used = process.cpu_times()
    await asyncio.sleep(3)
    idle = process.cpu_times().user - used.user
    memory = process.memory_info().rss - before
    scrapes = []
    for _ in range(5):
        begun = time.monotonic()
        await asyncio.to_thread(exporter.get, "/metrics")
        scrapes.append(time.monotonic() - begun)
    begun = time.monotonic()
    await asyncio.to_thread(exporter.post, "/api/v1/sites/books/override", json=OVERRIDE)
    late = sorted(at - begun for at in await asyncio.gather(*listening))
    print(f"{clients} clients wait: {memory / clients / 1000:.0f} KB each, {idle / 3:.1%} of a core")
    print(f"a scrape meanwhile: {statistics.median(scrapes) * 1000:.0f} ms")
    print(f"all heard of a change: first {late[0]:.2f} s, median {late[len(late) // 2]:.2f} s, last {late[-1]:.2f} s")
    return memory / clients < MAX_KILOBYTES * 1000 and late[-1] < MAX_SECONDS


def main() -> int:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, clients + 1_000), hard))
    with tempfile.TemporaryDirectory() as folder, Exporter(Path(folder), CONFIG) as exporter:
        return 0 if asyncio.run(follow(exporter, clients)) else 1


if __name__ == "__main__":
    sys.exit(main())
