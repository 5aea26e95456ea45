"""Everything that runs beside the exporter, rendered from data: alert rules and the Alertmanager configuration."""

from crawlhealth.bundle.render import check, render, write

__all__ = ["check", "render", "write"]
