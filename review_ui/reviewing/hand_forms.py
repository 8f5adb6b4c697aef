"""The three forms of a change by hand: the instruction in place, the values of a chart's entry, a checkpoint's fields.

Each gives what it would change as exact edits, and says what it cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import streamlit as st

from authoring import tomltext
from authoring.clinical import label
from authoring.edits import Edit, Package, unit_bytes
from graders.describe import describe, zone_of
from graders.orders import check_declaration
from graders.words import words_in
from review_ui import checkpoints, failure, frame
from review_ui.autosave import area
from review_ui.autosave.choices import Row, sheet
from review_ui.markup import tag
from review_ui.reviewing import fields, forms, handmade
from review_ui.reviewing.findings_view import entries, titles
from review_ui.reviewing.handmade import Leaf
from review_ui.reviewing.sitting import Sitting
from tasks.errors import UsageError
from tasks.package import load


@dataclass(frozen=True)
class Form:
    """What is changed, the drafts that the form holds, and what they come to.

    `makes` raises UsageError, EditError and PackageError, each with one message for the reader.
    """

    what: str
    items: tuple[str, ...]
    makes: Callable[[Mapping[str, str]], tuple[Edit, ...]]


def instruction(at: Sitting) -> Form:
    """The text in place."""
    text = at.task.instruction
    item = f"hand.instruction.{at.at.package[:12]}"
    area(at.book, item, "The instruction, as it should read", rows=14, start=text)
    return Form(
        "instruction", (item,),
        lambda values: handmade.text_edits(at.at.files, "instruction.md", values.get(item, text)),
    )  # fmt: skip


# ---- an entry of the chart ------------------------------------------------------------------------------------------


def resource(at: Sitting) -> Form | None:
    """One entry's values, once it was found by its words or among the rows of its kind."""
    if at.at.meta.context is None:
        frame.show(tag("p", "This draft names no patient yet, so that its chart cannot be shown.", cls="sm mute"))
        return None
    chosen = at.book.values().get("hand.entry", "")
    found = at.task.chart.get(chosen) if chosen else None
    if found is None:
        _pick_entry(at)
        return None
    with st.container(horizontal=True, vertical_alignment="center", key="row-hand-entry"):
        said = describe(found, zone_of(at.task))
        frame.show(tag("div", tag("span", said, cls="b"), tag("span", f" {found.ref}", cls="xs mute")))
        st.button("Another entry", key="hand-other", icon=":material/search:", on_click=_choose, args=(at, ""))
    line = unit_bytes(at.at.files, f"chart/{found.type}.ndjson#{found.id}")
    if line is None:
        frame.show(tag("p", "This entry stands in a packed file and cannot be changed here.", cls="sm warn"))
        return None
    prefix = f"hand.{found.ref}"
    every = handmade.leaves(found.body)
    plain = [one for one in every if not handmade.for_a_machine(one)]
    items = {one.pointer: f"{prefix}.{one.pointer}" for one in every}
    _long(at, plain, items)
    rows = [_line(items[one.pointer], one) for one in plain if not _is_long(one)]
    if handmade.may_comment(found.body):
        items[handmade.COMMENT] = f"{prefix}.{handmade.COMMENT}"
        rows.append(fields.stacked(items[handmade.COMMENT], "Comment (none so far)", {}, "line", half=True))
    sheet(at.book, prefix, rows)
    rest = [one for one in every if handmade.for_a_machine(one)]
    if rest:
        with st.expander(f"Codes, links and origins: {len(rest)} more fields"):
            sheet(at.book, f"{prefix}.rest", [_line(items[one.pointer], one) for one in rest])
    frame.show(
        tag("p", "Dates as 2026-03-09 or 2026-03-09T08:15:00-05:00. Not here: a new entry, an entry taken out, a field "
            "that it does not have yet. Say it in a finding, or ask the author.", cls="sm mute")
    )  # fmt: skip

    def makes(values: Mapping[str, str]) -> tuple[Edit, ...]:
        typed = {pointer: values[item] for pointer, item in items.items() if item in values}
        return handmade.resource_edits(line, found.ref, typed)

    return Form(found.ref, (*items.values(), "hand.entry"), makes)


@failure.guarded
def _choose(at: Sitting, ref: str) -> None:
    at.book.again().save("hand.entry", ref)


def _pick_entry(at: Sitting) -> None:
    """Search the chart's rows by words; each row has the button that takes it."""
    words = st.text_input(
        "Which entry? Words of it", key="hand-search", placeholder="creatinine, losartan, phone call …"
    )
    lines, more = entries(at.at.chart, (words or "").strip())
    for one in lines:
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-hand-{one.ref}"):
            frame.show(
                tag("div", tag("div", one.what[:120], tag("span", f" {one.detail[:80]}", cls="sm mute")),
                    tag("div", f"{one.kind} · {one.when or 'no date'}", cls="xs mute"))
            )  # fmt: skip
            st.button("Change", key=f"hand-take-{one.ref}", on_click=_choose, args=(at, one.ref))
    said = "No entry of the chart holds these words." if not lines else f"{more:,} more: add a word." if more else ""
    if said:
        frame.show(tag("p", said, cls="sm mute", role="status"))


def _is_long(one: Leaf) -> bool:
    return one.note or len(one.text) > 120


def _long(at: Sitting, every: Sequence[Leaf], items: Mapping[str, str]) -> None:
    for one in every:
        if _is_long(one):
            name = "Text of the note" if one.note else label(one.pointer)
            area(at.book, items[one.pointer], name, rows=8 if one.note else 4, start=one.text)


def _line(item: str, one: Leaf) -> Row:
    return fields.stacked(item, _named(one.pointer), {}, "line", start=one.text, half=True)


def _named(pointer: str) -> str:
    """ "Value" and "Value: unit", "Directions: dose"; what a thing says first goes without saying."""
    return label(pointer).removesuffix(": value").removesuffix(": text")


# ---- a checkpoint ---------------------------------------------------------------------------------------------------

#: What a row of a declared order may say, in words; what it does not say is offered for the first two groups.
_SAYS = {
    "ingredient": "ingredient", "class": "drug class", "dose": "dose", "frequency": "frequency", "route": "route",
    "duration": "duration", "test": "test", "specimen": "specimen", "imaging": "imaging", "referral": "referral to",
    "procedure": "procedure", "urgency": "urgency", "when": "when",
}  # fmt: skip
_OF_A_DRUG = ("dose", "frequency", "route")
_LISTS = {"followup": "Follow-up", "must_not": "Forbidden"}


@dataclass(frozen=True)
class _Cell:
    """One value of a row of a declared order: where it stands, and its words."""

    place: tuple[str, ...]  # ("order", "accept", "0", "dose")
    words: str
    text: str


def checkpoint(at: Sitting) -> Form | None:
    """Keys of one checkpoint in a form, below what it asks for in plain words."""
    names = titles(at.task)
    id = fields.pick(at.book, "hand.cp", "Checkpoint", names, at.book.values(), placeholder="Choose a checkpoint")
    now = next((one for one in at.task.checkpoints if one.id == id), None)
    if now is None:
        return None
    declared = tomltext.table(at.at.files["checkpoints.toml"].decode(), id)
    said = words_in(at.task, now)
    frame.show(tag("div", checkpoints.card(list(names).index(id) + 1, now, said, (), headed=False), cls="soft"))
    prefix = f"hand.{id}.{at.at.package[:12]}"
    cells = tuple(_cells(declared))
    harm = declared.get("harm") or {}
    rows = [
        fields.stacked(f"{prefix}.title", "Title", {}, "line", start=str(declared["title"])),
        _picked(f"{prefix}.criticality", "Criticality", ("critical", "required", "optional"), declared["criticality"]),
        _picked(f"{prefix}.kind", "Harm by", ("", "omission", "commission"), harm.get("kind", "")),
        _picked(f"{prefix}.severity", "Severity", ("", *forms.SEVERITIES), harm.get("severity", "")),
        _picked(f"{prefix}.likelihood", "Likelihood", ("", *forms.LIKELIHOODS), harm.get("likelihood", "")),
    ]
    if "tolerance" in declared:
        words = f"Tolerance, {now.unit}" if now.unit else "Tolerance"
        rows.append(
            fields.stacked(f"{prefix}.tolerance", words, {}, "line", start=str(declared["tolerance"]), half=True)
        )
    rows += [
        fields.stacked(f"{prefix}.{'.'.join(cell.place)}", cell.words, {}, "line", start=cell.text, half=True)
        for cell in cells
    ]
    if declared.get("order"):
        rows += [
            fields.stacked(f"{prefix}.also.{key}", f"Also accept: {_SAYS[key]} (empty = nothing more)", {}, "line",
                           half=True)
            for key in ("ingredient", *_OF_A_DRUG)
        ]  # fmt: skip
    if now.grader == "code":
        rows.append(
            fields.stacked(
                f"{prefix}.forbid", "Forbid as well: ingredient (empty = nothing more)", {}, "line", half=True
            )
        )
    sheet(at.book, prefix, rows)
    frame.show(
        tag("p", "Not here: what the note must say where code or a rubric judges it, what it rests on, its sources, a "
            "new checkpoint. Say it in a finding, let a model draft it, or ask the author.", cls="sm mute")
    )  # fmt: skip

    def makes(values: Mapping[str, str]) -> tuple[Edit, ...]:
        mine = {item.removeprefix(f"{prefix}."): text for item, text in values.items() if item.startswith(f"{prefix}.")}
        edits = handmade.checkpoint_edits(at.at.files, id, wanted(declared, cells, mine))
        if edits:
            _readable(at, id, edits)
        return edits

    return Form(id, (*(row.item for row in rows), "hand.cp"), makes)


def _picked(item: str, name: str, values: Sequence[str], start: Any) -> Row:
    return fields.stacked(item, name, {one: one.capitalize() or "None" for one in values}, "pick", start=str(start),
                          half=True)  # fmt: skip


def _cells(declared: Mapping[str, Any]) -> Iterator[_Cell]:
    order = declared.get("order") or {}
    for key, name in (("accept", "Accepted"), ("also_accept", "Also accepted")):
        yield from _row_cells(("order", key), name, order.get(key) or [])
    for key, name in _LISTS.items():
        yield from _row_cells((key,), name, declared.get(key) or [])


def _row_cells(place: tuple[str, ...], name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[_Cell]:
    for number, row in enumerate(rows):
        lead = f"{name} {number + 1}" if len(rows) > 1 else name
        for key, words in _SAYS.items():
            offered = key in _OF_A_DRUG and ("ingredient" in row or "class" in row)
            if isinstance(row.get(key), str) or (offered and key not in row):
                yield _Cell((*place, str(number), key), f"{lead}: {words}", str(row.get(key, "")))


def wanted(declared: Mapping[str, Any], cells: Sequence[_Cell], typed: Mapping[str, str]) -> dict[str, Any]:
    """The keys of a checkpoint as they should be, from what was typed by the fields' names. Raises UsageError."""
    out: dict[str, Any] = {}
    if "title" in typed:
        if not typed["title"].strip():
            raise UsageError("A checkpoint needs a title.")
        out["title"] = typed["title"].strip()
    if typed.get("criticality"):
        out["criticality"] = typed["criticality"]
    was = declared.get("harm") or {}
    harm = {key: typed.get(key, str(was.get(key, ""))) for key in ("kind", "severity", "likelihood")}
    if harm != {key: str(was.get(key, "")) for key in harm}:
        if any(harm.values()) and not all(harm.values()):
            raise UsageError("Harm is said whole: by what, how severe, how likely; or not at all.")
        out["harm"] = harm if all(harm.values()) else None
    if "tolerance" in typed and typed["tolerance"] != str(declared.get("tolerance")):
        try:
            out["tolerance"] = float(Decimal(typed["tolerance"].strip()))
        except InvalidOperation:
            raise UsageError(f"The tolerance is a number; “{typed['tolerance']}” is none.") from None
    tables: dict[str, Any] = {
        key: handmade.plain(declared[key]) for key in ("order", *_LISTS) if declared.get(key) is not None
    }
    for cell in cells:
        text = typed.get(".".join(cell.place), cell.text).strip()
        if text == cell.text:
            continue
        row: Any = tables
        for part in cell.place[:-1]:
            row = row[int(part)] if isinstance(row, list) else row[part]
        if text:
            row[cell.place[-1]] = text
        else:
            row.pop(cell.place[-1])
            if not row:
                raise UsageError(f"{cell.words}: an order that says nothing cannot be asked for.")
    more = {key: text for key in ("ingredient", *_OF_A_DRUG) if (text := typed.get(f"also.{key}", "").strip())}
    if more:
        if "ingredient" not in more:
            raise UsageError("Another order to accept needs its ingredient.")
        tables["order"]["also_accept"] = [*tables["order"].get("also_accept", []), more]
    if forbidden := typed.get("forbid", "").strip():
        tables["must_not"] = [*tables.get("must_not", []), {"ingredient": forbidden}]
    return out | tables


def _readable(at: Sitting, id: str, edits: Sequence[Edit]) -> None:
    """Raise where the grader could not read the checkpoint as it would be."""
    package = Package(at.at.files)
    for edit in edits:
        package = package.apply(edit)
    after = load(package.files(), where=at.at.task_id)
    for one in after.checkpoints:
        if one.id == id and (wrong := check_declaration(one)):
            raise UsageError(f"The grader cannot read this: {'; '.join(str(fault) for fault in wrong[:3])}.")
