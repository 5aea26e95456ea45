"""The command line: `crawlhealth serve`, `check`, `probe`, `import`, `pause`, `demo`, `bundle` and more."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from crawlhealth import __version__

_PLACES: Final = {
    "accept": "deciding",
    "backtest": "backtest.command",
    "bundle": "bundling",
    "check": "commands",
    "demo": "commands",
    "export": "exporting",
    "import": "commands",
    "incidents": "reviewing",
    "label": "reviewing",
    "limit": "deciding",
    "logs": "scanning",
    "pause": "deciding",
    "probe": "commands",
    "resume": "deciding",
    "review": "reviewing",
    "serve": "commands",
    "verify": "verifying",
}
"""The module of each command."""


class Commands(click.Group):
    """Commands that are imported when they are asked for: most of them need little of what `serve` needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        del ctx
        return sorted(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None for no command."""
        del ctx
        if cmd_name not in _PLACES:
            return None
        module = import_module(f"crawlhealth.{_PLACES[cmd_name]}")
        command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crawlhealth")
def main() -> None:
    """Tell, for every site you crawl, whether it still behaves like its own normal, and why not."""


if __name__ == "__main__":
    main()
