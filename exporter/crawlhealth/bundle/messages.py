"""The texts of messages for receivers that take templates (chat, mail): what is wrong, why, and where to look.

The score, its reasons and their points stand in each alert's description. Webhooks get the same as JSON.
"""

from __future__ import annotations

from string import Template
from typing import Final

from crawlhealth.bundle.model import Options

PATH: Final = "alerting/templates/crawlhealth.tmpl"
MOST: Final = 20
"""How many alerts one message lists."""


class _Text(Template):
    """Go templates have `$`, `{` and `%` of their own."""

    delimiter = "@"


_TEMPLATE: Final = _Text("""\
{{- /* Rendered by `crawlhealth bundle`. Change the source and render again; edits here are lost.

In a receiver:
  slack_configs: [{channel: "#crawl", title: '{{ template "crawlhealth.title" . }}', \
text: '{{ template "crawlhealth.text" . }}'}]
  email_configs: [{to: crawl@@example.org, headers: {subject: '{{ template "crawlhealth.title" . }}'}, \
text: '{{ template "crawlhealth.text" . }}'}]
*/ -}}

{{ define "crawlhealth.title" -}}
{{ if eq .Status "firing" }}{{ or .CommonLabels.severity "alert" | toUpper }}{{ else }}RESOLVED{{ end }}: \
{{ with .CommonLabels.site }}{{ . }}: {{ end }}\
{{ or .CommonAnnotations.summary (printf "%d alerts on crawls" (len .Alerts)) }}
{{- end }}

{{ define "crawlhealth.text" -}}
{{ range $number, $alert := .Alerts }}\
{{ if lt $number @most }}{{ template "crawlhealth.alert" $alert }}{{ end }}{{ end -}}
{{ if gt (len .Alerts) @most }}These are the first @most of {{ len .Alerts }}: {{ .ExternalURL }}
{{ end }}
{{- end }}

{{ define "crawlhealth.alert" -}}
{{ if eq .Status "resolved" }}Over since {{ .EndsAt.UTC.Format "2006-01-02 15:04 MST" }}: {{ .Annotations.summary }}
{{ else }}{{ or .Annotations.description .Annotations.summary }}
{{ end }}{{ template "crawlhealth.links" . }}
{{ end }}

{{ define "crawlhealth.links" -}}
{{ with .Labels.site }}Site: @exporter/sites/{{ reReplaceAll "[+]" "%20" (urlquery .) }}
{{ end -}}
{{ with .Annotations.dashboard_url }}Dashboard: {{ . }}
{{ end -}}
{{ with .Annotations.runbook_url }}What to do: {{ . }}
{{ end -}}
{{ end }}
""")


def template(options: Options) -> str:
    """The template file, with links to the pages of sites at the exporter's address."""
    return _TEMPLATE.substitute(most=MOST, exporter=options.exporter_url.rstrip("/"))
