"""Parts of alerts' texts: what is concluded about a site now, in the words of the site page. Never a page's body.

Prometheus fills them in when an alert is sent; what is unknown is left out. `@match` and `@args` choose the site.
"""

from __future__ import annotations

from typing import Final

SCORE: Final = (
    '{{ with printf "min(site:crawlhealth_score{@match})" @args | query }}'
    ' The health score is {{ . | first | value | printf "%.0f" }} of 100.{{ end }}'
)
REASONS: Final = (
    '{{ range printf "sort_desc(topk(3, max by (signal) (site_signal:crawlhealth_penalty_points{@match}) >= 1))"'
    ' @args | query }} {{ .Labels.signal }} costs {{ .Value | printf "%.0f" }} points.{{ end }}'
)
HELD: Final = (
    '{{ with printf "max(crawlhealth_band_held{@match}) == 1" @args | query }}'
    " Too few requests are left to score it: the band is held.{{ end }}"
)
DIAGNOSIS: Final = (
    '{{ range printf "max by (diagnosis) (crawlhealth_diagnosis{@match,diagnosis!=\\"none\\"}) == 1" @args | query }}'
    " Diagnosis: {{ .Labels.diagnosis }}.{{ end }}"
)
ADVICE: Final = (
    '{{ with printf "max(crawlhealth_advice_paused{@match}) == 1" @args | query }}'
    " In force: the crawl is paused, only canaries go on.{{ else }}"
    '{{ with printf "min(crawlhealth_advice_concurrency_ratio{@match}) < 1" @args | query }}'
    " In force: {{ . | first | value | humanizePercentage }} of the usual concurrency"
    '{{ with printf "max(crawlhealth_advice_revisit_multiplier{@match}) > 1" @args | query }}'
    ', visits {{ . | first | value | printf "%.1f" }} times as far apart{{ end }}.{{ end }}{{ end }}'
)
DECISION: Final = (
    '{{ range printf "max by (kind) (crawlhealth_override_until_timestamp_seconds{@match})" @args | query }}'
    " A person's {{ .Labels.kind }} is in force until {{ .Value | humanizeTimestamp }}.{{ end }}"
)
VERDICT: Final = SCORE + REASONS + HELD + DIAGNOSIS + ADVICE + DECISION
"""All that is concluded about the site of an alert, each sentence with a space before it."""
