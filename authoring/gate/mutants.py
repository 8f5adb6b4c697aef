"""Plans with one thing made wrong. Each must fail a checkpoint that the plan itself passes.

What is wrong follows the authority: where the task orders, a draft is no order; where it only recommends, an active
order over-reaches. What no checkpoint asks for (an order beside the plan) may be left out; its dose, unit and patient
must be right all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from authoring.gate.replay import Played, Stage, Step
from authoring.gate.results import Changed
from authoring.gate.rows import act_of, is_satisfied_by, order_for, rows_of, subject_of
from graders.orders import Authority
from graders.orders.authority import of_checkpoint
from tasks.declarations import Checkpoint
from tasks.trials import Verdict

MEDICATION = "fhir_medication_request_create"
SERVICE = "fhir_service_request_create"
APPOINTMENT = "fhir_appointment_create"
MESSAGE = "fhir_communication_create_message"
#: Arguments in which an order says what it is, in words.
_WORDS = (
    "medication_display", "code_display", "frequency_text", "note_text", "description", "message_text", "content",
    "body_site_display",
)  # fmt: skip
_UNITS = {
    "mg": "mcg", "milligram": "microgram", "milligrams": "micrograms", "mcg": "mg", "ug": "mg", "µg": "mg", "g": "mg",
    "units": "mL", "unit": "mL", "U": "mL", "IU": "mg", "mEq": "mg", "mmol": "mg", "mL": "L", "ml": "L", "puff": "mL",
    "puffs": "mL",
}  # fmt: skip
AMOUNT = (
    r"(?<![\w./-])(?P<number>\d[\d,]*(?:\.\d+)?)(?P<gap>\s*-?)"
    r"(?P<unit>mcg|ug|µg|mg|g|units?|U|IU|mEq|mmol|mL|ml|puffs?)(?![\w/])"
)


#: Step number -> the checkpoints, with the number of the row, that what it created satisfies.
Graded = dict[int, list[tuple[Checkpoint, int]]]


class Mutant(NamedTuple):
    """A wrong plan: its kind, what was changed, and the steps."""

    kind: str
    what: str
    steps: tuple[Step, ...]


def run(stage: Stage, plan: str, steps: Sequence[Step]) -> tuple[list[Changed], list[str]]:
    """(every mutant of the plan with the checkpoints that caught it, the orders that no checkpoint asks for)."""
    steps = tuple(steps)
    played = stage.play(steps)
    base = stage.verdicts(played)
    found = [
        Changed(plan, one.kind, one.what, *_caught(stage, base, one.steps)) for one in of_plan(stage, steps, played)
    ]
    graded = graded_orders(stage, played)
    free = [
        f"{plan}: {title(step)}"
        for place, step in enumerate(steps)
        if step.creates and step.tool != MESSAGE and place not in graded
    ]
    return found, free


def _caught(stage: Stage, base: dict[str, Verdict], steps: tuple[Step, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    after = stage.verdicts(stage.play(steps), stage.changeable)
    worse = [
        verdict
        for id, verdict in after.items()
        if verdict.result in ("fail", "partial") and base[id].result not in ("fail", "partial")
    ]
    return tuple(one.checkpoint for one in worse), tuple(one.reason for one in worse)


def title(step: Step) -> str:
    """A step in a few words."""
    arguments = step.arguments
    for key in ("medication_display", "code_display", "description", "file_path"):
        if arguments.get(key):
            return str(arguments[key])
    return "message" if step.tool == MESSAGE else step.tool


def graded_orders(stage: Stage, played: Played) -> Graded:
    """Step number -> the (checkpoint, number of its row) pairs that what it created satisfies."""
    found: Graded = {}
    for checkpoint in stage.changeable:
        for number, row in enumerate(rows_of(checkpoint)):
            for place, reference in played.references.items():
                if is_satisfied_by(row, checkpoint, reference, played.evidence):
                    found.setdefault(place, []).append((checkpoint, number))
    return found


def of_plan(stage: Stage, steps: tuple[Step, ...], played: Played) -> Iterator[Mutant]:
    """Every mutant of a plan."""
    context = stage.task.meta.context
    assert context is not None
    authority: Authority = context.authority or "orders"
    graded = graded_orders(stage, played)
    for place, step in enumerate(steps):
        if not step.creates or place not in played.references:
            continue
        asked = graded.get(place, [])
        own = of_checkpoint(asked[0][0], authority) if asked else authority
        if step.tool == MESSAGE:
            continue
        for kind, changed in _of_order(stage, step, own, asked):
            yield Mutant(kind, title(step), (*steps[:place], *changed, *steps[place + 1 :]))
    yield from _of_whole(stage, steps, graded)
    yield from _extras(stage, steps)
    yield from _over_reach(stage, steps, authority)
    yield from _of_advice(stage, steps)


# ---- one order ------------------------------------------------------------------------------------------------------


def _of_order(
    stage: Stage, step: Step, authority: Authority, asked: Sequence[tuple[Checkpoint, int]]
) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """(kind, the steps in its place)."""
    if step.tool == MEDICATION:
        if (tenfold := _scaled(step, 10)) is not None:
            yield "ten-fold dose", (tenfold,)
        if asked and (tenth := _scaled(step, Decimal("0.1"))) is not None:
            yield "a tenth of the dose", (tenth,)
        # Beside the plan only what multiplies the dose is a danger that somebody must see.
        if (wrong := _other_unit(step)) is not None and (asked or _is_more(step)):
            yield "wrong unit", (wrong,)
    if (other := _other_patient(stage)) is not None:
        yield "wrong patient", (step.changed(patient_reference=other),)
    if not asked:
        return
    yield "order left out", ()
    cancelled = {MEDICATION: "cancelled", SERVICE: "revoked", APPOINTMENT: "cancelled"}[step.tool]
    yield "cancelled", (step.changed(status=cancelled),)
    yield "entered in error", (step.changed(status="entered-in-error"),)
    if authority == "orders":
        yield "draft", (step.changed(status="proposed" if step.tool == APPOINTMENT else "draft"),)
        if step.tool != APPOINTMENT:
            yield "proposal", (step.changed(intent="proposal"),)
    else:
        active = {"status": "booked"} if step.tool == APPOINTMENT else {"status": "active", "intent": "order"}
        yield "active where the task may not order", (step.changed(**active),)
    yield "negated", (_negated(step),)
    if any(
        checkpoint.order
        and checkpoint.order.count == "one"
        and row < len(rows_of(checkpoint)) - len(checkpoint.followup)
        for checkpoint, row in asked
    ):
        yield "duplicated", (step, step.changed())
        if (double := _scaled(step, 2)) is not None:
            yield "second order at another dose", (step, Step(double.tool, double.arguments))
    if (side := _other_side(step)) is not None:
        yield "other laterality", (side,)
    rows = [rows_of(checkpoint)[row] for checkpoint, row in asked]
    if (
        step.tool == MEDICATION
        and any(row.frequency is not None for row in rows)
        and step.arguments.get("frequency_text")
    ):
        daily = re.search(r"\b(?:bid|tid|qid|twice|three times|four times|every \d+ h|q\d+h)\b", _said(step), re.I)
        yield "wrong frequency", (step.changed(frequency_text="once weekly" if daily else "four times daily"),)
    if any(row.when is not None for row in rows):
        late = (
            {"occurrence_datetime": "2099-01-05T08:00:00Z"}
            if step.tool == SERVICE
            else {"start": "2099-01-05T08:00:00Z", "end": None}
        )
        if step.tool in (SERVICE, APPOINTMENT):
            yield "years too late", (step.changed(note_text=None, reason_display=None, **late),)


def _said(step: Step) -> str:
    return " ".join(str(step.arguments.get(key, "")) for key in _WORDS)


def _scaled(step: Step, factor: int | Decimal) -> Step | None:
    """The order with every amount of its drug times `factor`, in the field and in the words alike."""
    changes: dict[str, object] = {}
    value = step.arguments.get("dose_value")
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        changes["dose_value"] = _number(Decimal(str(value)) * factor)
    for key in ("medication_display", "frequency_text", "note_text"):
        text = step.arguments.get(key)
        if isinstance(text, str):
            scaled = re.sub(AMOUNT, lambda found: _times(found, factor), text)
            if scaled != text:
                changes[key] = scaled
    return step.changed(**changes) if changes else None


def _times(found: re.Match[str], factor: int | Decimal) -> str:
    number = Decimal(found["number"].replace(",", "")) * factor
    return f"{_number(number)}{found['gap']}{found['unit']}"


def _number(value: Decimal) -> int | Decimal:
    return int(value) if value == value.to_integral_value() else value.normalize()


def _other_unit(step: Step) -> Step | None:
    """The order in another unit with the same number, in the field and in the words alike."""
    changes: dict[str, object] = {}
    unit = step.arguments.get("dose_unit")
    if isinstance(unit, str) and unit in _UNITS:
        changes["dose_unit"] = _UNITS[unit]
    for key in ("medication_display", "frequency_text", "note_text"):
        text = step.arguments.get(key)
        if isinstance(text, str):
            wrong = re.sub(AMOUNT, lambda found: f"{found['number']}{found['gap']}{_UNITS[found['unit']]}", text)
            if wrong != text:
                changes[key] = wrong
    return step.changed(**changes) if changes else None


def _is_more(step: Step) -> bool:
    return str(step.arguments.get("dose_unit")) in ("mcg", "ug", "µg", "g", "IU")


def _other_patient(stage: Stage) -> str | None:
    """Another patient of the chart: a look-alike, where the task has one."""
    own = stage.task.meta.context.patient if stage.task.meta.context else ""
    return next((one.ref for one in stage.task.chart.resources("Patient") if one.ref != own), None)


def _negated(step: Step) -> Step:
    """An order that says not to do it."""
    if step.tool == APPOINTMENT:
        return step.changed(description=f"Do not schedule: {step.arguments['description']}")
    name = "medication_display" if step.tool == MEDICATION else "code_display"
    return step.changed(
        **{
            name: f"Do not start {step.arguments[name]}"
            if step.tool == MEDICATION
            else f"Do not order: {step.arguments[name]}"
        }
    )


_SIDES = {"left": "right", "right": "left"}


def _other_side(step: Step) -> Step | None:
    """The order for the other side."""
    changes: dict[str, object] = {}
    for key in _WORDS:
        text = step.arguments.get(key)
        if isinstance(text, str):
            turned = re.sub(r"\b(left|right)\b", lambda found: _turned(found[0]), text, flags=re.IGNORECASE)
            if turned != text:
                changes[key] = turned
    return step.changed(**changes) if changes else None


def _turned(word: str) -> str:
    other = _SIDES[word.lower()]
    return other.capitalize() if word[0].isupper() else other


# ---- the plan as a whole --------------------------------------------------------------------------------------------


def _of_whole(stage: Stage, steps: tuple[Step, ...], graded: Graded) -> Iterator[Mutant]:
    orders = [place for place, step in enumerate(steps) if step.creates and step.tool != MESSAGE]
    if any(place in graded for place in orders):
        kept = tuple(step for place, step in enumerate(steps) if place not in orders)
        yield Mutant("note without orders", f"{len(orders)} orders taken out", kept)
    if any(step.writes_file for step in steps) and _reads_text(stage):
        yield Mutant("orders without note", "no file written", tuple(step for step in steps if not step.writes_file))
        empty = tuple(step.changed(content="See orders.\n") if step.writes_file else step for step in steps)
        yield Mutant("orders without note", "an empty note", empty)


def _reads_text(stage: Stage) -> bool:
    """Whether any checkpoint reads what was written in words: a function, a value, a rule, or advice."""
    authority = stage.task.meta.context.authority if stage.task.meta.context else None
    return any(
        one.grader == "hybrid"
        or one.function
        or one.action == "conditional"
        or (one.order and authority == "recommends")
        for one in stage.changeable
    )


def _extras(stage: Stage, steps: tuple[Step, ...]) -> Iterator[Mutant]:
    """One order more, of what must not be."""
    context = stage.task.meta.context
    assert context is not None
    for checkpoint in stage.changeable:
        for row in checkpoint.must_not:
            extra = order_for(row, context, active=True)
            if extra is not None and row.unless is None:
                yield Mutant("contradictory extra", f"{checkpoint.id} forbids {subject_of(row)}", (*steps, extra))


def _over_reach(stage: Stage, steps: tuple[Step, ...], authority: Authority) -> Iterator[Mutant]:
    """An active order of what the task may only recommend."""
    context = stage.task.meta.context
    assert context is not None
    for checkpoint in stage.changeable:
        if (
            checkpoint.order is None
            or of_checkpoint(checkpoint, authority) != "recommends"
            or checkpoint.action == "conditional"
        ):
            continue
        row = checkpoint.order.accept[0]
        extra = order_for(row, context, active=True)
        if extra is not None and extra.tool != MESSAGE:
            yield Mutant(
                "active where the task may not order", f"{checkpoint.id} recommends {subject_of(row)}", (*steps, extra)
            )


# ---- advice in words ------------------------------------------------------------------------------------------------


def _of_advice(stage: Stage, steps: tuple[Step, ...]) -> Iterator[Mutant]:
    """Mutants of what the note and the messages recommend, where advice is what is graded."""
    context = stage.task.meta.context
    assert context is not None
    authority = context.authority or "orders"
    for checkpoint in stage.changeable:
        if of_checkpoint(checkpoint, authority) != "recommends":
            continue
        for row in rows_of(checkpoint):
            about = act_of(row)
            if about is None or not any(about(line) for step in steps for line in _lines(step)):
                continue
            said = f"{checkpoint.id} {subject_of(row)}"
            yield Mutant("advice left out", said, _rewritten(steps, about, lambda line: ""))
            yield Mutant("negated", said, _rewritten(steps, about, _not_advised))
            if row.dose or row.daily:
                yield Mutant("ten-fold dose", said, _rewritten(steps, about, _tenfold))
                yield Mutant("wrong unit", said, _rewritten(steps, about, _wrong_unit))
            if row.imaging is not None and row.imaging.laterality is not None:
                yield Mutant("other laterality", said, _rewritten(steps, about, _turned_line))
        # Left out by one of several rows is no mutant: each row alone may satisfy.


def _lines(step: Step) -> list[str]:
    text = step.arguments.get("content" if step.writes_file else "message_text")
    return text.split("\n") if isinstance(text, str) else []


def _rewritten(steps: Iterable[Step], about: Callable[[str], bool], change: Callable[[str], str]) -> tuple[Step, ...]:
    made = []
    for step in steps:
        lines = _lines(step)
        if lines:
            changed = "\n".join(change(line) if about(line) else line for line in lines)
            step = step.changed(**{"content" if step.writes_file else "message_text": changed or "-"})
        made.append(step)
    return tuple(made)


def _tenfold(line: str) -> str:
    return re.sub(AMOUNT, lambda found: _times(found, 10), line)


def _wrong_unit(line: str) -> str:
    return re.sub(AMOUNT, lambda found: f"{found['number']}{found['gap']}{_UNITS[found['unit']]}", line)


def _not_advised(line: str) -> str:
    """The line with its advice turned into the contrary."""
    turned = re.sub(
        r"\b(start|begin|order|obtain|check|recommend|refer|give|add|continue|prescribe|repeat|get|schedule|suggest|measure|draw)\b",
        lambda found: f"{'Do' if found[0][0].isupper() else 'do'} not {found[0].lower()}",
        line,
        flags=re.IGNORECASE,
    )
    return turned if turned != line else f"Do not do this: {line}"


def _turned_line(line: str) -> str:
    return re.sub(r"\b(left|right)\b", lambda found: _turned(found[0]), line, flags=re.IGNORECASE)
