"""Proposals by a model, stage 2: what is sent and what it costs, progress, the draft, and sending it to decision."""

from __future__ import annotations

from review_ui import frame
from review_ui.reviewing import acting, fields, header, revision_view
from review_ui.reviewing.sitting import sit


def page() -> None:
    """Draw the page."""
    at = sit(frame.asked("id"))
    fields.settle(at.book)
    acting.passing(at)
    header.draw(at, "proposals.py")
    if at.blind:
        words = "A model is asked when everybody has submitted, so that its text sways nobody."
        frame.show(frame.notice("Reviews are still coming in.", words))
        return
    if at.unheard:
        frame.show(header.own_plan_first())
        return
    revision_view.draw(at)


page()
