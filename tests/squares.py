"""Squares: work for other processes, which find it by its name."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from crawlhealth.backtest.working import Counted, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """Squares a number in so many steps; a negative one fails, zero kills its process."""

    number: int
    steps: int = 1200

    def done(self, told: Told) -> tuple[int, int]:
        counted = Counted(told)
        if self.number < 0:
            raise ValueError(f"{self.number} is negative")
        if self.number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(self.steps):
            counted.one_more()
        counted.rest()
        return self.number**2, os.getpid()
