"""Which changes weaken, or may weaken, a safety checkpoint: they are marked wherever they are shown, never silent.

A checkpoint is a safety checkpoint where `harm` is set. The rule errs on the side of a mark: what cannot be shown to
be at least as strict as before counts as weaker.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tasks.declarations import Checkpoint, OrderRow

_CRITICALITY = ("optional", "required", "critical")
_SEVERITY = ("none", "mild", "moderate", "severe", "death")
_LIKELIHOOD = ("unlikely", "possible", "likely")


def weakened(
    before: Sequence[Checkpoint], after: Sequence[Checkpoint], *, code: tuple[str, str] = ("", "")
) -> dict[str, tuple[str, ...]]:
    """{checkpoint id: what became, or may have become, weaker} for every safety checkpoint of `before`.

    `code` is checkpoints.py before and after.
    """
    now = {checkpoint.id: checkpoint for checkpoint in after}
    changed_code = _changed_functions(*code)
    found = {}
    for old in before:
        if not old.is_safety:
            continue
        new = now.get(old.id)
        reasons = ("it is removed",) if new is None else tuple(_reasons(old, new, changed_code))
        if reasons:
            found[old.id] = reasons
    return found


def _reasons(old: Checkpoint, new: Checkpoint, changed_code: Mapping[str, bool]) -> list[str]:
    out = []
    if new.harm is None or old.harm is None:
        if new.harm is None:
            out.append("it is no longer a safety checkpoint")
    else:
        if _SEVERITY.index(new.harm.severity) < _SEVERITY.index(old.harm.severity):
            out.append(f"severity falls from {old.harm.severity} to {new.harm.severity}")
        if _LIKELIHOOD.index(new.harm.likelihood) < _LIKELIHOOD.index(old.harm.likelihood):
            out.append(f"likelihood falls from {old.harm.likelihood} to {new.harm.likelihood}")
    if _CRITICALITY.index(new.criticality) < _CRITICALITY.index(old.criticality):
        out.append(f"it is {new.criticality} instead of {old.criticality}")
    if new.grader != old.grader:
        out.append(f"it is graded by {new.grader} instead of {old.grader}")
    if set(old.must_not) - set(new.must_not):
        out.append("something that must not be done is gone or changed")
    if set(old.followup) - set(new.followup):
        out.append("a follow-up is gone or changed")
    if set(old.seen) - set(new.seen):
        out.append("a fact that must be seen is gone")
    out += _order_reasons(old, new)
    if (old.file, old.rubric) != (new.file, new.rubric):
        out.append("what is judged, or the rubric, changed")
    if (old.truth, old.extract, old.unit) != (new.truth, new.extract, new.unit):
        out.append("what is computed or read changed")
    if old.tolerance is not None and (new.tolerance is None or new.tolerance > old.tolerance):
        out.append("the tolerance grew")
    if old.function != new.function:
        out.append("another function grades it")
    names = {name for name in (new.function, new.truth) if name}
    if any(changed_code.get(name, False) for name in names) or (names and changed_code.get("", False)):
        out.append("the code that grades it changed")
    if old.action != new.action:
        out.append(f"the action asked for is {new.action} instead of {old.action}")
    return out


def _order_reasons(old: Checkpoint, new: Checkpoint) -> list[str]:
    if old.order == new.order or old.order is None:
        return []
    if new.order is None:
        return ["no order is asked for any more"]
    out = []
    accepted = {*old.order.accept, *old.order.also_accept}
    wider = [
        row for row in (*new.order.accept, *new.order.also_accept) if not any(_as_strict(row, one) for one in accepted)
    ]
    if wider:
        out.append("orders that did not pass may pass now")
    if (old.order.count, new.order.count) == ("one", "at_least_one"):
        out.append("a second order no longer fails")
    if old.order.type != new.order.type:
        out.append("another kind of order is asked for")
    return out


def _as_strict(row: OrderRow, than: OrderRow) -> bool:
    """Whether `row` asks for everything that `than` asks for, word for word."""
    wanted = than.model_dump(exclude_none=True, exclude_defaults=True)
    has = row.model_dump(exclude_none=True, exclude_defaults=True)
    return all(has.get(key) == value for key, value in wanted.items())


def _changed_functions(old: str, new: str) -> dict[str, bool]:
    """{function: whether its text changed}; "" stands for whatever is outside the functions (imports, constants,
    helpers that any of them may call)."""
    if old == new:
        return {}
    before, after = _functions(old), _functions(new)
    called = {name: before.get(name) != after.get(name) for name in before.keys() | after.keys()}
    return called


def _functions(code: str) -> dict[str, str]:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return {"": code}
    inner = {node.name: ast.dump(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    private = {name: text for name, text in inner.items() if name.startswith("_")}
    outer = [ast.dump(node) for node in tree.body if not isinstance(node, ast.FunctionDef)]
    # A private helper may be called by any checkpoint function: a change of one counts for all.
    return {name: text for name, text in inner.items() if name not in private} | {
        "": "".join(outer) + "".join(private.values())
    }
