"""HTML in which text from data can only ever be text.

Pages show what people, charts and models wrote. Streamlit's markdown and bare HTML let such text hide a button, cover
the page or fetch a remote image, so everything shown as HTML is built here: a plain `str` is escaped, only `Markup`
passes as it is, and characters that a reader cannot see (bidirectional controls, zero-width, tags, lone surrogates)
become visible chips with their code point.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Iterable, Sequence

#: Characters without a shape of their own: controls, format characters, fillers, variation selectors, private use,
#: surrogates. Line feed and tab stay. Held against unicodedata by tests/review_ui/test_markup.py.
_UNSEEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0e\ufeff"
    "\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U000fffff\U00100000-\U0010ffff"
    "]"
)
#: More than four combining marks on one letter are no writing: they climb over the neighboring lines.
_PILE = re.compile(r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)")  # fmt: skip  # noqa: E501

_TAG = re.compile(r"^[a-z][a-z0-9]*$")
#: Where our own links may lead: a place on this page, another page of this app, the same page with other parameters.
_LINK = re.compile(r"^(#|\?|/(?!/))")
_VOID = frozenset({"br", "hr", "wbr"})


class Markup(str):
    """HTML that this module built, and that may be shown as it is."""

    __slots__ = ()


def visible(value: object) -> str:
    """The text with every unseen character written as ⟨U+202E⟩: for places that show plain text (charts, tables)."""
    shown = str(value)
    if shown.isascii() and not _UNSEEN.search(shown):
        return shown
    shown = _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", shown)
    return _PILE.sub(lambda found: f"{found[1]}⟨{len(found[2])} more marks⟩", shown)


def text(value: object) -> Markup:
    """The value as escaped HTML text; unseen characters become chips that name them."""
    if isinstance(value, Markup):
        return value
    shown = html.escape(str(value), quote=True)
    if shown.isascii() and not _UNSEEN.search(shown):
        return Markup(shown)
    shown = _UNSEEN.sub(_chip, shown)
    return Markup(_PILE.sub(lambda found: f'{found[1]}<span class="cp">{len(found[2])} more marks</span>', shown))


def _chip(found: re.Match[str]) -> str:
    code = ord(found[0])
    name = unicodedata.name(found[0], "no visible shape").lower()
    return f'<span class="cp" title="{name}">U+{code:04X}</span>'


def tag(name: str, *children: str | None, **attributes: str | int | None) -> Markup:
    """One element: `tag("p", "text", cls="sm")`. Plain strings are escaped, None is left out.

    `cls` stands for class; an underscore in an attribute's name for a hyphen. Raises ValueError for an event handler,
    a style that loads something, or a link that leaves the app: nothing of ours needs them.
    """
    if not _TAG.match(name) or name in {"script", "style", "iframe", "object", "embed", "img", "link", "form"}:
        raise ValueError(f"no element of ours is called {name!r}")
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None:
            continue
        attribute = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
        given = str(value)
        if attribute.startswith("on") or attribute in {"src", "srcset", "srcdoc"}:
            raise ValueError(f"attribute {attribute!r} is not ours to use")
        if attribute == "href" and not _LINK.match(given):
            raise ValueError("a link of ours stays inside the app")
        if attribute == "style" and re.search(r"url|image|expression|@|\\", given, re.IGNORECASE):
            raise ValueError("a style of ours loads nothing")
        shown = visible(given)
        if attribute.startswith("aria-") or attribute in ("title", "alt"):
            # The cleaning on the browser's side drops an attribute whole that holds "</style" or "-->", escaped or not.
            shown = shown.replace("<", "‹").replace(">", "›")
        parts.append(f' {attribute}="{html.escape(shown, quote=True)}"')
    parts.append(">")
    if name in _VOID:
        return Markup("".join(parts))
    parts += [text(child) for child in children if child is not None]
    parts.append(f"</{name}>")
    return Markup("".join(parts))


def polyline(points: Sequence[tuple[float, float]]) -> Markup | None:
    """A line through the points, in percent of the box that it stands in (from the left, from the top); None below two.

    An image that holds nothing but these numbers: HTML that is cleaned by the browser side keeps no SVG of its own.
    """
    if len(points) < 2:
        return None
    path = " ".join(f"{float(x):.2f},{float(y):.2f}" for x, y in points)
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" preserveAspectRatio="none">'
        f'<polyline points="{path}" fill="none" stroke="#6B7888" stroke-width="1.5" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
    held = base64.b64encode(drawn.encode("ascii")).decode("ascii")
    return Markup(f'<img class="polyline" alt="" src="data:image/svg+xml;base64,{held}">')


def join(children: Iterable[str | None], between: str = "") -> Markup:
    """The children one after another, plain strings escaped, `between` between them."""
    return Markup(text(between).join(text(child) for child in children if child is not None))


def highlighted(value: str, spans: Iterable[tuple[int, int]], cls: str = "hit") -> Markup:
    """The text with the character ranges `spans` (sorted or not, overlapping or not) marked."""
    merged: list[list[int]] = []
    for start, end in sorted((max(0, start), min(len(value), end)) for start, end in spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    parts: list[str] = []
    at = 0
    for start, end in merged:
        parts += [text(value[at:start]), tag("mark", value[start:end], cls=cls)]
        at = end
    parts.append(text(value[at:]))
    return Markup("".join(parts))
