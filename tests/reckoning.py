"""What the windows of a site must hold, reckoned in plain Python from all that came and every reset, in an order."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawlhealth import stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """Requests of one minute and route that were answered, a latency of one bucket for each."""

    start: float
    route: str
    count: int
    bucket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WasReset:
    """A reset at a time to the window of a number; -1 leaves nothing."""

    at: float
    window: int


@dataclass(slots=True)
class Held:
    """What one window holds at a moment: sum of weights, of squares, and weights by latency bucket."""

    ok: float = 0.0
    squares: float = 0.0
    timed: dict[int, float] = field(default_factory=dict)

    def fade(self, seconds: float, half_life: float) -> None:
        weight = 2 ** (-seconds / half_life)
        self.ok *= weight
        self.squares *= weight**2
        self.timed = {bucket: count * weight for bucket, count in self.timed.items()}

    def copy(self) -> Held:
        return Held(self.ok, self.squares, dict(self.timed))

    def near(self, ok: float, squares: float, p95: float) -> bool:
        """Whether sums and a p95 in seconds are these, but for rounding."""
        if abs(ok - self.ok) > 1e-6 + 1e-6 * self.ok or abs(squares - self.squares) > 1e-6 + 1e-6 * self.squares:
            return False
        total = sum(self.timed.values())
        if total < 1e-6:
            return True  # nothing that counts
        under = sum(count for bucket, count in self.timed.items() if stats.middle(bucket) < p95 * 0.99)
        upto = sum(count for bucket, count in self.timed.items() if stats.middle(bucket) < p95 * 1.01)
        return under <= total * 0.9501 and upto >= total * 0.9499


def reckoned(events: list[Came | WasReset], now: float, half_lives: tuple[float, ...]) -> list[Held]:
    """The windows at `now`, after all events in the order in which they stand."""
    held = [Held() for _ in half_lives]
    at = events[0].start if events and isinstance(events[0], Came) else now
    for event in events:
        time = event.start if isinstance(event, Came) else event.at
        _fade(held, time - at, half_lives)
        at = time
        if isinstance(event, WasReset):
            for k in range(event.window + 1, len(held)):
                held[k] = held[event.window].copy() if event.window >= 0 else Held()
            continue
        for one in held:
            one.ok += event.count
            one.squares += event.count
            one.timed[event.bucket] = one.timed.get(event.bucket, 0) + event.count
    _fade(held, now - at, half_lives)
    return held


def _fade(held: list[Held], seconds: float, half_lives: tuple[float, ...]) -> None:
    for one, life in zip(held, half_lives, strict=True):
        one.fade(seconds, life)
