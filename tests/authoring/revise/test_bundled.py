"""Every bundled task: one proposal with an edit of each kind goes over the wire, applies, passes the gate, and its diff
gives the bytes that are committed."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from authoring.diffs import apply_diff, diff
from authoring.reviser import compose, send
from authoring.revising.answer import note_texts
from tasks.fhir.resources import parse_json
from tasks.package import SUITE
from tasks.workspace import Workspace
from tests.authoring.revise.bundled import AUTHOR, ONE, TWO, Review, first, passing
from tests.authoring.revise.revising import answer
from tests.authoring.rooms import decision


def edits(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """One edit of each kind that makes nothing better or worse."""
    heading = files["instruction.md"].decode().split("\n")[0]
    doctor = first(files, "chart/Practitioner.ndjson")
    checkpoint = tomllib.loads(files["checkpoints.toml"].decode())["checkpoint"][0]
    minutes = tomllib.loads(files["task.toml"].decode())["estimated_minutes"]
    found: list[dict[str, Any]] = [
        {"kind": "text", "path": "instruction.md", "find": heading + "\n", "replace": heading + " (revised)\n"},
        {
            "kind": "checkpoint", "checkpoint": checkpoint["id"],
            "set": {"title": checkpoint["title"] + " (revised)"}, "was": {"title": checkpoint["title"]},
        },
        {"kind": "manifest", "key": "estimated_minutes", "value": minutes + 5, "was": minutes},
        {
            "kind": "resource", "ref": f"Practitioner/{doctor['id']}",
            "operations": [{"op": "add", "path": "/language", "value": "en"}],
        },
    ]  # fmt: skip
    for line in files.get("chart/DocumentReference.ndjson", b"").split(b"\n"):
        body = parse_json(line) if line.strip() else {}
        words = [text for _, text in note_texts(body)] if body else []
        if len(words) == 1 and len(words[0].rstrip()) > 40:
            tail = words[0].rstrip()[-30:]
            if words[0].count(tail) == 1:
                edit = {"kind": "note", "ref": f"DocumentReference/{body['id']}", "find": tail, "replace": tail + " "}
                return [*found, edit]
    return found


@pytest.mark.parametrize("task", SUITE.list())
def test_a_full_proposal_applies_passes_the_gate_and_its_diff_is_what_is_committed(
    workspace: Workspace, task: str
) -> None:
    anchor = {"kind": "task"}
    found = {"dimension": "instruction_clarity", "anchor": anchor, "weight": "should", "text": "Say it is revised."}
    review = Review(workspace, SUITE, task, [found])
    before = review.files
    made = edits(before)
    draft = review.revised("openai", answer(*made))
    assert (len(draft.edits), draft.left_out, draft.repairs) == (len(made), (), 0)
    assert draft.gate is not None
    assert draft.gate.new == ()
    composed = compose(draft, before, person=AUTHOR).after
    shown = {one.path: one for one in diff(before, composed)}
    assert len(shown) == len(made)

    sent = send(review.desk(AUTHOR), draft)
    state = review.desk(AUTHOR).state(task)
    refs = [one.ref for one in state.changes.values()]
    assert len(refs) == len(made)
    for who in (ONE, TWO):
        review.desk(who).decide(task, [decision(ref, "approve") for ref in refs])
    # The gate has run on these edits; what `apply` adds is the version and the changelog.
    review.desk(AUTHOR).apply(task, gate=passing)
    committed = review.files
    for path, one in shown.items():
        expected = apply_diff(one.text, before[path])
        if path == "task.toml":
            # The version rises when changes are applied; nothing else of it moves.
            number = tomllib.loads(expected.decode())["version"]
            old, new = f"\nversion = {number}\n".encode(), f"\nversion = {number + 1}\n".encode()
            assert expected.count(old) == 1
            expected = expected.replace(old, new)
        assert committed[path] == expected, path
    untouched = set(before) - set(shown) - {"CHANGELOG.md"}
    assert all(committed[path] == before[path] for path in untouched if not path.startswith("reviews/"))
    assert sent.put_up
