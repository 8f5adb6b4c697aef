"""Clinical text in the one shape the order readers work on: lower case, plain dashes, one spelling of micro.

Masking keeps every offset: a reader may blank what another reader has used without moving the rest.
"""

from __future__ import annotations

import re
from decimal import Decimal

_SAME_WIDTH = str.maketrans(
    {
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u00d7": "x",
        "\u03bc": "\u00b5",
        "\t": " ",
    }
)
_WIDER = {
    "\u00bd": " 1/2",
    "\u00bc": " 1/4",
    "\u00be": " 3/4",
    "\u2265": ">=",
    "\u2264": "<=",
    "\u2192": " then ",
    "->": " then ",
    "\u2022": "\n- ",
}

#: A number as orders write it: 1,000 and .5 and 2.50; no sign.
NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"

WORD_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "fourteen": 14,
    "twenty-four": 24,
    "thirty": 30,
}
_WORD = re.compile(r"\b(" + "|".join(sorted(WORD_NUMBERS, key=len, reverse=True)) + r")\b(?!\s*-?\s*(?:time|or more))")


def normal(text: str) -> str:
    """Lower case, plain punctuation, the micro sign and `ug` as mcg. Line breaks stay: they part statements."""
    out = text.translate(_SAME_WIDTH)
    for old, new in _WIDER.items():
        out = out.replace(old, new)
    out = out.lower()
    out = re.sub(r"(?<![a-z])(?:\u00b5g|ug|mcgs|microgram(?:me)?s?)(?![a-z])", "mcg", out)
    return re.sub(r"(?<=\d)(?:\u00b5g|ug)(?![a-z])", "mcg", out)


def numerals(text: str) -> str:
    """Number words as digits ("two tablets" -> "2 tablets"); "half a tablet" -> "1/2 tablet"."""
    out = re.sub(r"\b(?:one[- ])?half (?:of )?(?:an? )?(?=tab|cap|pill)", "1/2 ", text)
    out = re.sub(r"\b(?:an?|another) (?=tablet|tab\b|capsule|cap\b|puff|patch|spray|drop)", "1 ", out)
    out = _WORD.sub(lambda m: str(WORD_NUMBERS[m[1]]), out)
    return re.sub(r"\b(\d+) ?\(\1\)", r"\1", out)


def number(text: str) -> Decimal:
    """Exact value of NUMBER, or of a fraction "1/2" or "1 1/2"."""
    text = text.strip().replace(",", "")
    if "/" in text:
        *whole, fraction = text.split()
        top, bottom = fraction.split("/")
        return Decimal(whole[0] if whole else 0) + Decimal(top.strip()) / Decimal(bottom.strip())
    return Decimal(text)


def plain(value: Decimal) -> str:
    """A Decimal for people: 0.50 -> 0.5, 1E+3 -> 1000."""
    shown = format(value.normalize(), "f")
    return shown


def blank(text: str, start: int, end: int) -> str:
    """The text with [start, end) replaced by spaces."""
    return text[:start] + " " * (end - start) + text[end:]


def squeeze(text: str) -> str:
    """Words only, one space between: the shape in which names are compared."""
    return " ".join(re.findall(r"[a-z0-9+]+", text))
