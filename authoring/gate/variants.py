"""Plans changed in what does not matter. Each must pass whatever the plan passes: equal behaviour is graded equally."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from authoring.gate.mutants import AMOUNT, MEDICATION, MESSAGE, SERVICE, Graded, graded_orders, title
from authoring.gate.replay import Stage, Step
from authoring.gate.results import Changed
from authoring.gate.rows import day_at, order_for, rows_of, subject_of
from graders import tables
from graders.orders import drugs, durations, frequencies, services
from graders.orders.authority import of_checkpoint
from graders.orders.text import normal
from tasks.declarations import OrderRow
from tasks.manifest import Context
from tasks.plans import placeholders

_LOINC, _LOCAL = "http://loinc.org", "http://hospital.example/codes"
#: A frequency in other words. q12h satisfies BID; the converse is left out, since it does not.
_SAME_FREQUENCY: dict[tuple[str, int], tuple[str, ...]] = {
    ("per_day", 1): ("qd", "every day", "once a day", "q24h"),
    ("per_day", 2): ("BID", "twice a day", "q12h"),
    ("per_day", 3): ("TID", "three times a day", "q8h"),
    ("per_day", 4): ("QID", "four times daily", "q6h"),
    ("days", 2): ("every other day", "q48h"),
    ("days", 7): ("once a week", "weekly", "every 7 days"),
    ("once", 1): ("once", "x1", "single dose"),
}
_UNIT_UP = {"mg": ("mcg", Decimal(1000)), "g": ("mg", Decimal(1000)), "mcg": ("mg", Decimal("0.001"))}
_MOST_SYNONYMS = 3
#: The one variant that changes what was read; after it the facts seen are graded again too.
EXTRA_READS = "extra reads"


class Variant(NamedTuple):
    """A plan that is as right as the one it comes from."""

    kind: str
    what: str
    steps: tuple[Step, ...]


def run(stage: Stage, plan: str, steps: Sequence[Step]) -> list[Changed]:
    """Every variant of the plan, with the checkpoints that no longer pass."""
    steps = tuple(steps)
    played = stage.play(steps)
    base = stage.verdicts(played)
    found = []
    for one in of_plan(stage, steps, graded_orders(stage, played)):
        outcome = stage.play(one.steps)
        broken = [f"the call was refused: {text[:160]}" for text in outcome.refused.values()]
        after = stage.verdicts(outcome, stage.gradable if one.kind == EXTRA_READS else stage.changeable)
        worse = [verdict for id, verdict in after.items() if base[id].result == "pass" and verdict.result != "pass"]
        names = tuple(verdict.checkpoint for verdict in worse) or (("no checkpoint",) if broken else ())
        found.append(Changed(plan, one.kind, one.what, names, (*broken, *(verdict.reason for verdict in worse))))
    return found


def of_plan(stage: Stage, steps: tuple[Step, ...], graded: Graded) -> Iterator[Variant]:
    """Every variant of a plan. `graded`: which checkpoints' rows each order satisfies."""
    context = stage.task.meta.context
    assert context is not None
    yield from _of_whole(steps, context)
    for place, step in enumerate(steps):
        if not step.creates:
            continue
        asked = graded.get(place, [])
        rows = [rows_of(checkpoint)[number] for checkpoint, number in asked]
        authority = (
            of_checkpoint(asked[0][0], context.authority or "orders") if asked else context.authority or "orders"
        )
        for kind, what, changed in _of_step(step, rows, authority, context):
            yield Variant(kind, what, (*steps[:place], changed, *steps[place + 1 :]))
        for checkpoint, number in asked:
            for other_number, other in enumerate(rows_of(checkpoint)):
                if other_number == number or other_number >= len(rows_of(checkpoint)) - len(checkpoint.followup):
                    continue
                made = order_for(other, context, active=authority == "orders")
                if made is not None and not (other.replaces or other.trigger or other.prn):
                    changed_steps = (*steps[:place], Step(made.tool, made.arguments, step.save_as), *steps[place + 1 :])
                    yield Variant("other accepted order", f"{checkpoint.id} {subject_of(other)}", changed_steps)


# ---- the plan as a whole --------------------------------------------------------------------------------------------


def _of_whole(steps: tuple[Step, ...], context: Context) -> Iterator[Variant]:
    writes = [place for place, step in enumerate(steps) if step.creates or step.writes_file]
    linked = any(list(placeholders(step.arguments)) for step in steps)
    if len(writes) > 1 and not linked:
        turned = dict(zip(writes, reversed(writes), strict=True))
        order = tuple(steps[turned.get(place, place)] for place in range(len(steps)))
        # A file that is appended to must keep its own order.
        if sum(step.writes_file for step in steps) <= 1:
            yield Variant("order of writes", "last write first", order)
    patient = {"patient": context.patient}
    reads = (
        Step("fhir_patient_search_demographics", {}),
        Step("fhir_procedure_search_orders", patient),
        Step("fhir_observation_search_vitals", patient | {"count": 5, "page_limit": 1}),
    )
    yield Variant(EXTRA_READS, "three reads before, one after", (*reads, *steps, reads[1]))
    for place, step in enumerate(steps):
        text = step.arguments.get("content")
        if step.writes_file and isinstance(text, str) and "\n\n" in text and step.arguments.get("mode", "w") == "w":
            head, tail = text.split("\n\n", 1)
            parts = (step.changed(content=head + "\n\n"), step.changed(content=tail, mode="a"))
            yield Variant("written in two parts", title(step), (*steps[:place], *parts, *steps[place + 1 :]))
            crlf = step.changed(content=text.replace("\n", "\r\n"))
            yield Variant("line ends of Windows", title(step), (*steps[:place], crlf, *steps[place + 1 :]))


# ---- one order ------------------------------------------------------------------------------------------------------


def _of_step(step: Step, rows: Sequence[OrderRow], authority: str, context: Context) -> Iterator[tuple[str, str, Step]]:
    """(kind, what, the step in its place)."""
    name = title(step)
    if step.tool == MESSAGE:
        other = "in-progress" if step.arguments.get("status") == "completed" else "completed"
        yield "status of the message", other, step.changed(status=other)
        return
    if "priority" not in step.arguments and step.tool in (MEDICATION, SERVICE):
        yield "default priority stated", name, step.changed(priority="routine")
    if (
        authority == "orders"
        and step.tool in (MEDICATION, SERVICE)
        and step.arguments.get("intent", "order") == "order"
    ):
        yield "intent of the order family", name, step.changed(intent="original-order")
    if authority == "pends" and step.arguments.get("status") == "draft" and step.tool in (MEDICATION, SERVICE):
        yield "pended as a plan", name, step.changed(status="active", intent="plan")
    if step.tool == MEDICATION:
        yield from _of_medication(step, name, rows)
    elif step.tool == SERVICE:
        yield from _of_tests(step, rows)
        yield from _of_referral(step, rows)
    for row in rows:
        if row.when is not None:
            yield from _of_window(step, row.when, context)


def _of_medication(step: Step, name: str, rows: Sequence[OrderRow]) -> Iterator[tuple[str, str, Step]]:
    display = str(step.arguments.get("medication_display", ""))
    named = drugs.mentions(normal(display))
    if len(named) == 1 and not named[0].drug.is_combination and named[0].drug.release is None:
        ingredient = named[0].drug.name
        row = next((row for row in tables.rows("ingredients") if row["name"] == ingredient), None)
        pattern = re.compile(re.escape(ingredient), re.IGNORECASE)
        if row and row["brands"] and pattern.search(display):
            for brand in row["brands"][:_MOST_SYNONYMS]:
                # Of a brand only what is one drug and this release is the same.
                same = drugs.mentions(normal(brand))
                if len(same) == 1 and same[0].drug == named[0].drug and drugs.own_release(ingredient) is None:
                    branded = step.changed(
                        medication_display=pattern.sub(brand, display, count=1), medication_code=None
                    )
                    yield "brand name", brand, branded
    if step.arguments.get("medication_code"):
        yield "without the drug's code", name, step.changed(medication_code=None)
    if (converted := _other_unit(step)) is not None:
        yield "equivalent unit", title(converted), converted
    frequency = step.arguments.get("frequency_text")
    if isinstance(frequency, str):
        read = frequencies.read(frequency)
        if read and len(read) == 1 and read[0].n == int(read[0].n):
            for words in _SAME_FREQUENCY.get((read[0].kind, int(read[0].n)), ()):
                if words.casefold() != frequency.casefold():
                    yield "frequency in other words", words, step.changed(frequency_text=words)
    value, unit = step.arguments.get("dose_value"), step.arguments.get("dose_unit")
    if value is not None and unit and isinstance(frequency, str) and len(named) == 1:
        route = step.arguments.get("route_display") or ""
        said = " ".join(filter(None, (named[0].drug.name, str(value), str(unit), str(route), frequency)))
        fields = dict.fromkeys(("dose_value", "dose_unit", "frequency_text", "medication_code"))
        yield "all in the text", said, step.changed(medication_display=said, **fields)
    # Days of supply may stand for a duration (field/orders.md); where nothing else gives one they stay.
    if "dispense_quantity" in step.arguments and not any(row.duration for row in rows):
        nothing = dict.fromkeys(("dispense_quantity", "dispense_unit", "num_refills"))
        yield "without dispensing", name, step.changed(**nothing)


def _other_unit(step: Step) -> Step | None:
    """The same amount in another unit, in the field and in the words alike."""
    unit = step.arguments.get("dose_unit")
    value = step.arguments.get("dose_value")
    if unit not in _UNIT_UP or value is None:
        return None
    other, factor = _UNIT_UP[str(unit)]
    changes: dict[str, object] = {"dose_unit": other, "dose_value": _plain(Decimal(str(value)) * factor)}
    for key in ("medication_display", "frequency_text"):
        text = step.arguments.get(key)
        if isinstance(text, str):
            changes[key] = re.sub(
                AMOUNT,
                lambda found: (
                    f"{_plain(Decimal(found['number'].replace(',', '')) * factor)} {other}"
                    if found["unit"] == unit
                    else found[0]
                ),
                text,
            )
    return step.changed(**changes)


def _plain(value: Decimal) -> int | Decimal:
    return int(value) if value == value.to_integral_value() else value.normalize()


def _of_tests(step: Step, rows: Sequence[OrderRow]) -> Iterator[tuple[str, str, Step]]:
    """The same test, or a panel that holds it, by other names and codes."""
    wanted = {name for row in rows if row.test and (name := services.canonical("tests", row.test))}
    ordered = services.coded_test(str(step.arguments.get("code_code", ""))) or next(
        (one.name for one in services.named_tests(normal(str(step.arguments.get("code_display", ""))))), None
    )
    if not wanted or ordered is None:
        return
    for row in tables.rows("tests"):
        if row["name"] == ordered:
            for synonym in row["synonyms"][:_MOST_SYNONYMS]:
                named = step.changed(code_code="LAB-1", code_system=_LOCAL, code_display=synonym)
                yield "synonym of the test", synonym, named
            for code in row["loinc"]:
                if code != step.arguments.get("code_code"):
                    yield (
                        "other code of the test",
                        code,
                        step.changed(code_code=code, code_system=_LOINC, code_display=row["name"]),
                    )
    larger = [
        row
        for row in tables.rows("tests")
        if row["loinc"] and row["name"] != ordered and ordered in services.contains(row["name"]) - {row["name"]}
    ]
    for row in larger[:1]:
        panel = step.changed(code_code=row["loinc"][0], code_system=_LOINC, code_display=row["name"])
        yield "panel that holds the test", row["name"], panel


def _of_referral(step: Step, rows: Sequence[OrderRow]) -> Iterator[tuple[str, str, Step]]:
    for row in rows:
        specialty = services.canonical("referrals", row.referral) if row.referral else None
        known = next((one for one in tables.rows("referrals") if one["name"] == specialty), None)
        for synonym in known["synonyms"][:_MOST_SYNONYMS] if known else ():
            yield "synonym of the specialty", synonym, step.changed(code_display=f"Referral to {synonym}")


def _of_window(step: Step, when: str, context: Context) -> Iterator[tuple[str, str, Step]]:
    """The earliest and the latest accepted day. Words that name another interval would contradict the date."""
    window = durations.read_window(when)
    key = {SERVICE: "occurrence_datetime"}.get(step.tool, "start")
    if window is None or step.tool == MEDICATION:
        return
    for days in dict.fromkeys(
        (int(-(-window.low // 1)), int(window.high) if window.high is not None else int(window.low) + 30)
    ):
        moved = step.changed(note_text=None, reason_display=None, reason_code=None, end=None)
        yield "other accepted interval", f"{title(step)} in {days} days", moved.changed(**{key: day_at(context, days)})
