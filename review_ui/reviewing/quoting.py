"""From words that a reader selected to the place they stand at: instruction, a note, or another resource."""

from __future__ import annotations

import re
from collections.abc import Sequence

from review_ui.chartview import ChartView
from tasks.review.anchoring import anchor
from tasks.review.events import Anchor, ResourceAnchor

PATH = "instruction.md"


#: What may stand between two words of a text where a reader sees a space: line ends, list marks, bold and code marks.
_BETWEEN = r"[*`]*\s+(?:[-*+]\s+|\d{1,3}[.)]\s+|#{1,6}\s+)?[*`]*"


def find(text: str, quote: str) -> tuple[int, int] | None:
    """Where the words of a drawn text stand in its source, (start, end) in characters; None where they do not."""
    words = [re.escape(word) for word in quote.split()]
    found = re.search(_BETWEEN.join(words), text) if words else None
    return found.span() if found else None


def anchored(quote: str, instruction: str, chart: ChartView | None, notes_first: Sequence[str] = ()) -> Anchor | None:
    """The anchor of the quoted words; None where they stand nowhere as they were selected.

    The instruction is looked at first, then the notes named in `notes_first`, then every note.
    """
    if not quote.strip():
        return None
    if found := find(instruction, quote):
        return anchor(PATH, instruction, *found)
    if chart is None:
        return None
    order = {ref: place for place, ref in enumerate(notes_first)}
    for note in sorted(chart.notes, key=lambda one: order.get(one.ref, len(order))):
        if found := find(note.text, quote):
            start, end = found
            return ResourceAnchor(ref=note.ref, quote=note.text[start:end])
    return None
