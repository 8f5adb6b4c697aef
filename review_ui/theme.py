"""Tokens, the one style block and the chips of every page."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from review_ui.markup import Markup, join, tag

ASSETS = Path(__file__).parent / "assets"

Tone = Literal["plain", "blue", "orange", "green", "red", "violet", "gray", "veto"]

#: Role -> (light, dark). Text pairs hold 4.5:1; held by tests/review_ui/test_theme.py.
TOKENS: dict[str, tuple[str, str]] = {
    "ink": ("#17212E", "#E6EBF1"),
    "muted": ("#4E5A69", "#A9B4C2"),
    "page": ("#FFFFFF", "#12171E"),
    "soft": ("#F4F6F9", "#1B222B"),
    "border": ("#D5DCE5", "#36414E"),
    "hair": ("#E8ECF1", "#2A333E"),
    "primary": ("#0B57B0", "#6FA8EE"),
    "blue-fill": ("#E7F0FB", "#152B47"),
    "blue-text": ("#0A4A96", "#A3C8F6"),
    "blue-mark": ("#B5D4F6", "#2C5A93"),
    "orange": ("#B85A12", "#EFA25E"),
    "orange-fill": ("#FDF0E4", "#38260F"),
    "orange-text": ("#8A3D00", "#F3B981"),
    "orange-mark": ("#F8CFA6", "#7A4A16"),
    "green": ("#1F7A54", "#6CC79B"),
    "green-fill": ("#E6F4ED", "#14322A"),
    "green-text": ("#155C3F", "#93D8B6"),
    "red": ("#B3261E", "#F0857D"),
    "red-fill": ("#FCEBEA", "#3A1D1C"),
    "red-text": ("#96201A", "#F5A9A3"),
    "violet-fill": ("#F2ECF8", "#2B2038"),
    "violet-text": ("#5F3A85", "#D0B5EC"),
    "gray-fill": ("#EDF0F4", "#262E38"),
    "gray-text": ("#4E5A69", "#B7C1CD"),
    "heat-0": ("#F4F6F9", "#1B222B"),
    "heat-1": ("#C0D7F0", "#1F3F68"),
    "heat-2": ("#2F6DB5", "#2F6DB5"),
    "heat-3": ("#0A3566", "#8DBBF3"),
    "retrieval": ("#5B6776", "#5B6776"),
    "reasoning": ("#0B57B0", "#2F6DB5"),
    "action": ("#BCD5F1", "#A3C8F6"),
    "documentation": ("#CF8136", "#EFA25E"),
    "band": ("#E4EDE8", "#1D3328"),
    "search": ("#FFE9A8", "#5A4A12"),
}

#: Verdict -> (icon, word, tone). Never color alone.
VERDICTS: dict[str, tuple[str, str, Tone]] = {
    "pass": ("check_circle", "Pass", "green"),
    "partial": ("contrast", "Partial", "orange"),
    "fail": ("cancel", "Fail", "red"),
    "ungraded": ("hourglass_empty", "Needs physician", "gray"),
    "error": ("error", "Error", "violet"),
}


#: Where the tokens hold: the page, and what Streamlit hangs beside it.
_SCOPE = ".stApp,[data-testid=stPopoverBody]"


def token(role: str, theme: str | None = "light") -> str:
    """The color of a role, for a chart, which does not follow the page's theme by itself."""
    return TOKENS[role][1 if theme == "dark" else 0]


def icon(name: str, cls: str = "") -> Markup:
    """A Material Symbol by its ligature name, hidden from screen readers: the word beside it says the same."""
    return tag("span", name, cls=f"ic {cls}".strip(), aria_hidden="true")


def chip(words: str, tone: Tone = "plain", symbol: str = "") -> Markup:
    """Fill = state, outline = plain fact, solid red = a standing veto only."""
    return tag("span", icon(symbol) if symbol else None, words, cls=f"chip {tone}")


def verdict_chip(result: str) -> Markup:
    """The chip of a verdict."""
    symbol, word, tone = VERDICTS[result]
    return chip(word, tone, symbol)


def chips(*each: Markup) -> Markup:
    """Chips in a row that wraps."""
    return tag("div", join(each), cls="chips")


def section(title: str, qualifier: str = "", anchor: str | None = None) -> Markup:
    """A section's heading: title left, a quiet qualifier right, a hairline below."""
    return tag(
        "div",
        tag("h2", title, cls="h2"),
        tag("span", qualifier, cls="sm mute") if qualifier else None,
        cls="section",
        id=anchor,
    )


def written(text: str) -> Markup:
    """A file or a part of one as it is written; lines of a unified diff are marked. Streamlit's own code block takes
    0.2 s of the browser's time for its coloring, folded or not, and hides what cannot be seen."""
    marks = {"+": "plus", "-": "minus"}
    diff = text.startswith(("--- ", "diff --git"))
    lines = [tag("span", line, cls=marks.get(line[:1])) for line in text.splitlines(keepends=True)] if diff else [text]
    return tag("pre", *lines, cls="written", tabindex=0)


def style() -> Markup:
    """The one style block. It holds nothing but our own text."""
    roles = "".join(f"--{role}:light-dark({light},{dark});" for role, (light, dark) in TOKENS.items())
    return Markup(f"<style>{_SCOPE}{{{roles}}}{(ASSETS / 'style.css').read_text('utf-8')}</style>")
