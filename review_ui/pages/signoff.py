"""Sign-off: who judges, what is still missing, signature, release, and the audit trail."""

from __future__ import annotations

from review_ui import frame
from review_ui.reviewing import acting, fields, header, signoff_view
from review_ui.reviewing.sitting import sit


def page() -> None:
    """Draw the page."""
    at = sit(frame.asked("id"))
    fields.settle(at.book)
    acting.passing(at)
    header.draw(at, "signoff.py")
    signoff_view.draw(at)


page()
