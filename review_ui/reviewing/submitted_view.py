"""After submitting: what was stored, read back; and, once all are in, everybody's judgement side by side."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from review_ui import frame, theme
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import forms, left_view
from review_ui.reviewing.checklist_view import examples_of
from review_ui.reviewing.findings_view import finding_chips, place_of, titles
from review_ui.reviewing.sitting import Sitting, names
from review_ui.theme import Tone
from tasks.review.checklist import checklist
from tasks.review.events import DimensionVerdict, OwnPlan, PlanAmended, PlanLocked, ReviewSubmitted
from tasks.wording import counted

_TONES: dict[str, Tone] = {"acceptable": "green", "needs change": "orange", "unsafe": "red", "cannot judge": "gray"}


def draw(at: Sitting) -> None:
    """Draw it."""
    mine = at.submitted
    if mine is not None:
        minutes = counted(mine.active_minutes, "active minute")
        words = f"Stored {mine.at.astimezone():%-d %b %Y, %H:%M}, {minutes}."
        if at.to_come:
            words += (
                f" It stays sealed until {names(at, at.to_come)} has submitted too; nobody sees it before, and you see "
                "nothing of theirs."
            )
        frame.show(frame.notice("Your review is in. This is what was stored.", words))
        results_door(at)
        left_view.draw(at)
    if at.blind:
        if mine is not None:
            plan = next((one.plan for one in at.mine if isinstance(one, PlanLocked)), None)
            added = [one.text for one in at.mine if isinstance(one, PlanAmended)]
            frame.show(one_review(at, at.me, plan, mine, added))
        return
    reviews = [one for (round, _), one in at.state.reviews.items() if round == at.state.round and one.submitted]
    frame.show(theme.section(f"Round {at.state.round}", f"{len(reviews)} reviews, all open now"))
    if mine is None:
        results_door(at)
    frame.show(differences(at, [(one.person, one.submitted) for one in reviews if one.submitted]))
    for one in sorted(reviews, key=lambda review: review.person != at.me):
        if one.submitted:
            frame.show(one_review(at, one.person, one.plan, one.submitted, one.amendments))


def results_door(at: Sitting) -> None:
    """How agents did on this task: a door that stands only here, after the own review is in."""
    trials = {"q": at.at.task_id, **frame.chosen()}
    st.page_link(
        frame.path("trials.py"), label="How agents did on this task", icon=":material/route:", query_params=trials
    )


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


def one_review(
    at: Sitting, person: str, plan: OwnPlan | None, review: ReviewSubmitted, corrections: Sequence[str] = ()
) -> Markup:
    """One review, whole: every word and every choice that was stored."""
    parts: list[Markup] = [tag("h2", "Your review" if person == at.me else at.name(person), cls="h2")]
    if plan is not None:
        lines = [(label, str(getattr(plan, key))) for key, label, _ in forms.PLAN]
        lines += [("How sure", plan.confidence), *(("Correction", one) for one in corrections)]
        parts.append(
            tag("div", *[tag("div", tag("span", f"{label}: ", cls="b"), said) for label, said in lines], cls="sm lines")
        )
    parts.append(_grid(("Dimension", "Verdict", "Sub-questions"), [_judged(one) for one in review.verdicts]))
    numbers = {one.id: number for number, one in enumerate(at.task.checkpoints, 1)}
    cps = titles(at.task)
    parts.append(
        _grid(
            ("Checkpoint", "Rating", "Example orders"),
            [
                tag(
                    "tr",
                    tag("td", f"{numbers.get(one.checkpoint, '')} ", cps.get(one.checkpoint, ": ").split(": ", 1)[-1]),
                    tag("td", tag("div", forms.RATINGS[one.rating], cls="b"), tag("div", one.comment, cls="sm lines")),
                    tag("td", _ticked(at, one.checkpoint, review), cls="sm"),
                )
                for one in review.ratings
            ],
        )
    )
    parts.append(tag("p", f"How sure overall: {review.confidence}.", cls="sm"))
    parts.append(tag("h3", f"{len(review.findings)} finding{'s' if len(review.findings) != 1 else ''}", cls="h3"))
    for finding in review.findings:
        where, quote = place_of(at, finding.anchor)
        sure = f"Confidence: {finding.confidence}"
        extra = [f"Source: {finding.source}" if finding.source else "",
                 f"Alternative: {finding.alternative_plan}" if finding.alternative_plan else "", sure]  # fmt: skip
        parts.append(
            tag(
                "div",
                finding_chips(finding),
                tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                tag("div", finding.text, cls="lines"),
                *[tag("div", line, cls="sm mute lines") for line in extra if line],
                cls="anchor",
            )
        )
    return tag("article", join(parts), cls="card review-card")


def _grid(heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    return tag(
        "table",
        tag("thead", tag("tr", join(tag("th", name, scope="col") for name in heads))),
        tag("tbody", join(rows)),
        cls="grid",
    )


def _judged(one: DimensionVerdict) -> Markup:
    """A dimension's row: the verdict, its comment, and what was answered to each sub-question."""
    dimension = next(each for each in checklist().dimensions if each.id == one.dimension)
    said = one.verdict.capitalize() + (f" ({one.why_not})" if one.why_not else "")
    answered = [
        tag("div", tag("span", f"{one.answers[question.id].capitalize()}: ", cls="b"), question.text)
        for question in dimension.questions
        if question.id in one.answers
    ]
    return tag(
        "tr",
        tag("td", dimension.title, cls="b"),
        tag("td", theme.chip(said, _TONES[one.verdict]), tag("div", one.comment, cls="sm lines")),
        tag("td", *answered, cls="sm mute") if answered else tag("td", "none answered", cls="sm mute"),
    )


def _ticked(at: Sitting, checkpoint: str, review: ReviewSubmitted) -> Markup:
    """What was said of the grader's verdicts on a checkpoint's example orders; those held wrong in their words."""
    ticks = [tick for tick in review.ticks if tick.checkpoint == checkpoint]
    if not ticks:
        return join([""])
    words = {one.key: f"{one.words} ({one.result})" for one in examples_of(at).get(checkpoint, ())}
    wrong = [words.get(tick.example, "an order that is no longer made") for tick in ticks if not tick.right]
    count = tag("div", f"{len(ticks) - len(wrong)} of {len(ticks)} right")
    return join([count, *(tag("div", tag("span", "Wrong: ", cls="b"), one) for one in wrong)])
