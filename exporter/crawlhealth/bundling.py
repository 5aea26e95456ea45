"""The command `crawlhealth bundle`: renders what runs beside the exporter."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from crawlhealth import bundle as rendering
from crawlhealth.bundle import Cluster, Options, Scoring, Severity
from crawlhealth.bundle.preview import Prometheus
from crawlhealth.bundle.preview import options as preview_options
from crawlhealth.shard import MOST

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN: Final = frozenset({"site", "route", "canary", "domain", "bot", "job", "instance", "severity", "alertname"})


def _labels(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, ...]:
    """Label names with commas between them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not _LABEL.fullmatch(name) or name.startswith("__"):
            raise click.BadParameter(f"{name!r} is no label name: letters, digits and _ only, as in tenant,cluster")
        if name in _TAKEN:
            raise click.BadParameter(
                f"{name!r} has its meaning already: name labels that part sites, as tenant,cluster"
            )
    if len(set(names)) < len(names):
        raise click.BadParameter("a label stands there twice")
    return names


def _severities(_context: click.Context, _parameter: click.Parameter, entries: tuple[str, ...]) -> dict[str, Severity]:
    """Pairs NAME=LEVEL."""
    chosen: dict[str, Severity] = {}
    for entry in entries:
        name, equals, level = entry.partition("=")
        if not equals or level not in set(Severity):
            raise click.BadParameter(f"{entry!r}: write NAME=LEVEL with one of the levels {', '.join(Severity)}")
        chosen[name] = Severity(level)
    try:
        rendering.render(Options(severities=chosen))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return chosen


def _url(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """An address that a link can begin with."""
    if not re.match(r"https?://[^\s/]", text):
        raise click.BadParameter(f"{text!r} is no address: write it whole, as https://wiki.example/runbooks")
    return text.rstrip("/")


def _selectors(_context: click.Context, _parameter: click.Parameter, entries: tuple[str, ...]) -> dict[str, str]:
    """Pairs KEY=VALUE; those of the usual Helm release where there are none."""
    for entry in entries:
        if not re.fullmatch(r"([a-z0-9.-]+/)?[A-Za-z0-9._-]+=[A-Za-z0-9._-]*", entry):
            raise click.BadParameter(f"{entry!r} is no label: write KEY=VALUE, as in release=monitoring")
    return dict(entry.split("=", 1) for entry in entries) or dict(Cluster().labels)


_OPTIONS: Final[tuple[Callable[..., Any], ...]] = (
    click.option("--out", type=click.Path(path_type=Path), default=Path(), show_default=True, help="Folder."),
    click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 when a file differs."),
    click.option(
        "--scoring",
        type=click.Choice([str(scoring) for scoring in Scoring]),
        default=str(Scoring.EXPORTER),
        show_default=True,
        help="Where the score comes from: the exporter, or rules over the counters of all crawlers.",
    ),
    click.option("--job", default="crawlhealth", show_default=True, help="The exporter's scrape job in Prometheus."),
    click.option(
        "--crawler-job", multiple=True, metavar="JOB", help="A scrape job of crawlers that expose counters themselves."
    ),
    click.option(
        "--group-labels",
        callback=_labels,
        default="",
        metavar="NAME,…",
        help="Target labels that part sites of the same name, such as tenant,cluster.",
    ),
    click.option(
        "--severity",
        "severities",
        callback=_severities,
        multiple=True,
        metavar="ALERT=LEVEL",
        help="Another severity for one alert: critical (pages), warning or info.",
    ),
    click.option(
        "--runbook-base",
        metavar="URL",
        callback=_url,
        default=rendering.DEFAULT_RUNBOOKS,
        show_default=True,
        help="Where you serve alerting/runbooks; alerts link to it.",
    ),
    click.option(
        "--dashboard-base",
        metavar="URL",
        callback=_url,
        default=rendering.DEFAULT_DASHBOARDS,
        show_default=True,
        help="Grafana's address; alerts link to it.",
    ),
    click.option(
        "--exporter-url",
        metavar="URL",
        callback=_url,
        default=rendering.DEFAULT_EXPORTER,
        show_default=True,
        help="The exporter's address; messages link to its page of a site.",
    ),
    click.option(
        "--time-scale", type=click.FloatRange(min=1.0, max=1e6), default=1.0, help="Divide every duration by this."
    ),
)


_OPERATOR_OPTIONS: Final[tuple[Callable[..., Any], ...]] = (
    click.option(
        "--format",
        "form",
        type=click.Choice(["files", "operator"]),
        default="files",
        show_default=True,
        help="Plain files, or objects of the Prometheus operator; what follows is for those.",
    ),
    click.option("--namespace", default=Cluster().namespace, show_default=True, help="Of all objects."),
    click.option(
        "--label",
        "selected_by",
        callback=_selectors,
        multiple=True,
        metavar="KEY=VALUE",
        help="A label that your operator selects objects by.  [default: release=kube-prometheus-stack]",
    ),
    click.option("--image", default=Cluster().image, show_default=True, help="The image that you have built."),
    click.option("--shards", type=click.IntRange(1, MOST), default=1, show_default=True, help="So many exporters."),
    click.option(
        "--target", "targets", multiple=True, metavar="HOST:PORT", help="Scrape this exporter and run none. Repeatable."
    ),
)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed((*_OPTIONS, *preview_options.OPTIONS, *_OPERATOR_OPTIONS)):
        command = option(command)
    return command


@click.command(
    epilog="Examples: crawlhealth bundle --out . --group-labels tenant,cluster --check;"
    " crawlhealth bundle --preview pictures --prometheus http://127.0.0.1:9090 --choose site=books"
)
@_with_options
def bundle(
    *,
    out: Path,
    only_check: bool,
    scoring: str,
    job: str,
    crawler_job: tuple[str, ...],
    group_labels: tuple[str, ...],
    severities: dict[str, Severity],
    runbook_base: str,
    dashboard_base: str,
    exporter_url: str,
    time_scale: float,
    preview: Path | None,
    form: str,
    prometheus: Prometheus,
    width: int,
    choose: dict[str, str],
    **cluster: Any,  # noqa: ANN401 - the operator's options, as `_manifests` names them
) -> None:
    """Render the recording rules, the alerts, the Alertmanager configuration and the dashboards."""
    options = Options(
        job=job,
        crawler_jobs=crawler_job,
        scoring=Scoring(scoring),
        group_labels=group_labels,
        severities=severities,
        runbook_base=runbook_base,
        dashboard_base=dashboard_base,
        exporter_url=exporter_url,
        time_scale=time_scale,
    )
    if not options.job or not all(options.crawler_jobs):
        raise click.BadParameter("a job has a name", param_hint="--job")
    if preview is not None:
        preview_options.draw(rendering.render(options), preview, prometheus=prometheus, width=width, choose=choose)
        return
    files = _manifests(options, **cluster) if form == "operator" else rendering.render(options)
    if not only_check:
        for name in rendering.write_files(out, files):
            click.echo(out / name)
        for line in (*rendering.left(out, files), *_nowhere(options)):
            click.echo(line.rstrip(), err=True)
        return
    differences = rendering.compare(out, files)
    for difference in differences:
        click.echo(difference, err=True)
    sys.exit(1 if differences else 0)


def _nowhere(options: Options) -> list[str]:
    """What is to be said of links whose addresses were not given, if any."""
    places = {
        "--runbook-base": (options.runbook_base, rendering.DEFAULT_RUNBOOKS),
        "--dashboard-base": (options.dashboard_base, rendering.DEFAULT_DASHBOARDS),
        "--exporter-url": (options.exporter_url, rendering.DEFAULT_EXPORTER),
    }
    absent = [name for name, (given, default) in places.items() if given == default]
    return [f"Links lead nowhere (.invalid) without {', '.join(absent)}"] if absent else []


def _manifests(
    options: Options, *, namespace: str, selected_by: dict[str, str], image: str, shards: int, targets: tuple[str, ...]
) -> Mapping[str, str]:
    """The objects of the Prometheus operator."""
    try:
        cluster = Cluster(namespace=namespace, labels=selected_by, image=image, shards=shards, targets=targets)
        return rendering.operator.files(rendering.render(options), options, cluster)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
