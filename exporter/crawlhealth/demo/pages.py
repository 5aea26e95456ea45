"""The pages of the practice shop: twenty products, a listing, a form, an article. Pure text, always the same."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

DECOY_FACTOR: Final = 1.17
"""What a decoy price is off by."""


@dataclass(frozen=True, slots=True)
class Product:
    """One thing on sale. `price` is in pounds."""

    number: int
    name: str
    price: float
    stock: int

    @property
    def path(self) -> str:
        """Where its page is."""
        return f"/product/{self.number}"


_NAMES_AND_PRICES: Final = (
    ("Oak stool", 48.50), ("Linen apron", 27.00), ("Copper kettle", 89.90), ("Wool blanket", 64.25),
    ("Ash bread board", 31.40), ("Stoneware jug", 22.75), ("Brass lamp", 119.00), ("Willow basket", 36.80),
    ("Iron hook", 7.20), ("Glass carafe", 18.95), ("Felt slippers", 41.10), ("Beech rolling pin", 14.60),
    ("Enamel bucket", 25.30), ("Slate coaster", 9.85), ("Jute doormat", 33.00), ("Cork bowl", 16.45),
    ("Walnut clock", 142.70), ("Cotton towel", 12.90), ("Marble mortar", 58.35), ("Birch brush", 10.15),
)  # fmt: skip

PRODUCTS: Final[tuple[Product, ...]] = tuple(
    Product(number, name, price, stock=3 + number * 7 % 19)
    for number, (name, price) in enumerate(_NAMES_AND_PRICES, start=1)
)

_STORY: Final = (
    "Made in a workshop of four people who answer letters themselves, from material that is bought once a year and "
    "dried for as long as it needs. Small marks are left by the work and do no harm. Parcels leave on Tuesdays and "
    "Fridays; what does not please comes back within thirty days."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How the shop shows itself today: the same content in another dress, or less of it, or other prices."""

    decoy: bool = False
    redesign: bool = False
    empty: bool = False
    shrunken: bool = False
    blank: bool = False


PLAIN: Final = Look()


def price_text(price: float) -> str:
    """A price as the shop writes it."""
    return f"£{price:.2f}"


@lru_cache(maxsize=1024)
def page(path: str, look: Look = PLAIN) -> tuple[str, bytes] | None:
    """The content type and body of a page; None where the shop has none."""
    if look.shrunken and path != "/api/products.json":
        return _HTML, _frame("Shop", "<p>Please come back later.</p>", furniture=False)
    if path == "/":
        return _HTML, _listing(look)
    if path == "/api/products.json":
        return "application/json", _api(look)
    if path.startswith("/product/"):
        number = path.removeprefix("/product/")
        known = number.isascii() and number.isdigit() and 1 <= int(number[:4]) <= len(PRODUCTS)
        return (_HTML, _product(PRODUCTS[int(number[:4]) - 1], look)) if known else None
    written = _OTHERS.get(path)
    return (_HTML, _frame(*written)) if written else None


_HTML: Final = "text/html; charset=utf-8"


def _shown(product: Product, look: Look) -> Product:
    return replace(product, price=round(product.price * DECOY_FACTOR, 2)) if look.decoy else product


def _listing(look: Look) -> bytes:
    products = [] if look.empty else [_shown(product, look) for product in PRODUCTS]
    card = _new_card if look.redesign else _card
    cards = "\n".join(card(product, look) for product in products)
    body = f'<section class="products">\n{cards}\n</section>'
    if look.redesign:
        body = f'<div class="grid-v2">\n{cards}\n</div>'
    return _frame("All our things", body)


def _card(product: Product, look: Look) -> str:
    price = "" if look.blank else price_text(product.price)
    return (
        f'<article class="product" data-sku="LL-{product.number:03d}"><h2><a href="{product.path}">{product.name}</a>'
        f'</h2><p class="price">{price}</p><p class="stock">{product.stock} in stock</p>'
        f'<p class="blurb">{_STORY[:120]}</p></article>'
    )


def _new_card(product: Product, look: Look) -> str:
    price = "" if look.blank else price_text(product.price)
    return (
        f'<div class="tile" data-item="{product.number}"><a class="tile-link" href="{product.path}"><span class="tile-'
        f'name">{product.name}</span></a><div class="tile-foot"><b data-role="amount">{price}</b><i>{product.stock} in '
        f'stock</i></div><div class="tile-text">{_STORY[:120]}</div></div>'
    )


def _product(product: Product, look: Look) -> bytes:
    product = _shown(product, look)
    price = "" if look.blank else price_text(product.price)
    story = f"<p>{_STORY}</p>" * 4
    if look.redesign:
        body = (
            f'<div class="pdp"><div class="pdp-name">{product.name}</div><b data-role="amount">{price}</b>'
            f'<i class="pdp-left">{product.stock} in stock</i><div class="pdp-text">{story}</div></div>'
        )
        return _frame(product.name, body)
    data: dict[str, object] = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": product.name,
        "sku": f"LL-{product.number:03d}",
    }
    if not look.blank:
        data["offers"] = {"@type": "Offer", "price": f"{product.price:.2f}", "priceCurrency": "GBP"}
    body = (
        f'<article class="detail"><h1>{product.name}</h1><p class="price">{price}</p><p class="stock">{product.stock} '
        f'in stock</p><div class="story">{story}</div><table class="facts"><tr><th>Number</th><td>LL-'
        f"{product.number:03d}</td></tr><tr><th>Returns</th><td>30 days</td></tr></table></article>"
        f'<script type="application/ld+json">{json.dumps(data)}</script>'
    )
    return _frame(product.name, body)


def _api(look: Look) -> bytes:
    name, amount = ("title", "amount") if look.redesign else ("name", "price")
    products = [] if look.empty or look.shrunken else [_shown(product, look) for product in PRODUCTS]
    rows = [{"id": p.number, name: p.name, amount: None if look.blank else p.price, "stock": p.stock} for p in products]
    return json.dumps({"products": rows, "total": len(rows)}).encode()


def _frame(title: str, body: str, furniture: bool = True) -> bytes:
    head = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title} | Linden &amp; Lark</title>'
        '<meta name="description" content="Things for the house, made slowly."></head>\n<body>\n'
    )
    if not furniture:
        return f"{head}{body}\n</body></html>\n".encode()
    links = "".join(f'<li><a href="{p.path}">{p.name}</a></li>' for p in PRODUCTS)
    return (
        f'{head}<header><a href="/">Linden &amp; Lark</a><nav><ul>{links}</ul><a href="/contact">Contact</a> '
        f'<a href="/login">Sign in</a></nav></header>\n<main>\n{body}\n</main>\n<footer><p>{_STORY}</p><p>Linden &amp; '
        "Lark, a practice shop: nothing here is for sale.</p></footer>\n</body></html>\n"
    ).encode()


_OTHERS: Final = {
    "/login": (
        "Sign in",
        '<h1>Sign in</h1><form action="/login" method="post"><label>E-mail <input name="email"></label>'
        '<label>Password <input name="password" type="password"></label><button>Sign in</button></form>',
    ),
    "/contact": (
        "Write to us",
        '<h1>Write to us</h1><script src="https://www.google.com/recaptcha/api.js" async defer></script>'
        '<form action="/contact" method="post"><label>Your message <textarea name="message"></textarea></label>'
        '<div class="g-recaptcha" data-sitekey="practice-key"></div><button>Send</button></form>'
        f"<p>{_STORY}</p>",
    ),
    "/article-on-captchas": (
        "Why shops ask whether you are human",
        "<h1>Why shops ask whether you are human</h1>"
        "<p>Everybody has met the page that says “Just a moment...” or “Access denied”, asks to verify you are human "
        "and shows a CAPTCHA. This article tells where such pages come from: Cloudflare, DataDome, Akamai and others "
        "sell them, and a shop that was scraped at night buys one in the morning.</p>"
        "<p>Are you a robot? The question is older than the web. “Too many requests” is its younger sister.</p>"
        f"<p>{_STORY}</p>" * 3,
    ),
}
