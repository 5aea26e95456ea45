"""Rows of the table for gates in front of single sites: search engines, shops, and proof-of-work gates."""

from __future__ import annotations

from typing import Final

from crawlhealth.classify.marker import Room, Rule, block, challenge, code, header, markup, redirect, text, title
from crawlhealth.outcome import Reason as R

_GOOGLE_FORM = markup(r"<form\b[^<>&]*\bid\s*=\s*[\"']?captcha-form\b")
_ANUBIS_PATH = markup(r"<(?:img|link|script|form)\b[^<>&]*/\.within\.website/x/cmd/anubis/")
_GO_AWAY = r"/\.well-known/\.git\.gammaspectra\.live/"

GATES: Final[tuple[Rule, ...]] = (
    challenge(R.BAIDU_CHALLENGE, "baidu: redirect to its captcha", redirect(r"^wappass\.baidu\.com/static/captcha")),
    challenge(R.BAIDU_CHALLENGE, "baidu: security check", title(r"^百度安全验证$"), room=Room.LEAN),
    challenge(R.GOOGLE_CHALLENGE, "google: redirect to sorry", redirect(r"^(?:[a-z0-9-]+\.)*google\.[a-z.]+/sorry/")),
    challenge(
        R.GOOGLE_CHALLENGE,
        "google: captcha form on unusual traffic",
        _GOOGLE_FORM,
        text(r"\bunusual traffic from your computer network\b"),
        room=Room.LEAN,
    ),
    challenge(
        R.GOOGLE_CHALLENGE,
        "google: captcha form that returns to the search",
        markup(r"<form\b[^<>&]*\bid\s*=\s*[\"']?captcha-form\b[^>]*\baction\s*=\s*[\"']?(?:index|[^\"'>]*/sorry/)"),
        room=Room.THIN,
    ),
    challenge(R.AMAZON_CHALLENGE, "amazon: redirect to its captcha", redirect(r"/errors/validatecaptcha\b")),
    challenge(
        R.AMAZON_CHALLENGE,
        "amazon: captcha form",
        markup(r"<form\b[^<>&]*\baction\s*=\s*[\"']?[^\"'\s>]*/errors/validatecaptcha\b"),
    ),
    challenge(
        R.YANDEX_CHALLENGE, "yandex: redirect to its captcha", redirect(r"^[^/]+/(?:[a-z]+/)?showcaptcha(?:fast)?$")
    ),
    challenge(R.YANDEX_CHALLENGE, "yandex: captcha header", header("x-yandex-captcha")),
    challenge(
        R.YANDEX_CHALLENGE,
        "yandex: captcha form",
        markup(r"<form\b[^<>&]*\baction\s*=\s*[\"']?[^\"'\s>]*/checkcaptcha"),
        room=Room.LEAN,
    ),
    challenge(R.SOGOU_CHALLENGE, "sogou: redirect to its check", redirect(r"^[^/]+/antispider(?:/|$)")),
    challenge(
        R.SOGOU_CHALLENGE,
        "sogou: check page",
        markup(r"<(?:form|img|script|link)\b[^<>&]*/antispider/"),
        text(r"验证码"),
        room=Room.THIN,
    ),
    challenge(
        R.ANUBIS_CHALLENGE, "anubis: challenge script", code(r"<script\b[^>]*\bid\s*=\s*[\"']?anubis_challenge\b")
    ),
    block(
        R.ANUBIS_BLOCK,
        "anubis: denial",
        markup(r"<img\b[^<>&]*/\.within\.website/x/cmd/anubis/static/img/reject\."),
        room=Room.LEAN,
    ),
    block(R.ANUBIS_BLOCK, "anubis: denial by its title", _ANUBIS_PATH, title(r"^oh noes!?$"), room=Room.LEAN),
    challenge(R.ANUBIS_CHALLENGE, "anubis: its own files", _ANUBIS_PATH, room=Room.LEAN),
    challenge(R.GO_AWAY_CHALLENGE, "go_away: redirect to its check", redirect(_GO_AWAY)),
    challenge(R.GO_AWAY_CHALLENGE, "go_away: refresh to its check", header("refresh", _GO_AWAY)),
    challenge(
        R.GO_AWAY_CHALLENGE,
        "go_away: its own files",
        markup(r"<(?:img|link|script|form|meta|iframe)\b[^<>&]*" + _GO_AWAY),
        room=Room.LEAN,
    ),
    challenge(R.VERCEL_CHALLENGE, "vercel: mitigated header", header("x-vercel-mitigated", r"\bchallenge\b")),
    block(R.GENERIC_BLOCK, "vercel: denied header", header("x-vercel-mitigated", r"\bdeny\b")),
    challenge(R.VERCEL_CHALLENGE, "vercel: checkpoint", title(r"^vercel security checkpoint$"), room=Room.THIN),
    challenge(R.DDOS_GUARD_CHALLENGE, "ddos_guard: challenge page", title(r"^ddos-guard$"), room=Room.THIN),
    challenge(R.GENERIC_CHALLENGE, "radware: redirect to its check", redirect(r"^validate\.perfdrive\.com/")),
)
