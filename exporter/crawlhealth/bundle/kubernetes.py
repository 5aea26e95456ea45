"""The exporter on Kubernetes: a replica with a volume for each shard, their Service, and an example of a configuration.

The pods run as nobody in particular, on a read-only root, without a privilege or a token of the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from crawlhealth import __version__
from crawlhealth.bundle.yamltext import Block, dump, dump_all

NAME: Final = "crawlhealth"
PORT: Final = 9877
PORT_NAME: Final = "http"
DEFAULT_LABELS: Final = {"release": "kube-prometheus-stack"}
"""What the operator of a Helm release of that name selects by."""
USER: Final = 65532
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CONFIG: Final = """\
# An example: put your own sites here, and their canaries beside it
listen: 0.0.0.0:9877
data_dir: /var/lib/crawlhealth
push: {tokens: [{env: CRAWLHEALTH_TOKEN}]}  # whoever posts needs it
sites:
  books:
    hosts: [books.toscrape.com]
canaries: [canaries-*.yml]
"""
_CANARIES: Final = """\
site: books
canaries:
  - name: home
    url: https://books.toscrape.com/
    expect:
      books: {css: "article.product_pod", count: {equals: 20}, record: required}
"""


EXAMPLE: Final[Mapping[str, str]] = {"crawlhealth.yml": _CONFIG, "canaries-books.yml": _CANARIES}
"""A configuration for a container, as file name to text. The environment brings `CRAWLHEALTH_TOKEN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where and how it runs on Kubernetes.

    `labels` are put on every object that the operator selects by its labels. `targets` are exporters outside of the
    cluster, as host:port, that are scraped instead of running one. Raises ValueError for what Kubernetes would refuse.
    """

    namespace: str = "monitoring"
    labels: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_LABELS))
    image: str = f"{NAME}:{__version__}"
    shards: int = 1
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _DNS_LABEL.fullmatch(self.namespace):
            raise ValueError(f"{self.namespace!r} is no namespace: write lower case letters, digits and -")
        if self.shards < 1:
            raise ValueError(f"{self.shards} shards: write 1 or more")

    def metadata(self, name: str) -> dict[str, Any]:
        """The metadata of an object that the operator selects."""
        return {"name": name, "namespace": self.namespace, "labels": {**_OURS, **self.labels}}


_SELECTOR: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "exporter"}
_OURS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME}
SELECTOR: Final = {"matchLabels": dict(_SELECTOR)}
"""What the pods and the Service of the exporter bear, and nothing else does."""


def files(cluster: Cluster) -> Mapping[str, str]:
    """The exporter and the example of its configuration, as file name to text; nothing where it runs elsewhere."""
    if cluster.targets:
        return {}
    return {
        "exporter.yml": dump_all([_service(cluster), _stateful_set(cluster)]),
        "example-config.yml": dump(_example(cluster)),
    }


def _metadata(cluster: Cluster, name: str = NAME) -> dict[str, Any]:
    return {"name": name, "namespace": cluster.namespace, "labels": {**_OURS, **_SELECTOR}}


def _example(cluster: Cluster) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(cluster),
        "data": {name: Block(text) for name, text in EXAMPLE.items()},
    }


def _service(cluster: Cluster) -> dict[str, Any]:
    """Headless: a crawler asks the one exporter, or the shard of its site by name, `crawlhealth-2.crawlhealth`."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(cluster),
        "spec": {
            "clusterIP": "None",
            "selector": dict(_SELECTOR),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME}],
        },
    }


def _stateful_set(cluster: Cluster) -> dict[str, Any]:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(cluster),
        "spec": {
            "replicas": cluster.shards,
            "ordinals": {"start": 1},
            "serviceName": NAME,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": dict(_SELECTOR)},
            "template": {"metadata": {"labels": {**_OURS, **_SELECTOR}}, "spec": _pod(cluster)},
            "volumeClaimTemplates": [claim],
        },
    }


def _pod(cluster: Cluster) -> dict[str, Any]:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 90,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(cluster)],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }


def _container(cluster: Cluster) -> dict[str, Any]:
    index = {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}
    sharded = [
        {"name": "POD_INDEX", "valueFrom": index},
        {"name": "CRAWLHEALTH_SHARD", "value": f"$(POD_INDEX)/{cluster.shards}"},
    ]
    return {
        "name": NAME,
        "image": cluster.image,
        "args": ["serve", "--config", "/etc/crawlhealth/crawlhealth.yml"],
        **({"env": sharded} if cluster.shards > 1 else {}),
        "envFrom": [{"secretRef": {"name": NAME, "optional": True}}],
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        "startupProbe": _probe("/-/ready", every=5, failures=120),
        "readinessProbe": _probe("/-/ready", every=10, failures=3),
        "livenessProbe": _probe("/-/healthy", every=30, failures=4),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/crawlhealth", "readOnly": True},
            {"name": "data", "mountPath": "/var/lib/crawlhealth"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
        ],
    }


def _probe(path: str, *, every: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": PORT_NAME},
        "periodSeconds": every,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
