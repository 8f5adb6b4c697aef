"""The gate's result, signatures, the release, and defects found after it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from authoring.seat import Done, Made, Seat, Snapshot, Stamp, event, gate_ran, identity_of
from tasks.errors import NotAllowed, UsageError
from tasks.review import events as ev
from tasks.review.permissions import require
from tasks.review.signoff import Requirement, may_sign, requirements

if TYPE_CHECKING:
    from authoring.gate import GateResult


@dataclass(frozen=True)
class Release:
    """A released version: its tag, the commit that it names, and what is printed with it."""

    tag: str
    version: str
    commit: str
    text: str


class Releasing(Seat):
    """From sign-off to release."""

    def gate(self, task: str, *, review_id: str | None = None) -> tuple[Done, GateResult]:
        """Run the gate on the task as it stands and record what it found."""
        # It brings in the runtime and the graders, which no other command of the desk needs.
        from authoring.gate import run_gate

        require(self.actor, "run_gate")
        with self.store.at() as view:
            files = self.snapshot(view, task).files
        result = run_gate(files, task=task)
        return self.record_gate(task, result, review_id=review_id), result

    def requirements(self, task: str) -> tuple[Requirement, ...]:
        """What sign-off asks for, met and unmet."""
        with self.store.at() as view:
            at = self.snapshot(view, task)
            return requirements(
                at.state,
                release_faults=at.task.missing_for_release(),
                reviewers=self.workspace.settings.review.reviewers,
                to_come=self.still_to_come(at.state),
            )

    def record_gate(self, task: str, result: GateResult, *, review_id: str | None = None) -> Done:
        """Record a gate's result on the task as it stands."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if result.package != at.package:
                raise UsageError("the task changed while the gate ran.", remedy="Run it again.")
            return [gate_ran(stamp, result, at.package)], {}

        word = "passed" if result.passed else "failed"
        return self.submit(task, "run_gate", f"Gate {word}", build, review_id, {"Verdict": word})

    def sign(self, task: str, statement: str, *, package: str | None = None, review_id: str | None = None) -> Done:
        """Sign exactly these bytes: `package` is their hash as the signer saw them (None = as they stand now).

        Raises UsageError where the task is not what was seen any more, and one that lists what is still missing.
        """

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if self.actor.id not in at.state.reviewers:
                raise NotAllowed(f"{self.actor.name} is not assigned to this task.")
            self.no_conflict(self.actor, at)
            _as_seen(at, package, "signed")
            if unmet := self._unmet(at):
                raise UsageError("not yet: " + "; ".join(f"{one.text}: {one.todo}" for one in unmet))
            if self.actor.id in at.state.signatures:
                raise UsageError(f"{self.actor.name} has signed this already.")
            return [event(ev.Signed, stamp, package=at.package, statement=statement)], {}

        return self.submit(task, "sign", "Sign off", build, review_id, {"Verdict": "signed"}, statement)

    def report_defect(
        self, task: str, version: str, text: str, checkpoint: str = "", *, review_id: str | None = None
    ) -> Done:
        """Report a fault of a released version. It marks results; it changes none."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            released = [one.version for one in at.state.releases]
            if version not in released:
                raise UsageError(f"version {version} was never released.", remedy=f"Released: {', '.join(released)}.")
            return [event(ev.DefectReported, stamp, version=version, text=text, checkpoint=checkpoint)], {}

        return self.submit(task, "report_defect", f"Report a defect of version {version}", build, review_id, body=text)

    def release(self, task: str, *, package: str | None = None, review_id: str | None = None) -> Release:
        """Release the task as all have signed it: an event, a manifest of digests as a file, an annotated tag.

        `package`: the hash of the bytes that whoever releases has seen (None = as they stand now). Called again after a
        crash between commit and tag it sets the tag. Raises UsageError that lists what is missing.
        """
        require(self.actor, "release")

        def build(at: Snapshot, stamp: Stamp) -> Made:
            state = at.state
            if state.stage == "released":
                return [], {}
            _as_seen(at, package, "released")
            if unmet := self._unmet(at):
                raise UsageError("not yet: " + "; ".join(f"{one.text}: {one.todo}" for one in unmet))
            if missing := [one for one in state.reviewers if one not in state.signatures]:
                raise UsageError(f"not signed by: {', '.join(missing)}.", remedy="They sign exactly these bytes first.")
            version = str(at.meta.version)
            if version in {one.version for one in state.releases}:
                raise UsageError(f"version {version} is released already, with other bytes.")
            manifest = _manifest(at, self.actor.id, stamp)
            data = (json.dumps(manifest, ensure_ascii=False, indent=1) + "\n").encode()
            released = event(
                ev.Released, stamp, package=at.package, version=version, tag=f"release/{task}/{version}",
                manifest=sha256(data).hexdigest(),
            )  # fmt: skip
            return [released], {manifest_path(version): data}

        done = self.submit(task, "release", "Release", build, review_id, {"Verdict": "released"})
        with self.store.at() as view:
            at = self.snapshot(view, task)
            released = at.state.releases[-1]
            manifest = json.loads(view.read(f"{task}/{manifest_path(released.version)}") or b"{}")
        commit = done.commit or self._commit_of(task, released.submission)
        text = _printed(manifest)
        self.store.tag(released.tag, commit, text, by=identity_of(self.actor))
        return Release(released.tag, released.version, commit, text)

    def _unmet(self, at: Snapshot) -> tuple[Requirement, ...]:
        return may_sign(
            at.state,
            release_faults=at.task.missing_for_release(),
            reviewers=self.workspace.settings.review.reviewers,
        )

    def _commit_of(self, task: str, submission: str) -> str:
        with self.store.at() as view:
            return view.submitted(submission, task) or view.at


def _as_seen(at: Snapshot, package: str | None, done: str) -> None:
    """Raise UsageError where the task does not stand as it was seen."""
    if package is not None and package != at.package:
        raise UsageError(
            f"the task was changed after you opened it: version {at.meta.version} stands now; nothing was {done}.",
            remedy="Look at it as it is now.",
        )


def manifest_path(version: str) -> str:
    """Where a release's manifest stands in its package."""
    return f"reviews/releases/{version}.json"


def _manifest(at: Snapshot, lead: str, stamp: Stamp) -> dict[str, object]:
    """What was released: every file's digest, who signed, which rule was waived for whom, what gate passed."""
    state, meta = at.state, at.meta
    return {
        "task": at.task_id,
        "title": meta.title,
        "version": str(meta.version),
        "specialty": meta.specialty,
        "data_class": meta.data_class,
        "package": at.package,
        "agent_digest": at.task.agent_digest,
        "grade_digest": at.task.grade_digest,
        "files": {
            path: sha256(data).hexdigest() for path, data in sorted(at.files.items()) if not path.startswith("reviews/")
        },
        "gate": {"version": state.gate.gate, "at": state.gate.at.isoformat()} if state.gate else None,
        "signed": [
            {"person": person, "role": state.assigned[person], "at": one.at.isoformat(), "statement": one.statement}
            for person, one in state.signatures.items()
            if person in state.assigned
        ],
        "adjacent_specialty_waived": [
            {"person": one.person, "by": one.actor, "reason": one.reason}
            for one in state.waivers
            if one.person in state.assigned
        ],
        "vetoes_lifted_over_their_owner": [
            {"owner": one.owner, "by": one.actor, "owner_says": one.owner_says, "reason": one.reason}
            for one in at.events
            if isinstance(one, ev.VetoLifted) and one.actor != one.owner
        ],
        "findings_dismissed": [
            {"finding": id, "reason": one.why} for id, one in state.findings.items() if one.end == "dismissed"
        ],
        "rounds": state.round,
        "released": {"by": lead, "at": stamp.at.isoformat()},
        "changes": _entry(at.files.get("CHANGELOG.md", b"").decode("utf-8", "replace"), str(meta.version)),
    }


def _entry(changelog: str, version: str) -> str:
    """The changelog's entry of a version, without its heading."""
    heading = rf"^##\s+(?:v|version )?{re.escape(version)}\b[^\n]*\n"
    found = re.search(heading + r"(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL | re.IGNORECASE)
    return found[1].strip() if found else ""


def _printed(manifest: dict[str, Any]) -> str:
    """The release as a person reads it: the message of its tag."""
    lines = [
        f"{manifest['title']} ({manifest['task']}), version {manifest['version']}",
        "",
        f"Package {manifest['package']}",
        f"Agent digest {manifest['agent_digest']}",
        f"Grade digest {manifest['grade_digest']}",
        "",
        *(
            f"Signed by {one['person']} ({one['role']}), {one['at'][:10]}: {one['statement']}"
            for one in manifest["signed"]
        ),
    ]
    lines += [
        f"Adjacent specialty: {one['person']}, waived by the lead ({one['by']}): {one['reason']}"
        for one in manifest["adjacent_specialty_waived"]
    ]
    lines += [
        f"Veto of {one['owner']} lifted by {one['by']} (the owner {one['owner_says']}): {one['reason']}"
        for one in manifest["vetoes_lifted_over_their_owner"]
    ]
    lines += [f"Finding dismissed: {one['reason']}" for one in manifest["findings_dismissed"]]
    return "\n".join([*lines, "", str(manifest["changes"])]).strip() + "\n"
