"""Memory that large pages took is given back."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, threading, psutil
from crawlhealth.memory import return_large_blocks

assert return_large_blocks() or "linux" not in sys.platform
go = threading.Barrier(9)

def work():
    for _ in range(3):  # the first ones would teach the allocator to keep such blocks
        page = bytearray(5_000_000)
        copy = bytes(page)
        small = [bytes(100) for _ in range(100)]  # what stays behind on top of them
        del page, copy
    go.wait()
    go.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
go.wait()
print(psutil.Process().memory_info().rss)
go.wait()
"""


def test_threads_keep_no_large_blocks() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 60_000_000
