"""The dashboards of Grafana: described in `board.Board`, one module each, and rendered as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crawlhealth.bundle.dashboards import canaries, exporter, fleet, provisioning, searchbots, site
from crawlhealth.bundle.dashboards.board import Board
from crawlhealth.bundle.dashboards.building import rendered
from crawlhealth.bundle.model import Options

FOLDER: Final = "grafana/dashboards"
BOARDS: Final[tuple[Board, ...]] = (fleet.BOARD, site.BOARD, canaries.BOARD, searchbots.BOARD, exporter.BOARD)
"""All of them."""


def files(options: Options) -> Mapping[str, str]:
    """Every dashboard, and what tells Grafana of them, as relative path to text."""
    return {f"{FOLDER}/{board.uid}.json": rendered(board, options) for board in BOARDS} | dict(provisioning.files())
