"""Logs that are rotated every second under a writer of 20,000 lines a second, with the reader killed twice.

`python bench/rotation.py [SECONDS]`: by rename and by copying and truncating, a minute each. Every line must count
once, or it exits 1.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from searchbots.killing import follow

RATE = 20_000


def main(seconds: float) -> int:
    """Run both kinds of rotation."""
    broken = False
    for how in ("rename", "copytruncate"):
        with tempfile.TemporaryDirectory() as folder:
            counted = follow(Path(folder), rate=RATE, seconds=seconds, how=how, kills=2, down=1.5)
        good = counted.lines == counted.written and counted.visits == (counted.written + 9) // 10
        print(
            f"{how:<13} written {counted.written:>9,}  counted {counted.lines:>9,}  visits {counted.visits:>8,}"
            f"  unreadable {counted.unreadable}  {'exact' if good else 'WRONG'}",
            flush=True,
        )
        broken = broken or not good
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
