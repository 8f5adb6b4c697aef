"""Propose: what is up, and changes made by hand: text in place, fields of a resource, keys of a checkpoint."""

from __future__ import annotations

from review_ui import frame
from review_ui.reviewing import acting, fields, header, propose_view
from review_ui.reviewing.sitting import sit


def page() -> None:
    """Draw the page."""
    at = sit(frame.asked("id"))
    fields.settle(at.book)
    acting.passing(at)
    header.draw(at, "propose.py")
    if at.blind:
        frame.show(frame.notice("Reviews are still coming in.", "Proposals open when everybody has submitted."))
        return
    if at.unheard:
        frame.show(header.own_plan_first())
        return
    propose_view.draw(at)


page()
