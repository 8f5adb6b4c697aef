"""What in a checkpoint's order rows cannot be read: one message each, before anything is graded by it."""

from __future__ import annotations

from collections.abc import Iterator

from graders.orders import doses, drugs, durations, frequencies
from graders.orders.authority import NEVER_BY_A_ROW
from graders.orders.matching import _taper_end
from tasks.declarations import Checkpoint, OrderRow


def check(checkpoint: Checkpoint) -> list[str]:
    """Every fault of the order, must_not and followup rows, as "place: what is wrong"; empty where all can be read."""
    found: list[str] = []
    for place, row in _rows(checkpoint):
        found += [f"{checkpoint.id}: {place}: {fault}" for fault in row_faults(row)]
    if checkpoint.action == "conditional" and checkpoint.order is not None:
        for n, row in enumerate((*checkpoint.order.accept, *checkpoint.order.also_accept), 1):
            if row.trigger is None or row.act is None:
                found.append(f"{checkpoint.id}: order row {n}: action conditional needs trigger and act")
    if checkpoint.action in NEVER_BY_A_ROW and checkpoint.order is not None and checkpoint.function is None:
        found.append(
            f"{checkpoint.id}: action {checkpoint.action} is judged by a judge or a"
            " function, never by an order row alone"
        )
    return found


def _rows(checkpoint: Checkpoint) -> Iterator[tuple[str, OrderRow]]:
    if checkpoint.order is not None:
        for n, row in enumerate(checkpoint.order.accept, 1):
            yield f"order.accept row {n}", row
        for n, row in enumerate(checkpoint.order.also_accept, 1):
            yield f"order.also_accept row {n}", row
    for n, forbidden in enumerate(checkpoint.must_not, 1):
        yield f"must_not row {n}", forbidden
        if forbidden.unless is not None:
            yield f"must_not row {n}, unless", forbidden.unless
    for n, row in enumerate(checkpoint.followup, 1):
        yield f"followup row {n}", row


def row_faults(row: OrderRow) -> list[str]:
    """What in one row cannot be read."""
    found: list[str] = []
    drug = drugs.read_name(row.ingredient) if row.ingredient else None
    if row.ingredient and drug is None:
        found.append(f"ingredient {row.ingredient!r} is not in the clinical tables; correct it or add it there")
    if row.drug_class and drugs.read_class(row.drug_class) is None:
        found.append(f"class {row.drug_class!r} is not in the clinical tables; correct it or add it there")
    if row.replaces and drugs.read_name(row.replaces) is None and drugs.read_class(row.replaces) is None:
        found.append(f"replaces {row.replaces!r} is not a drug or class of the clinical tables")
    if row.split and not (drug and drug.is_combination):
        found.append("split needs an ingredient of the form 'a + b'")
    if row.dose:
        dose = doses.read_dose(row.dose)
        if dose is None:
            found.append(f"dose {row.dose!r} cannot be read; write a value and its unit, as in '5 mg' or '2.5-5 mg'")
        elif len(dose) > 1 and drug is not None and len(dose) != len(drug.components):
            found.append(
                f"dose {row.dose!r} has {len(dose)} amounts and {row.ingredient!r} {len(drug.components)} parts"
            )
    for key, text in (("daily", row.daily), ("max_daily", row.max_daily)):
        if text and doses.read_limit(text) is None:
            found.append(f"{key} {text!r} cannot be read; write '40 mg' or '>700 mg'")
    for text in (row.frequency,) if isinstance(row.frequency, str) else row.frequency or ():
        if frequencies.read(text) is None:
            found.append(
                f"frequency {text!r} cannot be read; write daily, BID, q8h, weekly, 'every 3 days' or the like"
            )
    for key, text in (("duration", row.duration), ("when", row.when)):
        if text and durations.read_window(text) is None:
            found.append(f"{key} {text!r} cannot be read; write '7 d', '5-10 d', '2-5 wk' or '>=12 mo'")
    for n, step in enumerate(row.steps or (), 1):
        if doses.read_dose(step.dose) is None:
            found.append(f"step {n}: dose {step.dose!r} cannot be read")
        if frequencies.read(step.frequency) is None:
            found.append(f"step {n}: frequency {step.frequency!r} cannot be read")
        if step.duration and durations.read_window(step.duration) is None:
            found.append(f"step {n}: duration {step.duration!r} cannot be read")
    if row.taper is not None:
        first = doses.read_amount(row.taper.first_dose)
        if first is None:
            found.append(f"taper: first_dose {row.taper.first_dose!r} cannot be read")
        if doses.read_amount(row.taper.step) is None:
            found.append(f"taper: step {row.taper.step!r} cannot be read")
        if durations.read_window(row.taper.interval) is None:
            found.append(f"taper: interval {row.taper.interval!r} cannot be read")
        if _taper_end(row.taper.end, first) is None:
            found.append(f"taper: end {row.taper.end!r} cannot be read; write a dose or 'off'")
    return found
