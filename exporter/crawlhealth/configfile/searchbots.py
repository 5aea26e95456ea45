"""What must hold under `searchbots` beyond the types."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from crawlhealth.configfile.logs import check_domain, check_logs
from crawlhealth.configfile.rules import check_name
from crawlhealth.configfile.tenants import check_tenants
from crawlhealth.searchbotsettings import (
    RANGE_FILES,
    Dependency,
    DomainSettings,
    ResolverSettings,
    SearchbotSettings,
    endpoint,
)
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import quoted

MOST_CONCURRENT: Final = 1000
SHORTEST_REFRESH: Final = timedelta(hours=1)
_FILE: Final = re.compile(r"[A-Za-z0-9_-]{1,100}\.json")


def check_searchbots(document: Document, settings: SearchbotSettings) -> None:
    """Everything under `searchbots`."""
    check_logs(document, settings.logs)
    check_tenants(document, settings)
    _check_ranges(document, settings)
    _check_resolver(document, settings.resolver)
    for name, target in settings.targets.items():
        steps: Steps = ("searchbots", "targets", name)
        check_name(document, name, steps)
        _check_url(document, target.url, (*steps, "url"), ("http", "https"), "https://shop.example/")
    _check_domains(document, settings.domains)
    for name, dependency in settings.dependencies.items():
        check_name(document, name, ("searchbots", "dependencies", name))
        _check_dependency(document, dependency, ("searchbots", "dependencies", name))


def _check_ranges(document: Document, settings: SearchbotSettings) -> None:
    folder = settings.ranges
    if folder is not None and not os.path.isdir(folder):  # Path.is_dir raises below a closed folder
        if os.path.lexists(folder):
            document.report(("searchbots", "ranges"), "is no folder: name the folder of the operators' JSON files")
        elif not settings.refresh:
            document.report(("searchbots", "ranges"), "is not there: make the folder, with the operators' files in it")
    if settings.refresh and settings.ranges is None:
        document.report(("searchbots", "refresh"), "needs a folder to put files into: add ranges: ./ranges", key=True)
    for name, source in settings.refresh.items():
        steps: Steps = ("searchbots", "refresh", name)
        if not _FILE.fullmatch(name):
            document.report(steps, "is no name of a file of ranges: write it as in bingbot.json", key=True)
        elif not any(fnmatchcase(name, known) for known in RANGE_FILES):
            remedy = f"write one of {', '.join(RANGE_FILES)}"
            document.report(steps, f"is no bot's file, and would never be read: {remedy}", key=True)
        _check_url(document, source.url, (*steps, "url"), ("http", "https"), "https://operator.example/bot.json")
        if source.every < SHORTEST_REFRESH:
            document.report((*steps, "every"), "asks too often: write 1h or more")


def _check_resolver(document: Document, settings: ResolverSettings) -> None:
    steps: Steps = ("searchbots", "resolver")
    for number, written in enumerate(settings.servers):
        try:
            endpoint(written)
        except ValueError as error:
            document.report((*steps, "servers", number), f"{quoted(written)} {error}")
    if not timedelta(milliseconds=100) <= settings.timeout <= timedelta(seconds=30):
        document.report((*steps, "timeout"), "must be from 100ms to 30s: write for instance 2s")
    if not 1 <= settings.concurrency <= MOST_CONCURRENT:
        document.report((*steps, "concurrency"), f"must be from 1 to {MOST_CONCURRENT}: write for instance 64")


def _check_domains(document: Document, settings: DomainSettings) -> None:
    steps: Steps = ("searchbots", "domains")
    for number, written in enumerate(settings.names):
        place = (*steps, "names", number)
        if "://" not in written:
            check_domain(document, written, place)
            continue
        _check_url(document, written, place, ("http", "https"), "http://shop.example:8080")
        if document.sound(*place) and written.rstrip("/").count("/") + sum(map(written.count, "?#")) > 2:
            document.report(place, "has more than host and port: write for instance http://shop.example:8080")
    _check_url(document, settings.rdap, (*steps, "rdap"), ("http", "https"), "https://rdap.org/")


def _check_dependency(document: Document, dependency: Dependency, steps: Steps) -> None:
    _check_url(document, dependency.url, (*steps, "url"), ("redis", "rediss"), "redis://127.0.0.1:6379")
    if dependency.username and dependency.password is None:
        document.report((*steps, "username"), "needs a password: add password: {env: NAME}", key=True)
    file = dependency.ca_file
    if file is not None and not os.path.isfile(file):  # pathlib raises where a name is too long
        message = f"there is no file {quoted(str(file), 300)}: name one with the certificates of its authority"
        document.report((*steps, "ca_file"), message)
    if not timedelta(milliseconds=100) <= dependency.timeout <= timedelta(seconds=60):
        document.report((*steps, "timeout"), "must be from 100ms to 1m: write for instance 5s")


def _check_url(document: Document, url: str, steps: Steps, schemes: tuple[str, ...], example: str) -> None:
    """A URL with a host, without user and password: those would be shown in errors."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.username is not None or parts.password is not None:
        document.report(steps, f"must hold no user and password: write for instance {example}", secret=True)
    elif parts.scheme not in schemes or not host or port == 0 or not url.isprintable() or " " in url:
        document.report(steps, f"is no URL of {' or '.join(schemes)}: write for instance {example}")
