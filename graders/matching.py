"""`graders match`: one checkpoint's declaration against orders in a file, to see whether it means what was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from graders.orders import OrderContext, OrderJudgement, check_declaration, judge
from tasks.declarations import Checkpoint
from tasks.errors import ChartError, DeclarationError, UsageError
from tasks.fhir.chart import Chart
from tasks.fhir.resources import Resource, dump_json, parse_json
from tasks.manifest import Context
from tasks.places import Misread, text, toml, validated
from tasks.strict import Strict


class _Declared(Strict):
    context: Context
    checkpoint: tuple[Checkpoint, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Matched:
    """What the declaration made of the orders."""

    checkpoint: Checkpoint
    judgement: OrderJudgement

    @property
    def result(self) -> str:
        """pass, partial, fail, error or ungraded."""
        return self.judgement.result

    def as_json(self) -> dict[str, Any]:
        """{"result", "orders": [{"reference", "matched", "reason"}]}."""
        return {
            "result": self.judgement.result,
            "orders": [
                {"reference": order.reference, "matched": order.matched, "reason": order.reason}
                for order in self.judgement.orders
            ],
        }

    def as_text(self) -> str:
        """The verdict, then a line an order."""
        lines = [f"{self.checkpoint.id} {self.checkpoint.title}: {self.judgement.result}", f"  {self.judgement.reason}"]
        for order in self.judgement.orders:
            lines.append(f"  {'matched    ' if order.matched else 'not matched'} {order.reference}: {order.reason}")
        elsewhere = [key for key in ("seen", "function") if getattr(self.checkpoint, key)]
        if elsewhere:
            lines.append(f"  ({' and '.join(elsewhere)} need a trial and are not judged here)")
        return "\n".join(lines)


def match_files(checkpoint: Path, orders: Path, *, chart: Path | None = None, notes: Sequence[Path] = ()) -> Matched:
    """The orders of a file judged by the checkpoint of a file.

    Raises DeclarationError for what is wrong in the TOML, ChartError for orders or a chart that cannot be read,
    UsageError for a file that is not there.
    """
    declared, context = _declaration(checkpoint)
    resources = tuple(read_orders(orders))
    records = Chart.open(chart) if chart is not None else Chart.open({})
    texts = {path.name: _bytes(path).decode("utf-8", errors="replace") for path in notes}
    return Matched(declared, judge(declared, context, resources, records, texts))


def _declaration(path: Path) -> tuple[Checkpoint, OrderContext]:
    try:
        source = text(_bytes(path), str(path))
        declared = validated(_Declared, toml(source, str(path)), str(path), source=source)
    except Misread as error:
        fault = error.faults[0]
        raise DeclarationError(f"{fault.message}.", where=fault.place) from None
    if len(declared.checkpoint) > 1:
        raise DeclarationError("several checkpoints.", where=str(path), remedy="Leave one [[checkpoint]] in the file.")
    checkpoint, context = declared.checkpoint[0], declared.context
    if not (checkpoint.order or checkpoint.must_not or checkpoint.followup):
        raise DeclarationError(
            "the checkpoint says nothing about orders.", where=str(path), remedy="Give it order, must_not or followup."
        )
    if faults := check_declaration(checkpoint):
        raise DeclarationError(f"{'; '.join(faults)}.", where=str(path), remedy="Correct the declaration.")
    missing = [key for key in ("practitioner", "now", "authority") if getattr(context, key) is None]
    if context.practitioner is None or context.now is None or context.authority is None:
        raise DeclarationError(f"[context] lacks {', '.join(missing)}.", where=str(path), remedy="Add what is missing.")
    return checkpoint, OrderContext(
        patient=context.patient,
        practitioner=context.practitioner,
        now=context.now,
        authority=context.authority,
    )


def read_orders(path: Path) -> Iterator[Resource]:
    """The resources of an NDJSON file. One without an id is named after its line: `MedicationRequest/line-3`.

    Raises ChartError for a line that is not a FHIR resource, or an id that stands twice.
    """
    seen: set[str] = set()
    for number, line in enumerate(_bytes(path).decode("utf-8-sig", errors="replace").split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        body = parse_json(line, where=where)
        if isinstance(body, dict) and "id" not in body:
            body = {"resourceType": body.get("resourceType"), "id": f"line-{number}", **body}
            line = dump_json(body)
        resource = Resource.parse(line, where=where)
        if resource.ref in seen:
            raise ChartError(f"{resource.ref} stands twice.", where=where, remedy="Give each order its own id.")
        seen.add(resource.ref)
        yield resource


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the file cannot be read: {error.strerror}.", where=str(path), remedy="Check the path."
        ) from None
