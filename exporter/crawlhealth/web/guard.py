"""What the web configuration comes to while the exporter runs: read, in force, replaced as a whole."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from crawlhealth.configfile import ConfigError
from crawlhealth.web import webfile
from crawlhealth.web.tls import ReplaceableContext, TlsError, bears_name, server_context
from crawlhealth.web.webfile import WebFile
from crawlhealth.yamlfile.document import Document

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One reading of the file that is good as a whole: the settings, and the TLS context they ask for."""

    settings: WebFile
    context: ssl.SSLContext | None


class Guard:
    """The web configuration in force. Without a file everything is allowed, in plain HTTP.

    Whether TLS is spoken is settled at the start. Raises ConfigError when the file cannot be used.
    """

    def __init__(self, path: Path | None, *, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        read = self.read()
        self.settings = read.settings
        self.context = ReplaceableContext.of(read.context) if read.context is not None else None

    def read(self) -> Read:
        """The file as it is now; nothing changes by that. Raises ConfigError with every problem."""
        if self._path is None:
            return Read(settings=WebFile(), context=None)
        settings = webfile.load(self._path, environ=self._environ)
        if settings.tls_server_config is None:
            return Read(settings=settings, context=None)
        try:
            return Read(settings=settings, context=server_context(settings.tls_server_config))
        except TlsError as error:
            document = Document.read(self._path)
            document.report(("tls_server_config", error.name), str(error))
            raise ConfigError(replace(problem, source="") for problem in document.problems) from None

    def use(self, read: Read) -> None:
        """Put a reading in force: for the next request, and for the next connection."""
        if (read.context is None) is not (self.context is None):
            log.warning("tls_server_config came or went: that takes a restart")
            kept = self.settings.tls_server_config
            self.settings = replace(read.settings, tls_server_config=kept)
            return
        if self.context is not None and read.context is not None:
            self.context.current = read.context
        self.settings = read.settings

    def admits(self, connection: ssl.SSLObject) -> bool:
        """Whether a TLS client may stay: its certificate bears one of the allowed names, where there are some."""
        server = self.settings.tls_server_config
        allowed = server.client_allowed_sans if server is not None else ()
        return not allowed or bears_name(connection, allowed)
