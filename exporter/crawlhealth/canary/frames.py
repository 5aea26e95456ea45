"""Frames: how pages go to an extraction worker and results come back, over a socket."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from crawlhealth.checks import ValueSpec
from crawlhealth.model import ValueResult

_REQUEST: Final = struct.Struct("<III")
_ANSWER: Final = struct.Struct("<I?")
READY: Final = b"R"
"""The first byte of a worker that has started."""
LARGEST_ANSWER: Final = 16 << 20

_specs_decoder: Final = msgspec.msgpack.Decoder(tuple[ValueSpec, ...])
_results_decoder: Final = msgspec.msgpack.Decoder(tuple[ValueResult, ...])
_results_encoder: Final = msgspec.msgpack.Encoder()


class Source(Protocol):
    """Where frames are read from: a buffered file."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102 - as of a file


def pack_specs(specs: tuple[ValueSpec, ...]) -> bytes:
    """Expected values as bytes."""
    return msgspec.msgpack.encode(specs, enc_hook=_as_dict)


def unpack_specs(data: bytes) -> tuple[ValueSpec, ...]:
    """What `pack_specs` packed."""
    return _specs_decoder.decode(data)


def request(specs: bytes, content_type: bytes, body: bytes) -> bytes:
    """A page with its packed specs as one frame."""
    return b"".join((_REQUEST.pack(len(specs), len(content_type), len(body)), specs, content_type, body))


def read_request(source: Source) -> tuple[bytes, bytes, bytes] | None:
    """The next page: specs, content type, body; None at the end."""
    head = source.read(_REQUEST.size)
    if len(head) < _REQUEST.size:
        return None
    first, second, third = (source.read(size) for size in _REQUEST.unpack(head))
    return first, second, third


def answer(results: tuple[ValueResult, ...], *, last: bool) -> bytes:
    """Results as one frame; `last` says that the worker ends now."""
    data = _results_encoder.encode(results)
    return _ANSWER.pack(len(data), last) + data


def read_answer(source: Source) -> tuple[tuple[ValueResult, ...], bool] | None:
    """The results and whether the worker ends; None when it has ended instead. Raises ValueError for no answer."""
    head = source.read(_ANSWER.size)
    if len(head) < _ANSWER.size:
        return None
    size, last = _ANSWER.unpack(head)
    if size > LARGEST_ANSWER:
        raise ValueError("an answer that is too large")
    data = source.read(size)
    return None if len(data) < size else (_results_decoder.decode(data), last)


def _as_dict(value: object) -> Any:  # noqa: ANN401 - a hook of msgspec
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no part of an expected value: {type(value).__name__}")
