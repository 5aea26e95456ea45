"""What must hold of tenants, and of what belongs to one: nothing is everybody's, and nothing is two tenants'."""

from __future__ import annotations

import math
import re
from typing import Final

from crawlhealth.configfile.rules import check_name
from crawlhealth.searchbotsettings import OTHER_TARGET, LogSettings, Quota, SearchbotSettings, Tenant
from crawlhealth.yamlfile.binding import nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import Scalar, quoted

MOST_STEPS: Final = 104
"""Weeks of a ramp."""
MOST_VISITS: Final = 1_000_000_000
_DOMAIN: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?", re.IGNORECASE)


def check_tenants(document: Document, settings: SearchbotSettings) -> None:
    """Names, domains and tokens that are one tenant's alone; tenants that there are; weights and quotas."""
    domains: dict[str, str] = {}
    tokens: dict[str, str] = {}
    for tenant in settings.tenants.values():
        steps: Steps = ("searchbots", "tenants", tenant.name)
        check_name(document, tenant.name, steps)
        _check_domains(document, tenant, steps, domains)
        _check_tokens(document, tenant, steps, tokens)
    for target in settings.targets.values():
        steps = ("searchbots", "targets", target.name)
        _check_tenant(document, settings, target.tenant, (*steps, "tenant"))
        if target.name == OTHER_TARGET:
            document.report(steps, "is what targets are called that are not configured: give it another name", key=True)
        if target.weight is not None and not (math.isfinite(target.weight) and target.weight >= 0):
            document.report((*steps, "weight"), "must be 0 or more: write for instance 3")
        if target.quota is not None:
            _check_quota(document, target.quota, (*steps, "quota"))
    for number, log in enumerate(settings.logs):
        _check_log(document, settings, log, ("searchbots", "logs", number))


def _check_domains(document: Document, tenant: Tenant, steps: Steps, known: dict[str, str]) -> None:
    for place, domain in enumerate(tenant.domains):
        where = (*steps, "domains", place)
        if not _DOMAIN.fullmatch(domain):
            document.report(where, f"{quoted(domain)} is no domain: write it as in shop.example")
        elif known.setdefault(domain.lower(), tenant.name) != tenant.name:
            document.report(where, f"belongs to the tenant {quoted(known[domain.lower()])} already: leave it to one")


def _check_tokens(document: Document, tenant: Tenant, steps: Steps, known: dict[str, str]) -> None:
    for place, token in enumerate(tenant.tokens):
        where, text = (*steps, "tokens", place), token.reveal()
        if isinstance(document.find(where), Scalar):
            document.report(where, "is a secret and must not stand here: write {env: NAME} or {file: path}")
        elif not text or not (text.isascii() and text.isprintable()) or " " in text:
            document.report(where, "has a character that no bearer token can have: use ASCII letters and digits")
        elif known.setdefault(text, tenant.name) != tenant.name:
            document.report(
                where, f"is a token of the tenant {quoted(known[text])} too: give each its own", secret=True
            )


def _check_tenant(document: Document, settings: SearchbotSettings, tenant: str, steps: Steps) -> None:
    if settings.tenants and tenant not in settings.tenants:
        document.report(steps, f"there is no tenant {quoted(tenant)}: {nearest(tenant, settings.tenants)}")
    else:
        check_name(document, tenant, steps, key=False)


def _check_quota(document: Document, quota: Quota, steps: Steps) -> None:
    if (quota.day is None) == (not quota.ramp):
        document.report(steps, "needs one of day and ramp: write {day: 500}, or {ramp: [500, 800, 1200, 2000]}")
    if len(quota.ramp) > MOST_STEPS:
        document.report((*steps, "ramp"), f"has more than {MOST_STEPS} weeks: the last step holds on, leave some out")
    for name, value in (("day", quota.day), *(("ramp", step) for step in quota.ramp)):
        if value is not None and not 0 <= value <= MOST_VISITS:
            document.report((*steps, name), "is no number of visits of a day: write for instance 500")
    if quota.begins and not quota.ramp:
        document.report((*steps, "begins"), "is when a ramp begins: add ramp: [500, 800, 1200, 2000]", key=True)
    try:
        _ = quota.first_day
    except ValueError:
        document.report((*steps, "begins"), f"{quoted(quota.begins)} is no date: write it as in 2026-12-01")


def _check_log(document: Document, settings: SearchbotSettings, log: LogSettings, steps: Steps) -> None:
    """A log belongs to a tenant that there is, and tells of its targets and domains only."""
    if settings.tenants:
        _check_tenant(document, settings, log.tenant, (*steps, "tenant"))
    target = settings.targets.get(log.target)
    if log.target and target is None:
        message = f"there is no target {quoted(log.target)}: {nearest(log.target, settings.targets)}"
        document.report((*steps, "target"), message)
    elif target is not None and target.tenant != log.tenant:
        document.report((*steps, "target"), f"belongs to the tenant {quoted(target.tenant)}, the log to another")
    tenant = settings.tenants.get(log.tenant)
    if tenant is None or not tenant.domains or log.target:
        return
    own = {domain.lower() for domain in tenant.domains}
    for name, domain in (("domain", log.domain), *(("domains", each) for each in log.domains)):
        if domain and domain.lower() not in own:
            message = f"{quoted(domain)} is none of its tenant's domains: {nearest(domain, own)}"
            document.report((*steps, name), message)
