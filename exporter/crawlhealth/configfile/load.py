"""`crawlhealth.yml` and its canary files to one Config, or every problem in them at once."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from crawlhealth.config import (
    DEFAULT_LISTEN,
    DIRECT,
    Block,
    Canary,
    Config,
    Fetching,
    HistorySettings,
    Maintenance,
    MetricsSettings,
    PushSettings,
    Route,
    Site,
    UplinkSettings,
)
from crawlhealth.configfile.blocks import check_blocks
from crawlhealth.configfile.canaries import CanaryFile, Surroundings
from crawlhealth.configfile.judgement import check_advice, check_canary_led, check_maintenance, check_uplink
from crawlhealth.configfile.rules import (
    check_data_dir,
    check_fetch,
    check_history,
    check_listen,
    check_push,
    check_routes,
    check_score,
    check_sites,
)
from crawlhealth.configfile.searchbots import check_searchbots
from crawlhealth.configfile.tenants import check_tokens_apart
from crawlhealth.hosts import HostIndex
from crawlhealth.scoresettings import AdviceSettings, ScoreSettings
from crawlhealth.searchbotsettings import SearchbotSettings
from crawlhealth.yamlfile.binding import Binder
from crawlhealth.yamlfile.document import Document, Problem
from crawlhealth.yamlfile.tree import Entries, quoted

MAX_FILES: Final = 10_000
SHORTEST_HIDDEN: Final = 4
"""Characters: hiding shorter texts would only garble errors."""
_USER_INFO: Final = re.compile(r"(//)[^/\s]*@")


class ConfigError(Exception):
    """A configuration that cannot be used. `problems` has all of them, by file and line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = sorted(problems)
        private = {(problem.file, problem.line) for problem in found if not problem.source}
        self.problems = tuple(
            replace(problem, source="" if (problem.file, problem.line) in private else _masked(problem.source))
            for problem in found
        )
        super().__init__("\n".join(map(str, self.problems)))

    def render(self) -> str:
        """Every problem with its line and a caret under the column; lines that may hold a secret are not shown."""
        said = []
        for problem in self.problems:
            said.append(str(problem))
            if problem.source.strip():
                gutter = f"{problem.line:>5} | "
                before = problem.source[: problem.column - 1]
                lead = "".join("\t" if character == "\t" else " " for character in before)
                said += [gutter + problem.source, " " * (len(gutter) - 2) + "| " + lead + "^"]
        return "\n".join(said)


def _masked(source: str) -> str:
    """A line of a file without the user names and passwords of its URLs, as long as before."""
    return _USER_INFO.sub(lambda match: match.group(1) + "*" * (len(match.group()) - 3) + "@", source)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The configuration file as written; everything may be left out."""

    data_dir: Path | None = None
    listen: str = DEFAULT_LISTEN
    routes: Mapping[str, Route] = field(default_factory=dict)
    sites: Mapping[str, Site] = field(default_factory=dict)
    canaries: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    score: ScoreSettings = field(default_factory=ScoreSettings)
    fetch: Fetching = field(default_factory=Fetching)
    history: HistorySettings = field(default_factory=HistorySettings)
    push: PushSettings = field(default_factory=PushSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    advice: AdviceSettings = field(default_factory=AdviceSettings)
    maintenance: tuple[Maintenance, ...] = ()
    uplink: UplinkSettings = field(default_factory=UplinkSettings)
    searchbots: SearchbotSettings = field(default_factory=SearchbotSettings)


def load(path: Path, *, environ: Mapping[str, str], secrets: bool = True) -> Config:
    """The configuration at `path` with all canary files it names.

    Relative paths start at the file's folder. Without `secrets`, what stands as a secret outside the file is not read,
    as if it were not written: for those who neither serve nor fetch. Raises ConfigError with every problem found;
    nothing else.
    """
    document = Document.read(path)
    if document.root is None:
        raise ConfigError(document.problems)
    binder = Binder(document, environ=environ, secrets=secrets)
    written = binder.record(document.root, _Written)
    if written is None:
        raise ConfigError(_without(document.problems, binder.outside))
    routes = {DIRECT: Route(name=DIRECT), **written.routes}
    known = dict.fromkeys((*routes, *_names(document, "routes")))
    data_dir = written.data_dir or path.parent / "data"
    _check(document, written, routes, known, data_dir)
    around = Surroundings(
        names=frozenset(_names(document, "sites")),
        sites=written.sites,
        hosts=HostIndex({name: site.hosts for name, site in written.sites.items()}),
        routes={**{name: Route(name=name) for name in known}, **routes},
    )
    readers = [
        CanaryFile(Document.read(file), around, environ=environ, secrets=secrets)
        for file in _canary_files(document, written)
    ]
    canaries = _unique(readers)
    binders = (binder, *(reader.binder for reader in readers))
    problems = [problem for each in binders for problem in each.document.problems]
    if problems:
        raise ConfigError(_without(problems, [text for each in binders for text in each.outside]))
    outside = [file for each in binders for file in each.files]
    files = dict.fromkeys((path, *(reader.document.file for reader in readers), *outside))
    return Config(
        data_dir=data_dir,
        listen=written.listen,
        routes=routes,
        sites=written.sites,
        canaries=canaries,
        blocks=written.blocks,
        score=written.score,
        fetch=written.fetch,
        history=written.history,
        push=written.push,
        metrics=written.metrics,
        advice=written.advice,
        maintenance=written.maintenance,
        uplink=written.uplink,
        searchbots=written.searchbots,
        files=tuple(files),
    )


def _check(
    document: Document, written: _Written, routes: Mapping[str, Route], known: Mapping[str, object], data_dir: Path
) -> None:
    """Everything that must hold inside the file itself; `known` has the routes that could not be read too."""
    check_routes(document, routes)
    check_sites(document, written.sites, known)
    check_blocks(document, written.blocks)
    check_score(document, written.score)
    check_canary_led(document, written.score.canaries)
    check_history(document, written.history, written.score)
    check_fetch(document, written.fetch)
    check_listen(document, written.listen)
    check_data_dir(document, data_dir)
    check_push(document, written.push, written.history, (*written.sites, *_names(document, "sites")))
    check_advice(document, written.advice)
    check_maintenance(document, written.maintenance, dict.fromkeys((*written.sites, *_names(document, "sites"))))
    check_uplink(document, written.uplink)
    check_searchbots(document, written.searchbots)
    check_tokens_apart(document, written.searchbots, written.push)


def _without(problems: Iterable[Problem], outside: Iterable[str]) -> list[Problem]:
    """The problems without any text that came from the environment or a secret file."""
    hidden = {form for text in outside for form in (text, text[:40], text.split("\n")[0], repr(text)[1:-1][:40])}
    known = [re.escape(form) for form in sorted(hidden, key=len, reverse=True) if len(form) >= SHORTEST_HIDDEN]
    if not known:
        return list(problems)
    pattern = re.compile("|".join(known), re.IGNORECASE)
    return [
        replace(problem, message=pattern.sub("***", problem.message), path=pattern.sub("***", problem.path))
        for problem in problems
    ]


def _names(document: Document, key: str) -> tuple[str, ...]:
    """The names written under a key, also of what could not be read: it is there, only broken."""
    node = document.find((key,))
    return tuple(node.entries) if document.has(key) and isinstance(node, Entries) else ()


def _canary_files(document: Document, written: _Written) -> tuple[Path, ...]:
    """The files that the patterns under `canaries` match, each once, in order; never the configuration itself."""
    found: dict[Path, None] = {}
    folder, own = document.file.parent, os.path.realpath(document.file)
    for number, pattern in enumerate(written.canaries):
        matches = sorted(glob.glob(pattern, root_dir=folder, recursive=True)) if pattern else []
        files = [folder / match for match in matches]
        files = [file for file in files if os.path.realpath(file) != own]  # pathlib raises where links go round
        if not files:
            message = f"{quoted(pattern, 300)} matches no file under {folder}: mend the pattern, or leave it out"
            document.report(("canaries", number), message)
        found.update(dict.fromkeys(files))
        if len(found) > MAX_FILES:
            document.report(("canaries", number), f"matches more than {MAX_FILES} files: narrow the pattern")
            return ()
    return tuple(found)


def _unique(readers: Iterable[CanaryFile]) -> tuple[Canary, ...]:
    """All canaries; a name that a site has twice is a problem of the later one."""
    first: dict[tuple[str, str], str] = {}
    canaries = []
    for reader in readers:
        document = reader.document
        for number, canary in reader.read():
            steps = ("canaries", number, "name")
            place = f"{document.file}:{document.find(steps).line}"
            before = first.setdefault((canary.site, canary.name), place)
            if before != place and canary.name and canary.site:
                message = (
                    f"the site {quoted(canary.site)} has a canary {quoted(canary.name)} already ({before}): rename one"
                )
                document.report(steps, message)
            canaries.append(canary)
    return tuple(canaries)
