"""Rows of the table that prove nothing: scripts of bot defences on served pages, and networks that are simply there."""

from __future__ import annotations

from typing import Final

from crawlhealth.classify.marker import Rule, anywhere, header, presence, sensor

HINTS: Final[tuple[Rule, ...]] = (
    sensor("cloudflare", anywhere(r"/cdn-cgi/challenge-platform/|/cdn-cgi/bm/cv/|__cf\$cv\$params")),
    sensor("turnstile", anywhere(r"challenges\.cloudflare\.com/turnstile/")),
    sensor("datadome", anywhere(r"\bjs\.datadome\.co/|\bddjskey\b|captcha-delivery\.com")),
    sensor("perimeterx", anywhere(r"\b_pxappid\b|\bclient\.px-cloud\.net|\bclient\.perimeterx\.net|\bpx-captcha\b")),
    sensor("akamai", anywhere(r"\bbmak\.|\bbm-verify\b|/akam/1[0-9]/")),
    sensor("imperva", anywhere(r"_incapsula_resource\?|\breese84\b")),
    sensor("aws_waf", anywhere(r"\btoken\.awswaf\.com|\bawswafintegration\b")),
    sensor("kasada", anywhere(r"\bkpsdk\b")),
    sensor("recaptcha", anywhere(r"/recaptcha/(?:api|enterprise)\.js|\bg-recaptcha\b")),
    sensor("hcaptcha", anywhere(r"\bhcaptcha\.com/1/api\.js|\bh-captcha\b")),
    sensor("geetest", anywhere(r"\bstatic\.geetest\.com|\binitgeetest")),
    sensor("tencent", anywhere(r"\bcaptcha\.qq\.com/|\btcaptcha\.js")),
    sensor("f5", anywhere(r"/tspd/|\btspd_101\b")),
    presence("cloudflare", anywhere(r"/cdn-cgi/l/email-protection|/cdn-cgi/scripts/")),
    presence("wordfence", anywhere(r"/plugins/wordfence")),
    presence("stackpath", anywhere(r"\bstackpath\.bootstrapcdn\.com")),
    presence("amazon", anywhere(r"\bapi-services-support@amazon\.com")),
    presence("anubis", anywhere(r"github\.com/techarohq/anubis")),
    presence("cloudflare", header("cf-ray")),
    presence("cloudflare", header("server", r"^cloudflare")),
    presence("cloudflare", header("set-cookie", r"\b__cf_bm=|\bcf_clearance=")),
    presence("datadome", header("x-datadome")),
    presence("datadome", header("set-cookie", r"\bdatadome=")),
    presence("perimeterx", header("set-cookie", r"\b_px(?:hd|vid|3)=")),
    presence("akamai", header("server", r"^akamai(?:ghost|netstorage)")),
    presence("akamai", header("set-cookie", r"\b(?:_abck|bm_sz|ak_bmsc)=")),
    presence("imperva", header("x-iinfo")),
    presence("imperva", header("set-cookie", r"\b(?:visid_incap|incap_ses)_")),
    presence("cloudfront", header("x-amz-cf-id")),
    presence("kasada", header("x-kpsdk-*")),
    presence("f5", header("set-cookie", r"\bts[0-9a-f]{6,10}=|\bbigipserver")),
    presence("sucuri", header("x-sucuri-id")),
    presence("aliyun", header("set-cookie", r"\bacw_(?:tc|sc__v2)=")),
    presence("vercel", header("x-vercel-id")),
    presence("ddos_guard", header("server", r"^ddos-guard")),
    presence("ddos_guard", header("set-cookie", r"\b__ddg")),
    presence("wordfence", header("set-cookie", r"\bwfwaf-")),
)
