"""Findings: written beside the checklist, each at its place, and shown wherever a change answers one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import streamlit as st
from pydantic import TypeAdapter

from review_ui import failure, frame, theme
from review_ui.autosave import UNSETTLED, Area, Memory, Notebook, held, pointed, settle_all
from review_ui.autosave.choices import Row, sheet, text
from review_ui.chart_sections import OTHER
from review_ui.chartview import ChartView
from review_ui.chartview.words import Line
from review_ui.markup import Markup, tag
from review_ui.reviewing import fields, forms
from review_ui.reviewing.quoting import Selected, anchored
from review_ui.reviewing.sitting import Sitting
from tasks.errors import UsageError
from tasks.package import Task
from tasks.review.checklist import checklist
from tasks.review.events import Anchor, CheckpointAnchor, Finding, ResourceAnchor, TaskAnchor, new_id

_ANCHOR: TypeAdapter[Anchor] = TypeAdapter(Anchor)
#: Entries of the chart that a search for what a finding is about shows at once.
FOUND = 8
#: Where it looks first: what a physician would point at.
_FIRST = (
    "Condition", "MedicationRequest", "MedicationStatement", "AllergyIntolerance", "Observation", "DocumentReference",
    "DiagnosticReport", "Procedure", "Encounter",
)  # fmt: skip


def composing(book: Notebook) -> str:
    """The id of the finding that is being written."""
    return book.values().get("composer") or book.save("composer", new_id()).value


def started(book: Notebook, anchor: Anchor | None, words: str, dimension: str) -> None:
    """Begin a finding with these, unless words of another one stand in the composer."""
    id = composing(book)
    if id in forms.begun(book.values()):
        return
    book.save(f"new.{id}.dimension", dimension)
    if anchor is not None:
        book.save(f"new.{id}.anchor", anchor.model_dump_json())
    if words:
        book.save(f"new.{id}.text", words)


def titles(task: Task) -> dict[str, str]:
    """checkpoint id -> "Checkpoint 4: Anticoagulation at the right dose"."""
    return {one.id: f"Checkpoint {n}: {one.title}" for n, one in enumerate(task.checkpoints, 1)}


def composer(at: Sitting, pointed_at: Callable[[str], Anchor | None]) -> None:
    """Write a finding: where, what, how much it matters; below it those that were added. `pointed_at`: the anchor of a
    row of the page that was pointed at."""
    id = composing(at.book)
    new = f"new.{id}"
    frame.show(tag("h2", "New finding", cls="h2", id="new-finding"))
    anchor_picker(at, id, pointed_at)
    sheet(at.book, new, tuple(_rows(new)))
    made, needs = forms.finding_of(at.book.values(), id)
    if needs:
        frame.show(tag("p", "Still needed: " + ", ".join(needs) + ".", cls="sm mute", role="status"))
    st.button(
        "Add finding", icon=":material/add:", disabled=made is None, key=f"add-{id}", width="stretch",
        on_click=_add, args=(at, id),
    )  # fmt: skip
    added(at)


def _rows(new: str) -> Iterator[Row]:
    def options(values: tuple[str, ...]) -> dict[str, str]:
        return {one: one.capitalize() for one in values}

    dimensions = {one.id: one.title for one in checklist().dimensions}
    kinds = {"omission": "By leaving it out", "commission": "By doing it"}
    harms = (f"{new}.severity", forms.SEVERITIES[1:])
    yield text(Area(f"{new}.text", "What is wrong, and why", 3))
    yield fields.stacked(f"{new}.dimension", "Dimension", dimensions, "pick")
    yield fields.stacked(f"{new}.weight", "Weight", forms.WEIGHTS)
    yield fields.stacked(f"{new}.severity", "Harm severity", options(forms.SEVERITIES), "pick", half=True)
    yield fields.stacked(f"{new}.likelihood", "Likelihood", options(forms.LIKELIHOODS), "pick", half=True)
    yield fields.stacked(f"{new}.kind", "How it would harm", kinds, clear=True, when=harms)
    yield fields.stacked(f"{new}.confidence", "Confidence", forms.CONFIDENCE)
    yield text(Area(f"{new}.source", "Source", 1, "Guideline, label, year, section"))
    yield text(Area(f"{new}.alternative", "Alternative acceptable plan", 1, "Optional"))


@failure.guarded
def _add(at: Sitting, id: str) -> None:
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    if found.unsettled(book, f"new.{id}."):
        found.say(book, *UNSETTLED)
        return
    made, _ = forms.finding_of(book.values(), id)
    if made is not None:
        book.save(f"finding.{made.id}", made.model_dump_json())
        book.save("composer", "")
        book.drop(*forms.composer_items(id))


def anchor_picker(at: Sitting, id: str, pointed_at: Callable[[str], Anchor | None]) -> None:
    """Where the finding stands: selected words, an entry of the chart, a checkpoint, the task."""
    item = f"new.{id}.anchor"
    kept = at.book.values().get(item, "")
    where, quote = anchor_said(at, kept)
    frame.show(
        tag(
            "blockquote",
            tag("div", where, cls="xs mute b"),
            tag("div", f"“{quote}”") if quote else None,
            cls="anchor",
        )
    )
    with st.container(horizontal=True, vertical_alignment="center", key="anchor-ways"):
        pointed(
            f"quote-{id}",
            "Quote the words that I selected",
            lambda message: _quote(at, item, Selected.parse(message)),
            lambda about: _anchor(at, item, pointed_at(about)),
        )
        # The list shuts when it has done what it was for: another place is another list.
        with st.popover(
            "Change what it is about", icon=":material/link:", type="tertiary", key=f"about-{id}-{hash(kept)}",
            on_change="rerun",
        ) as up:  # fmt: skip
            if up.open:
                places(at, id, item)
    if found := held()[0].said.get(f"{at.book.key('')}quote"):
        frame.show(tag("p", found[1], cls="sm warn", role="status"))


def _quote(at: Sitting, item: str, selected: Selected) -> None:
    """Anchor the finding to the words that were selected on the page."""
    found, _ = held()
    said = f"{at.book.key('')}quote"
    found.said.pop(said, None)
    chart = at.at.chart if at.task.meta.context else None
    try:
        _anchor(at, item, anchored(selected, at.task.instruction, chart))
    except UsageError as error:
        found.said[said] = ("", str(error))


def places(at: Sitting, id: str, item: str) -> None:
    """The task, its checkpoints, and the chart by words."""
    if at.task.meta.context is not None:
        from_chart(at, id, item)
    frame.show(tag("div", "Or", cls="xs mute b"))
    with st.container(horizontal=True, gap="small", key="about-places"):
        st.button("The task as a whole", key=f"anchor-task-{id}", on_click=_anchor, args=(at, item, TaskAnchor()))
        for number, checkpoint in enumerate(at.task.checkpoints, 1):
            st.button(
                f"Checkpoint {number}", key=f"anchor-{checkpoint.id}-{id}", on_click=_anchor,
                args=(at, item, CheckpointAnchor(checkpoint=checkpoint.id)),
            )  # fmt: skip


def from_chart(at: Sitting, id: str, item: str) -> None:
    """An entry of the chart, found by words of it."""
    words = st.text_input(
        "An entry of the chart, by words of it", key=f"anchor-words-{id}", placeholder="potassium, apixaban, knee …",
        live=True,
    )  # fmt: skip
    if not (words or "").strip():
        return
    lines, more = entries(at.at.chart, words.strip())
    for one in lines:
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-about-{id}-{one.ref}"):
            frame.show(
                tag(
                    "div",
                    tag("div", one.what[:120], tag("span", f" {one.detail[:80]}", cls="sm mute")),
                    tag(
                        "div",
                        OTHER if one.other else None,
                        f"{one.kind} · {one.when or 'no date'}",
                        cls="xs mute",
                    ),
                )
            )
            st.button(
                "Take", key=f"take-{one.ref}-{id}", on_click=_anchor, args=(at, item, ResourceAnchor(ref=one.ref))
            )
    said = "No entry of the chart holds these words." if not lines else f"{more} more: add a word." if more else ""
    if said:
        frame.show(tag("p", said, cls="sm mute", role="status"))


def entries(chart: ChartView, words: str) -> tuple[list[Line], int]:
    """(the first FOUND entries whose line holds the words, how many more there are)."""
    known = chart.types()
    lines: list[Line] = []
    total = 0
    for type in [*(one for one in _FIRST if one in known), *sorted(set(known) - set(_FIRST))]:
        found, count = chart.page(type, start=0, size=FOUND, words=words)
        lines += found
        total += count
    return lines[:FOUND], max(0, total - FOUND)


@failure.guarded
def _anchor(at: Sitting, item: str, anchor: Anchor | None) -> None:
    if anchor is not None:
        at.book.again().save(item, anchor.model_dump_json())


def anchor_said(at: Sitting, kept: str) -> tuple[str, str]:
    """(where, quote) of a kept anchor; an entry of the chart in its own words."""
    return place_of(at, _ANCHOR.validate_python(json.loads(kept or '{"kind":"task"}')))


def place_of(at: Sitting, anchor: Anchor) -> tuple[str, str]:
    """(where, quote) of an anchor; an entry of the chart is named by its words and date, not by its reference."""
    if isinstance(anchor, ResourceAnchor) and at.task.meta.context is not None:
        line = at.at.chart.line(anchor.ref)
        if line is not None:
            where = f"{line.kind}: {line.what[:120]}" + (f", {line.when}" if line.when else "")
            where += ", another patient" if line.other else ""
            return where + (f" ({anchor.element})" if anchor.element else ""), anchor.quote
    return forms.anchor_words(anchor, titles(at.task))


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
    """The findings of this review, each to be taken back into the composer."""
    found = forms.findings_in(at.book.values())
    frame.show(theme.section("Your findings", f"{len(found)}"))
    for one in found:
        where, quote = place_of(at, one.anchor)
        with st.container(key=f"row-finding-{one.id}"):
            frame.show(
                tag(
                    "div",
                    finding_chips(one),
                    tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                    tag("div", one.text, cls="lines"),
                )
            )
            st.button("Edit", key=f"edit-{one.id}", type="tertiary", icon=":material/edit:", on_click=_reopen,
                      args=(at, one))  # fmt: skip
    drafts = at.book.values()
    for id, words in forms.begun(drafts).items():
        if id != drafts.get("composer"):
            with st.container(key=f"row-unfinished-{id}"):
                frame.show(_beside("Not added yet", "edit_note", words))
                st.button("Go on with it", key=f"resume-{id}", type="tertiary", icon=":material/edit:",
                          on_click=_resume, args=(at, id))  # fmt: skip
    for left in forms.unreadable(drafts):
        frame.show(_beside("Cannot be read", "error", left.words))


def _beside(chip: str, icon: str, words: str) -> Markup:
    """Something that stands among the findings and is none."""
    return tag("div", theme.chips(theme.chip(chip, "gray", icon)), tag("div", words, cls="lines"))


@failure.guarded
def _resume(at: Sitting, id: str) -> None:
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    resume(book, found, id)


def resume(book: Notebook, found: Memory, id: str) -> bool:
    """Take this one into the composer; what stands there waits in the list below. False where what stands there is not
    kept as it stands: nothing would show it any more."""
    writing = book.values().get("composer", "")
    if writing != id and writing and found.unsettled(book, f"new.{writing}."):
        found.say(book, *UNSETTLED)
        return False
    book.save("composer", id)
    return True


@failure.guarded
def _reopen(at: Sitting, one: Finding) -> None:
    """Take a finding back into the composer, with all it held; what stood there waits in the list below."""
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    if f"finding.{one.id}" not in book.values() or not resume(book, found, one.id):
        return
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
        book.save(f"new.{one.id}.{name}", value)
    book.drop(f"finding.{one.id}")
