"""The commands `serve`, `check`, `probe`, `import` and `demo`."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

import click

from crawlhealth import configfile, ownership, web
from crawlhealth import demo as showing
from crawlhealth import probe as probing
from crawlhealth.app import Service
from crawlhealth.history import HistoryError
from crawlhealth.memory import return_large_blocks
from crawlhealth.options import CONFIG, SHARD, load
from crawlhealth.searchbots.rangefolder import faults
from crawlhealth.shard import Shard
from crawlhealth.traffic import importing

WEB = click.option(
    "--web.config.file",
    "web_path",
    type=click.Path(path_type=Path),
    help="TLS, client certificates and passwords, in the format of Prometheus' own exporters.",
)


@click.command(epilog="Example: crawlhealth serve --config canaries/crawlhealth.yml")
@CONFIG
@WEB
@SHARD
def serve(path: Path, web_path: Path | None, shard: Shard | None) -> None:
    """Run the exporter: canaries, history, score, /metrics.

    SIGHUP or POST /-/reload reads the configuration again, the web configuration and its certificates too; a broken
    one leaves the old one running.
    """
    return_large_blocks()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        config = load(path)
        guard = _guard(web_path)
        listener = web.bind(config.listen)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {config.listen}: {error.strerror or error}") from error
    try:
        service = Service(path, config=config, shard=shard)
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    service.start()
    if service.config.share:
        logging.getLogger("crawlhealth").info("%s", service.config.share)
    logging.getLogger("crawlhealth").info("listening on %s", web.url_of(listener, tls=guard.context is not None))
    state = replace(service.web_state(), reload=lambda: _reload(service, guard))
    application = web.Gate(web.create(state), lambda: guard.settings, state.tokens, service.tenant_tokens)
    try:
        web.run(
            application,
            listener,
            on_hangup=lambda: _hangup(service, guard),
            guard=guard,
            on_stop=service.watch.close,
        )
    finally:
        service.stop()


@click.command(epilog="Example: crawlhealth check --config canaries/crawlhealth.yml")
@CONFIG
@WEB
@SHARD
def check(path: Path, web_path: Path | None, shard: Shard | None) -> None:
    """Read the configuration and name every problem in it, with its place and its remedy."""
    whole = load(path)
    _guard(web_path)
    bad = faults(whole.searchbots)
    for line in bad:
        click.echo(line, err=True)
    if bad:
        sys.exit(1)
    config = whole if shard is None else whole.part(shard)
    sites, canaries, routes = len(config.sites), len(config.canaries), len(config.routes)
    counts = (_count(sites, "site"), _count(canaries, "canary", "canaries"), _count(routes, "route"))
    part = "" if shard is None else f"shard {shard}, of {_count(len(whole.sites), 'site')} in all: "
    click.echo(f"{path}: {part}{', '.join(counts)}: good")


@click.command(epilog="Example: crawlhealth probe books/listing --config canaries/crawlhealth.yml")
@click.argument("target", metavar="SITE[/CANARY]")
@CONFIG
@click.option("--route", help="Only this route; all of the canary's by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe(target: str, path: Path, route: str | None, as_json: bool) -> None:
    """Fetch a canary once and explain every step: phases, classification, checks, and the metrics it would set.

    Only what is configured can be probed. Exits 1 when a run was refused, failed or had a wrong value.
    """
    config = load(path)
    try:
        chosen = probing.choose(config, target, route)
        results = [result for canary in chosen for result in probing.probe(config, canary)]
    except LookupError as error:
        raise click.UsageError(str(error.args[0])) from error
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps([probing.as_json(result) for result in results], indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join(probing.as_text(result) for result in results))
    sys.exit(0 if all(result.run.success for result in results) else 1)


@click.command(name="import", epilog="Example: crawlhealth import --config crawlhealth.yml history.jsonl")
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
@CONFIG
@SHARD
def import_(files: tuple[IO[bytes], ...], path: Path, shard: Shard | None) -> None:
    """Bring minute or hour windows from before the first day into the history, so that a score exists at once.

    FILE is JSON lines, one window on each line ("-" reads standard input). May be repeated, and run while `serve`
    runs: rows are replaced by site, route, source and start. No counter on /metrics moves. Exits 1 when a line was not
    taken.
    """
    config = ownership.beside(path, shard)
    failed = False
    for file in files:
        try:
            with click.progressbar(file, label=file.name, hidden=not sys.stderr.isatty(), file=sys.stderr) as lines:
                report = importing.import_windows(lines, config)
        except HistoryError as error:
            raise click.ClickException(str(error)) from error
        for problem in report.problems:
            click.echo(f"{file.name}:{problem.line}: {problem.reason}", err=True)
        failed = failed or bool(report.problems)
        click.echo(f"{file.name}: {report.taken} windows taken, {len(report.problems)} lines not")
    sys.exit(1 if failed else 0)


@click.command(epilog="Examples: crawlhealth demo --once; crawlhealth demo --site-only --port 8080")
@click.option("--once", is_flag=True, help="Play the story once and exit 0 only if it went as it should.")
@click.option("--site-only", is_flag=True, help="Serve only the practice site, to try canaries or a crawler on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the practice site with --site-only.")
def demo(once: bool, site_only: bool, port: int) -> None:
    """Watch a practice site turn from normal to resisting and back, with everything that notices it.

    Runs the exporter on a compressed clock, with Prometheus and Alertmanager when they are installed.
    """
    if site_only:
        showing.site.main(port)
        return
    sys.exit(showing.run(once=once))


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _guard(path: Path | None) -> web.Guard:
    try:
        return web.Guard(path, environ=os.environ)
    except configfile.ConfigError as error:
        click.echo(error.render(), err=True)
        sys.exit(1)


def _reload(service: Service, guard: web.Guard) -> None:
    """Both configurations or neither. Raises ConfigError."""
    try:
        fresh = guard.read()
    except configfile.ConfigError:
        service.telemetry.reload_failed()
        raise
    service.reload()
    guard.use(fresh)


def _hangup(service: Service, guard: web.Guard) -> None:
    try:
        _reload(service, guard)
    except configfile.ConfigError as error:
        logging.getLogger("crawlhealth").error("the old configuration keeps running:\n%s", error)
