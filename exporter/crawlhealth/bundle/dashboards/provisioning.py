"""What Grafana reads when it starts: the data source, where the dashboards lie, and alerts of its own where wanted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from crawlhealth.bundle.yamltext import dump, duration

FOLDER: Final = "grafana/provisioning"
DATASOURCE: Final = "crawlhealth-prometheus"
"""The uid of the data source; alerts of Grafana name it."""
GRAFANA_FOLDER: Final = "crawlhealth"
DASHBOARDS: Final = "/etc/grafana/dashboards"
"""Where the container has the dashboards."""
SCRAPE: Final = timedelta(seconds=15)


def files() -> Mapping[str, str]:
    """The files for data sources and dashboards, as relative path to text."""
    return {
        f"{FOLDER}/datasources/crawlhealth.yml": dump(_datasources()),
        f"{FOLDER}/dashboards/crawlhealth.yml": dump(_dashboards()),
    }


def _datasources() -> dict[str, Any]:
    """`PROMETHEUS_URL` may name another server than the one of `compose.yml`."""
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Prometheus (crawlhealth)",
                "uid": DATASOURCE,
                "type": "prometheus",
                "access": "proxy",
                "url": "${PROMETHEUS_URL}",
                "isDefault": True,
                "editable": False,
                "jsonData": {
                    "httpMethod": "POST",
                    "timeInterval": duration(SCRAPE),
                    "prometheusType": "Prometheus",
                },
            }
        ],
    }


def _dashboards() -> dict[str, Any]:
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": "crawlhealth",
                "orgId": 1,
                "folder": GRAFANA_FOLDER,
                "folderUid": GRAFANA_FOLDER,
                "type": "file",
                "disableDeletion": True,
                "allowUiUpdates": False,
                "updateIntervalSeconds": 30,
                "options": {"path": DASHBOARDS, "foldersFromFilesStructure": False},
            }
        ],
    }
