"""Ten example orders of a checkpoint, each judged by the real grader, for a physician to tick.

The declared examples come first (must_match and must_not_match); what is wanting to ten is varied from those that
pass: a tenfold dose, half of it, a draft, a negation, another patient, an order twice. Nothing says beforehand what a
variant should come to: the grader's own verdict is shown.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

from graders.orders import OrderContext, judge
from review_ui.steps import order_lines
from tasks.declarations import Checkpoint
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Number, Resource, dump_json, parse_json
from tasks.package import Task
from tasks.trials import Write

MOST = 10
#: What `detail` says already.
_SHOWN = ("it is a draft", "it is for another patient", "its status is")
#: How the grader's reason names an example's resources: for whoever reads the record, not for a physician.
_REFERENCE = re.compile(r"\b[A-Z]\w+/example-\d+(: | )?")


@dataclass(frozen=True)
class Example:
    """One example: `key` is the hash of its content, `words` what it orders, `detail` its state and notes."""

    key: str
    words: str
    detail: str
    result: str
    reason: str
    bodies: tuple[str, ...]

    @property
    def why(self) -> str:
        """Why it fails, as a physician reads it: "its dose is 20 mg, not 10 mg"; "" where it passes, or where
        `detail` tells."""
        if self.result == "pass":
            return ""
        said = [_REFERENCE.sub("", one).rpartition(": ")[2].strip() for one in self.reason.split("; ")]
        return "; ".join(dict.fromkeys(one for one in said if one and not one.startswith(_SHOWN)))


def examples(task: Task, checkpoint: Checkpoint) -> tuple[Example, ...]:
    """Up to ten orders with the grader's verdict; none for a checkpoint that judges no order."""
    context = task.meta.context
    if not (checkpoint.order or checkpoint.must_not or checkpoint.followup) or context is None:
        return ()
    if context.now is None or context.practitioner is None or context.authority is None:
        return ()
    said = OrderContext(context.patient, context.practitioner, context.now, context.authority)
    declared = [task.examples[path] for path in (*checkpoint.must_match, *checkpoint.must_not_match)
                if path in task.examples]  # fmt: skip
    bodies: list[tuple[dict[str, Any], ...]] = []
    for data in declared:
        try:
            bodies.append((parse_json(data),))
        except WorkbenchError:
            continue
    # Where only a prohibition is judged, what varies is the forbidden order.
    varied = checkpoint.must_match if checkpoint.order or checkpoint.followup else checkpoint.must_not_match
    for data in [task.examples[path] for path in varied if path in task.examples]:
        for variant in _variants(parse_json(data), context.practitioner):
            bodies.append(variant)
    out: dict[str, Example] = {}
    for each in bodies:
        if len(out) == MOST:
            break
        try:
            made = _judged(task, checkpoint, said, each)
        except WorkbenchError:
            continue
        if (made.words, made.detail) not in {(one.words, one.detail) for one in out.values()}:
            out.setdefault(made.key, made)
    return tuple(out.values())


def _judged(task: Task, checkpoint: Checkpoint, said: OrderContext, bodies: Sequence[dict[str, Any]]) -> Example:
    resources = [
        Resource.from_body({**body, "id": f"example-{number}"}, where="an example")
        for number, body in enumerate(bodies, 1)
    ]
    judgement = judge(checkpoint, said, resources, task.chart, {})
    writes = [Write(sequence=n, call=n, reference=one.ref, version=1, resource=one.raw)
              for n, one in enumerate(resources, 1)]  # fmt: skip
    lines = order_lines(writes)
    words = lines[0].what + (", ordered twice" if len(lines) > 1 else "")
    other = said.patient not in resources[0].raw
    detail = " · ".join(part for part in (lines[0].detail, "for another patient" if other else "") if part)
    key = sha256("\n".join(one.raw for one in resources).encode()).hexdigest()[:16]
    return Example(key, words, detail, judgement.result, judgement.reason, tuple(one.raw for one in resources))


def _variants(body: dict[str, Any], practitioner: str) -> Iterator[tuple[dict[str, Any], ...]]:
    """Single departures from an order that passes, the most instructive first."""
    for factor in (Decimal(10), Decimal("0.5")):
        if changed := _dose(body, factor):
            yield (changed,)
    if body.get("status") == "active":
        yield ({**body, "status": "draft"},)
    yield (
        ({**body, "doNotPerform": True},)
        if body.get("resourceType") in ("MedicationRequest", "ServiceRequest")
        else ({**body, "status": "cancelled"},)
    )
    yield (body, copy.deepcopy(body))
    if "subject" in body:
        yield ({**body, "subject": {"reference": "Patient/another-patient"}},)
    yield ({**body, "status": "stopped" if body.get("resourceType") == "MedicationRequest" else "revoked"},)
    yield ({**body, "intent": "proposal"},)


def _dose(body: dict[str, Any], factor: Decimal) -> dict[str, Any] | None:
    """The order with every dose multiplied; None where it states none."""
    changed = copy.deepcopy(body)
    found = False
    for dosage in changed.get("dosageInstruction") or []:
        for rate in dosage.get("doseAndRate") or []:
            quantity = rate.get("doseQuantity")
            # A dose with a fraction is read as a Decimal, and stays one: 2.5 mg halved is 1.25 mg, as it is written.
            if isinstance(quantity, dict) and isinstance(quantity.get("value"), (int, Decimal)):
                value = quantity["value"] * factor
                quantity["value"] = int(value) if value == int(value) else Number(f"{value.normalize():f}")
                found = True
    return changed if found else None


def declaration_text(example: Example) -> str:
    """The example's resources as they are written, for whoever wants to see."""
    return "\n".join(dump_json(parse_json(raw)) for raw in example.bodies)
