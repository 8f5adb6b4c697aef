"""The header of every review page: title, where the task stands, whose turn it is, what is hidden."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, theme
from review_ui.markup import Markup, join, tag
from review_ui.reviewing.sitting import Sitting
from tasks.review.state import Stage

STEPS = ("Review", "Proposals", "Decide", "Sign-off")
_AT: dict[Stage, int] = {
    "unassigned": 0, "review": 1, "proposals": 2, "decide": 3, "apply": 3, "sign-off": 4, "release": 4, "released": 5,
}  # fmt: skip
AUTHORITY = {"orders": "Acts by: orders", "pends": "Acts by: pended orders", "recommends": "Acts by: recommendation"}


def stepper(stage: Stage) -> Markup:
    """Review, Proposals, Decide, Sign-off: which is done, which is now."""
    now = _AT[stage]
    items = []
    for number, name in enumerate(STEPS, 1):
        state = "done" if number < now else "now" if number == now else "later"
        mark = theme.icon("check") if state == "done" else str(number)
        items.append(
            tag(
                "li",
                tag("span", mark, cls="step-mark"),
                name,
                cls=f"step-{state}",
                aria_current="step" if state == "now" else None,
            )
        )
    return tag("ol", join(items), cls="stepper", aria_label="Stages of the review")


def turn_chips(at: Sitting) -> list[Markup]:
    """Whose turn it is, and whether others' judgement is hidden."""
    mine = [turn for turn in at.turns if turn.person == at.me or (not turn.person and turn.role in _roles(at))]
    others = sorted({at.name(turn.person) if turn.person else f"the {turn.role}" for turn in at.turns
                     if turn not in mine})  # fmt: skip
    chips = []
    if mine:
        chips.append(theme.chip("Your turn" + (f", and {', '.join(others)}" if others else ""), "blue", "person"))
    elif others:
        chips.append(theme.chip(f"Waiting for {', '.join(others)}", "plain", "hourglass_empty"))
    if at.blind and at.asked:
        chips.append(theme.chip("Blind: co-reviewers and model text hidden", "gray", "visibility_off"))
    if at.state.vetoes:
        n = len(at.state.vetoes)
        if not (at.blind and at.asked):
            chips.append(theme.chip(f"{n} veto" if n == 1 else f"{n} vetoes", "veto", "front_hand"))
    return chips


def _roles(at: Sitting) -> tuple[str, ...]:
    return at.who.person.roles if at.who.person else ()


def draw(at: Sitting, *more: Markup) -> None:
    """Draw it."""
    meta = at.at.meta
    context = meta.context
    stage = at.state.stage
    authority = context.authority if context else None
    facts = [
        theme.chip(meta.specialty),
        theme.chip(meta.workflow),
        *([theme.chip(AUTHORITY[authority], "plain", "edit_document")] if authority else []),
        *([theme.chip(f"{context.now:%-d %b %Y, %H:%M}", "plain", "schedule")] if context and context.now else []),
        theme.chip(f"Round {at.state.round}" if at.state.round else "Not under review yet"),
        theme.chip(f"Version {meta.version}", "plain", "tag"),
        *([theme.chip(f"About {meta.estimated_minutes} min")] if meta.estimated_minutes else []),
        *more,
    ]
    right = tag("div", stepper(stage), tag("div", join(turn_chips(at)), cls="chips end"), cls="head-right")
    frame.header(meta.title, frame.facts(*facts), right=right)


def doors(at: Sitting, here: str) -> None:
    """The other pages of this task."""
    entries = (
        ("review.py", "Review", "rate_review"),
        ("propose.py", "Proposals", "edit_note"),
        ("proposals.py", "Model's draft", "auto_fix_high"),
        ("decide.py", "Decide", "checklist"),
        ("signoff.py", "Sign-off", "verified"),
    )
    with st.container(horizontal=True, key="doors"):
        st.page_link(frame.path("home.py"), label="Home", icon=":material/arrow_back:", query_params=frame.chosen())
        for file, label, icon in entries:
            if file != here:
                st.page_link(
                    frame.path(file), label=label, icon=f":material/{icon}:",
                    query_params={"id": at.at.task_id, **frame.chosen()},
                )  # fmt: skip
