"""Where a response came from: away, home, to a login, to a vendor's check, or only to its canonical place."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from crawlhealth.outcome import Outcome, Reason
from responses import judged, page, prose

SHOP = "https://shop.example"
CONTENT = page("Kettle", prose(2_000))


@pytest.mark.parametrize(
    ("asked", "final", "reason"),
    [
        pytest.param("/p/7", "https://other.example/p/7", Reason.REDIRECTED_AWAY, id="another host"),
        pytest.param("/p/7", "https://other.example/", Reason.REDIRECTED_AWAY, id="another host's home"),
        pytest.param("/p/7", "/", Reason.REDIRECTED_HOME, id="home"),
        pytest.param("/p/7", "https://shop.example", Reason.REDIRECTED_HOME, id="home without a slash"),
        pytest.param("/p/7", "/?from=7", Reason.REDIRECTED_HOME, id="home with a query"),
        pytest.param("/p/7", "/login?next=7", Reason.REDIRECTED_LOGIN, id="login"),
        pytest.param("/p/7", "/users/sign_in", Reason.REDIRECTED_LOGIN, id="sign_in"),
        pytest.param("/p/7", "/Account/LogOn", Reason.REDIRECTED_LOGIN, id="LogOn"),
        pytest.param("/p/7", "/signin/v2", Reason.REDIRECTED_LOGIN, id="signin"),
        pytest.param("/p/7", "/wp-login.php", Reason.REDIRECTED_LOGIN, id="wp-login"),
        pytest.param("/p/7", "/userLogin", Reason.REDIRECTED_LOGIN, id="userLogin"),
        pytest.param("/p/7", "https://id.other.example/login", Reason.REDIRECTED_LOGIN, id="login elsewhere"),
        pytest.param("/p/7", "/consent?to=7", Reason.CONSENT_PAGE, id="consent"),
        pytest.param("/p/7", "https://consent.shop.example/m", Reason.CONSENT_PAGE, id="consent's host"),
        pytest.param(
            "/p/7",
            "https://box.example/cgi-sys/defaultwebpage.cgi",
            Reason.DEFAULT_PAGE,
            id="default page",
        ),
        pytest.param("http://shop.example/p/7", "/p/7", None, id="to https"),
        pytest.param("/p/7", "https://www.shop.example/p/7", None, id="to www"),
        pytest.param("/p/7", "https://SHOP.example./p/7", None, id="the same host in other letters"),
        pytest.param("/p/7", "https://shop.example:8443/p/7", None, id="another port"),
        pytest.param("/p/7", "/p/7-kettle", None, id="a canonical path"),
        pytest.param("/p/7", "https://img.cdn.example/p/7", None, id="a host under a written suffix"),
        pytest.param("/", "/en/", None, id="to a language"),
        pytest.param("/index.html", "/", None, id="index to home"),
        pytest.param("/login", "/login/", None, id="a login that was asked for"),
        pytest.param("/p/7", "/blog-in-depth", None, id="log-in inside of words"),
        pytest.param("/p/7", "/blogindex", None, id="login inside of a word"),
        pytest.param("/p/7", "/consentaneous", None, id="consent inside of a word"),
        pytest.param("/p/7", "/design-in-steel", None, id="sign-in inside of words"),
        pytest.param("/p/7", "http://[::1", None, id="an address that is none"),
    ],
)
def test_a_redirect(asked: str, final: str, reason: Reason | None) -> None:
    hosts = ("shop.example", ".cdn.example")
    asked, final = urljoin(SHOP, asked), final if "[" in final else urljoin(SHOP, final)
    came = judged(CONTENT, url=asked, redirects=[final], hosts=hosts)

    assert came.reason is (reason or Reason.SERVED)
    assert came.outcome is (Outcome.SOFT_BLOCK if reason else Outcome.OK)
    if reason:
        assert came.evidence.where == "redirect"
        assert judged(CONTENT, url=asked, redirects=[final], hosts=hosts, extracted=True).outcome is Outcome.OK


def test_a_port_counts_where_it_is_written() -> None:
    asked, final = "http://127.0.0.1:8001/p/7", "http://127.0.0.2:8002/p/7"

    assert judged(CONTENT, url=asked, redirects=[final], hosts=("127.0.0.1", "127.0.0.2:8001")).reason is (
        Reason.REDIRECTED_AWAY
    )
    assert judged(CONTENT, url=asked, redirects=[final], hosts=("127.0.0.1", "127.0.0.2")).outcome is Outcome.OK


def test_without_hosts_no_redirect_leads_away() -> None:
    assert judged(CONTENT, redirects=["https://other.example/p/7"], hosts=()).outcome is Outcome.OK


@pytest.mark.parametrize("status", [404, 410])
def test_a_missing_page_after_a_redirect_is_missing(status: int) -> None:
    assert judged("", status, redirects=["https://shop.example/"]).outcome is Outcome.OK


VENDORS = [
    pytest.param("https://wappass.baidu.com/static/captcha/a", Reason.BAIDU_CHALLENGE, id="Baidu"),
    pytest.param("https://www.google.com/sorry/index?continue=/", Reason.GOOGLE_CHALLENGE, id="Google"),
    pytest.param("https://yandex.com/showcaptcha?a=1", Reason.YANDEX_CHALLENGE, id="Yandex"),
    pytest.param("http://www.sogou.com/antispider/?from=a", Reason.SOGOU_CHALLENGE, id="Sogou"),
]


@pytest.mark.parametrize(("target", "reason"), VENDORS)
def test_a_vendors_check_counts_anywhere_on_the_way(target: str, reason: Reason) -> None:
    last = "https://shop.example/product/7"

    assert judged(CONTENT, redirects=[target]).reason is reason
    assert judged(CONTENT, redirects=[target, "https://elsewhere.example/a"]).reason is reason
    assert judged("", 302, headers={"location": target}).reason is reason
    assert judged(CONTENT, redirects=[target, last]).reason is reason
    assert judged(CONTENT, redirects=[target, last], extracted=True).outcome is Outcome.OK


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("https://shop.example/go?to=https://wappass.baidu.com/static/captcha", id="in a query"),
        pytest.param("https://shop.example/wappass.baidu.com/static/captcha", id="in a path"),
        pytest.param("https://wappass.baidu.com.shop.example/static/captcha", id="as part of a host"),
        pytest.param("https://shop.example/sorry/out-of-stock", id="a page that is sorry"),
        pytest.param("https://notgoogle.com/sorry/index", id="a host that ends alike"),
        pytest.param("https://shop.example/showcaptcha-demo", id="a path that begins alike"),
        pytest.param("https://shop.example/articles/antispider", id="a path that ends alike"),
    ],
)
def test_a_vendors_name_elsewhere_is_no_check(target: str) -> None:
    hosts = (".shop.example", "shop.example", "notgoogle.com")

    assert judged(CONTENT, redirects=[target], hosts=hosts).outcome is Outcome.OK
    assert judged("", 302, headers={"location": target}, hosts=hosts).outcome is Outcome.OK


def test_a_redirect_that_was_not_followed_is_no_refusal() -> None:
    for target in ("https://other.example/", "/login", "http://[::1", ""):
        assert judged("", 302, headers={"location": target}).reason is Reason.HTTP_3XX
