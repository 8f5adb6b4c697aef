"""The header of every review page: title, the stages as doors, facts, whose turn it is, what is hidden."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from review_ui import frame, identity, theme
from review_ui.markup import Markup, join, tag
from review_ui.reviewing.sitting import Sitting
from tasks.review.state import Stage


@dataclass(frozen=True)
class Step:
    """A stage of the review as the header shows it: its page, and the page that belongs to it."""

    name: str
    file: str
    also: str = ""


STEPS = (
    Step("Review", "review.py"),
    Step("Proposals", "propose.py", also="proposals.py"),
    Step("Decide", "decide.py"),
    Step("Sign-off", "signoff.py"),
)
#: How changes come to be proposed, a page each.
WAYS = (("propose.py", "By hand", "edit_note"), ("proposals.py", "Model's draft", "auto_fix_high"))
#: The number of the stage that the task is at; 0 = before the first, 5 = after the last.
_AT: dict[Stage, int] = {
    "unassigned": 0, "review": 1, "proposals": 2, "decide": 3, "apply": 3, "sign-off": 4, "release": 4, "released": 5,
}  # fmt: skip
OWN_PLAN_FIRST = "Opens when your own plan is locked, in the next round; the lead opens it on Sign-off."
AUTHORITY = {"orders": "Acts by: orders", "pends": "Acts by: pended orders", "recommends": "Acts by: recommendation"}


def closed(step: Step, at: Sitting) -> str:
    """Why this person cannot use the step's page now; "" where they can."""
    if step.file == "signoff.py":
        return ""
    if not at.state.round:
        return "Opens with the first round; the lead opens it on Sign-off."
    if step.file == "review.py":
        if at.state.round_is_open and not at.asked:
            return "Your review is not asked for in this round. Reviews open to everybody when the last one is in."
        return OWN_PLAN_FIRST if at.unheard else ""
    if at.blind:
        return "Opens when everybody who is asked has submitted."
    if at.unheard and step.file == "propose.py":
        return OWN_PLAN_FIRST
    return "" if step.file == "propose.py" or at.state.changes or at.state.vetoes else "Nothing is proposed yet."


def own_plan_first() -> Markup:
    """For somebody who was assigned and has not been asked: what others wrote comes after the own plan."""
    return frame.notice(
        "Your own plan comes first.",
        "You are assigned to this task and have not judged it yet. What others wrote, and how the task is graded, "
        "opens to you when you have locked your own plan; the lead opens the next round on the Sign-off page.",
    )


def stepper(at: Sitting, here: str) -> None:
    """Review, Proposals, Decide, Sign-off: which is done, which is now, which is on the screen; the rest are doors."""
    now = _AT[at.state.stage]
    for number, step in enumerate(STEPS, 1):
        state = "done" if number < now else "now" if number == now else "later"
        mark = {"done": "check_circle", "now": f"counter_{number}", "later": f"counter_{number}"}[state]
        on, why = here in (step.file, step.also), closed(step, at)
        with st.container(width="content", key=f"step-{state}{'-here' if on else ''}-{number}"):
            if on or why:
                said = tag("span", ", done" if state == "done" else ", now" if state == "now" else "", cls="sr")
                words = (theme.icon(mark), tag("span", step.name, said))
                frame.show(
                    tag("span", *words, cls="step", aria_current="page")
                    if on
                    else tag(
                        "span", *words, cls="step shut", title=why, tabindex="0", role="link", aria_disabled="true"
                    )
                )
            else:
                door(step.file, step.name, mark, at)


def door(file: str, words: str, symbol: str, at: Sitting) -> None:
    """A link to another page of this task."""
    parameters = {"id": at.at.task_id, **frame.chosen()}
    st.page_link(frame.path(file), label=words, icon=f":material/{symbol}:", query_params=parameters)


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


def draw(at: Sitting, here: str, *more: Markup) -> None:
    """Draw it. `here`: the page's file."""
    meta = at.at.meta
    context = meta.context
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
    with st.container(key="head", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="top", key="headline"):
            frame.show(tag("h1", meta.title, cls="h1 two-lines", title=meta.title))
            with st.container(
                horizontal=True, width="content", vertical_alignment="center", key="stepper", gap="xsmall"
            ):
                stepper(at, here)
        frame.show(
            tag("div", tag("div", join(facts), cls="chips"),
                tag("div", identity.name_chip(at.who), join(turn_chips(at)), cls="chips end"),
                cls="head-facts")
        )  # fmt: skip
    if here in (STEPS[1].file, STEPS[1].also):
        with st.container(horizontal=True, vertical_alignment="center", key="ways", gap="small"):
            for file, words, symbol in WAYS:
                with st.container(width="content"):
                    if file == here:
                        frame.show(tag("span", theme.icon(symbol), tag("span", words), cls="step", aria_current="page"))
                    else:
                        door(file, words, symbol, at)
