"""`compose.yml`: exporter, Prometheus, Alertmanager and Grafana from the very files of the bundle, versions pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crawlhealth.bundle.dashboards import FOLDER as DASHBOARD_FILES
from crawlhealth.bundle.dashboards.provisioning import DASHBOARDS, SCRAPE
from crawlhealth.bundle.kubernetes import EXAMPLE
from crawlhealth.bundle.model import Options
from crawlhealth.bundle.yamltext import HEADER, dump, duration

PATH: Final = "grafana/compose.yml"
PROMETHEUS_PATH: Final = "grafana/prometheus.yml"
PROMETHEUS: Final = "docker.io/prom/prometheus:v3.5.0"
ALERTMANAGER: Final = "docker.io/prom/alertmanager:v0.28.1"
GRAFANA: Final = "docker.io/grafana/grafana:11.6.0"
RETENTION: Final = "30d"


def files(options: Options) -> Mapping[str, str]:
    """The compose file and the configurations that it mounts, as relative path to text."""
    example = {f"grafana/exporter/{name}": HEADER + text for name, text in EXAMPLE.items()}
    return {PATH: dump(_compose()), PROMETHEUS_PATH: dump(_prometheus(options)), **example}


def _compose() -> dict[str, Any]:
    """Only this machine reaches the ports; all data lies in volumes."""
    return {
        "services": {
            "exporter": {
                "build": {"context": "..", "dockerfile": "exporter/install/Containerfile"},
                "image": "crawlhealth:local",
                "environment": {"CRAWLHEALTH_TOKEN": "${CRAWLHEALTH_TOKEN:?set CRAWLHEALTH_TOKEN}"},
                "read_only": True,
                "tmpfs": ["/tmp"],  # noqa: S108 - in the container
                "cap_drop": ["ALL"],
                "security_opt": ["no-new-privileges:true"],
                "ports": ["127.0.0.1:9877:9877"],
                "volumes": [
                    "${CRAWLHEALTH_CONFIG:-./exporter}:/etc/crawlhealth:ro",
                    "exporter:/var/lib/crawlhealth",
                ],
                "restart": "unless-stopped",
            },
            "prometheus": {
                "image": PROMETHEUS,
                "command": [
                    "--config.file=/etc/prometheus/prometheus.yml",
                    "--storage.tsdb.path=/prometheus",
                    f"--storage.tsdb.retention.time={RETENTION}",
                ],
                "ports": ["127.0.0.1:9090:9090"],
                "volumes": [
                    "./prometheus.yml:/etc/prometheus/prometheus.yml:ro",
                    "../alerting/rules:/etc/prometheus/rules:ro",
                    "prometheus:/prometheus",
                ],
                "restart": "unless-stopped",
            },
            "alertmanager": {
                "image": ALERTMANAGER,
                "command": ["--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"],
                "ports": ["127.0.0.1:9093:9093"],
                "volumes": [
                    "../alerting/alertmanager.yml:/etc/alertmanager/alertmanager.yml:ro",
                    "../alerting/templates:/etc/alertmanager/templates:ro",
                    "alertmanager:/alertmanager",
                ],
                "restart": "unless-stopped",
            },
            "grafana": {
                "image": GRAFANA,
                "environment": {
                    "PROMETHEUS_URL": "http://prometheus:9090",
                    "GF_ANALYTICS_REPORTING_ENABLED": "false",
                    "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
                    "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": f"{DASHBOARDS}/crawlhealth-fleet.json",
                    "GF_SECURITY_ADMIN_PASSWORD": "${GRAFANA_PASSWORD:?set GRAFANA_PASSWORD}",
                },
                "ports": ["127.0.0.1:3000:3000"],
                "volumes": [
                    "./provisioning/datasources:/etc/grafana/provisioning/datasources:ro",
                    "./provisioning/dashboards:/etc/grafana/provisioning/dashboards:ro",
                    f"./{DASHBOARD_FILES.removeprefix('grafana/')}:{DASHBOARDS}:ro",
                    "grafana:/var/lib/grafana",
                ],
                "restart": "unless-stopped",
            },
        },
        "volumes": {name: {} for name in ("exporter", "prometheus", "alertmanager", "grafana")},
    }


def _prometheus(options: Options) -> dict[str, Any]:
    """What Prometheus scrapes, evaluates and tells, by the names of the services."""

    def target(job: str, where: str) -> dict[str, Any]:
        return {"job_name": job, "static_configs": [{"targets": [where]}]}

    return {
        "global": {"scrape_interval": duration(SCRAPE), "evaluation_interval": "30s"},
        "rule_files": ["rules/*.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["alertmanager:9093"]}]}]},
        "scrape_configs": [target(options.job, "exporter:9877"), target("prometheus", "localhost:9090")],
    }
