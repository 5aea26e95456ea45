"""How the practice site refuses: pages in our own words that carry the markers of the vendors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusing page: the status it usually comes with, headers beside the content type, body."""

    status: int
    body: str
    headers: tuple[tuple[str, str], ...] = ()


def _page(title: str, body: str) -> str:
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f"<!doctype html><html>{head}<body>{body}</body></html>"


VENDORS: Final[Mapping[str, Refusal]] = {
    "cloudflare": Refusal(
        status=403,
        headers=(("server", "cloudflare"), ("cf-ray", "0123456789abcdef-LHR"), ("cf-mitigated", "challenge")),
        body=_page(
            "Just a moment...",
            '<form id="challenge-form" action="/?__cf_chl_f_tk=practice" method="post"></form>'
            '<script>window._cf_chl_opt={cType:"managed"};var s=document.createElement("script");'
            's.src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=practice";</script>'
            "<noscript>A moment of script is needed here.</noscript>",
        ),
    ),
    "cloudflare_body": Refusal(
        status=200,
        headers=(("server", "cloudflare"),),
        body=_page(
            "Just a moment...",
            '<form id="challenge-form" method="post"></form><script>window._cf_chl_opt={cType:"managed"};'
            'var a="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=practice";</script>',
        ),
    ),
    "datadome": Refusal(
        status=403,
        headers=(("x-datadome", "protected"),),
        body=_page(
            "practice",
            "<p>Script and an open mind are needed.</p><script>var dd={'rt':'c','cid':'practice','hsh':'0','t':'fe',"
            "'host':'geo.captcha-delivery.com'}</script><script src=\"https://ct.captcha-delivery.com/c.js\"></script>",
        ),
    ),
    "perimeterx": Refusal(
        status=403,
        body=_page(
            "One press, please",
            '<div id="px-captcha"></div><script>window._pxAppId="PXpractice";</script>'
            '<script src="https://captcha.px-cdn.net/PXpractice/captcha.js"></script>',
        ),
    ),
    "imperva": Refusal(
        status=403,
        headers=(("x-iinfo", "1-2-3 practice"),),
        body='<html><head></head><body><iframe id="main-iframe" '
        'src="/_Incapsula_Resource?CWUDNSAI=23&amp;xinfo=practice">'
        "The visit was stopped. Incapsula incident ID: 0-0</iframe></body></html>",
    ),
    "aws_waf": Refusal(
        status=202,
        headers=(("x-amzn-waf-action", "challenge"),),
        body=_page("", '<script src="https://practice.token.awswaf.com/challenge.js"></script>'),
    ),
    "kasada": Refusal(
        status=429,
        headers=(("x-kpsdk-ct", "practice"), ("x-kpsdk-r", "1-AA")),
        body="<html><head></head><body><script>window.KPSDK={};</script>"
        '<script src="/practice/ips.js"></script></body></html>',
    ),
    "vercel": Refusal(
        status=429,
        headers=(("x-vercel-mitigated", "challenge"),),
        body=_page("Vercel Security Checkpoint", "<p>We look at your browser for a second.</p>"),
    ),
    "anubis": Refusal(
        status=200,
        body=_page(
            "A little arithmetic first",
            '<script id="anubis_challenge" type="application/json">{"rules":{"difficulty":4},"challenge":"practice"}'
            '</script><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script>',
        ),
    ),
    "ddos_guard": Refusal(status=403, body=_page("DDoS-Guard", "<p>A look at your browser comes first.</p>")),
    "amazon": Refusal(
        status=200,
        body=_page(
            "shop",
            '<form method="get" action="/errors/validateCaptcha"><input name="field-keywords">'
            "<p>Type what you see.</p></form>",
        ),
    ),
}
"""Challenges by the name of their vendor."""

BLOCK_PAGE: Final = Refusal(
    status=200,
    body=_page(
        "Access Denied",
        "<h1>Access Denied</h1><p>This visit was turned away at the door of our shop.</p><p>Reference&#32;&#35;18&#46;"
        "practice&#46;0</p><p>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18&#46;practice&#46;0</p>",
    ),
)
"""A vendor's block page; with 200 it is a soft block."""

IMPERVA_STUB: Final = Refusal(
    status=200,
    body='<html><head><meta name="robots" content="noindex"><script src="/_Incapsula_Resource?SWJIYLWA=practice&ns=1">'
    "</script></head><body></body></html>",
)
"""A page that is nothing but a script."""

DEFAULT_PAGE: Final = _page(
    "Welcome to nginx!",
    "<h1>Welcome to nginx!</h1><p>A server runs here, and nobody has put a site on it yet.</p>",
)
"""What a host shows that has no site."""
DEFAULT_PAGE_PATH: Final = "/cgi-sys/defaultwebpage.cgi"

HTML_FOR_JSON: Final = _page("Sorry", "<p>The programme you use is not served here.</p>")


def plain(status: int) -> str:
    """The page of a bare status, in few words."""
    return _page(str(status), f"<h1>{status}</h1><p>That is all this server says.</p>")
