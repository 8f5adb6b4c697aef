"""Retrieval checkpoints: the facts that the model must have been shown, whatever tool it used to find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from graders.evidence import Evidence
from graders.shown import is_read, resource_spans
from tasks.anchors import Anchor, holds
from tasks.trials import CallCite, QuoteCite, ResourceCite


class Sighting(NamedTuple):
    """What became of one required fact."""

    fact: str
    seen: bool
    reason: str
    cites: tuple[ResourceCite | QuoteCite | CallCite, ...]


class SeenJudgement(NamedTuple):
    """pass = every fact was shown, partial = some, fail = none."""

    result: Literal["pass", "partial", "fail"]
    reason: str
    cites: tuple[ResourceCite | QuoteCite | CallCite, ...]


def judge_seen(facts: Sequence[str], evidence: Evidence) -> SeenJudgement:
    """Whether the model was shown every fact of the list (`rests_on` grammar)."""
    sightings = [sight(fact, evidence) for fact in facts]
    found = [sighting for sighting in sightings if sighting.seen]
    lost = [sighting for sighting in sightings if not sighting.seen]
    cites = tuple(dict.fromkeys(cite for sighting in sightings for cite in sighting.cites))
    reasons = " ".join(sighting.reason for sighting in (*lost, *found))
    return SeenJudgement("pass" if not lost else "partial" if found else "fail", reasons, cites)


def sight(fact: str, evidence: Evidence) -> Sighting:
    """Whether and where one fact was shown. A resource must have been shown whole, a quotation in its own resource."""
    anchor = Anchor.parse(fact)
    ref, quote = anchor.ref, anchor.quote
    if anchor.is_instruction:
        # The instruction is the first thing that every model is shown.
        shown = holds(quote or "", evidence.task.instruction)
        reason = f"{fact} stands in the instruction." if shown else f"{fact} does not stand in the instruction."
        return Sighting(fact, shown, reason, (QuoteCite(file="instruction.md", text=quote or ""),) if shown else ())
    call = evidence.seen_text(quote, ref) if quote else evidence.seen(ref)
    if call is not None:
        return Sighting(fact, True, f"{fact} was shown in call {call.n}.", (ResourceCite(ref=ref), call))
    if cut := _cut_off(ref, evidence):
        reason = f"{fact} was in the result of call {cut}, outside the part that the model was shown."
        return Sighting(fact, False, reason, (CallCite(n=cut),))
    if quote and (entry := next(iter(evidence.sightings(ref)), None)):
        return Sighting(fact, False, f"{fact}: the resource was shown in call {entry.call}, these words were not.", ())
    return Sighting(fact, False, f"{fact} was never in a tool result.", ())


def _cut_off(ref: str, evidence: Evidence) -> int | None:
    """The call whose result held the resource but not, or not whole, in its shown part."""
    for call in evidence.calls:
        if is_read(call) and ref in (found := {r: end for _, end, r in resource_spans(call.result, len(call.result))}):
            return call.n if found[ref] > call.shown else None
    return None
