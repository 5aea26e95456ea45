"""Everything that runs beside the exporter, rendered from data: alert rules and the Alertmanager configuration."""

from crawlhealth.bundle.render import DEFAULT_RUNBOOKS, check, render, write

__all__ = ["DEFAULT_RUNBOOKS", "check", "render", "write"]
