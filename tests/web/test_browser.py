"""The pages in real Chromium, without JavaScript: what is seen on a phone and on a desk, day and night."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import bcrypt
import pytest
from playwright.sync_api import Browser, Error, Page, Request, sync_playwright

from crawlhealth.web import Gate
from crawlhealth.web.webfile import WebFile
from web.served import application, pages, served

PATHS = ("/", "/sites/quotes", "/sites/books", "/sites/shop", "/sites/maps", "/sites/none")
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3 (AA)

MEASURE = """
() => {
  const channel = part => { part /= 255; return part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4; };
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  };
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = [];
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !node.checkVisibility() || node.closest('svg')) continue;
    const [one, other] = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => b - a);
    const contrast = (one + .05) / (other + .05);
    if (contrast < LEAST) poor.push([texts.currentNode.textContent.trim().slice(0, 40), contrast]);
  }
  return poor;
}
""".replace("LEAST)", f"{LEAST_CONTRAST})")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "this test needs Chromium on the PATH (Debian package chromium)"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with pages(hostile=True, more=20) as served_at:
        yield served_at


@pytest.fixture(params=[(400, "light"), (400, "dark"), (1280, "light"), (1280, "dark")], ids=str)
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=False
    )
    yield context.new_page()
    context.close()


def test_every_page_fits_its_screen_can_be_read_and_asks_nobody_else(page: Page, url: str) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    for path in PATHS:
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert page.evaluate(MEASURE) == [], path
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{path}, all opened"
        assert page.evaluate(MEASURE) == [], f"{path}, all opened"
        fields = page.locator("input:visible, select:visible")
        assert all(fields.nth(n).evaluate("f => f.labels.length || f.ariaLabel") for n in range(fields.count())), path
    assert [address for address in asked if not address.startswith(url)] == []


def test_hostile_text_is_seen_and_does_nothing(browser: Browser, url: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a page's text opened a dialog: {dialog.message}"))
        page.goto(url + "/sites/shop")
        assert page.title() == "shop: 17 resisting · crawlhealth"
        assert page.locator("img, script").count() == 0
        assert page.get_by_text('<script>document.title="owned"</script>').first.is_visible()
        assert page.get_by_text("javascript:alert(3)").first.is_visible()
        assert page.locator('a[href^="javascript"]').count() == 0


def test_a_person_finds_the_site_and_its_reasons(page: Page, url: str) -> None:
    page.goto(url + "/")
    page.get_by_role("link", name="1 degrading").click()
    page.get_by_role("link", name="books", exact=True).click()
    assert page.url.endswith("/sites/books")
    assert page.get_by_role("heading", name="books", exact=True).is_visible()
    assert page.get_by_role("img", name="Last 24 h").bounding_box() is not None
    refusals = page.locator("details", has_text="canary listing through dc-us").last
    assert refusals.locator("pre").is_hidden()
    refusals.locator("summary").click()
    assert refusals.locator("pre").is_visible()
    page.get_by_role("link", name="all sites").click()
    page.get_by_role("searchbox").fill("store-0007")
    page.get_by_role("button", name="find").click()
    assert page.locator("tbody tr").count() == 1


def test_a_browser_that_knows_the_password_walks_through_the_gate(browser: Browser) -> None:
    users = {"anna": bcrypt.hashpw(b"open sesame", bcrypt.gensalt(4)).decode()}
    gate = Gate(application(), lambda: WebFile(basic_auth_users=users), lambda: ())
    with served(gate) as url, browser.new_context() as stranger:
        with pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):
            stranger.new_page().goto(url + "/sites/shop")
        with browser.new_context(http_credentials={"username": "anna", "password": "open sesame"}) as context:
            page = context.new_page()
            page.goto(url + "/")
            page.get_by_role("link", name="shop", exact=True).click()
            assert page.get_by_role("heading", name="shop", exact=True).is_visible()
