"""What a reviser is sent: the task, its open findings, ratings, and what was rejected before.

The chart of a task can be larger than a model's window. Findings and files always go whole; of the chart go first the
resources that findings name, then those that checkpoints rest on, then notes, then the rest, newest first, until the
room is used; what does not fit is listed in one line each, and what was sent is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Any

from authoring.proposals import parse_proposal, path_in_package
from authoring.revising.answer import RevisionAnswer, note_texts
from authoring.revising.fence import Fence
from authoring.seat import Snapshot
from providers.base import Message, SystemMessage, UserMessage
from tasks.anchors import Anchor
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource, dump_json
from tasks.package import Task
from tasks.review import events as ev
from tasks.review.state import FindingState, ReviewState
from tasks.settings import ModelSettings, Price
from tasks.strict import Strict

#: Rises with every change of prompt.md or of the answer's shape; a test holds it to the hash.
PROMPT_VERSION = "1"
#: Tokens of a window that is not told in workbench.toml; of any window so much is used for the question.
_WINDOW, _SHARE = 200_000, 0.6
#: Characters a token: English prose has about four, JSON and codes about three.
CHARACTERS_A_TOKEN = 3
_FILES = ("instruction.md", "task.toml", "checkpoints.toml", "checkpoints.py")
_FOLDERS = ("solution/", "examples/")
_REF = re.compile(r"\b[A-Z][A-Za-z]{2,40}/[A-Za-z0-9.-]{1,64}")


class Sent(Strict):
    """What went to the model."""

    findings: int
    ratings: int
    rejected: int
    files: tuple[str, ...]
    resources: tuple[str, ...] = ()
    listed: int = 0
    left_out: int = 0
    characters: int = 0
    prompt: str = PROMPT_VERSION
    prompt_hash: str = ""

    @property
    def tokens(self) -> int:
        """An estimate from the characters."""
        return self.characters // CHARACTERS_A_TOKEN

    def cost(self, price: Price | None) -> float | None:
        """USD for reading the question once, by the estimate; None = unknown."""
        return None if price is None else self.tokens * price.input / 1_000_000


@dataclass(frozen=True)
class Request:
    """One question, the names of its findings in it, and what was put into it."""

    messages: tuple[Message, ...]
    handles: Mapping[str, str]  # "F1" -> finding id
    sent: Sent
    fence: Fence


def prompt() -> str:
    """What every reviser is told."""
    return resources.files("authoring.revising").joinpath("prompt.md").read_text("utf-8")


def prompt_hash() -> str:
    """SHA-256 over the prompt and the answer's shape."""
    return sha256((prompt() + dump_json(RevisionAnswer.model_json_schema())).encode()).hexdigest()


def request(at: Snapshot, settings: ModelSettings, *, fence: Fence | None = None) -> Request:
    """The question about a task's open findings."""
    state, task = at.state, at.task
    found = list(state.open_findings)
    handles = {f"F{number}": one.finding.id for number, one in enumerate(found, 1)}
    names = _reviewer_names(state)
    told_findings = [_finding(one, names) for one in found]
    told_ratings = list(_ratings(state, names))
    told_rejected = list(_rejected(at))
    files = {
        path: data.decode("utf-8", "replace")
        for path, data in sorted(at.files.items(), key=lambda one: (_order(one[0]), one[0]))
        if path in _FILES or path.startswith(_FOLDERS)
    }
    texts = [*told_findings, *told_ratings, *told_rejected, *files.values()]
    room = int((settings.context or _WINDOW) * _SHARE) * CHARACTERS_A_TOKEN - sum(map(len, texts))
    whole, lines, left_out = _chart(task, found, room)
    fence = fence or Fence.drawn([*texts, *whole.values(), *lines])
    parts = [f"Task {task.id}, version {task.meta.version}. The mark of this request is {fence.mark}.", "", "# Package"]
    parts += [fence.exact(path, text) for path, text in files.items()]
    parts += ["", "# Chart: resources whole, one JSON object each, the text of notes below it"]
    parts += [fence.exact(ref, text) for ref, text in whole.items()]
    if lines:
        parts += ["", "# Chart: the other resources, a line each", fence.told("other resources", "\n".join(lines))]
    if left_out:
        parts.append(f"({left_out} more resources did not fit and are not listed.)")
    if told_ratings:
        parts += ["", "# What reviewers said of checkpoints and dimensions"]
        parts.append(fence.told("ratings", "\n".join(told_ratings)))
    if told_rejected:
        parts += ["", "# Changes that were rejected before; they are not proposed again"]
        parts += [fence.told(f"rejected {n}", text) for n, text in enumerate(told_rejected, 1)]
    parts += ["", f"# Findings ({len(found)})"]
    parts += [fence.told(handle, text) for handle, text in zip(handles, told_findings, strict=True)]
    parts += ["", "Answer with one call of the tool `answer`: every finding in an edit, or under unaddressed."]
    question = "\n".join(parts)
    system = prompt()
    sent = Sent(
        findings=len(found), ratings=len(told_ratings), rejected=len(told_rejected), files=tuple(files),
        resources=tuple(whole), listed=len(lines), left_out=left_out, characters=len(system) + len(question),
        prompt_hash=prompt_hash(),
    )  # fmt: skip
    return Request((SystemMessage(system), UserMessage(question)), handles, sent, fence)


def shown(resource: Resource) -> str:
    """A resource as the model reads it: its JSON, the base64 of notes replaced by a word, their text below."""
    raw, notes = resource.raw, []
    for pointer, text in note_texts(resource.body):
        data = _attachment_data(resource.body, pointer)
        raw = raw.replace(dump_json(data), '"(base64 of the text below)"', 1) if data else raw
        notes.append(f"Text at {pointer}:\n{text}")
    return "\n".join([raw, *notes])


def _attachment_data(body: Any, pointer: str) -> str:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        body = body[int(key)] if isinstance(body, list) else body[key]
    return str(body.get("data", ""))


def _order(path: str) -> int:
    return _FILES.index(path) if path in _FILES else len(_FILES)


def _reviewer_names(state: ReviewState) -> dict[str, str]:
    """People by what they are: a model has no use for names."""
    people = dict.fromkeys(person for _, person in state.reviews)
    return {person: f"reviewer {number}" for number, person in enumerate(people, 1)}


def _finding(one: FindingState, names: Mapping[str, str]) -> str:
    finding = one.finding
    lines = [f"by {names.get(one.by, 'a reviewer')}, round {one.round}", f"dimension: {finding.dimension}"]
    lines += [f"weight: {finding.weight}", f"confidence: {finding.confidence}", f"about: {_anchor(finding.anchor)}"]
    if finding.harm:
        lines.append(f"harm if wrong: {finding.harm.kind}, {finding.harm.severity}, {finding.harm.likelihood}")
    lines.append(f"text: {finding.text}")
    lines += [f"source: {finding.source}"] if finding.source else []
    lines += [f"alternative plan: {finding.alternative_plan}"] if finding.alternative_plan else []
    return "\n".join(lines)


def _anchor(anchor: ev.Anchor) -> str:
    match anchor:
        case ev.TextAnchor():
            return f'{anchor.path}, the words "{anchor.quote}"'
        case ev.ResourceAnchor():
            element = f", {anchor.element}" if anchor.element else ""
            quoted = f', the words "{anchor.quote}"' if anchor.quote else ""
            return f"{anchor.ref}{element}{quoted}"
        case ev.CheckpointAnchor():
            return f"checkpoint {anchor.checkpoint}"
        case _:
            return "the task as a whole"


def _ratings(state: ReviewState, names: Mapping[str, str]) -> Iterator[str]:
    for (round, person), review in state.reviews.items():
        if review.submitted is None or round != state.round:
            continue
        who = names[person]
        for rating in review.submitted.ratings:
            yield f"{who}: checkpoint {rating.checkpoint} is {rating.rating}{_comment(rating.comment)}"
        for verdict in review.submitted.verdicts:
            said = f"{who}: {verdict.dimension} is {verdict.verdict}"
            yield said + _comment("; ".join(part for part in (verdict.why_not, verdict.comment) if part))


def _comment(text: str) -> str:
    return f": {text}" if text.strip() else ""


def _rejected(at: Snapshot) -> Iterator[str]:
    """What was rejected, with the reasons, as far as it is still to be read."""
    state = at.state
    for id in sorted(state.rejected):
        change = state.changes[id]
        path = path_in_package(change.proposal)
        try:
            proposal = parse_proposal(at.files.get(path, b""), where=path)
        except WorkbenchError:
            continue
        place = [ref.change for ref in state.proposals[change.proposal].changes].index(id)
        edit = dump_json(proposal.edits[place].edit.model_dump(mode="python"))
        reasons = [one.reason for one in change.decisions.values() if one.reason]
        reasons += [change.adjudicated.reason] if change.adjudicated else []
        yield f"{change.ref.unit}\n{edit}\nreasons: {'; '.join(reasons)}"


# ---- chart ----------------------------------------------------------------------------------------------------------


def _chart(task: Task, found: Iterable[FindingState], room: int) -> tuple[dict[str, str], list[str], int]:
    """(resources sent whole, by reference; one line for each other one that fits; how many are not even listed)."""
    chart = task.chart
    every = {resource.ref: resource for resource in chart.resources()}
    lines = {ref: _line(resource) for ref, resource in every.items()}
    # Room for the list is kept back first: a resource that is not even named cannot be asked about.
    kept_back = sum(len(line) + 1 for line in lines.values())
    listed = kept_back <= room // 2
    room -= kept_back if listed else 0
    whole: dict[str, str] = {}
    must = set(_named(task, found, every))
    for ref in dict.fromkeys([*_named(task, found, every), *_rested_on(task, every), *_rest(every)]):
        text = shown(every[ref])
        if len(text) > room and ref not in must:
            continue
        room -= len(text)
        whole[ref] = text
    others = [line for ref, line in lines.items() if ref not in whole]
    if not listed:
        fit, size = 0, max(0, room)
        for line in others:
            size -= len(line) + 1
            if size < 0:
                break
            fit += 1
        return whole, others[:fit], len(others) - fit
    return whole, others, 0


def _named(task: Task, found: Iterable[FindingState], every: Mapping[str, Resource]) -> Iterator[str]:
    """Resources that a finding is on or speaks of, then those that a named checkpoint rests on."""
    by_id: dict[str, list[str]] = {}
    for ref in every:
        by_id.setdefault(ref.partition("/")[2], []).append(ref)
    checkpoints = []
    for one in found:
        anchor = one.finding.anchor
        if isinstance(anchor, ev.ResourceAnchor) and anchor.ref in every:
            yield anchor.ref
        if isinstance(anchor, ev.CheckpointAnchor):
            checkpoints.append(anchor.checkpoint)
        text = f"{one.finding.text} {one.finding.source} {one.finding.alternative_plan}"
        yield from (ref for ref in _REF.findall(text) if ref in every)
        for word in re.findall(r"[A-Za-z0-9.-]{3,64}", text):
            yield from by_id.get(word, ())
    for checkpoint in task.checkpoints:
        if checkpoint.id in checkpoints:
            yield from (ref for ref in _refs(checkpoint.rests_on) if ref in every)


def _rested_on(task: Task, every: Mapping[str, Resource]) -> Iterator[str]:
    for checkpoint in task.checkpoints:
        yield from (ref for ref in _refs([*checkpoint.rests_on, *checkpoint.seen]) if ref in every)


def _refs(anchors: Iterable[str]) -> Iterator[str]:
    for text in anchors:
        try:
            anchor = Anchor.parse(text)
        except WorkbenchError:
            continue
        if not anchor.is_instruction:
            yield anchor.ref


def _rest(every: Mapping[str, Resource]) -> list[str]:
    """The Patient, then notes, then everything else, newest first."""
    first = {"Patient": 0, "DocumentReference": 1}
    kept = sorted(every.values(), key=lambda one: _date(one.body), reverse=True)
    return [one.ref for one in sorted(kept, key=lambda one: first.get(one.type, 2))]


def _line(resource: Resource) -> str:
    return " ".join(part for part in (resource.ref, _date(resource.body)[:10], _label(resource.body)) if part)


def _date(body: Mapping[str, Any]) -> str:
    for key in ("effectiveDateTime", "authoredOn", "date", "recordedDate", "onsetDateTime", "issued", "occurrenceDateTime"):  # fmt: skip  # noqa: E501
        if isinstance(body.get(key), str):
            return str(body[key])
    period = body.get("period")
    return str(period.get("start", "")) if isinstance(period, dict) else ""


def _label(body: Mapping[str, Any]) -> str:
    for key in ("code", "medicationCodeableConcept", "type", "vaccineCode"):
        concept = body.get(key)
        concept = concept[0] if isinstance(concept, list) and concept else concept
        if isinstance(concept, dict):
            codings = concept.get("coding")
            first = codings[0] if isinstance(codings, list) and codings else {}
            text = concept.get("text") or first.get("display") or first.get("code") or ""
            value = body.get("valueQuantity")
            told = f" {value.get('value')} {value.get('unit', '')}" if isinstance(value, dict) else ""
            return f"{text}{told}"[:120]
    return str(body.get("description") or "")[:120]
