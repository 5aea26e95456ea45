"""Terms: what the expressions of the fleet rules are put together from. Pure text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from crawlhealth.bundle.yamltext import duration
from crawlhealth.normals import WIDTH
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stats import PER_DECADE

SETTINGS: Final = ScoreSettings()
"""The judgement that the rules carry out: the defaults of the configuration."""
WINDOWS: Final = tuple(duration(window) for window in SETTINGS.windows)
"""The half-lives, as the label `window` names them."""
HOSTILE: Final = "hard_block|challenge|soft_block"
WIDTHS: Final = dict(
    zip(WINDOWS, (max(1.0, window.total_seconds() * WIDTH) for window in SETTINGS.windows), strict=True)
)
"""How many hours wide each window is, at least one."""
LATENCY_WINDOWS: Final = (WINDOWS[1], WINDOWS[3])
"""Histograms are held at two half-lives only: a p95 rises in a wide window as soon as one in twenty is slow."""


def recent(record: str, selector: str = "", *, within: str = "5m") -> str:
    """The last result of another rule: some engines write results late."""
    return f"last_over_time({record}{selector}[{within}])"


def labelled(expr: str, name: str, value: str) -> str:
    """An expression with a label added."""
    return f'label_replace({expr}, "{name}", "{value}", "", "")'


def any_of(*parts: str) -> str:
    """What any of these expressions gives, the first that does."""
    return "\nor ".join(parts)


def constants(name: str, values: Mapping[str, float]) -> str:
    """A vector of numbers by the values of a label."""
    return "(" + " or ".join(labelled(f"vector({value:.10g})", name, key) for key, value in values.items()) + ")"


def greater(one: str, other: str) -> str:
    """The greater of two expressions with equal labels, both evaluated twice."""
    return f"(({one}) >= ({other}) or ({other}))"


def seconds(length: timedelta) -> str:
    """A length of time as a number that follows the time scale."""
    return f"${{{duration(length)}}}"


NUMBERS: Final = constants("window", {window: place for place, window in enumerate(WINDOWS)})
"""The windows' places, shortest first, by the label `window`."""


def windowed(expr: str, windows: tuple[str, ...] = WINDOWS) -> str:
    """An expression once for each window, with its label; `@window` stands for the half-life in seconds."""
    return any_of(*[labelled(expr.replace("@window", f"${{{window}}}"), "window", window) for window in windows])


def add_up(by: str, one: str, other: str) -> str:
    """The sum of two expressions of which each may lack what the other has."""
    return f"sum by ({by}) (\n" + any_of(one, labelled(other, "part", "other")) + "\n)"


def interpolated(quantile: str) -> str:
    """A quantile of a published histogram, read within its bucket by ratios: Prometheus goes in a straight line.

    The bounds of buckets are powers of 10^(1/6), so that the one below is known; `quantile` is evaluated three times.
    """
    below = f"floor({PER_DECADE} * log10({quantile}))"
    share = f"({quantile} / 10 ^ ({below} / {PER_DECADE}) - 1) / {10 ** (1 / PER_DECADE) - 1:.6g}"
    return f"10 ^ (({below} + {share}) / {PER_DECADE})"
