"""Instructions and notes as a reader expects them: headings, lists, bold and code, and nothing else of Markdown.

Everything is escaped; a link, an image or HTML in the text stays the characters it is written with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from review_ui.markup import Markup, highlighted, join, tag

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*$")
_ITEM = re.compile(r"^([ \t]*)([-*+]|[0-9]{1,3}[.)])[ \t]+(.*)$")
_INLINE = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*|`([^`\n]+)`")

Span = tuple[int, int]


def find(text: str, quote: str) -> list[Span]:
    """Where the quoted words stand in the text: case and white space aside. [] for an empty quote."""
    words = quote.split()
    if not words:
        return []
    pattern = r"\s+".join(re.escape(word) for word in words)
    return [found.span() for found in re.finditer(pattern, text, re.IGNORECASE)]


def verbatim(text: str, marks: Iterable[Span] = (), cls: str = "hit") -> Markup:
    """The text with its own line breaks, and the marked ranges highlighted."""
    return tag("div", highlighted(text, marks, cls), cls="prose")


def formatted(text: str, marks: Sequence[Span] = (), cls: str = "hit") -> Markup:
    """The text with headings, lists, bold and code drawn. `marks` are character ranges of `text`."""
    blocks: list[Markup] = []
    paragraph: list[Markup] = []
    items: list[Markup] = []

    def close() -> None:
        if paragraph:
            blocks.append(tag("p", join(paragraph, " ")))
            paragraph.clear()
        if items:
            blocks.append(tag("ul", join(items), cls="list"))
            items.clear()

    at = 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        if not line.strip():
            close()
        elif found := _HEADING.match(line):
            close()
            words = _inline(text, start + found.start(2), start + found.end(2), marks, cls)
            blocks.append(tag("h3", words, cls="h3 gap" if blocks else "h3"))
        elif found := _ITEM.match(line):
            if paragraph:
                close()
            words = _inline(text, start + found.start(3), start + found.end(3), marks, cls)
            bullet = None if found[2] in "-*+" else f"{found[2]} "
            depth = "deeper" if len(found[1].expandtabs(4)) >= 2 else None
            items.append(tag("li", bullet, words, cls=" ".join(filter(None, [depth, bullet and "counted"])) or None))
        elif items and line[:1] in " \t":
            items[-1] = Markup(items[-1].removesuffix("</li>") + " " + _line(text, start, line, marks, cls) + "</li>")
        else:
            if items:
                close()
            paragraph.append(_line(text, start, line, marks, cls))
    close()
    return tag("div", join(blocks), cls="prose-set")


def _line(text: str, start: int, line: str, marks: Sequence[Span], cls: str) -> Markup:
    lead = len(line) - len(line.lstrip())
    return _inline(text, start + lead, start + len(line), marks, cls)


def _inline(text: str, start: int, end: int, marks: Sequence[Span], cls: str) -> Markup:
    parts: list[Markup] = []
    at = start
    for found in _INLINE.finditer(text, start, end):
        parts.append(_marked(text, at, found.start(), marks, cls))
        group = 1 if found[1] is not None else 2
        inner = _marked(text, found.start(group), found.end(group), marks, cls)
        parts.append(tag("strong" if group == 1 else "code", inner))
        at = found.end()
    parts.append(_marked(text, at, end, marks, cls))
    return join(parts)


def _marked(text: str, start: int, end: int, marks: Sequence[Span], cls: str) -> Markup:
    return highlighted(text[start:end], [(a - start, b - start) for a, b in marks], cls)
