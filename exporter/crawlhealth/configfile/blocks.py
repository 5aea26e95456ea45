"""What must hold for `blocks:`, the markers of the user's own."""

from __future__ import annotations

import re
from typing import Final

from crawlhealth.config import Block
from crawlhealth.configfile.rules import check_name
from crawlhealth.markers import marker_size, tag_pattern
from crawlhealth.yamlfile.document import Document, Steps

MAX_BLOCKS: Final = 200
MAX_PATTERN: Final = 2_000
MAX_SIZE: Final = 3_000
"""Instructions of one marker."""
MAX_SIZE_TOGETHER: Final = 50_000
"""Instructions of all of them: one pass over a page looks for every marker."""
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")


def check_blocks(document: Document, blocks: tuple[Block, ...]) -> None:
    """Every marker has a name of its own and compiles, and all of them together stay small."""
    if len(blocks) > MAX_BLOCKS:
        document.report(("blocks",), f"has {len(blocks)} markers: keep the {MAX_BLOCKS} that matter, or join patterns")
        return
    names: set[str] = set()
    together = 0
    for number, block in enumerate(blocks):
        steps: Steps = ("blocks", number)
        check_name(document, block.name, (*steps, "name"), key=False)
        if block.name in names:
            document.report((*steps, "name"), f"the marker {block.name!r} stands twice: rename one")
        names.add(block.name)
        _check_header(document, block, steps)
        together += _size(document, block, (*steps, "pattern"))
    if together > MAX_SIZE_TOGETHER:
        document.report(("blocks",), "is too large together: shorten patterns, above all those that count ({n,m})")


def _check_header(document: Document, block: Block, steps: Steps) -> None:
    if block.where == "header":
        if not block.header:
            document.report(steps, "needs header: write the name of the header, as in header: x-gate")
        elif not _HEADER.fullmatch(block.header):
            document.report((*steps, "header"), "is not a header name: write it as in x-gate")
        elif block.header.lower() in ("set-cookie", "cookie"):
            document.report((*steps, "header"), "cookies are secrets and are not looked at: name another header")
    elif block.header:
        document.report((*steps, "header"), f"belongs to where: header, not to where: {block.where}: leave it out")


def _size(document: Document, block: Block, steps: Steps) -> int:
    """How large a marker is; 0 for one with a problem."""
    if not block.pattern:
        if block.where != "header":
            document.report(steps[:-1], "needs pattern: add it")
        return 0
    if len(block.pattern) > MAX_PATTERN:
        document.report(steps, f"is longer than {MAX_PATTERN} characters: shorten it")
        return 0
    try:
        size = marker_size(tag_pattern(block.pattern) if block.where == "selector" else block.pattern)
    except ValueError as error:
        document.report(steps, str(error))
        return 0
    if size > MAX_SIZE:
        document.report(steps, "is too large once compiled: shorten it, above all what counts ({n,m})")
        return 0
    return size
