"""Numbers as sites write them: `£51.77`, `1.234,56 €`, `1,299`, `−3.5 °C`. Pure, and bounded on hostile text."""

from __future__ import annotations

import re2
from price_parser import Price
from price_parser.parser import parse_number

READ_CHARACTERS = 1_000
"""How much of a text is looked at: the first number stands in it, or there is none."""
LONGEST_NUMBER = 64
"""A longer run of digits is no number that anyone meant, and could exceed what a float holds."""

_PLAIN = {
    ord(character): plain
    for characters, plain in (
        ("\u00a0\u2007\u2009\u202f\u3000\t\n\r\f\v", " "),
        ("\u2019\u02bc\u2032\u00b4`", "'"),
        ("\u066b\uff0e", "."),
        ("\u066c\uff0c", ","),
        ("\u2212\u2013\ufe63\uff0d", "-"),
    )
    for character in characters
}
_ARABIC_DECIMAL = "\u066b"
_NUMBER = re2.compile(r"\d{1,3}(?:[ ']\d{3})+\b(?:[.,]\d+)?|\d[\d.,]*€\d\d\b|\d(?:[.,']*\d)*")
_EXPONENT = re2.compile(r"[-+]?\d+(?:\.\d+)?[eE][-+]?\d{1,2}")
_MINUS = re2.compile(r"(?:^|[^\pL\pN\-])-(?: ?(?:\pL{0,3}\p{Sc}|[A-Z]{3}|kr\.?) ?)?$")
_SURELY_DECIMAL = re2.compile(r"0([.,])\d+|\d{4,}([.,])\d{3}")


def number(text: str | None, decimal: str | None = None) -> float | None:
    """The first number in a text, its sign kept; None when there is no digit or the digits make no number.

    `decimal` ("." or ",") settles what `1.299` means; without it three digits after a lone separator are thousands,
    unless that cannot be (`0.299`, `1234.567`).
    """
    found = find(text, decimal)
    return None if found is None else found[0]


def is_only_number(text: str) -> bool:
    """Whether a text is one number and nothing else but a currency, a percent sign and punctuation."""
    found = find(text)
    if found is None:
        return False
    currency = Price.fromstring(text[:READ_CHARACTERS]).currency or ""
    rest = found[1].replace(currency, " ", 1) if currency else found[1]
    return not any(character.isalnum() for character in rest)


def find(text: str | None, decimal: str | None = None) -> tuple[float, str] | None:
    """The first number in a text and the text around it."""
    if not text:
        return None
    plain = _plain(text[: READ_CHARACTERS + LONGEST_NUMBER])
    if len(plain) <= LONGEST_NUMBER and _EXPONENT.fullmatch(plain.strip()):
        return float(plain), ""
    match = _NUMBER.search(plain)
    if match is None or match.start() >= READ_CHARACTERS:
        return None
    start, end = match.span()
    written = plain[start:end]
    if start and plain[start - 1] == "." and not plain[max(0, start - 2) : start - 1].isalnum():
        start -= 1
        written = "0." + written
    if len(written) > LONGEST_NUMBER:
        return None
    certain = _SURELY_DECIMAL.fullmatch(written)
    if decimal is None and _ARABIC_DECIMAL in text[:READ_CHARACTERS]:
        decimal = "."
    if decimal is None and certain:
        decimal = certain.group(1) or certain.group(2)
    amount = parse_number(written.replace("'", ""), decimal)
    if amount is None:
        return None
    negative = _MINUS.search(plain[max(0, start - 12) : start]) is not None
    return (-float(amount) if negative else float(amount)), f"{plain[:start]} {plain[end:]}"


def _plain(text: str) -> str:
    """The text with every script's digits, separators and signs as the plain ones."""
    text = text.translate(_PLAIN)
    if text.isascii():
        return text
    return "".join(str(int(c)) if c.isdecimal() and not c.isascii() else c for c in text)
