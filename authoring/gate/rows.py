"""A row of a declaration turned round: the order that it describes, the lines that speak of it, what satisfies it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from authoring.gate.replay import Step
from graders import tables
from graders.evidence import Evidence
from graders.orders import OrderContext, doses, drugs, durations, frequencies, judge, services
from graders.orders.text import normal
from tasks.declarations import Checkpoint, Order, OrderRow
from tasks.manifest import Context

_LOINC, _SNOMED = "http://loinc.org", "http://snomed.info/sct"
_REFERRAL, _IMAGING = "3457005", "363679005"
#: A frequency that says the same as the one of a declaration, where a declaration gives none.
_DAILY = "once daily"


def rows_of(checkpoint: Checkpoint) -> tuple[OrderRow, ...]:
    """The rows that an order can satisfy: accept, also_accept, then followup."""
    accepted = (*checkpoint.order.accept, *checkpoint.order.also_accept) if checkpoint.order else ()
    return (*accepted, *checkpoint.followup)


def type_of(row: OrderRow, checkpoint: Checkpoint) -> str:
    """The kind of resource that a row of this checkpoint asks for."""
    if row.type:
        return row.type
    if row in checkpoint.followup or checkpoint.order is None:
        return "MedicationRequest" if row.ingredient or row.drug_class else "ServiceRequest"
    return checkpoint.order.type


def is_satisfied_by(row: OrderRow, checkpoint: Checkpoint, reference: str, evidence: Evidence) -> bool:
    """Whether what was written under `reference` satisfies this row of the checkpoint."""
    context = evidence.task.meta.context
    if context is None or context.practitioner is None or context.now is None or context.authority is None:
        return False
    only = checkpoint.model_copy(
        update={
            "order": Order(type=type_of(row, checkpoint), count="at_least_one", accept=(row,)),
            "followup": (),
            "must_not": (),
            "function": None,
            "seen": (),
        }
    )
    judgement = judge(
        only,
        OrderContext(context.patient, context.practitioner, context.now, context.authority),
        # A row that replaces needs the other orders too; every other row is judged on this one alone.
        [one for one in evidence.written if row.replaces or one.ref == reference],
        evidence.chart,
        {},
    )
    return any(one.matched and one.reference == reference for one in judgement.orders)


def subject_of(row: OrderRow) -> str:
    """What a row speaks of, in a few words."""
    thing = row.ingredient or row.drug_class or row.test or row.referral or row.procedure or row.trigger
    if thing is None and row.imaging is not None:
        thing = f"{row.imaging.modality} {row.imaging.site}"
    amount = row.dose or row.daily or ""
    return " ".join(filter(None, (thing or "a message or visit", amount)))


def act_of(row: OrderRow) -> Callable[[str], bool] | None:
    """Whether a line speaks of the row's drug, test, study, referral or procedure; None for a row that names none."""
    if row.ingredient and (drug := drugs.read_name(row.ingredient)):
        return lambda line: any(set(drug.components) & set(one.drug.components) for one in drugs.mentions(normal(line)))
    if row.drug_class and (name := drugs.read_class(row.drug_class)):
        return lambda line: (
            any(name in drugs.classes_of(part) for one in drugs.mentions(normal(line)) for part in one.drug.components)
            or any(found == name for _, _, found in drugs.class_mentions(normal(line)))
        )
    if row.test and (test := services.canonical("tests", row.test)):
        return lambda line: any(
            services.atoms(one.name) & services.atoms(test) for one in services.named_tests(normal(line))
        )
    if row.imaging is not None:
        sites = services.site_names(row.imaging.site)
        return lambda line: bool(services.sites_in(normal(line)) & sites) and bool(services.modalities_in(normal(line)))
    if row.referral and (specialty := services.canonical("referrals", row.referral)):
        return lambda line: any(
            services.is_specialty(one.name, specialty) for one in services.referrals_in(normal(line), prose=True)
        )
    if row.procedure:
        procedure = row.procedure
        return lambda line: services.holds_phrase(normal(line), normal(procedure))
    return None


def order_for(row: OrderRow, context: Context, *, active: bool, default_type: str = "") -> Step | None:
    """A create that does what the row says, or None where a row alone does not say what to order."""
    who: dict[str, Any] = {"patient_reference": context.patient, "requester_reference": context.practitioner or ""}
    if not active:
        who |= {"status": "draft"}
    if row.urgency:
        who |= {"priority": row.urgency}
    if row.reason:
        who |= {"reason_display": row.reason}
    if row.ingredient or row.drug_class:
        return _medication(row, who)
    at = _inside(row, context)
    if at is not None and (row.test or row.imaging or row.referral or row.procedure):
        who |= {"occurrence_datetime": at}
    if row.test:
        return _service(
            _test_code(row.test) or {"code_code": "LAB", "code_system": "http://hospital/local"}, row.test, who
        )
    if row.imaging is not None:
        words = [row.imaging.modality, row.imaging.site, *_first(row.imaging.laterality)]
        contrast = {"with": "with contrast", "without": "without contrast", "both": "with and without contrast"}
        words += [contrast[one] for one in _first(row.imaging.contrast)]
        imaging = {"code_code": "IMG", "code_system": "http://hospital/local", "category_code": _IMAGING}
        return _service(imaging, " ".join(words), who)
    if row.referral:
        code = {"code_code": _REFERRAL, "code_system": _SNOMED, "category_code": _REFERRAL}
        return _service(code, f"Referral to {row.referral}", who)
    if row.procedure:
        return _service({"code_code": "PROC", "code_system": "http://hospital/local"}, row.procedure, who)
    return None


def _first(value: str | tuple[str, ...] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [value[0]]


def _service(code: dict[str, Any], display: str, who: dict[str, Any]) -> Step:
    return Step("fhir_service_request_create", who | code | {"code_display": display})


def _test_code(name: str) -> dict[str, Any] | None:
    wanted = services.canonical("tests", name)
    row = next((row for row in tables.rows("tests") if row["name"] == wanted and row["loinc"]), None)
    return {"code_code": row["loinc"][0], "code_system": _LOINC} if row else None


def _medication(row: OrderRow, who: dict[str, Any]) -> Step | None:
    name = row.ingredient or _member(row.drug_class or "")
    if name is None or row.taper is not None or row.steps is not None:
        return None
    arguments = who | {"medication_display": f"{name} {row.release} release" if row.release else name}
    # A scheduled rate, or for "as needed" a rate that says so.
    frequency = _first(row.frequency)
    arguments["frequency_text"] = frequency[0] if frequency else _DAILY
    if row.prn:
        arguments["frequency_text"] += " as needed"
    if row.dose is not None:
        found = doses.read_dose(row.dose)
        if found is None:
            return None
        if len(found) > 1:
            arguments["medication_display"] += f" {row.dose}"
        else:
            value, unit = _amount(found[0])
            arguments |= {"dose_value": value, "dose_unit": unit}
    elif row.daily is not None:
        limit = doses.read_limit(row.daily)
        per_day = (frequencies.read(arguments["frequency_text"]) or (frequencies.Frequency("per_day"),))[0].per_day
        if limit is None or not per_day:
            return None
        value, unit = _amount(limit.amount)
        factor = {">": Decimal(2), "<": Decimal("0.5")}.get(limit.sign, Decimal(1))
        arguments |= {"dose_value": _plain(Decimal(value) * factor / per_day), "dose_unit": unit}
    if row.route:
        arguments["route_display"] = _first(row.route)[0]
    if row.duration:
        arguments["frequency_text"] += f" for {row.duration}"
    if row.max_daily:
        arguments["note_text"] = f"Maximum {row.max_daily} per day."
    return Step("fhir_medication_request_create", arguments)


def _amount(amount: doses.Amount) -> tuple[Decimal | int, str]:
    number, unit = str(doses.Amount(amount.low, amount.low, amount.dimension)).split(" ", 1)
    return _plain(Decimal(number.replace(",", ""))), unit


def _plain(value: Decimal) -> Decimal | int:
    return int(value) if value == value.to_integral_value() else value


def _member(drug_class: str) -> str | None:
    """An ingredient of a class, the first of the table; one that stands alone before a combination."""
    wanted = drugs.read_class(drug_class)
    return next((row["name"] for row in tables.rows("ingredients") if wanted in drugs.classes_of(row["name"])), None)


def _inside(row: OrderRow, context: Context) -> str | None:
    """A moment in the row's window, as a date-time in the zone of `now`."""
    if row.when is None or context.now is None:
        return None
    window = durations.read_window(row.when)
    return None if window is None else day_at(context, middle(window))


def middle(window: durations.Span) -> int:
    """Whole days in the middle of a window."""
    high = window.high if window.high is not None else window.low + 1
    return max(int((window.low + high) / 2), int(window.low))


def day_at(context: Context, days: int) -> str:
    """`days` after `now`, at eight in the morning."""
    assert context.now is not None
    at = (context.now + timedelta(days=days)).replace(hour=8, minute=0, second=0, microsecond=0)
    return at.isoformat(timespec="seconds") if days else context.now.isoformat(timespec="seconds")


__all__ = [
    "act_of", "day_at", "is_satisfied_by", "middle", "order_for", "rows_of", "subject_of", "type_of",
]  # fmt: skip
