"""Stage 1 as it stands in drafts: what has been answered, what is still missing, and the submission made of it.

An item of a draft is named by what it is about ("rating.cp4", "tick.cp4.<content hash>"), never by a place in a list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from review_ui.autosave import BESIDE
from tasks.review.checklist import DIMENSIONS, Checklist
from tasks.review.events import Finding, OwnPlan
from tasks.wording import counted

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
#: Ratings that say why.
OBJECTIONS = ("wrong", "not gradable")
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
    """One thing that submitting still needs. `place`: "dimension.<id>", "checkpoint.<id>", "overall",
    "finding.<dimension>" or "left.<item>"; `item`: the draft that would hold it, or holds what is left; `count`: how
    many answers are wanted there."""

    place: str
    item: str
    words: str
    count: int = 1

    @property
    def opens(self) -> str:
        """The item of the fold under which the place lies, or ""."""
        return fold(self.place) if self.place.startswith(("dimension.", "checkpoint.")) else ""


@dataclass(frozen=True)
class Left:
    """Words that were written and that a submission would not hold. `what` they are; `where` they stand on the page;
    `items`: the drafts that hold them, the first the one to be led to."""

    what: str
    where: str
    words: str
    items: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Of what they are: "new", "amend", "finding", "why", "plan"; "beside" where two windows differ in them."""
        item = self.items[0]
        inner = item.removeprefix(BESIDE)
        return "beside" if inner != item and not inner.startswith("plan.") else inner.partition(".")[0]


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
    #: as it was locked
    plan: OwnPlan | None = None

    def verdict(self, dimension: str) -> str:
        return self.drafts.get(f"verdict.{dimension}", "")

    def rating(self, checkpoint: str) -> str:
        return self.drafts.get(f"rating.{checkpoint}", "")

    def tick(self, checkpoint: str, example: str) -> str:
        """ "right", "wrong", or "" where nobody has looked."""
        return self.drafts.get(f"tick.{checkpoint}.{example}", "")

    def ticked(self, checkpoint: str) -> int:
        return sum(bool(self.tick(checkpoint, one)) for one in self.examples.get(checkpoint, ()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that were added, in the order of the drafts (StateDb.drafts: oldest first)."""
        return findings_in(self.drafts)

    @property
    def left(self) -> tuple[Left, ...]:
        """What was written and is not part of the submission: it would be lost without a word."""
        out = [*left_in(self.drafts), *late(self.drafts, self.plan), *elsewhere(self.drafts)]
        for number, id in enumerate(self.checkpoints, 1):
            words, rating = self.drafts.get(f"why.{id}", "").strip(), self.rating(id)
            if words and rating and rating not in OBJECTIONS:
                what = f"Why checkpoint {number} was wrong or not gradable; it is rated {rating} now"
                out.append(Left(what, f"under checkpoint {number}", words, (f"why.{id}",)))
        return tuple(out)

    def harmful(self, dimension: str) -> tuple[Finding, ...]:
        """The findings on a dimension that name a harm, the gravest first."""
        found = [one for one in self.findings if one.dimension == dimension and one.harm]
        return tuple(sorted(found, key=lambda one: -SEVERITIES.index(one.harm.severity) if one.harm else 0))

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
            elif verdict == "needs change" and one.id not in found:
                words = f"A finding that says what is wrong in {name}"
                out.append(Missing(f"finding.{one.id}", "finding", words))
            elif verdict == "unsafe" and not self.harmful(one.id):
                # A veto: it stands on somebody's words and on a harm.
                words = f"A finding with its harm, that says what is unsafe in {name}"
                out.append(Missing(f"finding.{one.id}", "finding", words))
        for number, id in enumerate(self.checkpoints, 1):
            rating, place = self.rating(id), f"checkpoint.{id}"
            if not rating:
                out.append(Missing(place, f"rating.{id}", f"A rating of checkpoint {number}"))
            elif rating in OBJECTIONS and not self.drafts.get(f"why.{id}", "").strip() and id not in anchored:
                out.append(Missing(place, f"why.{id}", f"Why checkpoint {number} is {rating}"))
            open_orders = [key for key in self.examples.get(id, ()) if not self.tick(id, key)]
            if open_orders:
                words = f"{_count(len(open_orders), 'example order')} of checkpoint {number}"
                out.append(Missing(place, f"tick.{id}.{open_orders[0]}", words, len(open_orders)))
        if not self.drafts.get("confidence"):
            out.append(Missing("overall", "confidence", "How sure you are overall"))
        return tuple(out)

    @property
    def open(self) -> tuple[Missing, ...]:
        """What is missing, then what was written and is not part of it."""
        left = (Missing(f"left.{one.items[0]}", one.items[0], f"{one.what}, {one.where}") for one in self.left)
        return (*self.missing, *left)

    def summary(self) -> str:
        """The missing things counted by kind: "3 dimensions · 1 finding · 4 checkpoint ratings · 4 example orders", and
        what was written beside them: "1 finding not added"."""
        items = [one.item.partition(".")[0] for one in self.missing]
        left = [one.kind for one in self.left]
        orders = sum(one.count for one in self.missing if one.item.startswith("tick."))
        parts = [
            _count(items.count("verdict") + items.count("why_not"), "dimension"),
            _count(items.count("finding"), "finding"),
            _count(items.count("rating"), "checkpoint rating"),
            _count(items.count("why"), "reason"),
            _count(orders, "example order"),
            "how sure you are" if "confidence" in items else "",
            _count(left.count("new"), "finding", " not added"),
            _count(left.count("amend"), "correction", " not added"),
            _count(left.count("finding"), "finding", " that cannot be read"),
            _count(left.count("why"), "reason", " of an earlier rating"),
            _count(left.count("plan"), "text", " of your plan, written after it was locked"),
            _count(left.count("beside"), "text", " in which two windows differ"),
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
                "comment": self._comment(one.id),
            }
            for one in self.checklist.dimensions
        ]
        ratings = [
            {
                "checkpoint": id,
                "rating": self.rating(id),
                # Written for a rating that was changed since, the reason is for nothing.
                "comment": self.drafts.get(f"why.{id}", "") if self.rating(id) in OBJECTIONS else "",
            }
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

    def _comment(self, dimension: str) -> str:
        """The comment on a dimension. Of one that is unsafe it is the veto's reason: without one of its own, what the
        finding with the gravest harm says."""
        said = self.drafts.get(f"comment.{dimension}", "")
        if said.strip() or self.verdict(dimension) != "unsafe":
            return said
        return next((one.text for one in self.harmful(dimension)), "")


def findings_in(drafts: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings that were added to these drafts, in the order of the drafts. One that cannot be read is told by
    `left_in`."""
    found = (_finding(value) for item, value in drafts.items() if item.startswith("finding."))
    return tuple(one for one in found if one is not None)


def words_of(kept: str) -> str:
    """What an added finding says, readable or not; all of it where that cannot be told."""
    try:
        return str(json.loads(kept)["text"])
    except (ValueError, KeyError, TypeError):
        return kept.strip()


def _finding(kept: str) -> Finding | None:
    try:
        return Finding.model_validate_json(kept)
    except ValidationError:
        return None


COMPOSER = (
    "text", "dimension", "weight", "severity", "likelihood", "kind", "source", "alternative", "confidence", "anchor",
)  # fmt: skip
#: What of a finding is written, not chosen.
WRITTEN = ("text", "source", "alternative")


def composer_items(id: str) -> tuple[str, ...]:
    """The items of a finding that is being written. They carry its id, so that the next one starts empty."""
    return tuple(f"new.{id}.{name}" for name in COMPOSER)


def begun(drafts: Mapping[str, str]) -> dict[str, str]:
    """id -> the words of each finding that was begun and is not added, the one in the composer too."""
    found: dict[str, list[str]] = {}
    for item, words in drafts.items():
        new, _, rest = item.partition(".")
        id, _, name = rest.rpartition(".")
        if new == "new" and name in WRITTEN and words.strip():
            found.setdefault(id, [])
            found[id].insert(0 if name == "text" else len(found[id]), words.strip())
    return {id: "\n".join(words) for id, words in found.items()}


def left_in(drafts: Mapping[str, str]) -> tuple[Left, ...]:
    """Findings and corrections that were written and not added, and findings that cannot be read any more."""
    out = []
    for id, words in begun(drafts).items():
        here = id == drafts.get("composer")
        where = "under New finding" if here else "under Your findings, marked Not added yet"
        out.append(Left("A finding that is not added", where, words, composer_items(id)))
    for item, value in drafts.items():
        if item.startswith("amend.") and value.strip():
            where = "behind Your plan, above the checklist"
            out.append(Left("A correction of your plan that is not added", where, value.strip(), (item,)))
    return (*out, *unreadable(drafts))


def late(drafts: Mapping[str, str], locked: OwnPlan | None) -> tuple[Left, ...]:
    """What stands in the fields of the plan and not in the plan that was locked: another window was still open."""
    out = []
    for key, label, _ in PLAN if locked is not None else ():
        for item in (f"plan.{key}", f"{BESIDE}plan.{key}"):
            words = drafts.get(item, "").strip()
            if words and words != str(getattr(locked, key)).strip():
                what = f"“{label}” of your plan, written after it was locked"
                out.append(Left(what, "behind Your plan, above the checklist", words, (item,)))
    return tuple(out)


def elsewhere(drafts: Mapping[str, str]) -> tuple[Left, ...]:
    """What a window could not save, because another one had changed the same field; of the plan see `late`."""
    out = []
    for item, words in drafts.items():
        inner = item.removeprefix(BESIDE)
        differ = words.strip() and words.strip() != drafts.get(inner, "").strip()
        if inner != item and differ and not inner.startswith("plan."):
            what = f"Words that are not saved, because two windows differ: {item_words(inner)}"
            out.append(Left(what, "in the window that says so", words.strip(), (item,)))
    return tuple(out)


def item_words(item: str) -> str:
    """A draft's item in the words of the page."""
    kind, _, rest = item.removeprefix(BESIDE).partition(".")
    names = {
        "plan": "own plan", "verdict": "a verdict", "q": "a sub-question", "rating": "a checkpoint's rating",
        "tick": "example orders", "new": "a finding", "finding": "a finding", "composer": "a finding",
        "comment": "a comment", "decision": "a decision", "harm": "the harm of a veto", "hand": "a proposal",
        "basket": "a proposal", "confidence": "how sure you are", "why": "why a checkpoint is wrong",
        "amend": "a correction of your plan",
    }  # fmt: skip
    if kind == "plan":
        return {"do_now": "Do now", "if_then": "If-then", "must_not": "Must not be done",
                "follow_up": "Follow-up", "confidence": "How sure"}.get(rest, "Answer")  # fmt: skip
    return names.get(kind, "the review")


def unreadable(drafts: Mapping[str, str]) -> tuple[Left, ...]:
    """The findings that were added and cannot be read any more, as they are kept."""
    what, where = "A finding that cannot be read any more", "under Your findings, marked Cannot be read"
    return tuple(
        Left(what, where, words_of(value), (item,))
        for item, value in drafts.items()
        if item.startswith("finding.") and value.strip() and _finding(value) is None
    )


#: The first word of every item of stage 1. Comments on changes, which are of stage 3, begin as those on dimensions do.
_STAGE_1 = (
    "plan", "verdict", "why_not", "q", "comment", "rating", "why", "tick", "fold", "confidence", "composer", "new",
    "finding", "amend",
)  # fmt: skip


def of_stage_1(item: str) -> bool:
    """Whether a draft is of solving and judging, and so is done with once the review is in."""
    kind, _, rest = item.removeprefix(BESIDE).partition(".")
    return kind in _STAGE_1 and (kind != "comment" or rest in DIMENSIONS)


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
    harmful = bool(new["severity"] or new["likelihood"])
    if not harmful and new["weight"] == "blocking":
        needs.append("harm severity and likelihood (blocking)")
    if harmful and not new["severity"]:
        needs.append("harm severity")
    if harmful and not new["likelihood"]:
        needs.append("likelihood of the harm")
    if new["severity"] and not new["kind"]:
        needs.append("how it would harm")
    if needs:
        return None, needs
    harm = None
    if harmful:
        harm = {"kind": new["kind"], "severity": new["severity"], "likelihood": new["likelihood"]}
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


def _count(n: int, noun: str, more: str = "") -> str:
    return f"{counted(n, noun)}{more}" if n else ""
