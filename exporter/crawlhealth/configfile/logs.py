"""What must hold under `searchbots.logs` beyond the types."""

from __future__ import annotations

import fnmatch
import glob
import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from crawlhealth.configfile.rules import check_name
from crawlhealth.searchbotsettings import LOG_FORMATS, LogSettings
from crawlhealth.yamlfile.binding import nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import quoted

_NEEDED: Final = {
    "$remote_addr": r"\$\{?(?:remote_addr|realip_remote_addr|http_x_real_ip)\b",
    "$time_local": r"\$\{?(?:time_local|time_iso8601|msec)\b",
    "$status": r"\$\{?status\b",
    "$http_user_agent": r"\$\{?http_user_agent\b",
}
"""What an nginx log_format must have, by a pattern."""
_TOUCHING: Final = re.compile(r"\$(?:\{[a-z0-9_]+\}|[a-z0-9_]+)(?=\$)")
_DOMAIN: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*", re.IGNORECASE
)


def check_logs(document: Document, logs: Sequence[LogSettings]) -> None:
    """Paths in folders that exist, formats that can be read, networks, and labels that differ."""
    labels: dict[str, int] = {}
    _check_shared(document, [log.path for log in logs])
    for number, log in enumerate(logs):
        steps: Steps = ("searchbots", "logs", number)
        _check_path(document, log.path, (*steps, "path"))
        _check_format(document, log.format, (*steps, "format"))
        check_name(document, log.tenant, (*steps, "tenant"), key=False)
        for name in ("name", "target"):
            if getattr(log, name):
                check_name(document, getattr(log, name), (*steps, name), key=False)
        if log.domain:
            check_domain(document, log.domain, (*steps, "domain"))
        for place, domain in enumerate(log.domains):
            check_domain(document, domain, (*steps, "domains", place))
        if log.domain and log.domains:
            document.report((*steps, "domain"), "stands beside domains: keep one of them", key=True)
        for place, written in enumerate(log.trusted_proxies):
            _check_network(document, written, (*steps, "trusted_proxies", place))
        first = labels.setdefault(log.label, number)
        if first != number:
            message = f"the log number {first + 1} is called {quoted(log.label, 300)} already: give this one a name"
            document.report((*steps, "name" if log.name else "path"), message)


def _check_shared(document: Document, paths: Sequence[Path]) -> None:
    """No file may be read by two logs: each line would count twice."""
    real = [os.path.join(os.path.realpath(path.parent), path.name) for path in paths]
    for number, path in enumerate(real):
        for first, other in enumerate(real[:number]):
            if path == other:
                message = f"is the path of the log number {first + 1} already: each line would count twice; keep one"
            elif _matches(path, other) or _matches(other, path):
                message = (
                    f"and the path of the log number {first + 1} ({quoted(str(paths[first]), 300)}) match the same"
                )
                message += " file, whose lines would count twice: make one of them narrower"
            else:
                continue
            document.report(("searchbots", "logs", number, "path"), message)
            break


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern with `*` matches a path, part by part."""
    if not glob.has_magic(pattern) or "**" in pattern:
        return "**" in pattern and path in glob.glob(pattern, recursive=True)
    parts, others = pattern.split(os.sep), path.split(os.sep)
    return len(parts) == len(others) and all(map(fnmatch.fnmatchcase, others, parts))


def _check_path(document: Document, path: Path, steps: Steps) -> None:
    """The folder must be there: a log may still be missing, but a wrong path would never be noticed."""
    if path.name in ("", ".", ".."):
        document.report(steps, "names no file: write it as in /var/log/nginx/access.log, or /var/log/nginx/*.log")
        return
    parts = path.parts
    magic = next((place for place, part in enumerate(parts[:-1]) if re.search(r"[*?\[]", part)), len(parts) - 1)
    folder = Path(*parts[:magic])
    if not folder.is_dir():
        document.report(steps, f"there is no folder {quoted(str(folder), 300)}: mend the path")
    elif magic == len(parts) - 1 and (path.is_dir() or path.is_fifo() or path.is_socket()):
        kind = "a folder" if path.is_dir() else "a pipe"
        document.report(steps, f"is {kind} and no log: write the path of a file, or of files as in logs/*.log")


def _check_format(document: Document, written: str, steps: Steps) -> None:
    if "$" not in written:
        if written not in LOG_FORMATS:
            more = ", or the text of an nginx log_format"
            document.report(steps, f"there is no format {quoted(written)}: {nearest(written, LOG_FORMATS)}{more}")
        return
    for variable, pattern in _NEEDED.items():
        if not re.search(pattern, written):
            document.report(steps, f"lacks {variable}: copy the log_format as nginx has it")
            return
    if touching := _TOUCHING.search(written):
        document.report(steps, f"has nothing between {touching[0]} and the next variable: put a blank there")


def check_domain(document: Document, domain: str, steps: Steps) -> None:
    """A name as in shop.example, without scheme, port and path."""
    if not _DOMAIN.fullmatch(domain):
        document.report(steps, f"{quoted(domain)} is no domain: write it as in shop.example")


def _check_network(document: Document, written: str, steps: Steps) -> None:
    try:
        network = ipaddress.ip_network(written, strict=False)
    except ValueError:
        document.report(steps, f"{quoted(written)} is no network: write it as in 10.0.0.0/8 or 2001:db8::1")
        return
    if network.prefixlen == 0:
        message = "is everybody, who could then pass for any bot: name your own proxies, as in 10.0.0.0/8"
        document.report(steps, f"{quoted(written)} {message}")
