"""The accepted changes become the task: composed in proposal order, gated, and committed whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from authoring import tomltext
from authoring.edits import Package, unit_of
from authoring.jsontext import EditError
from authoring.proposals import Proposal, ProposedEdit, parse_proposal, path_in_package
from authoring.seat import Done, Made, Seat, Snapshot, Stamp, event, gate_ran
from tasks.errors import PackageError, UsageError
from tasks.package import load
from tasks.review import events as ev
from tasks.review.permissions import require
from tasks.review.state import ChangeState, ReviewState

if TYPE_CHECKING:
    from authoring.gate import GateResult

#: Runs the gate over a package's files.
Gate = Callable[[Mapping[str, bytes], str], "GateResult"]
#: Up to how many groups of changes are tried one by one to find which of them a failed gate is due to.
_MOST_TRIED = 6
_LIVE = ("undecided", "split", "blocked", "accepted")


class ConflictError(PackageError):
    """Accepted changes that do not go together, or whose result does not pass the gate. Nothing was applied.

    `changes` are the ids of those it is due to.
    """

    def __init__(self, what: str, changes: Sequence[str], *, remedy: str = "") -> None:
        self.changes = tuple(changes)
        super().__init__(what, remedy=remedy)

    def __reduce__(self) -> tuple[object, ...]:
        return (_conflict, (self.what, self.changes, self.remedy))


def _conflict(what: str, changes: Sequence[str], remedy: str) -> ConflictError:
    return ConflictError(what, changes, remedy=remedy)


@dataclass(frozen=True)
class Consequence:
    """What a change of a task means for what was run on it."""

    agent: bool
    grade: bool

    @classmethod
    def of(cls, before: Mapping[str, bytes], after: Mapping[str, bytes], *, task: str) -> Consequence:
        """From the digests of two packages."""
        old, new = load(before, where=task), load(after, where=task)
        return cls(old.agent_digest != new.agent_digest, old.grade_digest != new.grade_digest)

    @property
    def word(self) -> str:
        """RERUN, REGRADE or REUSE: what stored trials are still good for."""
        return "RERUN" if self.agent else "REGRADE" if self.grade else "REUSE"

    @property
    def sentence(self) -> str:
        """The same for a reader of the changelog."""
        said = {
            (True, True): "Changes what the agent sees and how it is graded: run stored trials again.",
            (True, False): "Changes what the agent sees, not how it is graded: run stored trials again.",
            (False, True): "Changes how it is graded, not what the agent sees: grade stored trials again.",
            (False, False): "Changes neither what the agent sees nor how it is graded: stored results hold.",
        }
        return said[self.agent, self.grade]


@dataclass(frozen=True)
class Composed:
    """Changes composed over a task, before any gate."""

    changes: tuple[ChangeState, ...]
    edits: tuple[ProposedEdit, ...]
    before: dict[str, bytes]
    after: dict[str, bytes]
    version: int
    consequence: Consequence


class Applying(Seat):
    """Applying what was accepted."""

    def composed(self, task: str, changes: Sequence[str] = ()) -> Composed:
        """What `apply` would commit, gate apart. Raises ConflictError, UsageError."""
        with self.store.at() as view:
            return _compose(self.snapshot(view, task), changes, self.now())

    def apply(
        self,
        task: str,
        changes: Sequence[str] = (),
        *,
        review_id: str | None = None,
        gate: Gate | None = None,
    ) -> Done:
        """Apply all accepted changes, or those named, in one commit: their files, the version, CHANGELOG.md, events.

        Raises ConflictError, with the changes, where they do not go together or the gate fails on the result, and
        UsageError while a change is still undecided or split. Nothing is applied then.
        """
        require(self.actor, "apply")
        gate = gate or _gate
        with self.store.at() as view:
            at = self.snapshot(view, task)
            again = review_id is not None and review_id in at.state.submissions
            done = None if again else _compose(at, changes, self.now())
        result = None
        if done:
            # Outside the lock: it takes seconds, and nobody else should have to wait for it.
            result = gate(done.after, task)
            if not result.passed:
                _blame(done, result, gate, task)

        def build(at: Snapshot, stamp: Stamp) -> Made:
            assert done is not None
            assert result is not None
            if at.files != done.before:
                at_same = {path: data for path, data in at.files.items() if not path.startswith("reviews/")}
                if at_same != {path: data for path, data in done.before.items() if not path.startswith("reviews/")}:
                    raise UsageError("the task changed while the gate ran; nothing was applied.", remedy="Try again.")
            wanted = {one.ref.change for one in done.changes}
            if gone := [c for c in wanted if at.state.changes[c].status != "accepted"]:
                raise UsageError(
                    f"{len(gone)} of these changes are no longer accepted; nothing was applied.",
                    where=", ".join(at.state.changes[c].ref.unit for c in gone),
                )
            package = ev.package_hash(done.after)
            passed = gate_ran(stamp, result, package)
            applied = event(
                ev.Applied, stamp,
                changes=tuple(one.ref.change for one in done.changes), before=at.package, package=package,
                version=str(done.version), units=_units(at.state, done), resolved=_resolved(at.state, wanted),
            )  # fmt: skip
            files = {
                path: done.after.get(path)
                for path in done.before.keys() | done.after.keys()
                if done.before.get(path) != done.after.get(path)
            }
            return [applied, passed], files

        if done is None:
            return self.submit(task, "apply", "", build, review_id)
        count = len(done.changes)
        subject = f"Apply {count} change{'s' if count != 1 else ''}: version {done.version}"
        body = f"{done.consequence.sentence}\n\n" + "\n".join(_line(one) for one in done.edits)
        marks = {
            "Base": ev.package_hash(done.before),
            "Verdict": done.consequence.word,
            "Change-Id": [one.ref.change for one in done.changes],
        }
        return self.submit(task, "apply", subject, build, review_id, marks, body)


def _gate(files: Mapping[str, bytes], task: str) -> GateResult:
    # It brings in the runtime and the graders, which no other command of the desk needs.
    from authoring.gate import run_gate

    return run_gate(files, task=task)


def _line(one: ProposedEdit) -> str:
    reason = " ".join(one.rationale.split())
    return f"- {unit_of(one.edit)}{': ' + reason if reason else ''}"


def _compose(at: Snapshot, only: Sequence[str], now: datetime) -> Composed:
    state = at.state
    open_ = [one for one in state.changes.values() if one.status in ("undecided", "split")]
    if open_ and not only:
        people = sorted({person for one in open_ for person in one.waiting_for}) or ["the adjudicator"]
        raise UsageError(
            f"{len(open_)} of {len(state.live_changes)} changes not decided; waiting for {', '.join(people)}.",
            remedy="Wait, or name the changes to apply; what they touch has to be decided anew then.",
        )
    for id in only:
        if id not in state.changes:
            raise UsageError("there is no such change.", where=id, remedy="`authoring show` lists them.")
        if state.changes[id].status != "accepted":
            raise UsageError(f"this change is {state.changes[id].status}, not accepted.", where=id)
    accepted = [one for one in state.changes.values() if one.status == "accepted"]
    chosen = [one for one in accepted if not only or one.ref.change in only]
    if not chosen:
        raise UsageError("no change is accepted; there is nothing to apply.")
    groups = {(one.proposal, one.ref.group) for one in chosen if one.ref.group}
    ids = {one.ref.change for one in chosen}
    if torn := [
        one
        for one in state.changes.values()
        if (one.proposal, one.ref.group) in groups and one.ref.change not in ids and one.status != "applied"
    ]:
        raise UsageError("changes that need each other are applied together.", where=torn[0].ref.unit)
    edits = _edits(at, chosen)
    package = Package(at.files)
    by_unit: dict[str, list[ChangeState]] = {}
    failed: list[str] = []
    involved: list[str] = []
    for change, one in zip(chosen, edits, strict=True):
        try:
            package = package.apply(one.edit)
        except EditError as fault:
            near = [other.ref for other in by_unit.get(change.ref.unit.partition("#")[0], ())]
            with_ = f" after {', '.join(f'{ref.unit} [{ref.change[:12]}]' for ref in near)}" if near else ""
            failed.append(f"{change.ref.unit} [{change.ref.change[:12]}]{with_}: {fault.what}")
            involved += [change.ref.change, *(ref.change for ref in near)]
        by_unit.setdefault(change.ref.unit.partition("#")[0], []).append(change)
    if failed:
        raise ConflictError(
            f"the accepted changes do not go together; nothing was applied. {'; '.join(failed)}.",
            list(dict.fromkeys(involved)),
            remedy="One of each has to be decided otherwise, or name those to apply.",
        )
    after = package.files()
    meta = at.meta
    version = meta.version + 1
    try:
        raised = tomltext.edit_manifest(after["task.toml"].decode(), "version", version, meta.version)
        after["task.toml"] = raised.encode()
        consequence = Consequence.of(at.files, after, task=at.task_id)
    except PackageError as fault:
        raise ConflictError(f"the result is no package: {fault}; nothing was applied.", sorted(ids)) from None
    entry = f"{now:%Y-%m-%d}. {consequence.sentence}\n\n" + "\n".join(_line(one) for one in edits) + "\n"
    after["CHANGELOG.md"] = _with_entry(after.get("CHANGELOG.md", b""), version, entry)
    return Composed(tuple(chosen), tuple(edits), at.files, after, version, consequence)


def _edits(at: Snapshot, chosen: Sequence[ChangeState]) -> list[ProposedEdit]:
    """The edits of changes, read from the proposals as they were put up."""
    stored: dict[str, Proposal] = {}
    out = []
    for one in chosen:
        if one.proposal not in stored:
            path = path_in_package(one.proposal)
            stored[one.proposal] = parse_proposal(at.files.get(path, b""), where=f"{at.task_id}/{path}")
        proposed = at.state.proposals[one.proposal]
        place = [ref.change for ref in proposed.changes].index(one.ref.change)
        out.append(stored[one.proposal].edits[place])
    return out


def _with_entry(changelog: bytes, version: int, entry: str) -> bytes:
    """CHANGELOG.md with an entry on top of the others; what stood there keeps its bytes."""
    text = changelog.decode("utf-8", "surrogateescape") or "# Changes\n"
    first = re.search(r"^## ", text, re.MULTILINE)
    place = first.start() if first else len(text)
    before = text[:place]
    gap = "" if before.endswith("\n\n") or not before else "\n" if before.endswith("\n") else "\n\n"
    tail = "\n" + text[place:] if first else ""
    return f"{before}{gap}## {version}\n\n{entry}{tail}".encode("utf-8", "surrogateescape")


def _units(state: ReviewState, done: Composed) -> dict[str, str]:
    """The hash of every unit that any change speaks of and that is another one now: a change on a checkpoint is
    overtaken by a text edit of the whole file too."""
    before, after = Package(done.before), Package(done.after)
    out = {}
    for unit in {one.ref.unit for one in state.changes.values()}:
        if before.unit(unit) != after.unit(unit):
            out[unit] = after.unit_hash(unit)
    return out


def _resolved(state: ReviewState, applied: set[str]) -> tuple[str, ...]:
    """Open findings all of whose changes are final now, at least one of them applied."""
    out = []
    for id, finding in state.findings.items():
        named = [one for one in state.changes.values() if id in one.ref.findings]
        final = all(one.status not in _LIVE or one.ref.change in applied for one in named)
        if finding.open and final and any(one.status == "applied" or one.ref.change in applied for one in named):
            out.append(id)
    return tuple(out)


def _blame(done: Composed, result: GateResult, gate: Gate, task: str) -> None:
    """Raise ConflictError that names the changes which the failure is due to: those without which it passes."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(done.changes):
        key = (one.proposal, one.ref.group) if one.ref.group else ("", one.ref.change)
        groups.setdefault(key, []).append(number)
    guilty: list[int] = []
    if 1 < len(groups) <= _MOST_TRIED:
        for members in groups.values():
            package = Package(done.before)
            try:
                for number, proposed in enumerate(done.edits):
                    if number not in members:
                        package = package.apply(proposed.edit)
            except EditError:
                continue
            if gate(package.files(), task).passed:
                guilty += members
    named = [done.changes[n].ref for n in guilty] or [one.ref for one in done.changes]
    raise ConflictError(
        f"the gate fails on the result; nothing was applied. {'; '.join(result.failures)}. "
        f"Due to: {', '.join(f'{ref.unit} [{ref.change[:12]}]' for ref in named)}.",
        [ref.change for ref in named],
        remedy="Decide otherwise on these, or propose what mends it.",
    )
