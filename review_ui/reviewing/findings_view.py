"""Findings: written beside the checklist, each at its place, and shown wherever a change answers one."""

from __future__ import annotations

import json

import streamlit as st
from pydantic import TypeAdapter

from review_ui import frame, theme
from review_ui.autosave import area, selected, settle
from review_ui.markup import Markup, tag
from review_ui.reviewing import fields, forms
from review_ui.reviewing.quoting import anchored
from review_ui.reviewing.sitting import Sitting
from tasks.package import Task
from tasks.review.checklist import checklist
from tasks.review.events import Anchor, CheckpointAnchor, Finding, ResourceAnchor, new_id

_ANCHOR: TypeAdapter[Anchor] = TypeAdapter(Anchor)


def composing(at: Sitting) -> str:
    """The id of the finding that is being written."""
    draft = at.book.all().get("composer")
    if draft and draft.value:
        return draft.value
    return at.book.save("composer", new_id()).value


def titles(task: Task) -> dict[str, str]:
    """checkpoint id -> "Checkpoint 4: Anticoagulation at the right dose"."""
    return {one.id: f"Checkpoint {n}: {one.title}" for n, one in enumerate(task.checkpoints, 1)}


def composer(at: Sitting) -> None:
    """Write a finding: where, what, how much it matters; below it those that were added."""
    id = composing(at)
    drafts = {item: draft.value for item, draft in at.book.all().items()}
    new = f"new.{id}"
    frame.show(tag("h2", "New finding", cls="h2"))
    anchor_picker(at, id, drafts)
    area(at.book, f"{new}.text", "What is wrong, and why", rows=3)
    names = {one.id: one.title for one in checklist().dimensions}
    fields.pick(at.book, f"{new}.dimension", "Dimension", names, drafts)
    fields.choice(at.book, f"{new}.weight", "Weight", forms.WEIGHTS, drafts, quiet=False)
    severity, likelihood = st.columns(2)
    with severity:
        options = {one: one.capitalize() for one in forms.SEVERITIES}
        fields.pick(at.book, f"{new}.severity", "Harm severity", options, drafts)
    with likelihood:
        options = {one: one.capitalize() for one in forms.LIKELIHOODS}
        fields.pick(at.book, f"{new}.likelihood", "Likelihood", options, drafts)
    kinds = {"omission": "By leaving it out", "commission": "By doing it"}
    fields.choice(at.book, f"{new}.kind", "How it would harm", kinds, drafts, quiet=False)
    area(at.book, f"{new}.source", "Source", rows=1, placeholder="Guideline, label, year, section")
    area(at.book, f"{new}.alternative", "Alternative acceptable plan", rows=1, placeholder="Optional")
    fields.choice(at.book, f"{new}.confidence", "Confidence", forms.CONFIDENCE, drafts, quiet=False)
    for name in ("text", "source", "alternative"):
        settle(at.book, f"{new}.{name}")
    drafts = {item: draft.value for item, draft in at.book.all().items()}
    made, needs = forms.finding_of(drafts, id)
    if needs:
        frame.show(tag("p", "Still needed: " + ", ".join(needs) + ".", cls="sm mute", role="status"))
    pressed = st.button("Add finding", icon=":material/add:", disabled=made is None, key=f"add-{id}", width="stretch")
    if pressed and made is not None:
        at.book.save(f"finding.{made.id}", made.model_dump_json())
        at.book.save("composer", "")
        fields.forget(at.book, *forms.composer_items(id))
        st.rerun()
    added(at)


def anchor_picker(at: Sitting, id: str, drafts: dict[str, str]) -> None:
    """Where the finding stands: selected words, a resource, a checkpoint, the task."""
    item = f"new.{id}.anchor"
    chart = at.at.chart if at.task.meta.context else None
    words = selected(f"quote-{id}", "Quote the words that I selected")
    if words:
        found = anchored(words, at.task.instruction, chart, [frame.asked("note")])
        if found is None:
            frame.show(tag("p", "These words do not stand in the instruction or a note as selected. Select words "
                           "within one paragraph.", cls="sm warn"))  # fmt: skip
        else:
            at.book.save(item, found.model_dump_json())
            drafts[item] = found.model_dump_json()
    where, quote = anchor_said(at.task, drafts.get(item, ""))
    frame.show(
        tag(
            "blockquote",
            tag("div", where, cls="xs mute b"),
            tag("div", f"“{quote}”") if quote else None,
            cls="anchor",
        )
    )
    with st.popover("Change what it is about", icon=":material/link:"):
        st.button("The task as a whole", key=f"anchor-task-{id}", type="tertiary", on_click=_anchor,
                  args=(at, item, '{"kind":"task"}'))  # fmt: skip
        for number, one in enumerate(at.task.checkpoints, 1):
            st.button(
                f"Checkpoint {number}", key=f"anchor-{one.id}-{id}", type="tertiary", on_click=_anchor,
                args=(at, item, CheckpointAnchor(checkpoint=one.id).model_dump_json()),
            )  # fmt: skip
        ref = st.text_input("A resource, by its reference", key=f"anchor-ref-{id}", placeholder="Observation/…")
        if ref and st.button("Take this resource", key=f"anchor-take-{id}"):
            if at.task.chart.get(ref.strip()) is None:
                frame.show(tag("p", "There is no such resource in the chart.", cls="sm warn"))
            else:
                at.book.save(item, ResourceAnchor(ref=ref.strip()).model_dump_json())
                st.rerun()


def _anchor(at: Sitting, item: str, anchor: str) -> None:
    at.book.save(item, anchor)


def anchor_said(task: Task, kept: str) -> tuple[str, str]:
    """(where, quote) of a kept anchor."""
    parsed = _ANCHOR.validate_python(json.loads(kept or '{"kind":"task"}'))
    return forms.anchor_words(parsed, titles(task))


def finding_chips(finding: Finding) -> Markup:
    """Weight and dimension."""
    weight = {
        "blocking": theme.chip("Blocking", "orange", "block"),
        "should": theme.chip("Should", "blue", "flag"),
        "note": theme.chip("Note", "gray", "sticky_note_2"),
    }[finding.weight]
    names = {one.id: one.title for one in checklist().dimensions}
    harm = f"{finding.harm.severity} harm, {finding.harm.likelihood}" if finding.harm else ""
    return theme.chips(weight, theme.chip(names[finding.dimension]), *([theme.chip(harm)] if harm else []))


def added(at: Sitting) -> None:
    """The findings of this review, each to be taken back."""
    found = forms.findings_in({item: draft.value for item, draft in at.book.all().items()})
    frame.show(theme.section("Your findings", f"{len(found)}"))
    for one in found:
        where, quote = forms.anchor_words(one.anchor, titles(at.task))
        with st.container(key=f"row-finding-{one.id}"):
            frame.show(
                tag(
                    "div",
                    finding_chips(one),
                    tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                    tag("div", one.text),
                )
            )
            st.button("Edit", key=f"edit-{one.id}", type="tertiary", icon=":material/edit:", on_click=_reopen,
                      args=(at, one))  # fmt: skip


def _reopen(at: Sitting, one: Finding) -> None:
    """Take a finding back into the composer, with all it held."""
    values = {
        "text": one.text,
        "dimension": one.dimension,
        "weight": one.weight,
        "severity": one.harm.severity if one.harm else "",
        "likelihood": one.harm.likelihood if one.harm else "",
        "kind": one.harm.kind if one.harm else "",
        "source": one.source,
        "alternative": one.alternative_plan,
        "confidence": one.confidence,
        "anchor": one.anchor.model_dump_json(),
    }
    for name, value in values.items():
        at.book.save(f"new.{one.id}.{name}", value)
        st.session_state.pop(at.book.key(f"new.{one.id}.{name}"), None)
    at.book.save("composer", one.id)
    fields.forget(at.book, f"finding.{one.id}")
