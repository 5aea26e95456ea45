"""Everything that runs beside the exporter, rendered from data: rules, alerts, routing and dashboards."""

from crawlhealth.bundle import operator
from crawlhealth.bundle.kubernetes import Cluster
from crawlhealth.bundle.model import DEFAULT_DASHBOARDS, DEFAULT_EXPORTER, DEFAULT_RUNBOOKS, Options, Scoring, Severity
from crawlhealth.bundle.render import alerts, check, compare, groups, left, render, write, write_files

__all__ = [
    "DEFAULT_DASHBOARDS",
    "DEFAULT_EXPORTER",
    "DEFAULT_RUNBOOKS",
    "Cluster",
    "Options",
    "Scoring",
    "Severity",
    "alerts",
    "check",
    "compare",
    "groups",
    "left",
    "operator",
    "render",
    "write",
    "write_files",
]
