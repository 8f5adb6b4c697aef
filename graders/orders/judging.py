"""One checkpoint's order, must_not and followup keys against everything the agent wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from graders.orders import authority as who
from graders.orders import conditions, doses, drugs, reading, replacing, services, statements
from graders.orders.authority import Authority
from graders.orders.candidates import Candidate, bare_reference
from graders.orders.matching import IDENTITY, Mismatch, mismatches
from tasks.declarations import Checkpoint, MustNotRow, OrderRow
from tasks.fhir.resources import Resource
from tasks.trials import QuoteCite, ResourceCite

if TYPE_CHECKING:
    from tasks.fhir.chart import Records

#: What an order may fail on and still be a second live order of the same thing (field/orders.md, `count`).
_NEAR = frozenset({"dose", "daily", "frequency", "status", "patient", "contradiction", "steps", "taper"})


@dataclass(frozen=True)
class OrderContext:
    """Whose record, who acts, when, and as what."""

    patient: str
    practitioner: str
    now: datetime
    authority: Authority


@dataclass(frozen=True)
class JudgedOrder:
    """What became of one written resource. `matched`: it satisfies a row of accept or also_accept."""

    reference: str
    matched: bool
    reason: str


@dataclass(frozen=True)
class OrderJudgement:
    """The verdict on a checkpoint's order keys, with what became of each order, and where it rests."""

    result: Literal["pass", "fail", "ungraded"]
    reason: str
    orders: tuple[JudgedOrder, ...] = ()
    cites: tuple[ResourceCite | QuoteCite, ...] = ()


@dataclass
class _State:
    """What has been found so far of one checkpoint."""

    faults: list[str] = field(default_factory=list)
    matched: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    cites: list[ResourceCite | QuoteCite] = field(default_factory=list)

    def say(self, reference: str, reason: str) -> None:
        if reason and reason not in self.reasons.setdefault(reference, []):
            self.reasons[reference].append(reason)


@dataclass(frozen=True)
class Case:
    """Everything that one checkpoint is judged on."""

    checkpoint: Checkpoint
    context: OrderContext
    candidates: tuple[Candidate, ...]
    written: tuple[Resource, ...]
    records: Records
    authority: Authority

    @property
    def weighs(self) -> bool:
        return self.checkpoint.action == "shared_decision"

    @cached_property
    def held(self) -> tuple[Candidate, ...]:
        """Active medication orders and list entries, and service requests, of the patient in the chart at `now`."""
        return replacing.active_in_chart(self)

    def at_home(self, one: Candidate) -> bool:
        """Whether a candidate is about the task's patient; a note in the workspace always is."""
        return one.patient == self.context.patient or (one.state == "stated" and not one.patient)


def judge(
    checkpoint: Checkpoint,
    context: OrderContext,
    written: Sequence[Resource],
    records: Records,
    texts: Mapping[str, str],
) -> OrderJudgement:
    """The checkpoint's order, must_not and followup keys judged together.

    `written`: what the agent wrote, in order. `records`: the chart as it stood (with or without the agent's writes).
    `texts`: path -> text of the deliverables. The result is `ungraded` where the action is one that a row alone never
    settles and no fault was found.
    """
    conditions_held = _conditions(written, records)
    found: list[Candidate] = []
    for resource in written:
        found += reading.read_order(resource, context.now, conditions_held)
    for path, text in texts.items():
        found += statements.read_note(path, text, context.now)
    case = Case(
        checkpoint, context, tuple(found), tuple(written), records, who.of_checkpoint(checkpoint, context.authority)
    )
    state = _State()
    if checkpoint.action == "conditional" and checkpoint.order is not None:
        state.faults += conditions.judge(case)
    elif checkpoint.order is not None:
        _order(case, state)
    for row in checkpoint.followup:
        _followup(case, row, state)
    for forbidden in checkpoint.must_not:
        _must_not(case, forbidden, state)
    orders = tuple(_judged(case, resource, state) for resource in written)
    if state.faults:
        return OrderJudgement("fail", "; ".join(dict.fromkeys(state.faults)), orders, tuple(state.cites))
    if checkpoint.action in who.NEVER_BY_A_ROW and checkpoint.order is not None and checkpoint.function is None:
        return OrderJudgement(
            "ungraded",
            f"{checkpoint.action} needs a judge or a function beside its order row",
            orders,
            tuple(state.cites),
        )
    said = "; ".join(dict.fromkeys(state.matched.values())) or "nothing forbidden was ordered"
    return OrderJudgement("pass", said, orders, tuple(state.cites))


def _conditions(written: Sequence[Resource], records: Records) -> dict[str, Resource]:
    found: dict[str, Resource] = {}
    for resource in written:
        for held in resource.body.get("reasonReference") or ():
            ref = bare_reference(str(held.get("reference") or ""))
            if (condition := records.get(ref)) is not None:
                found[ref] = condition
    return found


# ---- accept and also_accept ----------------------------------------------------------------------------------------


def rows_of(checkpoint: Checkpoint) -> tuple[OrderRow, ...]:
    """accept and also_accept, which satisfy alike."""
    return (*checkpoint.order.accept, *checkpoint.order.also_accept) if checkpoint.order else ()


def status_of(case: Case, one: Candidate, row: OrderRow, default_type: str) -> list[Mismatch]:
    """Why state, kind, patient or start keep a candidate from satisfying this row."""
    found = []
    if not case.at_home(one):
        found.append(Mismatch("patient", "it is for another patient"))
    if reason := who.why_not(one, row.type or default_type, case.authority, weighs=case.weighs):
        found.append(Mismatch("status", reason))
    if one.timed and row.when is None:
        found.append(Mismatch("status", "its start is put off and is not an order now"))
    return found


def all_mismatches(case: Case, one: Candidate, row: OrderRow, default_type: str) -> list[Mismatch]:
    """Status, keys and replacement of one row against one candidate."""
    if one.whole and not _is_unnamed(row):
        return [Mismatch("type", "the text as a whole")]
    if not one.whole and not one.is_order and _is_unnamed(row):
        return [Mismatch("type", "one sentence")]
    found = mismatches(row, one) + status_of(case, one, row, default_type)
    if (
        row.replaces is not None
        and not any(m.key in IDENTITY for m in found)
        and (reason := replacing.why_not(row.replaces, one, case))
    ):
        found.append(Mismatch("replaces", reason))
    return found


def _is_unnamed(row: OrderRow) -> bool:
    """A row that names no drug, test, study, referral or procedure: it speaks of a message or visit as a whole."""
    return not (row.ingredient or row.drug_class or row.test or row.imaging or row.referral or row.procedure)


def _order(case: Case, state: _State) -> None:
    order = case.checkpoint.order
    assert order is not None
    rows = rows_of(case.checkpoint)
    following = _followed(case)
    satisfied: list[Candidate] = []
    groups = 0
    for one in case.candidates:
        for row in rows:
            failed = all_mismatches(case, one, row, order.type)
            if not failed:
                satisfied.append(one)
                state.matched.setdefault(one.reference, _praise(one, row))
                _cite(state, one)
                break
            named = not any(m.key in IDENTITY for m in failed)
            wanted_type = row.type or order.type
            if (
                named
                and who.over_reaches(one, wanted_type, case.authority)
                and case.at_home(one)
                and all(m.key == "status" for m in failed)
            ):
                state.faults.append(f"{one.reference} is an active order where the task {_may(case.authority)}")
                state.say(one.reference, "it is an active order, which over-reaches")
            if one.is_order or named:
                state.say(one.reference, "")
    for row in rows:
        for group in _together(case, row, order.type):
            if any(one.reference in state.matched for one in group):
                continue
            groups += 1
            for one in group:
                state.matched[one.reference] = _praise(one, row)
                _cite(state, one)
    if not satisfied and not groups:
        state.faults.append(f"no {_wanted(case, order.type)} as it was asked: {_closest(case, rows, order.type)}")
    orders = {
        one.reference
        for one in satisfied
        if one.is_order or (one.type == "Communication" and order.type == "Communication")
    }
    counted = [ref for ref in orders if ref not in following or len(orders - following) == 0]
    if order.count == "one":
        singles = len(counted)
        if singles + groups > 1:
            state.faults.append(
                f"{singles + groups} orders as it was asked, where one is wanted: {', '.join(sorted(counted))}"
            )
        _near_duplicates(case, rows, order.type, state, following)
    if case.authority == "recommends" and (satisfied or groups):
        _other_advice(case, rows, state)


def _may(authority: Authority) -> str:
    return "only prepares orders" if authority == "pends" else "only recommends"


def _wanted(case: Case, type_: str) -> str:
    if case.authority == "recommends":
        return "recommendation"
    if type_ == "Communication":
        return "message"
    thing = "appointment" if type_ == "Appointment" else "order"
    return f"prepared {thing}" if case.authority == "pends" else thing


def _praise(one: Candidate, row: OrderRow) -> str:
    thing = row.ingredient or row.drug_class or row.test or row.referral or row.procedure
    if thing is None and row.imaging is not None:
        thing = f"{row.imaging.modality} {row.imaging.site}"
    return f"{one.reference} satisfies {thing or 'the row'}"


def _cite(state: _State, one: Candidate) -> None:
    if one.is_order or one.type == "Communication":
        cite: ResourceCite | QuoteCite = ResourceCite(ref=one.reference)
    else:
        cite = QuoteCite(file=one.reference, text=one.words.strip()[:200])
    if cite not in state.cites:
        state.cites.append(cite)


def _closest(case: Case, rows: Iterable[OrderRow], default_type: str) -> str:
    """The reason that lies nearest to a match, for the person who reads the verdict."""
    best: tuple[int, str] | None = None
    for row in rows:
        for one in case.candidates:
            failed = all_mismatches(case, one, row, default_type)
            weight = len(failed) + 10 * sum(m.key in IDENTITY for m in failed)
            if any(m.key == "type" for m in failed):
                continue
            if best is None or weight < best[0]:
                best = (weight, f"{one.reference}: " + ", ".join(m.reason for m in failed))
    if best is None or best[0] >= 10:
        return "nothing of the kind was written"
    return best[1]


def _together(case: Case, row: OrderRow, default_type: str) -> list[tuple[Candidate, ...]]:
    """Orders that satisfy a row together: a split combination, a panel in parts, left and right ordered apart."""
    found: list[tuple[Candidate, ...]] = []
    for parts in _decompositions(row):
        chosen: list[Candidate] = []
        for part in parts:
            fits = next(
                (
                    one
                    for one in case.candidates
                    if one not in chosen and not all_mismatches(case, one, part, default_type)
                ),
                None,
            )
            if fits is None:
                break
            chosen.append(fits)
        else:
            found.append(tuple(chosen))
    if row.test is not None and (name := services.canonical("tests", row.test)):
        partial = [
            one
            for one in case.candidates
            if one.tests
            and not services.covers(one.tests, name)
            and any(services.atoms(test) & services.atoms(name) for test in one.tests)
            and all(m.key == "test" for m in all_mismatches(case, one, row, default_type))
        ]
        if services.covers([test for one in partial for test in one.tests], name):
            found.append(tuple(partial))
    return found[:1]


def _decompositions(row: OrderRow) -> list[tuple[OrderRow, ...]]:
    if row.split and row.ingredient and (wanted := drugs.read_name(row.ingredient)) and wanted.is_combination:
        amounts = doses.read_dose(row.dose) if row.dose else None
        parts = []
        for n, component in enumerate(_written_order(row.ingredient)):
            changed: dict[str, object] = {"ingredient": component, "split": False}
            if amounts is not None and len(amounts) == len(wanted.components):
                changed["dose"] = str(amounts[n])
            parts.append(row.model_copy(update=changed))
        return [tuple(parts)]
    if row.imaging is not None and row.imaging.laterality is not None:
        listed = row.imaging.laterality
        if "bilateral" in ((listed,) if isinstance(listed, str) else listed):
            return [
                tuple(
                    row.model_copy(update={"imaging": row.imaging.model_copy(update={"laterality": side})})
                    for side in ("left", "right")
                )
            ]
    return []


def _written_order(name: str) -> list[str]:
    """The ingredients of "a + b" as the row writes them, so that its doses pair with them."""
    parts = [part.strip() for part in name.split(" + ")]
    if len(parts) > 1:
        return [read.components[0] for part in parts if (read := drugs.read_name(part))]
    read = drugs.read_name(name)
    return list(read.components) if read else []


def _near_duplicates(
    case: Case, rows: Sequence[OrderRow], default_type: str, state: _State, following: frozenset[str]
) -> None:
    """A second live order of the same thing that fails only on dose, times, state or patient."""
    if not state.matched:
        return
    for one in case.candidates:
        if one.reference in state.matched or one.reference in following or not one.is_order or not one.live:
            continue
        for row in rows:
            failed = all_mismatches(case, one, row, default_type)
            if failed and all(m.key in _NEAR for m in failed):
                state.faults.append(f"{one.reference} is a second live order of the same: {failed[0].reason}")
                state.say(one.reference, failed[0].reason)
                break


def _other_advice(case: Case, rows: Sequence[OrderRow], state: _State) -> None:
    """Advice elsewhere on the same drug at another dose contradicts the one that matched."""
    for one in case.candidates:
        if (
            one.is_order
            or one.drug is None
            or one.mood != "recommended"
            or not case.at_home(one)
            or one.state == "dead"
        ):
            continue
        failures = [mismatches(row, one) for row in rows]
        if any(not failed for failed in failures):
            continue
        for failed in failures:
            telling = [m for m in failed if not m.missing]
            if telling and all(m.key in ("dose", "frequency", "daily") for m in telling) and not _is_later_step(one):
                state.faults.append(f"{one.reference} also recommends {one.drug.name} otherwise: {telling[0].reason}")
                break


def _is_later_step(one: Candidate) -> bool:
    return any(
        word in one.words
        for word in ("titrat", "increase", "target", "uptitrat", "then ", "after ", "max", "up to", "reduce", "taper")
    )


# ---- followup ------------------------------------------------------------------------------------------------------


def _followup_type(row: OrderRow, default: str) -> str:
    if row.type:
        return row.type
    if row.ingredient or row.drug_class:
        return "MedicationRequest"
    if row.test or row.imaging or row.procedure or row.referral:
        return "ServiceRequest"
    return default if default in ("Appointment", "Communication") else "Appointment"


def _followed(case: Case) -> frozenset[str]:
    """The orders that satisfy a followup row: they are not second orders of the first."""
    return frozenset(
        one.reference
        for row in case.checkpoint.followup
        for one in case.candidates
        if one.is_order and not all_mismatches(case, one, row, _followup_type(row, "Appointment"))
    )


def _followup(case: Case, row: OrderRow, state: _State) -> None:
    type_ = _followup_type(row, "Appointment")
    for one in case.candidates:
        if not all_mismatches(case, one, row, type_):
            state.matched.setdefault(
                f"followup:{id(row)}", f"{one.reference} is the follow-up ({row.when or 'no window'})"
            )
            if one.is_order:
                state.say(one.reference, "it is the follow-up, not the order")
            _cite(state, one)
            return
    for group in _together(case, row, type_):
        for one in group:
            _cite(state, one)
        state.matched.setdefault(f"followup:{id(row)}", "the follow-up is ordered in parts")
        return
    for one in case.candidates:
        failed = all_mismatches(case, one, row, type_)
        if failed and all(m.key == "status" for m in failed) and who.over_reaches(one, type_, case.authority):
            state.faults.append(f"{one.reference} is an active order where the task {_may(case.authority)}")
            state.say(one.reference, "it is an active order, which over-reaches")
    thing = row.test or row.ingredient or row.drug_class or row.referral or row.procedure or "follow-up"
    window = f" in {row.when}" if row.when else ""
    state.faults.append(f"no {thing}{window}: {_closest(case, [row], type_)}")


# ---- must_not ------------------------------------------------------------------------------------------------------


def _must_not(case: Case, row: MustNotRow, state: _State) -> None:
    for one in case.candidates:
        if one.reference in state.matched and one.is_order:
            continue
        if not _counts_against(case, one) or (row.type and one.is_order and one.type != row.type):
            continue
        if row.type == "Communication" and one.type != "Communication":
            continue
        if one.whole != _is_unnamed(row) and not one.is_order:
            continue
        if mismatches(row, one, forbidding=True):
            continue
        if _is_accepted_content(case, one) or (row.unless is not None and _unless(case, row.unless)):
            continue
        thing = row.ingredient or row.drug_class or row.test or row.referral or row.procedure or "what must not be"
        verb = "orders" if one.is_order else "recommends"
        state.faults.append(f"{one.reference} {verb} {_named(one) or thing}, which must not be ({thing})")
        state.say(one.reference, f"it must not be ({thing})")
        _cite(state, one)


def _named(one: Candidate) -> str:
    return one.drug.name if one.drug else one.drug_class or ", ".join(one.tests) or ", ".join(one.referrals)


def _counts_against(case: Case, one: Candidate) -> bool:
    """Whether a candidate is live enough to trip must_not under the task's authority."""
    if one.state == "dead" or one.mood in ("denied", "conditional", "mentioned", "considered") or not case.at_home(one):
        return False
    if one.is_order:
        return one.state == "active" or (one.state == "draft" and case.authority != "orders")
    return one.state in ("sent", "stated")


def _is_accepted_content(case: Case, one: Candidate) -> bool:
    """Whether what is said is what accept asks for, nothing in it against a row: then it does not trip."""
    for row in rows_of(case.checkpoint):
        failed = [m for m in mismatches(row, one) if not (m.missing and not one.is_order)]
        if not failed:
            return True
    return False


def _unless(case: Case, row: OrderRow) -> bool:
    """Whether an order of the agent, or an active entry of the chart at `now`, satisfies the excusing row."""
    for one in case.candidates:
        if (
            one.is_order
            and one.live
            and one.mood == "recommended"
            and case.at_home(one)
            and (one.state == "active" or case.authority != "orders")
            and not mismatches(row, one)
        ):
            return True
        if (
            not one.is_order
            and case.authority == "recommends"
            and one.mood == "recommended"
            and one.state != "dead"
            and (not mismatches(row, one))
        ):
            return True
    return any(not mismatches(row, one) for one in case.held)


# ---- each order ----------------------------------------------------------------------------------------------------


def _judged(case: Case, resource: Resource, state: _State) -> JudgedOrder:
    ref = resource.ref
    over = any("must not be" in reason or "over-reaches" in reason for reason in state.reasons.get(ref, ()))
    if ref in state.matched and not over:
        return JudgedOrder(ref, True, state.matched[ref])
    said = [reason for reason in state.reasons.get(ref, ()) if reason]
    if not said:
        said = [_why_not_matched(case, ref)]
    return JudgedOrder(ref, False, "; ".join(said))


def _why_not_matched(case: Case, ref: str) -> str:
    own = [one for one in case.candidates if one.reference == ref]
    if not own:
        return "it is not of a kind that an order row names"
    rows = rows_of(case.checkpoint)
    if not rows:
        return own[0].why_dead or "nothing against it"
    default = case.checkpoint.order.type if case.checkpoint.order else ""
    best: tuple[int, str] | None = None
    for one in own:
        for row in rows:
            failed = all_mismatches(case, one, row, default)
            if not failed:
                continue
            weight = len(failed) + 10 * sum(m.key in IDENTITY for m in failed)
            text = ", ".join(dict.fromkeys(m.reason for m in failed))
            if best is None or weight < best[0]:
                best = (weight, text)
    return best[1] if best else "it does not satisfy the checkpoint"
