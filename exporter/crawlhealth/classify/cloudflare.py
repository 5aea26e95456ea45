"""Rows of the table for Cloudflare: its challenges, its bans, and its pages about an origin that is broken."""

from __future__ import annotations

from typing import Final

from crawlhealth.classify.marker import Room, Rule, block, broken, challenge, code, header, markup, text, title
from crawlhealth.outcome import Reason as R

_CF_TITLE = title(r"^(?:just a moment\.*|attention required! \| cloudflare)$")
_CF_OPTIONS = code(r"\b_cf_chl_opt\s*=|\b_cf_chl_opt['\"]?\]\s*=")
_CF_ORCHESTRATE = code(r"/cdn-cgi/challenge-platform/[^\s\"'<>]*orchestrate")
_CF_TEMPLATE = markup(r"\b(?:id|class)\s*=\s*[\"']?(?:cf-error-details|cf-wrapper)\b")
_CF_CODE = (
    r"(?:\bcf-error-code[\"']?[^>]*>"
    r"|data-translate\s*=\s*[\"']?error\b[^>]*>\s*error\s*</span>\s*<span[^>]*>)\s*"
)
_CF_BROKEN_CODE = r"(?:10(?:0[0124]|1[34689]|23|3[34])|110[0-4]|1200|5\d\d)\b"

CLOUDFLARE: Final[tuple[Rule, ...]] = (
    challenge(R.CLOUDFLARE_CHALLENGE, "cloudflare: cf-mitigated header", header("cf-mitigated", r"\bchallenge\b")),
    challenge(
        R.CLOUDFLARE_CHALLENGE,
        "cloudflare: challenge options with an orchestrate URL",
        _CF_OPTIONS,
        _CF_ORCHESTRATE,
        room=Room.LEAN,
    ),
    challenge(
        R.CLOUDFLARE_CHALLENGE,
        "cloudflare: challenge options on a page that reloads itself",
        _CF_OPTIONS,
        _CF_ORCHESTRATE,
        markup(r"<meta\b[^<>&]*\bhttp-equiv\s*=\s*[\"']?refresh\b"),
    ),
    challenge(
        R.CLOUDFLARE_CHALLENGE,
        "cloudflare: challenge title with a challenge form",
        markup(r"<form\b[^<>&]*(?:challenge-form|__cf_chl_|/cdn-cgi/l/chk_)"),
        _CF_TITLE,
    ),
    challenge(
        R.CLOUDFLARE_CHALLENGE, "cloudflare: challenge title with an orchestrate URL", _CF_ORCHESTRATE, _CF_TITLE
    ),
    challenge(
        R.CLOUDFLARE_CHALLENGE,
        "cloudflare: challenge title with a challenge element",
        markup(
            r"<[a-z0-9]+\b[^<>&]*\b(?:cf-browser-verification|cf-im-under-attack|challenge-(?:running|stage|error-t))"
        ),
        _CF_TITLE,
    ),
    challenge(
        R.CLOUDFLARE_CHALLENGE,
        "cloudflare: challenge title and little else",
        title(r"^just a moment\.\.\.$"),
        room=Room.SCANT,
    ),
    challenge(
        R.CLOUDFLARE_CHALLENGE,
        "cloudflare: challenge title from its server",
        title(r"^just a moment\.*$"),
        header("server", r"^cloudflare"),
        room=Room.THIN,
        errors_only=True,
    ),
    broken(R.ORIGIN_ERROR, "cloudflare: code of a broken origin", markup(_CF_CODE + _CF_BROKEN_CODE)),
    broken(
        R.ORIGIN_ERROR,
        "cloudflare: title of a broken origin",
        _CF_TEMPLATE,
        title(r"\| (?:error )?(?:50[0234]|52\d|530)\b"),
    ),
    block(R.CLOUDFLARE_BLOCK, "cloudflare: code of a ban", markup(_CF_CODE + r"1\d\d\d\b")),
    block(
        R.CLOUDFLARE_BLOCK,
        "cloudflare: block headline",
        markup(r"<[a-z0-9]+\b[^<>&]*\bdata-translate\s*=\s*[\"']?block(?:ed)?_headline\b"),
    ),
    block(R.CLOUDFLARE_BLOCK, "cloudflare: restricted access", title(r"used cloudflare to restrict access")),
    block(
        R.CLOUDFLARE_BLOCK,
        "cloudflare: words of a ban in its template",
        _CF_TEMPLATE,
        text(
            r"used cloudflare to restrict access|you are being rate limited|has banned your ip address"
            r"|error (?:code:? )?10(?:0[5-9]|1[0125]|20)\b"
        ),
    ),
    block(
        R.CLOUDFLARE_BLOCK,
        "cloudflare: bare code of a ban",
        text(r"^\s*error code: (?:100[3-9]|101[0125]|102[0-2]|1106)\s*$"),
    ),
    broken(R.ORIGIN_ERROR, "cloudflare: bare code of a broken origin", text(r"^\s*error code: " + _CF_BROKEN_CODE)),
)
