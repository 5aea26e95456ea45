"""What must hold of tenants, and of what belongs to one: nothing is everybody's, and nothing is two tenants'."""

from __future__ import annotations

import math
from typing import Final

from crawlhealth.config import PushSettings, PushToken
from crawlhealth.configfile.logs import check_domain
from crawlhealth.configfile.rules import check_name
from crawlhealth.searchbotsettings import OTHER_TARGET, LogSettings, Quota, SearchbotSettings, Tenant
from crawlhealth.yamlfile.binding import nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import Scalar, quoted

MOST_STEPS: Final = 104
"""Weeks of a ramp."""
MOST_VISITS: Final = 1_000_000_000


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


def check_tokens_apart(document: Document, settings: SearchbotSettings, push: PushSettings) -> None:
    """No token of a tenant is one of `push.tokens`: it would be good for more than what is the tenant's."""
    pushing = {(token.token if isinstance(token, PushToken) else token).reveal() for token in push.tokens}
    for tenant in settings.tenants.values():
        for place, token in enumerate(tenant.tokens):
            if token.reveal() in pushing:
                where: Steps = ("searchbots", "tenants", tenant.name, "tokens", place)
                document.report(where, "is one of push.tokens too: give the tenant a token of its own", secret=True)


def _check_domains(document: Document, tenant: Tenant, steps: Steps, known: dict[str, str]) -> None:
    for place, domain in enumerate(tenant.domains):
        where = (*steps, "domains", place)
        check_domain(document, domain, where)
        if known.setdefault(domain.lower(), tenant.name) != tenant.name:
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
    whole = document.sound(*steps, "day") and document.sound(*steps, "ramp")
    if whole and (quota.day is None) == (not quota.ramp):
        document.report(steps, "needs one of day and ramp: write {day: 500}, or {ramp: [500, 800, 1200, 2000]}")
    if len(quota.ramp) > MOST_STEPS:
        document.report((*steps, "ramp"), f"has more than {MOST_STEPS} weeks: the last step holds on, leave some out")
    ramp = (((*steps, "ramp", week), visits) for week, visits in enumerate(quota.ramp))
    for place, value in (((*steps, "day"), quota.day), *ramp):
        if value is not None and not 0 <= value <= MOST_VISITS:
            document.report(place, "is no number of visits of a day: write for instance 500")
    if whole and quota.begins and not quota.ramp:
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
    owners = {domain.lower(): tenant.name for tenant in settings.tenants.values() for domain in tenant.domains}
    own = {domain for domain, owner in owners.items() if owner == log.tenant}
    several = (((*steps, "domains", place), domain) for place, domain in enumerate(log.domains))
    for where, domain in (((*steps, "domain"), log.domain), *several):
        owner = owners.get(domain.lower(), log.tenant)
        if domain and owner != log.tenant and log.tenant in settings.tenants:
            message = f"{quoted(domain)} belongs to the tenant {quoted(owner)}, the log to {quoted(log.tenant)}"
            document.report(where, f"{message}: leave it to one")
        elif domain and own and domain.lower() not in own and not log.target:
            document.report(where, f"{quoted(domain)} is none of its tenant's domains: {nearest(domain, own)}")
