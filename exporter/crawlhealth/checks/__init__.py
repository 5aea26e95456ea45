"""What is expected of a value on a page, and whether what was seen there is it. Pure."""

from crawlhealth.checks.numbers import number
from crawlhealth.checks.selectors import Selector, pattern_problem, selector_problem
from crawlhealth.checks.values import CHECKS, Check, CheckKind, Seen, ValueSpec, agree, judge, see

__all__ = [
    "CHECKS",
    "Check",
    "CheckKind",
    "Seen",
    "Selector",
    "ValueSpec",
    "agree",
    "judge",
    "number",
    "pattern_problem",
    "see",
    "selector_problem",
]
