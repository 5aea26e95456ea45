"""The scheduler's queue of requests that leaves those of paused and slowed sites where they are."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface, QueueProtocol

from crawlhealth.scrapy.extension import CrawlHealth
from crawlhealth.scrapy.throttle import Throttle


class AdvisedPriorityQueue(DownloaderAwarePriorityQueue):
    """Scrapy's own default queue, but for the slots that the advice holds back; the same on disk."""

    def __init__(
        self,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        slot_startprios: dict[str, Iterable[int]] | None = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
    ) -> None:
        super().__init__(crawler, downstream_queue_cls, key, slot_startprios, start_queue_cls=start_queue_cls)
        extension = crawler.get_extension(CrawlHealth)
        self._throttle = extension.throttle if extension is not None else None
        if self._throttle is not None:
            self._downloader_interface = _AdvisedInterface(crawler, self._throttle)

    def push(self, request: Request) -> None:
        """Keep a request."""
        if self._throttle is not None:
            self._throttle.belongs(self._downloader_interface.get_slot_key(request), request)
        super().push(request)

    def pop(self) -> Request | None:
        """The next request that may go out, None while none may."""
        request = super().pop()
        if request is not None and self._throttle is not None:
            self._throttle.left(self._downloader_interface.get_slot_key(request), request)
        return request


class _AdvisedInterface(DownloaderInterface):
    """The slots to choose the next request from, without those that are held back."""

    def __init__(self, crawler: Crawler, throttle: Throttle) -> None:
        super().__init__(crawler)
        self._throttle = throttle

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """How many requests each slot has under way."""
        return super().stats([slot for slot in possible_slots if self._throttle.may_start(slot)])
