"""A server that writes a log and rotates it, in a process of its own: `python logwriter.py PATH RATE SECONDS HOW`.

HOW is rename or copytruncate; every second one rotation, of which ten files are kept. At the end it prints how many
lines it wrote. Each tenth line names a bot.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"
KEPT = 10


def lines(first: int, number: int, now: float) -> bytes:
    """Lines that differ, in the order of their numbers."""
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now))
    return "".join(
        f'192.0.2.{place % 250} - - [{stamp}] "GET /page/{place} HTTP/1.1" 200 512 "-"'
        f' "{BROWSER if place % 10 else BOT}"\n'
        for place in range(first, first + number)
    ).encode()


def rotate(path: Path, how: str) -> None:
    """Shift the numbers, then move the log away or copy it."""
    for number in range(KEPT, 0, -1):
        old = path.with_name(f"{path.name}.{number}")
        if old.exists():
            old.unlink() if number == KEPT else old.rename(path.with_name(f"{path.name}.{number + 1}"))
    first = path.with_name(f"{path.name}.1")
    if how == "rename":
        path.rename(first)
    else:
        shutil.copyfile(path, first)


def main(path: Path, rate: int, seconds: float, how: str) -> None:
    """Write in steps of 20 ms, cutting the last line of each step in two."""
    file = path.open("ab", buffering=0)
    pause = threading.Event()
    begun = time.monotonic()
    written, rotated, step = 0, begun, 0.02
    while (now := time.monotonic()) - begun < seconds:
        due = int((now - begun) * rate) - written
        data = lines(written, due, time.time())
        written += due
        file.write(data[: len(data) * 2 // 3])
        file.write(data[len(data) * 2 // 3 :])
        if now - rotated >= 1.0:
            rotated = now
            rotate(path, how)
            if how == "rename":
                file.close()
                file = path.open("ab", buffering=0)
            else:
                file.truncate(0)
        pause.wait(step)
    print(written)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
