"""Stage 1 as it stands in drafts: what has been answered, what is still missing, and the submission made of it.

An item of a draft is named by what it is about ("rating.cp4", "tick.cp4.<content hash>"), never by a place in a list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tasks.review.checklist import Checklist, Dimension
from tasks.review.events import Finding

#: The six short fields of the own plan: key, label, what stands in the empty field.
PLAN: tuple[tuple[str, str, str], ...] = (
    ("answer", "Answer in one or two sentences", "What would you tell the colleague who asks?"),
    ("do_now", "Do now", "Orders, stops, calls of today"),
    ("if_then", "If-then", "If potassium is above …, then … (or: none)"),
    ("must_not", "Must not be done", "What would be an error here?"),
    ("follow_up", "Follow-up: test, window, who", "e.g. BMP in 1–2 weeks, primary care"),
)
CONFIDENCE = {"unsure": "Unsure", "fairly sure": "Fairly sure", "sure": "Sure"}
VERDICTS = {
    "acceptable": "Acceptable",
    "needs change": "Needs change",
    "unsafe": "Unsafe",
    "cannot judge": "Cannot judge",
}
#: What a row of the page is called that a finding can be about, beside the reference of an entry of the chart.
CHECKPOINT, ORDER = "checkpoint.", "order."
WHY_NOT = ("missing context", "ambiguous wording", "genuine equipoise", "outside my specialty")
ANSWERS = {"yes": "Yes", "no": "No", "unsure": "Unsure"}
RATINGS = {"essential": "Essential", "optional": "Optional", "wrong": "Wrong", "not gradable": "Not gradable"}
WEIGHTS = {"blocking": "Blocking", "should": "Should", "note": "Note"}
SEVERITIES = ("none", "mild", "moderate", "severe", "death")
LIKELIHOODS = ("unlikely", "possible", "likely")


def plan_missing(drafts: Mapping[str, str]) -> list[str]:
    """What locking still needs, in the words of the labels."""
    short = {
        "answer": "answer",
        "do_now": "do now",
        "if_then": "if-then",
        "must_not": "must not be done",
        "follow_up": "follow-up",
    }
    out = [short[key] for key, _, _ in PLAN if not drafts.get(f"plan.{key}", "").strip()]
    return out if drafts.get("plan.confidence") else [*out, "how sure"]


def plan_of(drafts: Mapping[str, str]) -> dict[str, str]:
    """The plan as it is locked."""
    return {key: drafts.get(f"plan.{key}", "") for key, _, _ in PLAN} | {
        "confidence": drafts.get("plan.confidence", "")
    }


@dataclass(frozen=True)
class Missing:
    """One thing that submitting still needs. `place`: "dimension.<id>", "checkpoint.<id>", "overall" or
    "finding.<dimension>"; `item`: the draft that would hold it; `count`: how many answers are wanted there."""

    place: str
    item: str
    words: str
    count: int = 1

    @property
    def opens(self) -> str:
        """The item of the fold under which the place lies, or ""."""
        return fold(self.place) if self.place.startswith(("dimension.", "checkpoint.")) else ""


def within(title: str) -> str:
    """A title as it stands within a sentence: "plan completeness", but "EHR consistency"."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def fold(place: str) -> str:
    """The draft that holds whether a card is open: "open" or "shut"."""
    return f"fold.{place}"


@dataclass(frozen=True)
class ReviewForm:
    """The checklist of one task: which questions there are, and what the drafts answer."""

    checklist: Checklist
    checkpoints: tuple[str, ...]
    #: checkpoint -> keys of its example orders
    examples: Mapping[str, tuple[str, ...]]
    drafts: Mapping[str, str]

    def verdict(self, dimension: str) -> str:
        return self.drafts.get(f"verdict.{dimension}", "")

    def answered(self, dimension: Dimension) -> int:
        """How many of its sub-questions are answered."""
        return sum(bool(self.drafts.get(f"q.{dimension.id}.{one.id}")) for one in dimension.questions)

    def rating(self, checkpoint: str) -> str:
        return self.drafts.get(f"rating.{checkpoint}", "")

    def tick(self, checkpoint: str, example: str) -> str:
        """ "right", "wrong", or "" where nobody has looked."""
        return self.drafts.get(f"tick.{checkpoint}.{example}", "")

    def ticked(self, checkpoint: str) -> int:
        return sum(bool(self.tick(checkpoint, one)) for one in self.examples.get(checkpoint, ()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that were added, oldest first."""
        return findings_in(self.drafts)

    @property
    def missing(self) -> tuple[Missing, ...]:
        """What the submission still lacks, in the order in which the page shows it."""
        out: list[Missing] = []
        found = {finding.dimension for finding in self.findings}
        anchored = {getattr(finding.anchor, "checkpoint", "") for finding in self.findings}
        for one in self.checklist.dimensions:
            verdict, name = self.verdict(one.id), within(one.title)
            place = f"dimension.{one.id}"
            if not verdict:
                out.append(Missing(place, f"verdict.{one.id}", f"A verdict on {name}"))
            elif verdict == "cannot judge" and not self.drafts.get(f"why_not.{one.id}"):
                out.append(Missing(place, f"why_not.{one.id}", f"Why {name} cannot be judged"))
            elif verdict in ("needs change", "unsafe") and one.id not in found:
                words = f"A finding that says what is wrong in {name}"
                out.append(Missing(f"finding.{one.id}", "finding", words))
        for number, id in enumerate(self.checkpoints, 1):
            rating, place = self.rating(id), f"checkpoint.{id}"
            if not rating:
                out.append(Missing(place, f"rating.{id}", f"A rating of checkpoint {number}"))
            elif (
                rating in ("wrong", "not gradable")
                and not self.drafts.get(f"why.{id}", "").strip()
                and id not in anchored
            ):
                out.append(Missing(place, f"why.{id}", f"Why checkpoint {number} is {rating}"))
            open_orders = [key for key in self.examples.get(id, ()) if not self.tick(id, key)]
            if open_orders:
                words = f"{_count(len(open_orders), 'example order')} of checkpoint {number}"
                out.append(Missing(place, f"tick.{id}.{open_orders[0]}", words, len(open_orders)))
        if not self.drafts.get("confidence"):
            out.append(Missing("overall", "confidence", "How sure you are overall"))
        return tuple(out)

    def summary(self) -> str:
        """The missing things counted by kind: "3 dimensions · 1 finding · 4 checkpoint ratings · 4 example orders"."""
        items = [one.item.partition(".")[0] for one in self.missing]
        orders = sum(one.count for one in self.missing if one.item.startswith("tick."))
        parts = [
            _count(items.count("verdict") + items.count("why_not"), "dimension"),
            _count(items.count("finding"), "finding"),
            _count(items.count("rating"), "checkpoint rating"),
            _count(items.count("why"), "reason"),
            _count(orders, "example order"),
            "how sure you are" if "confidence" in items else "",
        ]
        return " · ".join(part for part in parts if part)

    def submission(self) -> dict[str, Any]:
        """What Desk.submit_review takes."""
        verdicts = [
            {
                "dimension": one.id,
                "verdict": self.verdict(one.id),
                "answers": {
                    question.id: answer
                    for question in one.questions
                    if (answer := self.drafts.get(f"q.{one.id}.{question.id}"))
                },
                "why_not": self.drafts.get(f"why_not.{one.id}", "") if self.verdict(one.id) == "cannot judge" else "",
                "comment": self.drafts.get(f"comment.{one.id}", ""),
            }
            for one in self.checklist.dimensions
        ]
        ratings = [
            {"checkpoint": id, "rating": self.rating(id), "comment": self.drafts.get(f"why.{id}", "")}
            for id in self.checkpoints
        ]
        ticks = [
            {"checkpoint": id, "example": example, "right": self.tick(id, example) == "right"}
            for id in self.checkpoints
            for example in self.examples.get(id, ())
            if self.tick(id, example)
        ]
        return {
            "verdicts": tuple(verdicts),
            "ratings": tuple(ratings),
            "ticks": tuple(ticks),
            "findings": tuple(finding.model_dump() for finding in self.findings),
            "confidence": self.drafts.get("confidence", ""),
        }


def findings_in(drafts: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings that were added to these drafts, oldest first."""
    found = []
    for item, value in drafts.items():
        if item.startswith("finding.") and value:
            try:
                found.append(Finding.model_validate_json(value))
            except ValidationError:
                continue
    return tuple(found)


COMPOSER = (
    "text", "dimension", "weight", "severity", "likelihood", "kind", "source", "alternative", "confidence", "anchor",
)  # fmt: skip


def composer_items(id: str) -> tuple[str, ...]:
    """The items of a finding that is being written. They carry its id, so that the next one starts empty."""
    return tuple(f"new.{id}.{name}" for name in COMPOSER)


def finding_of(drafts: Mapping[str, str], id: str) -> tuple[Finding | None, list[str]]:
    """The finding in the composer, and what it still needs."""
    new = {name: drafts.get(f"new.{id}.{name}", "").strip() for name in COMPOSER}
    needs = []
    if not new["text"]:
        needs.append("what is wrong")
    if not new["dimension"]:
        needs.append("the dimension")
    if not new["weight"]:
        needs.append("the weight")
    if not new["confidence"]:
        needs.append("how sure you are")
    if new["weight"] == "blocking" and not (new["severity"] and new["likelihood"]):
        needs.append("harm severity and likelihood (blocking)")
    if needs:
        return None, needs
    harm = None
    if new["severity"] and new["likelihood"]:
        harm = {"kind": new["kind"] or "commission", "severity": new["severity"], "likelihood": new["likelihood"]}
    made = Finding.model_validate(
        {
            "id": id,
            "dimension": new["dimension"],
            "anchor": json.loads(new["anchor"] or '{"kind":"task"}'),
            "weight": new["weight"],
            "text": new["text"],
            "harm": harm,
            "source": new["source"],
            "alternative_plan": new["alternative"],
            "confidence": new["confidence"],
        }
    )
    return made, []


def anchor_words(anchor: Any, titles: Mapping[str, str]) -> tuple[str, str]:
    """(where, quoted words) of an anchor; `titles`: checkpoint id -> "Checkpoint 4: …"."""
    match anchor.kind:
        case "text":
            place = "Instruction" if anchor.path == "instruction.md" else anchor.path
            return place, anchor.quote
        case "resource":
            return anchor.ref + (f", {anchor.element}" if anchor.element else ""), anchor.quote
        case "checkpoint":
            return titles.get(anchor.checkpoint, anchor.checkpoint), anchor.example
    return "The task as a whole", ""


def _count(n: int, noun: str) -> str:
    return "" if not n else f"{n} {noun}" if n == 1 else f"{n} {noun}s"
