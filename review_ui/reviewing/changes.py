"""Changes as a person goes through them: which are mine to decide, in what order, and what stands in my drafts."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from authoring.diffs import FileDiff, Piece, only_white_space, words
from review_ui.chartview.words import kind_words
from tasks.review.events import ChangeRef
from tasks.review.state import ChangeState, FindingState, ReviewState
from tasks.structure import chart_type

DECISIONS = {"approve": "Approved", "reject": "Rejected", "discuss": "To discuss", "veto": "Your veto"}
#: What somebody decided, told to others.
TOLD = {**DECISIONS, "discuss": "Wants to discuss", "veto": "Veto"}
#: Sign of a decision in the rail; the word stands beside it.
SIGNS = {
    "approve": ("check_circle", "ok"),
    "reject": ("cancel", "warn"),
    "discuss": ("forum", "mute"),
    "veto": ("front_hand", "bad"),
}
_WEIGHT = {"blocking": 0, "should": 1, "note": 2}
_CONTEXT = 1
#: Files whose white space says nothing.
_FOR_PEOPLE = (".md", ".txt")


@dataclass(frozen=True)
class Drafted:
    """A decision that is not submitted. `stale`: it was made on other bytes than the change has now."""

    decision: str
    comment: str
    harm: Mapping[str, str]
    stale: bool = False

    @property
    def lacks(self) -> tuple[str, ...]:
        """What submitting it still needs."""
        out = []
        if self.decision in ("reject", "veto", "discuss") and not self.comment.strip():
            out.append("a reason")
        if self.decision == "veto" and not all(self.harm.get(key) for key in ("kind", "severity", "likelihood")):
            out.append("the harm")
        return tuple(out)


def mine(state: ReviewState, me: str) -> list[ChangeState]:
    """The changes that are up, safety first, then by the weight of the finding they answer, then as they were put up.

    Those made by one's own hand are not among them: nobody decides on those.
    """
    live = [
        one
        for one in state.changes.values()
        if one.status in ("undecided", "split", "blocked", "accepted")
        and not (one.ref.made_by_hand and one.made_by == me)
    ]
    order = {one.ref.change: place for place, one in enumerate(live)}

    def key(one: ChangeState) -> tuple[bool, int, int]:
        found = findings(state, one.ref, me)
        weight = min((_WEIGHT[f.finding.weight] for f in found), default=3)
        return (not is_safety(state, one), weight, order[one.ref.change])

    return sorted(live, key=key)


def is_safety(state: ReviewState, one: ChangeState) -> bool:
    """Whether it touches patient safety: it may weaken a safety checkpoint, answers a finding of harm, or is vetoed."""
    return (
        one.ref.weakens_safety
        or one.status == "blocked"
        or any(
            f.finding.dimension == "patient_safety"
            or (f.finding.harm is not None and f.finding.harm.severity in ("severe", "death"))
            for id in one.ref.findings
            if (f := state.findings.get(id))
        )
    )


def findings(state: ReviewState, ref: ChangeRef, me: str) -> list[FindingState]:
    """The findings that it answers, one's own first."""
    found = [state.findings[id] for id in ref.findings if id in state.findings]
    return sorted(found, key=lambda one: one.by != me)


def place_words(unit: str, checkpoints: Mapping[str, str]) -> tuple[str, str]:
    """(what it changes, which kind): our own words for the rail. `checkpoints`: id -> "Checkpoint 4: …"."""
    path, _, inner = unit.partition("#")
    if kind := chart_type(path):
        return f"{kind_words(kind)} {inner}", "Chart"
    if path == "instruction.md":
        return "Instruction", "Instruction"
    if path == "checkpoints.toml":
        return (checkpoints.get(inner, f"Checkpoint {inner}") if inner else "Checkpoints"), "Grader"
    if path == "checkpoints.py":
        return "Code that grades", "Grader"
    if path == "task.toml":
        return f"Task settings: {inner}", "Task"
    if path.startswith("solution/"):
        return f"Reference plan: {path.removeprefix('solution/')}", "Plan"
    if path.startswith("examples/"):
        return f"Example: {path.removeprefix('examples/')}", "Grader"
    return unit, "File"


def place_of(state: ReviewState, checkpoints: Mapping[str, str]) -> Callable[[str], str]:
    """What says of a change's id where it stands, as `place_words` does."""
    return lambda id: place_words(state.changes[id].ref.unit, checkpoints)[0] if id in state.changes else id[:10]


def drafted(ref: ChangeRef, drafts: Mapping[str, str]) -> Drafted | None:
    """The decision on a change as it stands in the drafts."""
    try:
        kept: dict[str, Any] = json.loads(drafts.get(f"decision.{ref.change}") or "{}")
    except json.JSONDecodeError:
        kept = {}
    decision = str(kept.get("decision", ""))
    if decision not in DECISIONS:
        return None
    harm = {key: drafts.get(f"harm.{ref.change}.{key}", "") for key in ("kind", "severity", "likelihood")}
    stale = (kept.get("base"), kept.get("result")) != (ref.base, ref.result)
    return Drafted(decision, drafts.get(f"comment.{ref.change}", ""), harm, stale)


def kept(ref: ChangeRef, decision: str) -> str:
    """What is kept of a decision: with the bytes that were seen."""
    return json.dumps({"decision": decision, "base": ref.base, "result": ref.result}) if decision else ""


def submission(ref: ChangeRef, made: Drafted) -> dict[str, Any]:
    """One entry of Desk.decide."""
    out: dict[str, Any] = {
        "change": ref.change,
        "base": ref.base,
        "result": ref.result,
        "decision": made.decision,
        "reason": made.comment.strip(),
    }
    if made.decision == "veto":
        out["harm"] = dict(made.harm)
    return out


def white_space_only(files: Mapping[str, bytes | None], after: Mapping[str, bytes | None]) -> bool:
    """Whether every changed file is text for people and differs in white space alone: in code indentation is meaning,
    in a declaration a line's end."""
    changed = [path for path in files.keys() | after.keys() if files.get(path) != after.get(path)]
    return bool(changed) and all(
        path.endswith(_FOR_PEOPLE) and only_white_space(files.get(path), after.get(path)) for path in changed
    )


# ---- prose ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProseLine:
    """A line of a prose diff. `number` is its line in the old text (same, removed) or the new one (added)."""

    kind: Literal["same", "removed", "added", "gap"]
    number: int
    pieces: tuple[Piece, ...]


def prose_lines(diff: FileDiff, context: int = _CONTEXT) -> list[ProseLine]:
    """A text's change, old line above new, each with its changed words marked, and a line of context around."""
    a = (diff.old or b"").decode("utf-8", "replace").split("\n")
    b = (diff.new or b"").decode("utf-8", "replace").split("\n")
    out: list[ProseLine] = []
    opcodes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for place, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag == "equal":
            lines = _context(a, i1, i2, context, first=place == 0, last=place == len(opcodes) - 1)
            out += lines
            continue
        old, new = a[i1:i2], b[j1:j2]
        for offset in range(max(len(old), len(new))):
            was = old[offset] if offset < len(old) else None
            now = new[offset] if offset < len(new) else None
            pieces = words(was or "", now or "")
            if was is not None:
                kept_pieces = tuple(p for p in pieces if p.kind != "added") if now is not None else _all("removed", was)
                out.append(ProseLine("removed", i1 + offset + 1, kept_pieces))
            if now is not None:
                kept_pieces = tuple(p for p in pieces if p.kind != "removed") if was is not None else _all("added", now)
                out.append(ProseLine("added", j1 + offset + 1, kept_pieces))
    return out


def _all(kind: Literal["removed", "added"], text: str) -> tuple[Piece, ...]:
    return (Piece(kind, text),)


def _context(lines: Sequence[str], start: int, end: int, context: int, *, first: bool, last: bool) -> list[ProseLine]:
    """Up to `context` lines that say something on each side of a change, and a gap between."""
    said = [n for n in range(start, end) if lines[n].strip()]
    head = [] if first else said[:context]
    tail = [] if last else said[-context:]
    numbers = sorted({*head, *tail})
    out: list[ProseLine] = []
    for n in numbers:
        if out and n - out[-1].number > len([m for m in range(out[-1].number, n) if not lines[m].strip()]):
            out.append(ProseLine("gap", n, ()))
        out.append(ProseLine("same", n + 1, (Piece("same", lines[n]),)))
    return out
