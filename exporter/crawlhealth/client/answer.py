"""The body of an answer, with an end: who answers at the exporter's address may be somebody else."""

from __future__ import annotations

from typing import Final

import requests

LARGEST: Final = 1_000_000
"""Bytes; no answer of the exporter that a client asks for is longer."""
_PIECE: Final = 16_384


def read(response: requests.Response) -> bytes | None:
    """The body of a streamed answer; None for one that is longer than any of the exporter's. Raises what reading does.

    Close the response afterwards.
    """
    pieces, size = [], 0
    for piece in response.iter_content(_PIECE):
        size += len(piece)
        if size > LARGEST:
            return None
        pieces.append(piece)
    return b"".join(pieces)
