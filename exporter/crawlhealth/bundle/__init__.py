"""Everything that runs beside the exporter, rendered from data: rules, alerts and the Alertmanager configuration."""

from crawlhealth.bundle.model import DEFAULT_DASHBOARDS, DEFAULT_RUNBOOKS, Options, Scoring, Severity
from crawlhealth.bundle.render import alerts, check, groups, render, write

__all__ = [
    "DEFAULT_DASHBOARDS",
    "DEFAULT_RUNBOOKS",
    "Options",
    "Scoring",
    "Severity",
    "alerts",
    "check",
    "groups",
    "render",
    "write",
]
