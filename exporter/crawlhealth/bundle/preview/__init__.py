"""Pictures of the dashboards with real data, for a README and for eyes: laid out as Grafana would, and no Grafana."""

from crawlhealth.bundle.preview.asking import PreviewError, Prometheus
from crawlhealth.bundle.preview.pictures import pictures

__all__ = ["PreviewError", "Prometheus", "pictures"]
