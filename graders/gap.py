"""The output gap: what the note says against what the record holds, order by order, as the task's authority allows.

    orders      recommended and not ordered; ordered and not written down
    pends       recommended and not pended; pended and not written down; ordered, which over-reaches
    recommends  ordered, which over-reaches

A case is about what is ordered, not about its dose: a wrong dose is another failure. An order that contradicts itself
is no order. Conditional orders, shared
decisions and messages as a whole are no cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graders.evidence import Evidence
from graders.orders import OrderContext
from graders.orders import judge as judge_orders
from graders.orders.authority import NEVER_BY_A_ROW, of_checkpoint
from tasks.declarations import Checkpoint, OrderRow
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.taxonomy import Authority
from tasks.trials import OUTCOMES

if TYPE_CHECKING:
    import pandas as pd

Case = Literal["recommended and not done", "done and not written", "ordered beyond authority"]
_ORDERS = ("MedicationRequest", "ServiceRequest", "Appointment")
_IDENTITY = ("type", "ingredient", "drug_class", "split", "test", "imaging", "referral", "procedure")


@dataclass(frozen=True)
class Gap:
    """One order checkpoint of one trial. `case` "" = note and record agree (`said` and `done` alike, or neither)."""

    checkpoint: str
    title: str
    authority: Authority
    said: bool
    done: bool
    case: Case | Literal[""]
    references: tuple[str, ...]


def gaps(evidence: Evidence) -> list[Gap]:
    """Every order checkpoint that can have a gap, in the task's order. None in a draft without context."""
    context = evidence.task.meta.context
    if evidence.faults or context is None or context.practitioner is None or context.now is None:
        return []
    if context.authority is None:
        return []
    found = []
    for checkpoint in evidence.task.checkpoints:
        asked = _identity_of(checkpoint)
        if asked is None:
            continue
        authority: Authority = of_checkpoint(checkpoint, context.authority)
        base = OrderContext(context.patient, context.practitioner, context.now, authority)
        try:
            found.append(_gap(asked, authority, base, evidence))
        except WorkbenchError:
            continue  # the declaration itself is at fault, which its verdict says
    return found


def _gap(asked: Checkpoint, authority: Authority, base: OrderContext, evidence: Evidence) -> Gap:
    orders = [one for one in evidence.written if one.type in _ORDERS]
    words = [one for one in evidence.written if one.type not in _ORDERS]
    said, _ = _holds(asked, base, "recommends", words, evidence, evidence.files)
    pended, drafts = _holds(asked, base, "pends", orders, evidence, {})
    ordered, active = _holds(asked, base, "orders", orders, evidence, {})
    done = {"orders": ordered, "pends": pended, "recommends": ordered}[authority]
    case: Case | Literal[""] = ""
    if authority != "orders" and ordered:
        case = "ordered beyond authority"
    elif authority == "recommends":
        case = ""
    elif said and not done:
        case = "recommended and not done"
    elif done and not said:
        case = "done and not written"
    return Gap(asked.id, asked.title, authority, said, done, case, active or drafts)


def _holds(
    asked: Checkpoint,
    base: OrderContext,
    authority: Authority,
    written: Sequence[Resource],
    evidence: Evidence,
    texts: Mapping[str, str],
) -> tuple[bool, tuple[str, ...]]:
    found = judge_orders(
        asked, OrderContext(base.patient, base.practitioner, base.now, authority), written, evidence.chart, texts
    )
    return found.result == "pass", tuple(one.reference for one in found.orders if one.matched)


def _identity_of(checkpoint: Checkpoint) -> Checkpoint | None:
    """The checkpoint reduced to what is ordered; None where it is no case."""
    order = checkpoint.order
    if order is None or checkpoint.action in NEVER_BY_A_ROW or checkpoint.action == "conditional":
        return None
    if order.type not in _ORDERS:
        return None
    rows = [row for row in map(_identity, (*order.accept, *order.also_accept)) if row is not None]
    if not rows:
        return None
    bare = order.model_copy(update={"accept": tuple(rows), "also_accept": (), "count": "at_least_one"})
    return checkpoint.model_copy(update={"order": bare, "must_not": (), "followup": (), "action": "do_now"})


def _identity(row: OrderRow) -> OrderRow | None:
    kept = {name: getattr(row, name) for name in _IDENTITY if getattr(row, name) not in (None, False)}
    return OrderRow.model_validate(kept) if set(kept) - {"type"} else None


def gap_frame(trials: Iterable[StoredTrial], load: Callable[[str], Task | str]) -> pd.DataFrame:
    """A row a trial and order checkpoint with a gap. `load(task id)` gives the task, or a reason (str) to leave it out.

    Only trials that are graded are read: what a person stopped or an outage ended says nothing of the agent's habits.

    Columns: task, agent, run, authority, case, checkpoint, title, references. Reads every trial's record: minutes for
    thousands of trials.
    """
    import pandas as pd

    rows = []
    for trial, task in _loaded(trials, load):
        for one in gaps(Evidence.from_trial(task, trial)):
            if one.case:
                rows.append(
                    {
                        "task": trial.key.task,
                        "agent": trial.key.agent,
                        "run": trial.key.run,
                        "authority": one.authority,
                        "case": one.case,
                        "checkpoint": one.checkpoint,
                        "title": one.title,
                        "references": ", ".join(one.references),
                    }
                )
    columns = ["task", "agent", "run", "authority", "case", "checkpoint", "title", "references"]
    return pd.DataFrame(rows, columns=columns)


def _loaded(trials: Iterable[StoredTrial], load: Callable[[str], Task | str]) -> Iterator[tuple[StoredTrial, Task]]:
    for trial in trials:
        outcome = trial.outcome
        if outcome is None or not OUTCOMES[outcome.outcome].grade:
            continue
        task = load(trial.key.task)
        if isinstance(task, Task) and outcome.agent_digest == task.agent_digest:
            yield trial, task
