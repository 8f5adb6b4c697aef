from __future__ import annotations

import pytest

from review_ui import theme

PAIRS = [
    ("ink", "page"), ("muted", "page"), ("muted", "soft"), ("ink", "soft"), ("primary", "page"),
    ("blue-text", "blue-fill"), ("orange-text", "orange-fill"), ("green-text", "green-fill"), ("red-text", "red-fill"),
    ("violet-text", "violet-fill"), ("gray-text", "gray-fill"), ("ink", "search"), ("ink", "blue-mark"),
    ("ink", "orange-mark"), ("ink", "blue-fill"), ("orange-text", "page"), ("red", "page"), ("green", "page"),
]  # fmt: skip


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2.1."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme_name", ["light", "dark"])
@pytest.mark.parametrize(("front", "back"), PAIRS)
def test_text_holds_the_contrast_that_is_needed_to_read_it(front: str, back: str, theme_name: str) -> None:
    light, dark = sorted(
        (luminance(theme.token(front, theme_name)), luminance(theme.token(back, theme_name))), reverse=True
    )
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_every_token_that_the_style_names_exists() -> None:
    import re

    style = (theme.ASSETS / "style.css").read_text("utf-8")
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", style)) <= set(theme.TOKENS)


def test_the_style_loads_nothing() -> None:
    style = theme.style()
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("result", ["pass", "partial", "fail", "ungraded", "error"])
def test_a_verdict_is_told_in_a_word_and_an_icon_too(result: str) -> None:
    icon, word, _ = theme.VERDICTS[result]
    assert word in theme.verdict_chip(result)
    assert icon in theme.verdict_chip(result)
