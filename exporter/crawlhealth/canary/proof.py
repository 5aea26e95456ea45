"""What proves that a page is the one that was expected. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from crawlhealth.checks import ValueSpec, judge, see
from crawlhealth.model import ValueResult


def found(specs: Iterable[ValueSpec], values: Iterable[ValueResult]) -> bool | None:
    """Whether the expected content is on the page; None where nothing was expected to be there, or nobody can tell.

    A right value proves it, unless an empty page would be as right. One that any text would satisfy proves it only
    where nothing more is known of the page: a block page has a heading, too. Wrong values prove nothing.
    """
    by_name = {value.name: value for value in values}
    expected = [spec for spec in specs if spec.name in by_name and not judge(spec, see(spec, ())).ok]
    right = [spec for spec in expected if _is_there(spec, by_name[spec.name])]
    if any(not _takes_any_text(spec) for spec in right):
        return True
    if not right:
        return False if expected else None
    return True if all(map(_takes_any_text, expected)) else None


def _is_there(spec: ValueSpec, value: ValueResult) -> bool:
    """Whether a value is right and of something: what XPath computes of nothing is zero or false."""
    return value.ok and not (spec.selector.kind == "xpath" and value.seen in {"0", "false"})


def _takes_any_text(spec: ValueSpec) -> bool:
    return judge(spec, see(spec, ("anything",), element=True)).ok
