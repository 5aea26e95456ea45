"""YAML as the rendered files carry it: the same bytes for the same data, and readable expressions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import yaml

HEADER = "# Rendered by `crawlhealth bundle`. Change the source and render again; edits here are lost.\n"


class Block(str):
    """Text that is written as a literal block, line by line as it stands."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes `Block` as a literal block and list items indented under their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _block(dumper: yaml.SafeDumper, text: Block) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


_Dumper.add_representer(Block, _block)


def dump(data: dict[str, Any]) -> str:
    """`data` as a YAML document with the header that says where it comes from; keys keep their order."""
    return HEADER + _text(data)


def dump_all(documents: Iterable[dict[str, Any]]) -> str:
    """Several YAML documents under one header."""
    return HEADER + "---\n".join(_text(data) for data in documents)


def _text(data: dict[str, Any]) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)


def duration(length: timedelta) -> str:
    """A length of time as Prometheus writes it (`5m`, `1h30m`, `250ms`), whole milliseconds."""
    rest = round(length.total_seconds() * 1000)
    if rest <= 0:
        return "0s"
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
