"""Canaries: pages whose right answer is known, fetched on a schedule, read, classified and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlhealth.canary.engine import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> object:
    """Engine, loaded when asked: the extraction workers are modules of this package and stay small without it."""
    if name == "Engine":
        from crawlhealth.canary.engine import Engine  # noqa: PLC0415 - see above

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
