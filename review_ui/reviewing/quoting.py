"""From words that a reader selected to the place they stand at: instruction, a note, or another resource."""

from __future__ import annotations

from collections.abc import Sequence

from review_ui import prose
from review_ui.chartview import ChartView
from tasks.review.anchoring import anchor
from tasks.review.events import Anchor, ResourceAnchor

PATH = "instruction.md"


def anchored(quote: str, instruction: str, chart: ChartView | None, notes_first: Sequence[str] = ()) -> Anchor | None:
    """The anchor of the quoted words; None where they stand nowhere as they were selected.

    The instruction is looked at first, then the notes named in `notes_first`, then every note.
    """
    if not quote.strip():
        return None
    if found := prose.find(instruction, quote):
        return anchor(PATH, instruction, *found[0])
    if chart is None:
        return None
    order = {ref: place for place, ref in enumerate(notes_first)}
    for note in sorted(chart.notes, key=lambda one: order.get(one.ref, len(order))):
        if found := prose.find(note.text, quote):
            start, end = found[0]
            return ResourceAnchor(ref=note.ref, quote=note.text[start:end])
    return None
