"""Observations as the wire format has them: one JSON object for a request, or for `count` equal ones."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from crawlhealth.config import DIRECT
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.traffic.body import Text

MAX_COUNT: Final = 10**9
MAX_TOTAL: Final = 10**12
MAX_SECONDS: Final = 86_400.0
MAX_FIELDS: Final = 1_000

_Total = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOTAL)]
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_Base64 = bytes  # the name is taken below


class Item(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One item. `seconds` is the mean of one request; bytes, retries, credits and records are totals over `count`.

    It has an outcome (a reason may come with it), or facts to classify: a status with what else is known of the
    response, or the reason alone of a request that brought none. `bytes` is the size of the whole body where `body` is
    an excerpt. `body` is text, already decoded; `body_base64` is the body as it came.
    """

    at: _Moment | float
    site: str | None = None
    route: str = DIRECT
    outcome: Outcome | None = None
    reason: Reason | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)] | None = None
    bytes: _Total = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)] = 1
    retries: _Total = 0
    credits: Annotated[float, msgspec.Meta(ge=0, le=MAX_TOTAL)] = 0.0
    records_valid: _Total | None = None
    records_invalid: _Total = 0
    fields_missing: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_FIELDS)] | None = None
    page_type: Annotated[str, msgspec.Meta(max_length=100)] = ""
    url: str | None = None
    status: Annotated[int, msgspec.Meta(ge=0, le=999)] | None = None
    headers: dict[str, str] | None = None
    final_url: str | None = None
    body: str | None = None
    body_base64: _Base64 | None = None

    @property
    def found(self) -> bool | None:
        """Whether anything that was expected of the page was found on it; None when nothing was expected, or said."""
        if self.records_valid or self.records_invalid:
            return True
        if self.records_valid is not None:
            return False
        return None if self.fields_missing is None else not self.fields_missing or None

    @property
    def extracted(self) -> bool | None:
        """Whether extraction worked: nothing required missing, and records where some were expected.

        None when nothing was expected, or said.
        """
        if self.fields_missing:
            return False
        if self.records_valid is not None or self.records_invalid:
            return bool(self.records_valid)
        return None if self.fields_missing is None else True


_decoder = msgspec.json.Decoder(Item)


def decode(text: Text) -> Item:
    """One item from its JSON. Raises ValueError with what is wrong, and RecursionError."""
    return _decoder.decode(text)
