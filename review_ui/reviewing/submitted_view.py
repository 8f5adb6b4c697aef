"""After submitting: what was stored, read back; and, once all are in, everybody's judgement side by side."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from review_ui import frame, theme
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import forms
from review_ui.reviewing.findings_view import finding_chips, titles
from review_ui.reviewing.sitting import Sitting, names
from review_ui.theme import Tone
from tasks.review.checklist import checklist
from tasks.review.events import OwnPlan, PlanLocked, ReviewSubmitted

_TONES: dict[str, Tone] = {"acceptable": "green", "needs change": "orange", "unsafe": "red", "cannot judge": "gray"}


def draw(at: Sitting) -> None:
    """Draw it."""
    mine = at.submitted
    if mine is not None:
        words = f"Stored {mine.at.astimezone():%-d %b %Y, %H:%M}, {mine.active_minutes} active minutes."
        if at.to_come:
            words += (
                f" It stays sealed until {names(at, at.to_come)} has submitted too; nobody sees it before, and you see "
                "nothing of theirs."
            )
        frame.show(frame.notice("Your review is in. This is what was stored.", words))
    if at.blind:
        if mine is not None:
            plan = next((one.plan for one in at.mine if isinstance(one, PlanLocked)), None)
            frame.show(one_review(at, at.me, plan, mine))
        return
    reviews = [one for (round, _), one in at.state.reviews.items() if round == at.state.round and one.submitted]
    frame.show(theme.section(f"Round {at.state.round}", f"{len(reviews)} reviews, all open now"))
    trials = {"q": at.at.task_id, **frame.chosen()}
    st.page_link(
        frame.path("trials.py"), label="How agents did on this task", icon=":material/route:", query_params=trials
    )
    frame.show(differences(at, [(one.person, one.submitted) for one in reviews if one.submitted]))
    for one in sorted(reviews, key=lambda review: review.person != at.me):
        if one.submitted:
            frame.show(one_review(at, one.person, one.plan, one.submitted))


def differences(at: Sitting, reviews: Sequence[tuple[str, ReviewSubmitted]]) -> Markup:
    """Verdicts by dimension, a column a reviewer."""
    heads = [tag("th", "Dimension", scope="col"), *(tag("th", at.name(p), scope="col") for p, _ in reviews),
             tag("th", "", scope="col")]  # fmt: skip
    rows = []
    for one in checklist().dimensions:
        said = [next((v for v in review.verdicts if v.dimension == one.id), None) for _, review in reviews]
        words = {verdict.verdict for verdict in said if verdict}
        cells = [
            tag("td", theme.chip(verdict.verdict.capitalize(), _TONES[verdict.verdict]) if verdict else "")
            for verdict in said
        ]
        rows.append(tag("tr", tag("td", one.title, cls="b"), *cells,
                        tag("td", "differ" if len(words) > 1 else "agree", cls="sm mute")))  # fmt: skip
    return tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid")


def one_review(at: Sitting, person: str, plan: OwnPlan | None, review: ReviewSubmitted) -> Markup:
    """One review, whole."""
    names_of = {one.id: one.title for one in checklist().dimensions}
    cps = titles(at.task)
    parts: list[Markup] = [tag("h2", "Your review" if person == at.me else at.name(person), cls="h2")]
    if plan is not None:
        parts.append(
            tag(
                "p",
                *[
                    tag("span", tag("span", f"{label}: ", cls="b"), f"{getattr(plan, key)} ")
                    for key, label, _ in forms.PLAN
                ],
                cls="sm",
            )
        )
    for verdict in review.verdicts:
        said = verdict.verdict.capitalize() + (f" ({verdict.why_not})" if verdict.why_not else "")
        parts.append(
            tag(
                "div",
                tag("span", names_of[verdict.dimension], cls="b"),
                theme.chip(said, _TONES[verdict.verdict]),
                cls="pair",
            )
        )
        if verdict.comment:
            parts.append(tag("p", verdict.comment, cls="sm"))
    rated = ", ".join(f"{cps.get(one.checkpoint, one.checkpoint).split(':')[0]} {one.rating}" for one in review.ratings)
    wrong = sum(not tick.right for tick in review.ticks)
    parts.append(tag("p", f"{rated}. {len(review.ticks)} example orders ticked, {wrong} held to be wrong.", cls="sm"))
    for finding in review.findings:
        where, quote = forms.anchor_words(finding.anchor, cps)
        extra = [f"Source: {finding.source}" if finding.source else "",
                 f"Alternative: {finding.alternative_plan}" if finding.alternative_plan else ""]  # fmt: skip
        parts.append(
            tag(
                "div",
                finding_chips(finding),
                tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                tag("div", finding.text),
                *[tag("div", line, cls="sm mute") for line in extra if line],
                cls="anchor",
            )
        )
    return tag("article", join(parts), cls="card review-card")
