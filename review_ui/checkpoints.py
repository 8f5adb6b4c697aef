"""Checkpoints as a physician reads them: one decision each, what passes, what fails, what it rests on."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

from graders.words import PlainWords
from review_ui import theme
from review_ui.markup import Markup, join, tag
from review_ui.theme import Tone
from tasks.declarations import Checkpoint

CAPABILITIES = {
    "data_retrieval": "Data retrieval",
    "clinical_reasoning": "Clinical reasoning",
    "action_execution": "Action",
    "documentation": "Documentation",
}
KINDS = {
    "score_calculation": "score calculation",
    "synthesis": "synthesis",
    "differential_decision": "differential decision",
    "guideline_application": "guideline application",
}
GRADERS = {
    "code": "graded by rule, no model",
    "hybrid": "a value in the answer, compared with the chart",
    "judge": "graded by a judge model",
    "pytest": "graded by a legacy test",
}
CRITICALITY: dict[str, Tone] = {"critical": "orange", "required": "blue", "optional": "plain"}


def capability_words(checkpoint: Checkpoint) -> str:
    """ "Clinical reasoning (score calculation)"."""
    words = CAPABILITIES[checkpoint.capability]
    return f"{words} ({KINDS[checkpoint.kind]})" if checkpoint.kind else words


def card(
    number: int, checkpoint: Checkpoint, words: PlainWords, links: Sequence[Markup], *, headed: bool = True
) -> Markup:
    """One checkpoint. `links`: for each entry of rests_on, in order, the link to its place. `headed`: with title."""
    head = tag(
        "div",
        tag("div", tag("span", f"{number} ", cls="no"), tag("span", checkpoint.title, cls="h3")),
        theme.chip(checkpoint.criticality.capitalize(), CRITICALITY[checkpoint.criticality]),
        cls="cp-head",
    )
    return tag(
        "article",
        head if headed else None,
        tag("div", f"{capability_words(checkpoint)} · {GRADERS[checkpoint.grader]}", cls="sm mute"),
        _line("check", "ok", "Passes with any one of" if words.any_of else "Passes with", words.passes),
        _line("add", "ok", "and also", words.also),
        _line("contrast", "warn", "Partial with", [words.partial] if words.partial else []),
        _line("close", "bad", "Fails with", words.fails),
        _line("warning", "warn", "Harm if wrong", [words.harm] if words.harm else []),
        _line("link", "mute", "Rests on", links),
        _line("menu_book", "mute", "Source", words.sources),
        cls="cp-card",
        id=checkpoint.id,
    )


def _line(symbol: str, tone: str, lead: str, each: Sequence[str]) -> Markup | None:
    if not each:
        return None
    if len(each) == 1:
        words = tag("div", tag("span", f"{lead}: ", cls="b"), each[0])
    else:
        items = join(tag("li", item) for item in each)
        words = tag("div", tag("span", f"{lead}:", cls="b"), tag("ul", items, cls="list tight"))
    return tag("div", theme.icon(symbol, tone), words, cls="cp-line")


_TABLE = re.compile(r"^\[\[\s*checkpoint\s*\]\][^\n]*$", re.MULTILINE)


def declaration(toml: str, checkpoint_id: str) -> str:
    """The checkpoint's own lines of checkpoints.toml, as they are written; "" where they cannot be told apart."""
    starts = [found.start() for found in _TABLE.finditer(toml)]
    for start, end in zip(starts, [*starts[1:], len(toml)], strict=True):
        lines = toml[start:end].strip()
        try:
            tables = tomllib.loads(lines).get("checkpoint", [])
        except tomllib.TOMLDecodeError:
            continue
        if len(tables) == 1 and tables[0].get("id") == checkpoint_id:
            return lines
    return ""
