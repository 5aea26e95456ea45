"""Histories that are used, closed, killed and started again at random, beside a plain reckoning of their windows."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlhealth.config import HistorySettings
from crawlhealth.history import History, import_windows, snapshot
from crawlhealth.tally import Tally
from crawlhealth.windows import NOTHING
from reckoning import Came, WasReset, reckoned
from samples import NOW, slot

SETTINGS = HistorySettings()
LIVES = (600.0, 3600.0, 21600.0)
SITES = ("books", "quotes")


class Machine:
    """A history that is used, closed, killed and started again beside a plain reckoning of it."""

    def __init__(self, folder: Path, *, in_time: bool) -> None:
        self.folder, self.number, self.in_time = folder, 0, in_time
        self.now = NOW
        self.path = folder / "0" / "history.db"
        self.events: dict[str, list[Came | WasReset]] = {site: [] for site in SITES}
        self.pending: dict[str, list[Came | WasReset]] = {site: [] for site in SITES}
        self.taken: dict[str, int] = dict.fromkeys(SITES, 0)
        self.history = History.open(self.path, SETTINGS, now=self.now)
        self.read()
        self.history._present.save()

    def read(self) -> None:
        """Compare, after an evaluation has read everything."""
        self.history.refresh()
        ((panel, _, _),) = self.history.panels(SITES, self.now, half_lives=LIVES)
        for n, site in enumerate(SITES):
            for k, held in enumerate(reckoned(self.events[site], self.now, LIVES)):
                sums = panel.totals[n, k]
                found = float(sums[0]), float(sums[-2]), float(panel.site_p95[n, k])
                assert held.near(*found), (site, k, held, found)

    def add(self, site: str, route: str, count: int, bucket: int) -> None:
        start = self.now // 60 * 60
        one = slot(start, Tally(ok=count, latency={bucket: count}), site=site, route=route)
        self.history._pending.slots.setdefault((site, route, one.source, start), Tally()).merge(one.tally)
        self.pending[site].append(Came(start=start, route=route, count=count, bucket=bucket))

    def commit(self) -> None:
        assert self.history.commit(self.now)
        for site in SITES:
            self.events[site] += self.pending[site]
            self.pending[site].clear()
            self.taken[site] = len(self.events[site])

    def reset(self, site: str, window: int) -> None:
        if self.in_time:
            self.commit()
        self.now += 30
        self.read()
        self.history.reset_windows(site, window, self.now)
        self.events[site].append(WasReset(at=self.now, window=window))
        self.read()
        self.now += 30

    def save(self) -> None:
        self.history._present.save()

    def close(self) -> None:
        self.history.close()
        self.start()

    def kill(self) -> None:
        self.number += 1
        copy = self.folder / str(self.number)
        copy.mkdir()
        for file in self.path.parent.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, copy)
        self.history.close()
        self.path = copy / self.path.name
        self.start()

    def start(self) -> None:
        """What was not committed is gone; resets on disk are those before the last commit."""
        for site in SITES:
            del self.events[site][self.taken[site] :]
            self.pending[site].clear()
        self.history = History.open(self.path, SETTINGS, now=self.now)

    def lose(self) -> None:
        self.history.close()
        self.path.with_name(snapshot.FILE_NAME).unlink(missing_ok=True)
        self.start()

    def imported(self, site: str, minutes: int, count: int) -> None:
        """Of one route a minute in the past is replaced."""
        self.read()
        start = self.now // 60 * 60 - minutes * 60
        new = Came(start=start, route="a", count=count, bucket=150)
        import_windows(
            self.path,
            SETTINGS,
            [slot(start, Tally(ok=count, latency={150: count}), site=site, route="a")],
            now=self.now,
        )
        on_disk = [
            one for one in self.events[site] if isinstance(one, WasReset) or (one.start, one.route) != (start, "a")
        ]
        waiting = len(self.events[site]) - self.taken[site]
        self.events[site] = sorted([*on_disk, new], key=lambda one: one.start if isinstance(one, Came) else one.at)
        self.taken[site] = len(self.events[site]) - waiting
        self.read()

    def wait(self, minutes: int) -> None:
        self.now += 60 * minutes


SITE, WINDOW = st.sampled_from(SITES), st.integers(NOTHING, len(LIVES) - 1)
ADD = st.tuples(st.just("add"), SITE, st.sampled_from("ab"), st.integers(1, 500), st.integers(100, 102))
RESET = st.tuples(st.just("reset"), SITE, WINDOW)
STEPS = st.one_of(
    ADD, ADD, RESET, RESET, st.tuples(st.just("wait"), st.integers(1, 90)),
    *(st.tuples(st.just(word)) for word in ("commit", "commit", "save", "close", "kill", "read")),
)  # fmt: skip
IMPORT = st.tuples(st.just("imported"), SITE, st.integers(1, 120), st.integers(1, 2000))


BETWEEN: list[tuple[object, ...]] = [
    ("read",), ("add", "books", "a", 50, 100), ("commit",), ("wait", 4), ("reset", "books", 0),
    ("wait", 60), ("add", "books", "a", 70, 101), ("commit",),
]  # fmt: skip
"""A reset with a commit before it and one behind, neither of them in the snapshot."""


def play(steps: list[tuple[object, ...]], *, in_time: bool) -> None:
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder), in_time=in_time)
        try:
            for word, *arguments in steps:
                getattr(machine, str(word))(*arguments)
            machine.read()
        finally:
            machine.history.close()


@settings(max_examples=40)
@given(steps=st.lists(STEPS, max_size=20))
@example(steps=[*BETWEEN, ("kill",)])
@example(
    steps=[*BETWEEN, ("save",), ("add", "books", "b", 9, 102), ("reset", "books", NOTHING), ("commit",), ("kill",)]
)
def test_a_restart_is_as_no_restart(steps: list[tuple[object, ...]]) -> None:
    """Also where requests came to disk after a reset that they were made before: they count in all windows."""
    play(steps, in_time=False)


@settings(max_examples=40)
@given(steps=st.lists(st.one_of(STEPS, IMPORT, st.tuples(st.just("lose"))), max_size=20))
@example(
    steps=[*BETWEEN, ("close",), ("wait", 60), ("reset", "quotes", 0), ("reset", "books", 1), ("commit",), ("lose",)]
)
@example(steps=[*BETWEEN, ("reset", "books", 0), ("imported", "books", 30, 40), ("commit",), ("kill",)])
def test_windows_made_anew_are_as_they_were(steps: list[tuple[object, ...]]) -> None:
    """From the slots of all sites, or of one that was imported: a reset stands in its time among them."""
    play(steps, in_time=True)
