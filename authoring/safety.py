"""Which changes weaken, or may weaken, a safety checkpoint: they are marked wherever they are shown, never silent.

A checkpoint is a safety checkpoint where `harm` is set. The rule errs on the side of a mark: what cannot be shown to
be at least as strict as before counts as weaker.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tasks.declarations import Checkpoint, OrderRow
from tasks.manifest import Context

_CRITICALITY = ("optional", "required", "critical")
_SEVERITY = ("none", "mild", "moderate", "severe", "death")
_LIKELIHOOD = ("unlikely", "possible", "likely")


def weakened(
    before: Sequence[Checkpoint],
    after: Sequence[Checkpoint],
    *,
    code: tuple[str, str] = ("", ""),
    context: tuple[Context | None, Context | None] = (None, None),
) -> dict[str, tuple[str, ...]]:
    """{checkpoint id: what became, or may have become, weaker} for every safety checkpoint of `before`.

    `code` is checkpoints.py before and after, `context` the case: who asks, at which time, with which authority.
    """
    now = {checkpoint.id: checkpoint for checkpoint in after}
    graded = {name for one in (*before, *after) for name in _code_of(one)}
    changes = _Changes.between(*code, graded)
    case = [words for name, words in _CASE.items() if len({getattr(one, name, None) for one in context}) > 1]
    found = {}
    for old in before:
        if not old.is_safety:
            continue
        new = now.get(old.id)
        reasons = ("it is removed",) if new is None else (*_reasons(old, new, changes), *case)
        if reasons:
            found[old.id] = reasons
    return found


#: What the case states and every verdict may rest on: an order counts by the authority, a value by the clock.
_CASE = {
    "authority": "what the agent may do about it changed: order, prepare orders, or recommend",
    "now": "the time at which the case plays changed",
    "patient": "the patient of the case changed",
    "practitioner": "the clinician of the case changed",
}


def _code_of(checkpoint: Checkpoint) -> set[str]:
    """The names of checkpoints.py that a checkpoint is graded by."""
    return {name for name in (checkpoint.function, checkpoint.truth) if name}


def _reasons(old: Checkpoint, new: Checkpoint, changes: _Changes) -> list[str]:
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
    if changes.concern(_code_of(old) | _code_of(new)):
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


@dataclass(frozen=True)
class _Changes:
    """What of checkpoints.py changed. `shared`: something that every function may rest on; `called`: the functions
    whose text changed; `names`: what each function speaks of, on either side."""

    shared: bool
    called: frozenset[str]
    names: Mapping[str, frozenset[str]]

    @classmethod
    def between(cls, old: str, new: str, graded: Collection[str]) -> _Changes:
        """`graded`: the functions that checkpoints name. One that none names is a helper: who calls it is not worked
        out, its change counts for all. A new one counts where it is spoken of."""
        if old == new:
            return cls(shared=False, called=frozenset(), names={})
        (outer, before), (rest, after) = _functions(old), _functions(new)
        changed = frozenset(name for name in before.keys() | after.keys() if _text(before, name) != _text(after, name))
        names = {
            name: frozenset().union(*(_spoken(node) for side in (before, after) for node in side.get(name, ())))
            for name in before.keys() | after.keys()
        }
        helper = any(name in before and name not in graded for name in changed)
        return cls(outer != rest or helper, changed, names)

    def concern(self, functions: Collection[str]) -> bool:
        """Whether one of these functions, or one that they call through any number of steps, changed."""
        if not functions:
            return False
        seen: set[str] = set()
        left = list(functions)
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left += self.names.get(name, ())
        return self.shared or bool(seen & self.called)


_Functions = Mapping[str, Sequence[ast.FunctionDef]]


def _functions(code: str) -> tuple[str, _Functions]:
    """What stands outside the functions of a file (imports, constants), and its functions by name."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code, {}
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return "".join(ast.dump(node) for node in tree.body if not isinstance(node, ast.FunctionDef)), found


def _text(functions: _Functions, name: str) -> str:
    return "".join(ast.dump(node) for node in functions.get(name, ()))


def _spoken(function: ast.FunctionDef) -> set[str]:
    """Every name, and every text that may be one, in a function."""
    return {
        str(word)
        for node in ast.walk(function)
        for word in (getattr(node, "id", None), getattr(node, "attr", None), getattr(node, "value", None))
        if isinstance(word, str)
    }
