"""The examples of a checkpoint: an order that must match, placed alone, does; one that must not match does not."""

from __future__ import annotations

from collections.abc import Iterator

from authoring.gate.results import Check, checked
from graders.orders import OrderContext, check_declaration, judge
from tasks.declarations import Checkpoint
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource
from tasks.package import Task

#: How many checks `checks` makes, where the declarations can be read.
COUNT = 2


def checks(task: Task) -> Iterator[Check]:
    """That every declaration can be read, and that examples are matched as the author said."""
    wrong = [f"{one.id}: {fault}" for one in task.checkpoints for fault in check_declaration(one)]
    yield checked("Declarations can be read", wrong, f"{len(task.checkpoints)} checkpoints")
    if wrong:
        return
    wrong, count = [], 0
    for checkpoint in task.checkpoints:
        for path in (*checkpoint.must_match, *checkpoint.must_not_match):
            count += 1
            fault = _fault(task, checkpoint, path, wanted=path in checkpoint.must_match)
            wrong += [f"{checkpoint.id} {path}: {fault}"] if fault else []
    silent = [one.id for one in task.checkpoints if one.order and not (one.must_match and one.must_not_match)]
    detail = f"{count} examples"
    if silent:
        detail += f"; without examples on both sides: {', '.join(silent)}"
    yield checked("Examples match as declared", wrong, detail)


def _fault(task: Task, checkpoint: Checkpoint, path: str, *, wanted: bool) -> str:
    context = task.meta.context
    if context is None or context.practitioner is None or context.now is None or context.authority is None:
        return "[context] does not yet give patient, practitioner, now, authority"
    try:
        order = Resource.parse(task.examples[path].decode("utf-8"), where=path)
    except (WorkbenchError, UnicodeDecodeError) as error:
        return str(error)
    judgement = judge(
        checkpoint,
        OrderContext(context.patient, context.practitioner, context.now, context.authority),
        [order],
        task.chart,
        {},
    )
    matched = judgement.result == "pass" or any(one.matched for one in judgement.orders)
    if matched == wanted:
        return ""
    return f"it {'must match and does not' if wanted else 'must not match and does'}: {judgement.reason}"
