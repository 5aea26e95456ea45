"""How the process gives memory back."""

from __future__ import annotations

import ctypes
from typing import Final

_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of glibc's mallopt(3)."""
LARGE_BLOCK: Final = 256 << 10


def return_large_blocks() -> bool:
    """Have large blocks given back to the system as soon as they are free; False where the C library cannot.

    Else glibc keeps them for each thread that ever held a page of several megabytes, and the process stays as large as
    its worst moment in every one of its threads.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGE_BLOCK))
