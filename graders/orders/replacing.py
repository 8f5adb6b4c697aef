"""Replacement: the named drug was active, and is stopped or superseded with the new order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graders.orders import drugs, reading
from graders.orders.candidates import Candidate
from graders.orders.negation import harmless_blanked

if TYPE_CHECKING:
    from graders.orders.judging import Case

_STOPPED = frozenset({"stopped", "cancelled", "completed"})


def active_in_chart(case: Case) -> tuple[Candidate, ...]:
    """Active medication orders and list entries, and active service requests, of the patient in the chart at `now`."""
    own = {resource.ref for resource in case.written}
    found: list[Candidate] = []
    for kind in ("MedicationRequest", "MedicationStatement", "ServiceRequest"):
        for resource in case.records.resources(kind):
            if resource.ref in own or resource.body.get("status") not in ("active", "intended"):
                continue
            for one in reading.read_order(resource, case.context.now):
                if one.patient == case.context.patient and one.state == "active":
                    found.append(one)
    return tuple(found)


def why_not(name: str, one: Candidate, case: Case) -> str:
    """Why the named drug is not replaced with this order; "" where it is."""
    wanted = drugs.read_name(name)
    class_name = drugs.read_class(name) if wanted is None else None
    if wanted is None and class_name is None:
        return f"{name} is not in the tables"

    def is_it(drug: drugs.Drug | None) -> bool:
        if drug is None:
            return False
        if wanted is not None:
            return drugs.names_same(drug, wanted)
        return any(class_name in drugs.classes_of(part) for part in drug.components)

    held = [entry for entry in case.held if is_it(entry.drug)]
    if not held:
        return f"{name} is not active in the chart"
    if set(one.prior) & {entry.reference for entry in held}:
        return ""
    if says_replaced(one.said, is_it):
        return ""
    for other in case.candidates:
        if other.reference == one.reference and other.is_order:
            continue
        if other.type == "MedicationRequest" and is_it(other.drug) and case.at_home(other) and _is_stop(other):
            return ""
        if (
            other.type == "MedicationRequest"
            and other.live
            and case.at_home(other)
            and says_replaced(other.said, is_it)
        ):
            return ""
        if (
            case.authority != "orders"
            and not other.is_order
            and other.state in ("sent", "stated")
            and ((is_it(other.drug) and other.mood == "denied") or says_replaced(other.said, is_it))
        ):
            return ""
    where = " in an order" if case.authority == "orders" else ""
    return f"{name} is not stopped or replaced{where}"


def _is_stop(other: Candidate) -> bool:
    """A stop order: its status says so, doNotPerform, or an active order whose words stop the drug."""
    if other.state == "dead":
        return other.why_dead.removeprefix("its status is ") in _STOPPED or "doNotPerform" in other.why_dead
    return other.mood == "denied" or bool(re.search(r"\b(?:stop|discontinue|d/c)\b", harmless_blanked(other.said)))


_STOP = re.compile(
    r"\b(?:stop(?:ping|ped)?|discontinu(?:e|ed|ing)|d/c|cease|replac(?:e|es|ed|ing)(?:"
    r" the)?|supersed(?:e|es|ing)|in place of|instead of"
    r"|(?:switch|switched|switching|chang(?:e|ed|ing)|transition(?:ed|ing)?"
    r"|convert(?:ed|ing)?)(?: (?:him|her|them|patient|the patient|over))? from"
    r"|substitut(?:e|ed|ing) for)\s+(?:the\s+|her\s+|his\s+|current\s+|home\s+"
    r"|taking\s+)?"
)
_NOT_STOP = re.compile(r"\b(?:do not|don't|not|never|no need to|without|bridge|bridging|if)\b[^.;\n]{0,20}$")


def says_replaced(text: str, is_it: object) -> bool:
    """Whether a normalised text stops or supersedes the drug; a bridge is not a replacement."""
    assert callable(is_it)
    for match in _STOP.finditer(text):
        if _NOT_STOP.search(text[: match.start()]):
            continue
        rest = re.split(r"[.;\n]|\band (?:start|begin)|\bwith\b|\bto\b(?! )", text[match.end() :], maxsplit=1)[0]
        found = drugs.mentions(rest, prose=True)
        if found and found[0].start <= 24 and any(is_it(m.drug) for m in found if m.start <= 60):
            return True
    return any(
        is_it(m.drug)
        and re.match(
            r"\s*(?:is |was |to be |should be |will be |has been )?(?:stopped|discontinued|replaced)\b", text[m.end :]
        )
        for m in drugs.mentions(text, prose=True)
    )
