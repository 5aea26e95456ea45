"""The alerts as data, one module for what one person looks after; each has promtool cases and a runbook.

Few of them page, and every one that does is a symptom. Adding one: an entry here, cases in `alerting/tests`, a page in
`alerting/runbooks`.
"""
