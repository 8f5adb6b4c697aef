"""If-then: a condition with its threshold, what is then done, and by whom, all stated in an order, message or note."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from graders.orders import drugs, services
from graders.orders.matching import mismatches
from graders.orders.negation import sentences
from graders.orders.text import NUMBER, normal, number, squeeze
from tasks.declarations import OrderRow

if TYPE_CHECKING:
    from graders.orders.judging import Case

_ABOVE = (
    r"(?:>=?|above|over|exceeds?|exceeding|greater than(?: or equal to)?|higher than|more"
    r" than|rises? (?:to|above|over)|at or above|at least|or (?:more|higher|above"
    r"|greater))"
)
_BELOW = (
    r"(?:<=?|below|under|less than(?: or equal to)?|lower than|falls? (?:to|below|under)"
    r"|drops? (?:to|below|under)|at or below|or (?:less|lower|below))"
)
_COMPARISON = re.compile(
    rf"(?P<sign>{_ABOVE}|{_BELOW})\s*(?:a |an )?(?P<n>{NUMBER})"
    rf"|(?P<n2>{NUMBER})\s*[a-z/%]*\s*(?P<sign2>or (?:more|higher|above|greater|less"
    r"|lower|below))"
)
_CONDITION = re.compile(r"\b(?:if|when|once|should|in case|for|unless)\b|>=?|<=?")

#: What is then done: one word of a family stands for another.
_ACTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"\b(?:{pattern})\b"))
    for name, pattern in (
        ("stop", r"stop\w*|hold|held|discontinu\w*|withhold|cease|suspend|interrupt"),
        ("start", r"start\w*|begin|initiat\w*|resum\w*|restart\w*|give|add|prescribe"),
        ("reduce", r"reduc\w*|decreas\w*|lower|halve|half the dose|cut"),
        ("increase", r"increas\w*|raise|uptitrat\w*|up-titrat\w*|double"),
        ("emergency", r"ed|emergency|er|911|hospital|admit\w*|urgent care"),
        ("refer", r"refer\w*|consult\w*|see"),
        ("repeat", r"repeat\w*|recheck\w*|re-check|check|measure|obtain|order"),
        ("call", r"call\w*|contact|notify|message|inform|alert"),
        ("switch", r"switch\w*|chang\w*|replac\w*|transition\w*"),
    )
)
_OWNERS: tuple[tuple[str, ...], ...] = (
    ("pcp", "primary care", "primary care provider", "primary care physician", "family physician", "family doctor",
     "referring clinician", "referring physician", "referring provider", "primary team", "your office", "you", "gp"),
    ("patient", "she", "he", "they", "family", "caregiver"),
    ("nurse", "rn", "nursing"),
    ("pharmacist", "pharmacy", "anticoagulation clinic", "pharmd"),
    ("nephrology", "nephrologist", "renal"),
    ("cardiology", "cardiologist"),
    ("endocrinology", "endocrinologist"),
    ("hepatology", "hepatologist", "gastroenterology"),
    ("hematology", "hematologist"),
    ("psychiatry", "psychiatrist"),
    ("gynecology", "gynecologist", "obstetrics", "ob"),
)  # fmt: skip


@dataclass(frozen=True)
class Trigger:
    """A condition: what is measured or happens, and beyond which value."""

    words: frozenset[str]
    names: frozenset[str]
    sign: str = ""
    threshold: Decimal | None = None


#: Words of a condition that do not say what it is about.
_SMALL = frozenset(
    ("a", "an", "the", "is", "of", "or", "and", "to", "if", "when", "once", "in", "on", "at", "than", "with", "for",
     "any", "level", "levels", "serum", "rises", "rise", "above", "below", "over", "under", "greater", "less", "more",
     "falls", "mmol", "mg", "dl", "meq", "l")
)  # fmt: skip


@cache
def read_trigger(text: str) -> Trigger:
    """A declaration's trigger: "potassium > 5.5", "new rash"."""
    t = normal(text)
    comparison = _COMPARISON.search(t)
    subject = t[: comparison.start()] if comparison and comparison.start() > 0 else t
    names = frozenset(named.name for named in services.named_tests(subject))
    words = frozenset(_stem(word) for word in squeeze(subject).split() if word not in _SMALL)
    if comparison is None:
        return Trigger(words, names)
    sign = comparison["sign"] or comparison["sign2"]
    return Trigger(
        words, names, "above" if re.search(_ABOVE, sign) else "below", number(comparison["n"] or comparison["n2"])
    )


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|ies)$", "", word) if len(word) > 4 else word


def _holds_trigger(wanted: Trigger, text: str) -> bool:
    if not _CONDITION.search(text):
        return False
    if wanted.names:
        if not wanted.names & {n for named in services.named_tests(text) for n in services.contains(named.name)}:
            return False
    elif wanted.words and not wanted.words <= {_stem(word) for word in squeeze(text).split()}:
        return False
    if wanted.threshold is None:
        return True
    for match in _COMPARISON.finditer(text):
        sign = match["sign"] or match["sign2"]
        direction = "above" if re.search(_ABOVE, sign) else "below"
        if direction == wanted.sign and number(match["n"] or match["n2"]) == wanted.threshold:
            return True
    return False


def _holds_act(wanted: str, text: str) -> bool:
    t = normal(wanted)
    kinds = [name for name, pattern in _ACTS if pattern.search(t)]
    if kinds and not any(pattern.search(text) for name, pattern in _ACTS if name in kinds):
        return False
    things = {m.drug.name for m in drugs.mentions(t, prose=True)}
    if things:
        return things <= {m.drug.name for m in drugs.mentions(text, prose=True)}
    classes = {name for _, _, name in drugs.class_mentions(t)}
    if classes:
        said = {name for _, _, name in drugs.class_mentions(text)}
        said |= {
            c for m in drugs.mentions(text, prose=True) for part in m.drug.components for c in drugs.classes_of(part)
        }
        return classes <= said
    tests = {named.name for named in services.named_tests(t)}
    if tests:
        return tests <= {n for named in services.named_tests(text) for n in services.contains(named.name)}
    referrals = {named.name for named in services.referrals_in(t)} - {"emergency department"}
    if referrals:
        return referrals <= {named.name for named in services.find("referrals", text)}
    if kinds:
        return True
    return {_stem(word) for word in squeeze(t).split() if word not in _SMALL} <= {
        _stem(w) for w in squeeze(text).split()
    }


def _holds_owner(wanted: str, text: str) -> bool:
    t = squeeze(normal(wanted))
    family = next((names for names in _OWNERS if t in names), (t,))
    words = squeeze(text)
    return any(re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", words) for name in family)


def judge(case: Case) -> list[str]:
    """The faults of a conditional checkpoint: a part not stated, or the thing ordered now."""
    order = case.checkpoint.order
    assert order is not None
    texts = [
        one.said for one in case.candidates
        if case.at_home(one) and one.state != "dead" and one.mood != "denied" and (one.is_order or one.whole)
    ]  # fmt: skip
    rows = (*order.accept, *order.also_accept)
    closest: list[str] = []
    held = False
    for row in rows:
        missing = _missing(row, texts)
        if not missing:
            held = True
            break
        closest = missing if not closest or len(missing) < len(closest) else closest
    faults = [] if held else [f"the if-then is incomplete: {', '.join(closest)}"]
    for row in rows:
        named = row.model_copy(update={"trigger": None, "act": None, "owner": None, "when": None})
        if not (
            named.ingredient or named.drug_class or named.test or named.imaging or named.referral or named.procedure
        ):
            continue
        for one in case.candidates:
            now = one.is_order and one.live and one.mood == "recommended" and not one.timed and case.at_home(one)
            if now and one.state == "active" and not mismatches(named, one):
                faults.append(f"{one.reference} orders it now, where it waits for a condition")
    return faults


def _missing(row: OrderRow, texts: list[str]) -> list[str]:
    best = [key for key in ("trigger", "act", "owner") if getattr(row, key)]
    for text in texts:
        found = _missing_in(row, text)
        if len(found) < len(best):
            best = found
    if best and row.owner and best == ["owner"] and any(_holds_owner(row.owner, text) for text in texts):
        best = []
    return [f"the {key} ({getattr(row, key)}) is not stated" for key in best]


def _missing_in(row: OrderRow, text: str) -> list[str]:
    missing: list[str] = []
    pieces = [sentence.text for sentence in sentences(text)]
    windows = [*pieces, *(" ".join(pair) for pair in itertools.pairwise(pieces))]
    if row.trigger is not None:
        wanted = read_trigger(row.trigger)
        windows = [window for window in windows if _holds_trigger(wanted, window)]
        if not windows:
            missing.append("trigger")
    if row.act is not None and not any(_holds_act(row.act, window) for window in windows):
        missing.append("act")
    if row.owner is not None and not _holds_owner(row.owner, text):
        missing.append("owner")
    return missing
