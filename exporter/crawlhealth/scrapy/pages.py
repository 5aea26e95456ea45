"""Served pages that wait for what their spider makes of them: each becomes one report, with its records."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.http import Response

from crawlhealth.scrapy.options import ALL_ITEMS, PLACEHOLDERS


@dataclass(slots=True, eq=False)
class Page:
    """One served page, and what has come of it so far. `facts` is what is known without the spider."""

    facts: Mapping[str, object]
    page_type: str
    expects_records: bool
    body: weakref.ref[Response]
    valid: int = 0
    invalid: int = 0
    missing: set[str] = field(default_factory=set)
    yielded: int = 0
    settled: int = 0
    finished: bool = False
    failed: bool = False
    reported: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing more will come of it."""
        return self.finished and self.settled >= self.yielded

    @property
    def records_valid(self) -> int | None:
        """Records found; None where none was expected and none came."""
        expected = self.expects_records or self.failed or self.yielded or self.invalid
        return self.valid if expected else None


class Pages:
    """The pages under way, each reported once: when it is complete, or when nobody holds its request any more."""

    def __init__(self, required: Mapping[str, Sequence[str]], report: Callable[[Page], None]) -> None:
        self._required = required
        self._report = report
        self._pages: weakref.WeakKeyDictionary[Request, Page] = weakref.WeakKeyDictionary()

    def add(self, request: Request, page: Page) -> None:
        """A page was served."""
        self._pages[request] = page
        weakref.finalize(request, self._finish, page).atexit = False

    def of(self, response: object) -> Page | None:
        """The page that a response of the spider is, None if it is none of ours."""
        request = getattr(response, "request", None)
        return self._pages.get(request) if isinstance(request, Request) else None

    def yielded(self, response: object) -> None:
        """The spider made an item of a page."""
        if (page := self.of(response)) is not None:
            page.yielded += 1

    def finished(self, response: object) -> None:
        """The spider has nothing more to make of a page."""
        if (page := self.of(response)) is not None:
            page.finished = True
            self._settle(page)

    def failed(self, response: object) -> None:
        """The spider failed on a page."""
        if (page := self.of(response)) is not None:
            page.failed = True

    def item(self, response: object, item: object, *, kept: bool) -> None:
        """An item of a page has left the pipelines: kept, or dropped."""
        page = self.of(response)
        if page is None:
            return
        missing = self._missing(item)
        page.missing |= missing
        page.settled += 1
        if kept and not missing:
            page.valid += 1
        else:
            page.invalid += 1
        self._settle(page)

    def flush(self) -> None:
        """Report what is left, complete or not."""
        for page in list(self._pages.values()):
            self._finish(page)

    def _settle(self, page: Page) -> None:
        if page.complete:
            self._finish(page)

    def _finish(self, page: Page) -> None:
        if not page.reported:
            page.reported = True
            self._report(page)

    def _missing(self, item: object) -> set[str]:
        """The required fields of an item that have no value."""
        fields = (*self._required.get(type(item).__name__, ()), *self._required.get(ALL_ITEMS, ()))
        if not fields or not ItemAdapter.is_item(item):
            return set()
        adapter = ItemAdapter(item)
        return {name for name in fields if _empty(adapter.get(name))}


def _empty(value: object) -> bool:
    """Whether a value is none: nothing, an empty text or container, or a text that stands for nothing."""
    if isinstance(value, str):
        return value.strip().lower() in PLACEHOLDERS
    if isinstance(value, list | tuple | set | dict):
        return all(_empty(part) for part in (value.values() if isinstance(value, dict) else value))
    return value is None
