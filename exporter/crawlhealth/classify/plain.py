"""Rows of the table for pages of no vendor: denials and challenges by their exact title, and pages that are no content.

A title here is the title, else the only heading of a page without one, else the whole of a very short text.
"""

from __future__ import annotations

from typing import Final

from crawlhealth.classify.marker import Room, Rule, challenge, code, denial, markup, not_content, redirect, text, title
from crawlhealth.outcome import Reason as R

_END = r"[\s.!?…]*$"
_DENIAL = (
    r"^(?:error:? ?)?(?:http )?(?:error )?(?:401|403|406|429|451)?[\s:,|–—-]*(?:forbidden|too many requests"
    r"|access (?:to (?:this|the) (?:page|site|website|server) )?(?:is |was |has been )?"
    r"(?:denied|blocked|forbidden|restricted)"
    r"|not acceptable|unauthori[sz]ed"
    r"|authori[sz]ation required|unavailable for legal reasons|request (?:blocked|rejected|denied)"
    r"|(?:sorry,? )?you(?:'ve| have| are) been (?:blocked|denied)|rate limit(?:ed| exceeded)"
    r"|访问被拒绝|访问过于频繁|请求过于频繁|禁止访问|请求被拦截"
    r"|доступ запрещ(?:е|ё)н|acceso denegado|accès refusé|zugriff verweigert)" + _END
)
_CHALLENGE = (
    r"^(?:are you (?:a |an )?(?:robot|human|bot)|are you not a robot|captcha|browser check|one more step"
    r"|(?:please )?(?:verify|confirm|prove) (?:that )?you(?:'re| are) (?:a |not a )?(?:human|robot)"
    r"|(?:human|bot|robot) (?:verification|check)|ddos protection|security check(?: required)?"
    r"|checking your browser(?: before accessing .{0,80})?|making sure you(?:'re| are) not a bot"
    r"|安全验证|滑动验证|滑块验证|人机验证|访问验证|вы не робот|подтвердите, что вы не робот)" + _END
)
_SITE = r"(?:.{1,60}\s[|–—:-]+\s+)?"
_SITE_AFTER = r"[\s.!…]*(?:\s[|–—:-]+\s.{1,60})?$"
_DEFAULT = (
    r"^(?:welcome to (?:nginx|openresty|tengine|centos)!?(?: on .{0,30})?|apache2? .{0,30}default page.{0,20}"
    r"|(?:.{0,20}\s)?test page for (?:the )?(?:apache|nginx|http server|ssl/tls-aware).{0,60}"
    r"|iis (?:windows(?: server)?|\d+)|default web site page|it works!?|.{0,30}web server'?s default page"
    r"|(?:domain|hosting) default page|caddy works!?|(?:account|website) suspended)$"
)
_FOR_SALE = (
    r"^(?:(?:the )?(?:domain(?: name)? )?[a-z0-9-]+\.[a-z]{2,12}(?: domain)? (?:is|may be) (?:for sale|parked)\b.{0,40}"
    r"|(?:this )?domain(?: name)? (?:(?:is|may be) )?(?:for sale|parked)\b.{0,40}|parked domain(?: name)?.{0,40}"
    r"|domain parking|hugedomains\.com.{0,60})$"
)
_MAINTENANCE = (
    r"^" + _SITE + r"(?:(?:(?:the |this |our )?(?:site|website) )?(?:is )?(?:currently )?"
    r"(?:under|down for|in|undergoing) (?:scheduled |planned )?maintenance"
    r"|(?:site|website|scheduled|planned) maintenance"
    r"|maintenance (?:mode|in progress|break)|(?:site |website )?under construction"
    r"|service (?:temporarily )?unavailable|temporarily unavailable"
    r"|we'll be (?:right )?back(?: soon| shortly)?|we are down for maintenance"
    r"|系统维护中?|网站维护中?|технические работы|wartungsarbeiten)" + _SITE_AFTER
)
_404 = r"(?:http )?(?:error )?404(?: error)?"
_NOT_FOUND = (
    r"^" + _SITE + r"(?:" + _404 + r"|not found|object not found!|(?:" + _404 + r"[\s:,|–—.!-]+)?"
    r"(?:sorry,? )?(?:the |this )?(?:(?:page|file|url|requested (?:page|url)) )?"
    r"(?:(?:was |is |could |can )?not (?:be )?found|cannot be found|doesn't exist|does not exist)"
    r"|页面不存在|页面未找到|страница не найдена|seite nicht gefunden|page non trouvée|página no encontrada)"
    + _SITE_AFTER
)
_PARKING_SCRIPT = (
    r"<script\b[^>]*(?:parkingcrew\.net|sedoparking\.com|bodis\.com|parklogic\.com|parking\.godaddy"
    r"|d38psrni17bvxu\.cloudfront\.net)"
)

PLAIN: Final[tuple[Rule, ...]] = (
    challenge(R.GENERIC_CHALLENGE, "generic: title of a challenge", title(_CHALLENGE), room=Room.THIN),
    challenge(
        R.GENERIC_CHALLENGE,
        "generic: words of a browser check",
        text(r"\bchecking your browser before (?:accessing|you access)\b", lead=True),
        room=Room.SCANT,
    ),
    denial("generic: title of a denial", title(_DENIAL)),
    not_content(
        R.DEFAULT_PAGE,
        "host: redirect to its default page",
        redirect(r"/cgi-sys/(?:default|suspended)(?:web)?page\.cgi$"),
        room=Room.ANY,
    ),
    not_content(R.DEFAULT_PAGE, "host: default page", title(_DEFAULT), room=Room.LEAN),
    not_content(R.PARKED_PAGE, "parking: its script", code(_PARKING_SCRIPT), room=Room.LEAN),
    not_content(
        R.PARKED_PAGE,
        "parking: script to its lander",
        code(r"location\.(?:href|replace)\b[^;]{0,12}[\"']/lander\b"),
        room=Room.BARE,
    ),
    not_content(
        R.PARKED_PAGE, "parking: key of a parked page", markup(r"<html\b[^<>&]*\bdata-adblockkey\s*="), room=Room.LEAN
    ),
    not_content(R.PARKED_PAGE, "parking: domain for sale", title(_FOR_SALE)),
    not_content(R.MAINTENANCE_PAGE, "site: maintenance", title(_MAINTENANCE)),
    not_content(R.SOFT_404, "site: not found, with a status of success", title(_NOT_FOUND)),
)
