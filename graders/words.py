"""Plain words for physicians, generated from a checkpoint's declaration and never written beside it.

words = words_in(task, checkpoint)
words.passes  -> ("Semaglutide 0.25 mg once weekly by subcutaneous injection, as an active order",)
words.fails   -> ("No such order, or one with another dose, frequency or route", ...)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal, TypeVar

from graders import phrases
from graders.describe import describe, zone_of
from graders.truths import TRUTHS
from tasks.declarations import LATEST, Checkpoint, Harm, Imaging, MustNotRow, OrderRow, OrderType, Source, Step, Taper
from tasks.fhir.chart import Records
from tasks.package import Task
from tasks.taxonomy import Authority

Form = Literal["orders", "pends", "recommends", "conditional", "open"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class PlainWords:
    """One checkpoint as a physician reads it. Alternatives stand apart in `passes` where `any_of` is set.

    `passes`: what it takes; `also`: what must come with it; `partial`: the middle level of a rubric, "" without one;
    `fails`: what fails it; `harm`: the harm if it fails, "" where it is no safety checkpoint; `rests_on`: the facts it
    rests on; `sources`: the guidance.
    """

    title: str
    passes: tuple[str, ...]
    fails: tuple[str, ...]
    sources: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    partial: str = ""
    harm: str = ""
    rests_on: tuple[str, ...] = ()
    any_of: bool = False


def plain_words(
    checkpoint: Checkpoint,
    *,
    authority: Authority | None = None,
    code: str | None = None,
    records: Records | None = None,
    zone: tzinfo | None = None,
) -> PlainWords:
    """The checkpoint in plain words.

    `authority`: the task's, which says in what form an order is due; `code`: checkpoints.py, whose docstrings say what
    a function checks; `records`: the chart, so that facts are named by what they say and not by their id alone; `zone`:
    the task's, in which their days are told.
    """
    passes, also, fails, partial = _content(checkpoint, authority, code, records, zone)
    return PlainWords(
        title=checkpoint.title,
        passes=tuple(map(_sentence_case, passes)),
        also=tuple(map(_sentence_case, also)),
        partial=partial,
        fails=tuple(map(_sentence_case, fails)),
        harm=harm_words(checkpoint.harm) if checkpoint.harm else "",
        rests_on=tuple(fact_words(fact, records, zone) for fact in checkpoint.rests_on),
        sources=tuple(map(source_words, checkpoint.source)),
        any_of=checkpoint.order is not None and len(passes) > 1,
    )


def words_in(task: Task, checkpoint: Checkpoint, records: Records | None = None) -> PlainWords:
    """The checkpoint as its task tells it: with the task's authority, code and zone, facts named by its chart.

    `records`: another chart to name them by; one that is indexed already saves the time to read it.
    """
    return plain_words(
        checkpoint,
        authority=task.meta.context.authority if task.meta.context else None,
        code=task.code,
        records=task.chart if records is None else records,
        zone=zone_of(task),
    )


def _content(
    checkpoint: Checkpoint,
    authority: Authority | None,
    code: str | None,
    records: Records | None,
    zone: tzinfo | None,
) -> tuple[list[str], list[str], list[str], str]:
    """(passes, also, fails, partial) by the checkpoint's grader."""
    if checkpoint.grader == "judge" and checkpoint.rubric:
        rubric = checkpoint.rubric
        return [f"{rubric.passed} (in {file_words(checkpoint.file)})"], [], [rubric.fail], rubric.partial or ""
    if checkpoint.grader == "hybrid" and checkpoint.extract:
        within = f"{checkpoint.tolerance:g}" if checkpoint.tolerance else ""
        unit = f" {checkpoint.unit}" if checkpoint.unit else ""
        margin = f"within {within}{unit} of" if within else "equal to"
        file = file_words(checkpoint.extract.file)
        value = truth_words(checkpoint.truth or "", code)
        off = "further off" if within else "off"
        return (
            [f"the file {file} states {value}, {margin} what the chart gives"],
            [],
            [f"no such value in {file}, or one that is {off}"],
            "",
        )
    return _code_content(checkpoint, authority, code, records, zone)


def _code_content(
    checkpoint: Checkpoint,
    authority: Authority | None,
    code: str | None,
    records: Records | None,
    zone: tzinfo | None,
) -> tuple[list[str], list[str], list[str], str]:
    passes: list[str] = []
    also: list[str] = []
    fails: list[str] = []
    partial = ""
    if order := checkpoint.order:
        form = form_of(checkpoint, authority)
        rows = (*order.accept, *order.also_accept)
        passes += [f"{order_words(row, order.type)}, {form_words(row.type or order.type, form)}" for row in rows]
        keys = {key for row in rows for key in _checked(row)}
        other = f", or one with another {_either([k for k in phrases.CHECKED if k in keys])}" if keys else ""
        fails.append(f"{'no such message' if order.type == 'Communication' else 'no such order'}{other}")
        fails += _form_fails(form)
        if order.count == "one":
            fails.append("a second order of the same kind")
    fails += [must_not_words(row) for row in checkpoint.must_not]
    if checkpoint.must_not and not checkpoint.order:
        passes.append("none of what is listed under “Fails with” is there")
    for row in checkpoint.followup:
        also.append(f"follow-up: {order_words(row, row.type or 'ServiceRequest')}")
    if checkpoint.followup:
        fails.append("a follow-up that is missing or outside its window")
    if checkpoint.seen:
        facts = [fact_words(fact, records, zone) for fact in checkpoint.seen]
        also.append(f"the agent was shown {'all of: ' if len(facts) > 1 else ''}{'; '.join(facts)}")
        several = len(facts) > 1
        lost = "none of these facts was" if several else "this was not"
        fails.append(f"{lost} in a result that the agent was shown")
        partial = "Only some of these facts were shown." if several else ""
    if checkpoint.function:
        said = function_words(checkpoint.function, code)
        also.append(said or f"the check “{checkpoint.function.replace('_', ' ')}” in checkpoints.py holds")
    if not passes:
        passes, also = also, []
    if not fails:
        fails = ["anything less"]
    return passes, also, fails, partial


# ---- one order row --------------------------------------------------------------------------------------------------


def order_words(row: OrderRow, type: OrderType) -> str:
    """One row as a physician would say the order, without its form: "apixaban 5 mg twice daily by mouth"."""
    parts = [_subject(row, row.type or type), *_drug_parts(row), *_common_parts(row)]
    return " ".join(part for part in parts if part).replace(" ,", ",")


def _subject(row: OrderRow, type: OrderType) -> str:
    subject = ""
    if row.ingredient:
        subject = f"{row.ingredient}{' (as one product or apart)' if row.split else ''}"
    elif row.drug_class:
        subject = f"any {row.drug_class}"
    elif row.test:
        subject = f"laboratory test: {row.test} (or a panel that contains it)"
    elif row.imaging:
        subject = imaging_words(row.imaging)
    elif row.referral:
        subject = f"{'appointment with' if type == 'Appointment' else 'referral to'} {row.referral}"
    elif row.procedure:
        subject = f"procedure: {row.procedure}"
    elif row.trigger or row.act:
        subject = ""
    else:
        subject = {
            "MedicationRequest": "a medication order",
            "ServiceRequest": "an order",
            "Appointment": "an appointment",
            "Communication": "a message",
        }[type]
    if row.ingredient and row.drug_class:
        subject = f"{subject} (as {row.drug_class})"
    if row.test and (row.ingredient or row.drug_class):
        subject = f"{subject} and {row.test}"
    return subject


def _drug_parts(row: OrderRow) -> list[str]:
    parts = []
    if row.release:
        parts.append(f"{row.release}-release")
    if row.dose:
        parts.append(phrases.amount(row.dose))
    if row.frequency:
        parts.append(_either([phrases.frequency(f) for f in _several(row.frequency)]))
    if row.daily:
        parts.append(f"{'at' if not row.dose else ', in all'} {phrases.amount(row.daily)} a day")
    if row.route:
        parts.append(_either([phrases.ROUTES[route] for route in _several(row.route)]))
    if row.prn is not None:
        parts.append("as needed" if row.prn else "on a schedule, not as needed")
    if row.max_daily:
        parts.append(f"with a stated maximum of {phrases.amount(row.max_daily)} a day")
    if row.steps:
        parts.append(steps_words(row.steps))
    if row.taper:
        parts.append(taper_words(row.taper))
    if row.duration:
        parts.append(f"for {phrases.span(row.duration)}")
    return parts


def _common_parts(row: OrderRow) -> list[str]:
    parts = []
    if row.urgency and row.urgency != "routine":
        parts.append(f", marked {phrases.URGENCIES[row.urgency]}")
    if row.when:
        parts.append(f", due in {phrases.span(row.when)} from the date of the task")
    if row.trigger:
        parts.append(f"if {row.trigger}:")
    if row.act:
        parts.append(f"{'then ' if row.trigger else ''}{row.act}")
    if row.owner:
        parts.append(f", done by {row.owner}")
    if row.reason:
        parts.append(f", with the reason given: {row.reason}")
    if row.replaces:
        parts.append(f", in place of {row.replaces}, which is stopped")
    return parts


def must_not_words(row: MustNotRow) -> str:
    """What must not be ordered, and what makes it right after all."""
    said = f"{order_words(row, row.type or 'MedicationRequest')}, ordered or recommended"
    if row.unless:
        said += f" — unless there is {order_words(row.unless, row.unless.type or 'MedicationRequest')}"
    return said


def imaging_words(imaging: Imaging) -> str:
    """ "MRI of the brain with contrast"."""
    side = f"{_either(list(_several(imaging.laterality)))} " if imaging.laterality else ""
    said = f"{imaging.modality} of the {side}{imaging.site}"
    if imaging.contrast:
        said += f" {_either([phrases.CONTRASTS[contrast] for contrast in _several(imaging.contrast)])}"
    return said


def steps_words(steps: Sequence[Step]) -> str:
    """ "10 mg twice daily for 7 days, then 5 mg twice daily"."""
    said = []
    for step in steps:
        lasting = f" for {phrases.span(step.duration)}" if step.duration else ""
        said.append(f"{phrases.amount(step.dose)} {phrases.frequency(step.frequency)}{lasting}")
    return ", then ".join(said)


def taper_words(taper: Taper) -> str:
    """ "tapered from 40 mg in steps of 10 mg every 7 days, down to 10 mg"."""
    every = phrases.span(taper.interval).removeprefix("1 ")
    return (
        f"tapered from {phrases.amount(taper.first_dose)} in steps of {phrases.amount(taper.step)}"
        f" every {every}, down to {phrases.amount(taper.end)}"
    )


def _checked(row: OrderRow) -> list[str]:
    return [word for key, word in phrases.CHECKED_KEYS.items() if getattr(row, key) is not None]


# ---- who acts, in what form ------------------------------------------------------------------------------------------


def form_of(checkpoint: Checkpoint, authority: Authority | None) -> Form:
    """In what form this checkpoint's order is due: the task's authority decides, pend and recommend override it."""
    by_action: dict[str, Form] = {"pend": "pends", "recommend": "recommends", "conditional": "conditional"}
    return by_action.get(checkpoint.action) or authority or "open"


def form_words(type: OrderType, form: Form) -> str:
    """ "as an active order"."""
    if form == "conditional":
        return "stated as a condition in an order, a message, or the note"
    if form == "open":
        return "in the form that the task's authority asks for"
    if form == "recommends":
        return "recommended in a message or the note, or as a draft, not as an active order"
    return phrases.FORMS[(type, form)]


def _form_fails(form: Form) -> list[str]:
    if form == "orders":
        return ["only a draft, a cancelled or stopped order, one for another patient, or only a mention in the note"]
    if form == "pends":
        return ["an active order (more than the task allows), a cancelled draft, or one for another patient"]
    if form == "recommends":
        return ["an active order (more than the task allows), or a recommendation against it"]
    if form == "conditional":
        return ["a condition without its threshold, action, or owner, or an order placed now"]
    return []


# ---- the rest of a checkpoint ----------------------------------------------------------------------------------------


def harm_words(harm: Harm) -> str:
    """ "Severe harm, likely, from leaving it out"."""
    if harm.severity == "none":
        return "No harm expected"
    what = "Death" if harm.severity == "death" else f"{harm.severity.capitalize()} harm"
    cause = "from leaving it out" if harm.kind == "omission" else "from what is done"
    return f"{what}, {harm.likelihood}, {cause}"


def source_words(source: Source) -> str:
    """ "ACC/AHA 2023, section 6.3, strength 1 (not yet verified)"."""
    said = f"{source.org} {source.year}"
    said += f", {source.title}" if source.title else ""
    numbered = re.match(r"\d+(?:\.\d+)*(?![\d:])", source.section)
    said += f", {'section ' if numbered else ''}{source.section}" if source.section else ""
    said += f", strength {source.strength}" if source.strength else ""
    said += f", superseded by {source.superseded_by}" if source.superseded_by else ""
    return said if source.verified else f"{said} (not yet verified)"


def fact_words(fact: str, records: Records | None = None, zone: tzinfo | None = None) -> str:
    """A `rests_on` entry: what the resource says where the chart is at hand, and its reference."""
    ref, _, quote = fact.partition("#")
    quote = quote.removeprefix('"').removesuffix('"')
    if ref == "instruction":
        return f"the instruction: “{quote}”" if quote else "the instruction"
    resource = records.get(ref) if records is not None else None
    named = f"{describe(resource, zone)} ({ref})" if resource is not None else ref
    return f"“{quote}” in {named}" if quote else named


def file_words(path: str | None) -> str:
    """A deliverable by its name alone."""
    return (path or "").rsplit("/", 1)[-1]


def function_words(name: str, code: str | None) -> str:
    """The first paragraph of the function's docstring, read and not run; "" where there is none."""
    try:
        tree = ast.parse(code or "")
    except (SyntaxError, ValueError, RecursionError):
        return ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split()).rstrip(".")
    return ""


def truth_words(name: str, code: str | None) -> str:
    """What a truth function computes."""
    if name in TRUTHS:
        return TRUTHS[name][0]
    if name.startswith(LATEST):
        return f"the latest value with code {name.removeprefix('latest:')}"
    return function_words(name, code) or f"the value “{name.replace('_', ' ')}”"


def _several(value: Item | tuple[Item, ...]) -> tuple[Item, ...]:
    return value if isinstance(value, tuple) else (value,)


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _sentence_case(text: str) -> str:
    # A name such as "eGFR" or "pH" keeps its first letter.
    return text if re.match(r"[a-z]+[A-Z]", text) else text[:1].upper() + text[1:]
