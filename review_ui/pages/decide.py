"""Decide, stage 3: one change a screen, safety first; undo until submitted; one submission for all."""

from __future__ import annotations

from review_ui import frame
from review_ui.reviewing import acting, adjudicate_view, decide_view, fields, header
from review_ui.reviewing.sitting import sit


def page() -> None:
    """Draw the page."""
    at = sit(frame.asked("id"))
    fields.settle(at.book)
    acting.passing(at)
    header.draw(at, "decide.py", *decide_view.since_chip(at))
    if at.blind:
        frame.show(frame.notice("Reviews are still coming in.", "Proposals open when everybody has submitted."))
        return
    adjudicate_view.draw(at)
    decide_view.draw(at)


page()
