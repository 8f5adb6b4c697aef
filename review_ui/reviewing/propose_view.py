"""The proposals that are up; and one made by hand: forms left, what it holds so far right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from authoring import tomltext
from authoring.edits import Edit, unit_bytes, unit_of
from authoring.proposals import Proposal, ProposedEdit
from graders.describe import describe
from review_ui import frame, theme
from review_ui.autosave import area, settle
from review_ui.markup import join, tag
from review_ui.reviewing import changes, fields, forms, handmade
from review_ui.reviewing.findings_view import finding_chips, titles
from review_ui.reviewing.signoff_view import may
from review_ui.reviewing.sitting import Sitting, minted, used
from tasks.errors import UsageError, WorkbenchError
from tasks.review.events import new_id

INSTRUCTION, RESOURCE, CHECKPOINT = "Instruction", "Resource of the chart", "Checkpoint"
STATUS: dict[str, tuple[str, theme.Tone]] = {
    "undecided": ("Undecided", "blue"),
    "accepted": ("Accepted", "green"),
    "rejected": ("Rejected", "gray"),
    "split": ("Split", "violet"),
    "blocked": ("Blocked by a veto", "veto"),
    "applied": ("Applied", "green"),
    "outdated": ("Outdated", "gray"),
}
#: Resources that the list of a type offers before it has to be searched.
_MOST = 200


def draw(at: Sitting) -> None:
    """Draw the page's parts."""
    table(at)
    if not may(at, "propose"):
        frame.show(tag("p", "Authors, reviewers, pharmacists and the lead propose changes.", cls="sm mute"))
        return
    left, right = st.columns([1.5, 1], gap="large")
    with left:
        frame.show(theme.section("Propose by hand", "others decide on it; you do not decide on your own"))
        what = st.segmented_control(
            "What to change", [INSTRUCTION, RESOURCE, CHECKPOINT], default=INSTRUCTION, required=True, key="what",
            label_visibility="collapsed",
        )  # fmt: skip
        if what == RESOURCE:
            resource(at)
        elif what == CHECKPOINT:
            checkpoint(at)
        else:
            instruction(at)
    with right:
        findings(at)
        basket(at)


def table(at: Sitting) -> None:
    """What was put up: place, by whom, comments addressed, where it stands."""
    cps = titles(at.task)
    every = list(at.state.changes.values())
    frame.show(theme.section("Proposals", f"{len(every)} changes in {len(at.state.proposals)} proposals"))
    if not every:
        frame.show(tag("p", "Nothing has been proposed yet.", cls="empty"))
        return
    rows = []
    for one in every:
        what, kind = changes.place_words(one.ref.unit, cps)
        word, tone = STATUS[one.status]
        answers = "; ".join(at.state.findings[id].finding.text[:90] for id in one.ref.findings
                            if id in at.state.findings)  # fmt: skip
        rows.append(
            tag(
                "tr",
                tag("td", what, tag("span", f" {kind}", cls="sm mute")),
                tag("td", at.name(one.made_by) + (" by hand" if one.ref.made_by_hand else "")),
                tag("td", answers or "no finding"),
                tag("td", theme.chip(word, tone)),
            )
        )
    heads = [tag("th", name, scope="col") for name in ("Change", "Made by", "Answers", "Stands")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))


# ---- the three forms ------------------------------------------------------------------------------------------------


def instruction(at: Sitting) -> None:
    """The text in place."""
    text = at.task.instruction
    item = f"hand.instruction.{at.at.package[:12]}"
    area(at.book, item, "The instruction, as it should read", rows=14, start=text)
    settle(at.book, item)
    draft = at.book.all().get(item)
    typed = draft.value if draft else text
    add(at, "instruction", lambda: handmade.text_edits(at.at.files, "instruction.md", typed), [item])


def resource(at: Sitting) -> None:
    """One resource's values in a form."""
    types = sorted({kind.removeprefix("chart/").removesuffix(".ndjson") for kind in at.at.files
                    if kind.startswith("chart/")})  # fmt: skip
    left, right = st.columns([1, 2])
    kind = left.selectbox("Type", types, key="hand-type")
    found = list(at.task.chart.resources(kind))
    words = right.text_input("Search", key="hand-search", placeholder="A word of what it says, or its id")
    if words:
        found = [one for one in found if words.casefold() in f"{describe(one)} {one.id}".casefold()]
    shown = {one.ref: f"{describe(one)} · {one.id}" for one in found[:_MOST]}
    ref = st.selectbox(f"Resource ({len(found)} found)", list(shown), format_func=lambda one: shown[one],
                       index=None, placeholder="Choose", key=f"hand-ref-{kind}-{words}")  # fmt: skip
    if not ref:
        return
    unit = f"chart/{kind}.ndjson#{ref.partition('/')[2]}"
    line = unit_bytes(at.at.files, unit)
    if line is None:
        return
    body = at.task.chart.get(ref)
    assert body is not None
    kept = {name: draft.value for name, draft in at.book.all().items()}
    typed: dict[str, str] = {}
    items: list[str] = []
    for leaf in handmade.leaves(body.body):
        item = f"hand.{ref}.{leaf.pointer}"
        items.append(item)
        if leaf.note or len(leaf.text) > 120:
            area(at.book, item, handmade.label(leaf.pointer) if not leaf.note else "Text of the note", rows=6,
                 start=leaf.text)  # fmt: skip
            settle(at.book, item)
            draft = at.book.all().get(item)
            typed[leaf.pointer] = draft.value if draft else leaf.text
        else:
            typed[leaf.pointer] = fields.line(at.book, item, handmade.label(leaf.pointer), kept, start=leaf.text)
    add(at, ref, lambda: handmade.resource_edits(line, ref, typed), items)


def checkpoint(at: Sitting) -> None:
    """Keys of one checkpoint in a form."""
    names = titles(at.task)
    id = st.selectbox("Checkpoint", list(names), format_func=lambda one: names[one], index=None, placeholder="Choose",
                      key="hand-cp")  # fmt: skip
    if not id:
        return
    declared = tomltext.table(at.at.files["checkpoints.toml"].decode(), id)
    kept = {name: draft.value for name, draft in at.book.all().items()}
    prefix = f"hand.{id}"
    items = [f"{prefix}.{name}" for name in ("title", "criticality", "kind", "severity", "likelihood", "tolerance",
                                             "drug", "dose", "frequency", "forbid")]  # fmt: skip
    wanted: dict[str, Any] = {
        "title": fields.line(at.book, f"{prefix}.title", "Title", kept, start=str(declared["title"]))
    }
    order = ("critical", "required", "optional")
    wanted["criticality"] = fields.chosen(at.book, f"{prefix}.criticality", "Criticality", order, kept,
                                          start=str(declared["criticality"]))  # fmt: skip
    harm = declared.get("harm") or {}
    one, two, three = st.columns(3)
    with one:
        kind = fields.chosen(at.book, f"{prefix}.kind", "Harm by", ("", "omission", "commission"), kept,
                             start=str(harm.get("kind", "")))  # fmt: skip
    with two:
        severity = fields.chosen(at.book, f"{prefix}.severity", "Severity", ("", *forms.SEVERITIES), kept,
                                 start=str(harm.get("severity", "")))  # fmt: skip
    with three:
        likelihood = fields.chosen(at.book, f"{prefix}.likelihood", "Likelihood", ("", *forms.LIKELIHOODS), kept,
                                   start=str(harm.get("likelihood", "")))  # fmt: skip
    if kind and severity and likelihood:
        wanted["harm"] = {"kind": kind, "severity": severity, "likelihood": likelihood}
    elif not (kind or severity or likelihood):
        wanted["harm"] = None
    if "tolerance" in declared:
        wanted["tolerance"] = float(
            fields.line(at.book, f"{prefix}.tolerance", "Tolerance", kept, start=str(declared["tolerance"])) or 0
        )
    if declared.get("order"):
        frame.show(tag("p", "Accept another order as well (leave empty to leave it as it is)", cls="b sm"))
        a, b, c = st.columns(3)
        with a:
            drug = fields.line(at.book, f"{prefix}.drug", "Ingredient", kept)
        with b:
            dose = fields.line(at.book, f"{prefix}.dose", "Dose", kept)
        with c:
            frequency = fields.line(at.book, f"{prefix}.frequency", "Frequency", kept)
        if drug:
            row = {"ingredient": drug} | ({"dose": dose} if dose else {}) | ({"frequency": frequency} if frequency
                                                                            else {})  # fmt: skip
            present = dict(declared["order"])
            wanted["order"] = present | {"also_accept": [*present.get("also_accept", []), row]}
    forbid = fields.line(at.book, f"{prefix}.forbid", "Forbid an ingredient as well (empty = none)", kept)
    if forbid:
        wanted["must_not"] = [*declared.get("must_not", []), {"ingredient": forbid}]
    add(at, id, lambda: handmade.checkpoint_edits(at.at.files, id, wanted), items)


def add(at: Sitting, what: str, makes: Any, items: Sequence[str]) -> None:
    """Why, which findings it answers, and into the proposal."""
    open_ = {id: one.finding.text[:100] for id, one in at.state.findings.items() if one.open}
    chosen = st.multiselect("Findings that it answers", list(open_), format_func=lambda id: open_[id],
                            key=f"answers-{what}")  # fmt: skip
    item = f"hand.why.{what}"
    area(at.book, item, "Why", rows=2, placeholder="What was wrong, and why this is right")
    count = sum(name.startswith("basket.") for name in at.book.all())
    if not st.button("Add to the proposal", icon=":material/add:", key=f"add-{what}-{count}"):
        return
    settle(at.book, item)
    kept = at.book.all()
    try:
        edits: tuple[Edit, ...] = makes()
        if not edits:
            raise UsageError("nothing was changed yet.")
    except (WorkbenchError, ValueError) as error:
        frame.show(frame.notice("Not added. What you typed is kept.", str(error)))
        return
    why = kept[item].value if item in kept else ""
    at.book.save(f"basket.{new_id()}", handmade.entry(edits, chosen, why))
    fields.forget(at.book, item, *items)
    st.rerun()


# ---- what it holds --------------------------------------------------------------------------------------------------


def findings(at: Sitting) -> None:
    """The open findings: what a proposal is for. Those that nothing addresses stand first."""
    answered = {id for one in at.state.live_changes for id in one.ref.findings}
    found = sorted(((id, one) for id, one in at.state.findings.items() if one.open), key=lambda one: one[0] in answered)
    frame.show(theme.section("Open findings", f"{len(found)}, unaddressed first"))
    for id, one in found:
        where, quote = forms.anchor_words(one.finding.anchor, titles(at.task))
        state = theme.chip("addressed", "green") if id in answered else theme.chip("not addressed", "orange")
        frame.show(
            tag("div", finding_chips(one.finding), tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                tag("div", one.finding.text), tag("div", state, cls="chips"), cls="anchor")
        )  # fmt: skip
    if not found:
        frame.show(tag("p", "No finding is open.", cls="sm mute"))


def basket(at: Sitting) -> None:
    """The parts so far; put up all at once."""
    kept: Mapping[str, str] = {name: draft.value for name, draft in at.book.all().items() if name.startswith("basket.")}
    parts: list[tuple[str, tuple[ProposedEdit, ...]]] = [
        (name, handmade.parsed(value)) for name, value in kept.items() if value
    ]
    total = sum(len(edits) for _, edits in parts)
    frame.show(theme.section("Your proposal", f"{total} changes, not put up yet"))
    cps = titles(at.task)
    for name, edits in parts:
        with st.container(key=f"row-{name.replace('.', '-')}"):
            for one in edits:
                what, kind = changes.place_words(unit_of(one.edit), cps)
                frame.show(tag("div", tag("span", what, cls="b"), tag("span", f" {kind}", cls="sm mute"),
                               tag("div", one.rationale, cls="sm")))  # fmt: skip
            st.button("Take out", key=f"out-{name}", type="tertiary", icon=":material/delete:", on_click=at.book.drop,
                      args=(name,))  # fmt: skip
    name = f"propose-{at.me}-{at.at.task_id}-{len(at.at.events)}"
    if st.button("Put up for decision", type="primary", icon=":material/send:", key=f"up-{minted(name)}",
                 disabled=not parts, width="stretch"):  # fmt: skip
        put_up(at, parts, name)


def put_up(at: Sitting, parts: Sequence[tuple[str, tuple[ProposedEdit, ...]]], name: str) -> None:
    """One proposal of everything in the basket."""
    review_id = minted(name)
    with at.desk.store.at() as view:
        package = at.desk.snapshot(view, at.at.task_id).package
    proposal = Proposal(
        id=review_id,
        task=at.at.task_id,
        package=package,
        made_by=at.me,
        by_hand=True,
        at=datetime.now(UTC),
        edits=tuple(one for _, edits in parts for one in edits),
    )
    try:
        at.desk.propose(at.at.task_id, proposal, review_id=review_id)
    except WorkbenchError as error:
        frame.show(frame.notice("Not put up. Your changes are kept.", str(error)))
        return
    used(name)
    at.book.drop(*[part for part, _ in parts])
    st.toast("Put up for decision.", icon=":material/check:")
    st.rerun()
