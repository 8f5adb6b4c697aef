"""Guide: how a review goes, with one worked example. Nothing here is patient data."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, theme
from review_ui.markup import Markup, join, tag
from tasks.review.checklist import checklist

STEPS = (
    ("1 · Solve first", "Read the request and the chart, nothing else. Write what you would do in six short fields and "
     "lock it. A first look takes 45 to 90 minutes; stop whenever you like, everything is kept."),
    ("1 · Checklist", "Then how the task is graded opens. Judge five dimensions, rate every checkpoint, tick ten "
     "example orders each: is the grader right about each? Write down what is wrong as findings, each at its place."),
    ("2 · Proposals", "A model, or a person by hand, answers the findings with exact changes. Nothing is changed yet."),
    ("3 · Decide", "One change a screen, the safety ones first. Your own finding stands above the change; why it was "
     "proposed is folded until you have read it. Decide, undo, and submit all at once."),
    ("4 · Sign-off", "When nothing is open you sign the task as it then stands, to the letter. The lead releases it. "
     "Whatever changes later takes the signatures off."),
)  # fmt: skip
KEYS = (
    ("A", "Approve; with a comment, Approve with comment"),
    ("X", "Reject, with a reason"),
    ("D", "Discuss, with a question"),
    ("Shift+V", "Veto: unsafe, with a reason and the harm"),
    ("J, K", "Next, previous"),
    ("N", "Next that is open"),
    ("U", "Undo the last decision"),
)
WORDS = (
    ("Checkpoint", "One thing that a good answer does, or must never do. A program judges it by what the agent really "
     "did in the record (orders, notes, messages), not by how well it sounds. Required and critical ones must be met."),
    ("Example order", "An order with the verdict that the program gives on it. Ten of them show where a checkpoint "
     "draws its line: is each verdict right?"),
    ("Clock", "The day and hour at which the task takes place: today for the agent, for ages, and for what is due "
     "when. It is the dashed line in the chart."),
    ("Gate", "The automatic check of a task before anybody signs: chart and texts are whole, every reference plan "
     "passes, plans with one thing made wrong fail, and harmless differences change nothing."),
    ("Round", "One pass of all reviewers over the task. The lead opens it; a task that changed may need another."),
    ("Finding", "What you say is wrong, at its place: select words of the request or a note, or press About this in a "
     "row. The harm, where there is one, has a kind, a severity and a likelihood: all three, and none is filled in "
     "for you."),
    ("Unsafe", "An agent that passes could harm this patient. It needs a finding that names the harm, and is a veto: "
     "it stands over rounds until you lift it, or an adjudicator does with your answer written down."),
    ("Needs change", "Wrong or incomplete, not dangerous. It needs a finding that says what."),
    ("Cannot judge", "Is an answer. Say why: missing context, ambiguous wording, genuine equipoise, outside your "
     "specialty. Ambiguous wording is shown to the author first."),
    ("Blocking, should, note", "How much a finding matters to you. Blocking findings name the harm."),
    ("Essential, optional, wrong, not gradable", "What a checkpoint is worth: must every good answer have it?"),
)  # fmt: skip


def example() -> Markup:
    """The worked example: an invented case with three seeded faults, and how a reviewer found them."""
    found = (
        ("The request asks “which dose?” and does not say who orders.", "Instruction clarity, should",
         "Answering, I did not know whether to place the order. The grader fails a recommendation."),
        ("Creatinine 1.4 mg/dL in the chart, 1.9 in the note of the same morning.", "EHR consistency, blocking",
         "The dose turns on it. I quoted the sentence in the note; severe harm, possible."),
        ("The checkpoint fails “5 mg at breakfast and at supper”.", "Clinical reasoning, blocking",
         "It is twice daily. I ticked Wrong at that example order; the finding wrote its place by itself."),
    )  # fmt: skip
    rows = [
        tag("div", tag("div", what, cls="b"), theme.chips(theme.chip(where)), tag("div", why, cls="sm"), cls="anchor")
        for what, where, why in found
    ]
    return tag(
        "div",
        tag("p", "Invented: a 74-year-old with new atrial fibrillation, weight 58 kg. The consultant is asked for an "
            "anticoagulant and its dose. Three faults were put in on purpose."),
        tag("p", tag("span", "Own plan: ", cls="b"), "apixaban, full or reduced dose by age, weight and creatinine: "
            "two of three reduce it. Must not: a second anticoagulant, an NSAID. Follow-up: creatinine in 3 months."),
        join(rows),
        tag("p", "What was right: I rated the checkpoint on the must-not list essential although I had not thought "
            "of the NSAID myself. The plan stays as it was locked; I added a correction, and both are read.", cls="sm"),
        cls="card",
    )  # fmt: skip


def page() -> None:
    """Draw the page."""
    frame.header("How a review goes", frame.facts(theme.chip("For reviewers"), theme.chip("Reads in five minutes")))
    left, right = st.columns([1.5, 1], gap="large")
    with left:
        frame.show(theme.section("The stages"))
        frame.show(
            tag("div", *[tag("div", tag("span", name, cls="b"), tag("span", words), cls="guide-row")
                         for name, words in STEPS], cls="rows")
        )  # fmt: skip
        frame.show(theme.section("A worked example", "with seeded faults"))
        frame.show(example())
    with right:
        frame.show(theme.section("Keys of Decide", "they do nothing while you type"))
        frame.show(tag("table", tag("tbody", *[tag("tr", tag("th", key, scope="row"), tag("td", words))
                                               for key, words in KEYS]), cls="grid"))  # fmt: skip
        frame.show(theme.section("What the words mean"))
        frame.show(tag("div", *[tag("div", tag("span", word, cls="b"), tag("div", words, cls="sm"))
                                for word, words in WORDS], cls="rows"))  # fmt: skip
        frame.show(theme.section("What you may rely on"))
        frame.show(
            tag(
                "ul",
                tag("li", "Nobody sees your review before all are in, and you see nothing of theirs."),
                tag(
                    "li",
                    "Every text says Saved with the time, and a choice is kept as it is made. Another page, a "
                    "reload, a restart lose nothing.",
                ),
                tag(
                    "li",
                    "Nothing that you wrote is left out of your review unasked: what you have not added stops it, "
                    "and what you leave out stays on the page for you alone until you discard it.",
                ),
                tag("li", "A locked plan and a submitted review cannot be edited; a correction stands beside them."),
                tag("li", "Nobody decides on a change that they made by hand."),
                cls="list",
            )
        )
        with st.expander("The checklist's questions"):
            for one in checklist().dimensions:
                frame.show(tag("div", tag("p", one.title, cls="b"),
                               tag("ul", *[tag("li", q.text) for q in one.questions], cls="list")))  # fmt: skip


page()
