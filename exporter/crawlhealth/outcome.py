"""The closed sets that say what came of a request: source, outcome, reason. All of them are label values."""

from enum import StrEnum


class Outcome(StrEnum):
    """What came of one request, as hostility sees it."""

    OK = "ok"
    HARD_BLOCK = "hard_block"
    CHALLENGE = "challenge"
    SOFT_BLOCK = "soft_block"
    ERROR = "error"


REFUSED = frozenset({Outcome.HARD_BLOCK, Outcome.CHALLENGE, Outcome.SOFT_BLOCK})
"""The outcomes that are hostility: their share is the signal `refused`."""


class Source(StrEnum):
    """Where an observation comes from."""

    CANARY = "canary"
    TRAFFIC = "traffic"


class Reason(StrEnum):
    """Why an outcome is what it is: the closed list, so that it can be a label."""

    SERVED = "served"
    HTTP_400 = "http_400"
    HTTP_404 = "http_404"
    HTTP_410 = "http_410"
    HTTP_4XX = "http_4xx"
    HTTP_3XX = "http_3xx"
    # hard_block
    HTTP_401 = "http_401"
    HTTP_403 = "http_403"
    HTTP_406 = "http_406"
    HTTP_429 = "http_429"
    HTTP_451 = "http_451"
    HTTP_REFUSED = "http_refused"
    CONNECTION_RESET = "connection_reset"
    CLOUDFLARE_BLOCK = "cloudflare_block"
    AKAMAI_BLOCK = "akamai_block"
    IMPERVA_BLOCK = "imperva_block"
    CLOUDFRONT_BLOCK = "cloudfront_block"
    F5_BLOCK = "f5_block"
    SUCURI_BLOCK = "sucuri_block"
    ALIYUN_BLOCK = "aliyun_block"
    TENCENT_BLOCK = "tencent_block"
    STACKPATH_BLOCK = "stackpath_block"
    WORDFENCE_BLOCK = "wordfence_block"
    CROWDSEC_BLOCK = "crowdsec_block"
    ANUBIS_BLOCK = "anubis_block"
    GENERIC_BLOCK = "generic_block"
    # challenge
    CLOUDFLARE_CHALLENGE = "cloudflare_challenge"
    DATADOME_CHALLENGE = "datadome_challenge"
    PERIMETERX_CHALLENGE = "perimeterx_challenge"
    IMPERVA_CHALLENGE = "imperva_challenge"
    DISTIL_CHALLENGE = "distil_challenge"
    AWS_WAF_CHALLENGE = "aws_waf_challenge"
    KASADA_CHALLENGE = "kasada_challenge"
    SUCURI_CHALLENGE = "sucuri_challenge"
    ALIYUN_CHALLENGE = "aliyun_challenge"
    ALIBABA_CHALLENGE = "alibaba_challenge"
    BAIDU_CHALLENGE = "baidu_challenge"
    GOOGLE_CHALLENGE = "google_challenge"
    AMAZON_CHALLENGE = "amazon_challenge"
    YANDEX_CHALLENGE = "yandex_challenge"
    SOGOU_CHALLENGE = "sogou_challenge"
    ANUBIS_CHALLENGE = "anubis_challenge"
    GO_AWAY_CHALLENGE = "go_away_challenge"
    VERCEL_CHALLENGE = "vercel_challenge"
    DDOS_GUARD_CHALLENGE = "ddos_guard_challenge"
    CROWDSEC_CHALLENGE = "crowdsec_challenge"
    GENERIC_CHALLENGE = "generic_challenge"
    # soft_block
    REDIRECTED_AWAY = "redirected_away"
    REDIRECTED_HOME = "redirected_home"
    REDIRECTED_LOGIN = "redirected_login"
    LOGIN_PAGE = "login_page"
    CONSENT_PAGE = "consent_page"
    PARKED_PAGE = "parked_page"
    DEFAULT_PAGE = "default_page"
    MAINTENANCE_PAGE = "maintenance_page"
    SOFT_404 = "soft_404"
    UNEXPECTED_HTML = "unexpected_html"
    SIZE_COLLAPSE = "size_collapse"
    # error
    HTTP_500 = "http_500"
    HTTP_502 = "http_502"
    HTTP_503 = "http_503"
    HTTP_504 = "http_504"
    HTTP_5XX = "http_5xx"
    ORIGIN_ERROR = "origin_error"
    TIMEOUT = "timeout"
    DNS = "dns"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_FAILED = "connection_failed"
    TLS = "tls"
    PROXY = "proxy"
    ADDRESS_REFUSED = "address_refused"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    INVALID_RESPONSE = "invalid_response"
    TRUNCATED_BODY = "truncated_body"
    BODY_TOO_LARGE = "body_too_large"
    UNDECODABLE_BODY = "undecodable_body"
    PAGE_TOO_COMPLEX = "page_too_complex"
    # anything a user's own marker decided
    CUSTOM = "custom"
