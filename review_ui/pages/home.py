"""Home: what needs whoever is here; for nobody in particular, the question who that is."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, identity
from review_ui.markup import tag
from review_ui.reviewing import home_view


def nobody() -> None:
    """Local mode, and nobody chosen: say who you are, or look around."""
    frame.show(
        tag(
            "header",
            tag("div", tag("h1", "Who are you?", cls="h1"),
                tag("p", "Choose your name to see what needs you. Nobody checks it here, so only open data is shown.",
                    cls="lead")),
            identity.identity_chips(identity.current()),
            cls="head",
        )
    )  # fmt: skip
    with st.container(width=620):
        identity.list_of_people()
    with st.container(horizontal=True):
        st.page_link(frame.path("tasks.py"), label="Only look at the tasks", icon=":material/folder_open:")
        st.page_link(frame.path("guide.py"), label="How a review goes", icon=":material/help:")


who = identity.current().person
if who is None:
    nobody()
else:
    home_view.draw(who)
