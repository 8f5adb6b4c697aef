"""From words that a reader selected to the place they stand at: the instruction, a note, another entry of the chart."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from review_ui.chartview import ChartView
from tasks.errors import UsageError
from tasks.review.anchoring import anchor
from tasks.review.events import Anchor, ResourceAnchor

PATH = "instruction.md"


#: What may stand between two words of a text where a reader sees a space: line ends, list marks, bold and code marks.
_BETWEEN = r"[*`]*\s+(?:[-*+]\s+|\d{1,3}[.)]\s+|#{1,6}\s+)?[*`]*"


@dataclass(frozen=True)
class Selected:
    """What was selected on a page (autosave/selection.js). `source`: PATH or a resource's reference, in whose text the
    whole selection stands, "" for none; `before`: what that text says before it, as it is drawn."""

    words: str
    source: str = ""
    before: str = ""

    @classmethod
    def parse(cls, message: str) -> Selected:
        """The message of the page. Whatever else it may be is a selection of nothing."""
        try:
            said = json.loads(message)
            return cls(*(_whole(str(said.get(name) or "")) for name in ("words", "source", "before")))
        except (ValueError, AttributeError):
            return cls("")


def _whole(text: str) -> str:
    """Half of a pair of surrogates, which no file and no database takes, becomes a replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def find(text: str, quote: str, number: int = 0) -> tuple[int, int] | None:
    """Where the words of a drawn text stand in its source for the time `number` (from 0), (start, end) in characters;
    the last time where they do not stand there so often; None where they do not at all."""
    spans = _spans(text, quote)
    return spans[min(number, len(spans) - 1)] if spans else None


def _spans(text: str, quote: str) -> list[tuple[int, int]]:
    words = [re.escape(word) for word in quote.split()]
    return [found.span() for found in re.finditer(_BETWEEN.join(words), text)] if words else []


def anchored(selected: Selected, instruction: str, chart: ChartView | None) -> Anchor:
    """The anchor of the selected words, in the text that they were selected in, and nowhere else: the same words may
    stand in many. Raises UsageError, with what to do, where they were selected elsewhere or do not stand there so."""
    source, note = selected.source, None
    if chart is not None:
        note = next((one for one in chart.notes if one.ref == source), None)
    if note is None and source != PATH:
        if chart is not None and source and chart.records.get(source) is not None:
            return ResourceAnchor(ref=source, quote=selected.words)
        raise UsageError(
            "Select words of the instruction, or of one note while you read it.",
            remedy="About a row of the chart or a checkpoint, press About this in that row.",
        )
    text = note.text if note else instruction
    span = find(text, selected.words, len(_spans(selected.before, selected.words)))
    if span is None:
        raise UsageError("These words do not stand there as selected.", remedy="Select words within one paragraph.")
    if note is None:
        return anchor(PATH, text, *span)
    return ResourceAnchor(ref=note.ref, quote=text[span[0] : span[1]])
