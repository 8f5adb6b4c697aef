"""Review, stage 1: solve the task oneself and lock the plan; then judge it against the checklist."""

from __future__ import annotations

from review_ui import frame
from review_ui.reviewing import acting, checklist_view, fields, header, left_view, solve_view, submitted_view
from review_ui.reviewing.sitting import sit


def page() -> None:
    """Draw the step at which this person is."""
    at = sit(frame.asked("id"))
    fields.settle(at.book)
    header.draw(at, "review.py")
    acting.passing(at)
    if at.submitted is None:
        left_view.draw(at)
    if not at.state.round:
        frame.show(frame.notice("Not open yet.", "The lead assigns reviewers and opens a round on the Sign-off page."))
    elif at.unheard and not at.state.round_is_open:
        frame.show(header.own_plan_first())
    elif at.submitted is not None or (at.asked and not at.state.round_is_open):
        submitted_view.draw(at)
    elif not at.asked:
        if at.state.round_is_open:
            words = "Reviews of this round are coming in. They open to everybody when the last one is submitted."
            frame.show(frame.notice("Your review is not asked for in this round.", words))
        else:
            submitted_view.draw(at)
    elif at.plan is None:
        solve_view.draw(at)
    else:
        checklist_view.draw(at)


page()
