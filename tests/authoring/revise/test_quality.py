"""How good a revision is: three faults put into a bundled task, findings as a physician would write them, and answers
scored by whether the fault is gone, everything else is kept, and the gate finds nothing new."""

from __future__ import annotations

import base64
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from authoring.reviser import Draft, compose, weakening
from authoring.revising.answer import note_texts
from authoring.revising.drafts import new_failures
from providers.wire import Reply
from tasks.fhir.resources import parse_json
from tasks.package import SUITE
from tasks.workspace import Workspace
from tests.authoring.revise.bundled import AUTHOR, Review, passing, written
from tests.authoring.revise.revising import answer

TASK = "nephrology-finerenone-011"
NOTE = "DocumentReference/dr-012855e725"
POTASSIUM = "Observation/o-92eda0899a"


class Fault(NamedTuple):
    """A fault as it is put in, and the finding that a physician writes of it."""

    path: str
    right: str
    wrong: str
    finding: dict[str, Any]


def _note(files: Mapping[str, bytes], old: str, new: str) -> dict[str, bytes]:
    """The files with words of the note replaced."""
    lines = []
    for line in files["chart/DocumentReference.ndjson"].decode().split("\n"):
        if NOTE.partition("/")[2] in line[:80]:
            data = parse_json(line)["content"][0]["attachment"]["data"]
            text = base64.b64decode(data).decode()
            assert text.count(old) == 1
            line = line.replace(data, base64.b64encode(text.replace(old, new).encode()).decode())
        lines.append(line)
    return {**files, "chart/DocumentReference.ndjson": "\n".join(lines).encode()}


THRESHOLD = Fault(
    "checkpoints.toml",
    '{ingredient = "finerenone", daily = ">10 mg"}',
    '{ingredient = "finerenone", daily = ">40 mg"}',
    {
        "dimension": "patient_safety", "weight": "blocking", "anchor": {"kind": "checkpoint", "checkpoint": "cp9"},
        "text": "At an eGFR of 33 anything above 10 mg of finerenone is too much to start with; here it takes more "
        "than 40 mg to fail.",
        "harm": {"kind": "commission", "severity": "severe", "likelihood": "possible"},
    },
)  # fmt: skip
CONTRADICTION = Fault(
    "chart/DocumentReference.ndjson", "4.7", "5.4",
    {
        "dimension": "ehr_consistency", "weight": "blocking",
        "anchor": {"kind": "resource", "ref": NOTE, "quote": "5.4"},
        "text": f"The result note says that the Riverside potassium of 9 March is 5.4. The result itself ({POTASSIUM}) "
        "is 4.7, not hemolyzed, and the whole plan rests on it.",
    },
)  # fmt: skip
LOOSE = Fault(
    "checkpoints.toml",
    'accept = [{ingredient = "finerenone", dose = "10 mg", frequency = "daily"}]',
    'accept = [{ingredient = "finerenone"}]',
    {
        "dimension": "clinical_reasoning", "weight": "blocking", "anchor": {"kind": "checkpoint", "checkpoint": "cp6"},
        "text": "Any order of finerenone passes, 20 mg twice a day too. It has to be 10 mg once daily.",
        "source": "Kerendia label, 2.2",
    },
)  # fmt: skip
_STRICT = [
    f'    "examples/cp6-{name}.json",\n' for name in ("twenty", "tenfold", "twice-daily")
]  # what the loose matcher would fail on by itself


def faulty() -> dict[str, bytes]:
    """The bundled task with all three faults."""
    files = dict(SUITE.files(TASK))
    text = files["checkpoints.toml"].decode()
    for fault in (THRESHOLD, LOOSE):
        assert text.count(fault.right) == 1
        text = text.replace(fault.right, fault.wrong)
    for line in _STRICT:
        assert text.count(line) == 1
        text = text.replace(line, "")
    files["checkpoints.toml"] = text.encode()
    return _note(files, CONTRADICTION.right, CONTRADICTION.wrong)


def table(files: Mapping[str, bytes], id: str) -> dict[str, Any]:
    return next(
        (dict(one) for one in tomllib.loads(files["checkpoints.toml"].decode())["checkpoint"] if one["id"] == id), {}
    )


def lines(files: Mapping[str, bytes], path: str) -> dict[str, bytes]:
    return {json.loads(line)["id"]: line for line in files[path].split(b"\n") if line.strip()}


class Score(NamedTuple):
    """What of a revision is right: each fault gone, everything else kept."""

    threshold: bool
    contradiction: bool
    loose: bool
    kept: bool


def score(after: Mapping[str, bytes]) -> Score:
    """A revision of the faulty task, measured against the task as it was."""
    right = dict(SUITE.files(TASK))
    note = parse_json(lines(after, "chart/DocumentReference.ndjson")[NOTE.partition("/")[2]])
    said = " ".join(text for _, text in note_texts(note))
    lab = parse_json(lines(after, "chart/Observation.ndjson")[POTASSIUM.partition("/")[2]])
    value = float(lab["valueQuantity"]["value"])
    was = tomllib.loads(right["checkpoints.toml"].decode())["checkpoint"]
    now = tomllib.loads(after["checkpoints.toml"].decode())["checkpoint"]

    def rest(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
        mended = {"cp9": ("must_not",), "cp6": ("order", "must_not_match")}.get(str(checkpoint["id"]), ())
        return {key: value for key, value in checkpoint.items() if key not in mended}

    others = {path: data for path, data in after.items() if not path.startswith(("reviews/", "checkpoints.toml"))}
    note_file = "chart/DocumentReference.ndjson"
    notes = {id: line for id, line in lines(after, note_file).items() if id != NOTE.partition("/")[2]}
    kept = (
        [rest(one) for one in was] == [rest(one) for one in now]
        and all(data == right.get(path) for path, data in others.items() if path != note_file)
        and all(line == lines(right, note_file)[id] for id, line in notes.items())
        and set(others) | {"checkpoints.toml"} == set(right)
    )
    return Score(
        threshold=table(after, "cp9").get("must_not") == table(right, "cp9")["must_not"],
        contradiction="5.4" not in said and "4.7" in said and value == 4.7,
        loose=table(after, "cp6").get("order") == table(right, "cp6")["order"],
        kept=kept,
    )


# Answers. F1 threshold, F2 contradiction, F3 loose.


def mend_threshold(daily: str = ">10 mg") -> dict[str, Any]:
    rows = table(faulty(), "cp9")["must_not"]
    return {
        "edit": {
            "kind": "checkpoint", "checkpoint": "cp9", "was": {"must_not": rows},
            "set": {"must_not": [{**rows[0], "daily": daily}, *rows[1:]]},
        },
        "findings": ["F1"], "dimension": "patient_safety", "evidence": ["source: Kerendia label, 2025, 2.2"],
        "rationale": "Above 10 mg a day fails, the starting dose at this eGFR.",
    }  # fmt: skip


def mend_note() -> dict[str, Any]:
    return {
        "edit": {"kind": "note", "ref": NOTE, "find": "5.4", "replace": "4.7"},
        "findings": ["F2"], "dimension": "ehr_consistency", "evidence": [POTASSIUM],
        "rationale": "The note says what the laboratory measured.",
    }  # fmt: skip


def mend_matcher(dose: str = "10 mg") -> list[dict[str, Any]]:
    was = table(faulty(), "cp6")
    row = {"ingredient": "finerenone", "dose": dose, "frequency": "daily"}
    examples = [line.strip().strip(',"') for line in _STRICT] if dose == "10 mg" else []
    return [
        {
            "edit": {
                "kind": "checkpoint", "checkpoint": "cp6",
                "was": {"order": was["order"], "must_not_match": was["must_not_match"]},
                "set": {
                    "order": {**was["order"], "accept": [row]}, "must_not_match": [*was["must_not_match"], *examples],
                },
            },
            "findings": ["F3"], "dimension": "clinical_reasoning", "evidence": ["finding: F3"],
            "rationale": "Only 10 mg once daily passes.",
        }
    ]  # fmt: skip


def wrong_lab() -> dict[str, Any]:
    return {
        "edit": {
            "kind": "resource", "ref": POTASSIUM,
            "operations": [
                {"op": "test", "path": "/valueQuantity/value", "value": 4.7},
                {"op": "replace", "path": "/valueQuantity/value", "value": 5.4},
            ],
        },
        "findings": ["F2"], "dimension": "ehr_consistency", "evidence": [NOTE], "rationale": "They agree now.",
    }  # fmt: skip


def deleted() -> dict[str, Any]:
    return {
        "edit": {"kind": "remove_checkpoint", "checkpoint": "cp6"},
        "findings": ["F3"], "dimension": "clinical_reasoning", "evidence": ["finding: F3"],
        "rationale": "It can no longer be too loose.",
    }  # fmt: skip


def unasked() -> dict[str, Any]:
    return {
        "edit": {"kind": "text", "path": "instruction.md", "find": "short enough to be read between two patients",
                 "replace": "as long as it takes"},
        "findings": ["F3"], "dimension": "instruction_clarity", "evidence": ["finding: F3"], "rationale": "Nicer.",
    }  # fmt: skip


GOOD = answer(mend_threshold(), mend_note(), *mend_matcher())
CASES: dict[str, tuple[Reply, Score]] = {
    "good": (GOOD, Score(True, True, True, True)),
    "threshold made worse": (
        answer(mend_threshold(">80 mg"), mend_note(), *mend_matcher()), Score(False, True, True, True),
    ),
    "the laboratory bent to the note": (
        answer(mend_threshold(), wrong_lab(), *mend_matcher()), Score(True, False, True, False),
    ),
    "the checkpoint deleted": (
        answer(mend_threshold(), mend_note(), deleted()), Score(True, True, False, False),
    ),
    "something nobody asked for": (
        answer(mend_threshold(), mend_note(), *mend_matcher(), unasked()), Score(True, True, True, False),
    ),
    "nothing": (
        answer(unaddressed=(("F1", "Unsure."), ("F2", "Unsure."), ("F3", "Unsure."))), Score(False, False, False, True),
    ),
}  # fmt: skip


@pytest.fixture
def review(workspace: Workspace, tmp_path: Path) -> Review:
    suite = written(faulty(), tmp_path / "suite", TASK)
    return Review(workspace, suite, TASK, [one.finding for one in (THRESHOLD, CONTRADICTION, LOOSE)])


def after(review: Review, draft: Draft) -> dict[str, bytes]:
    return compose(draft, review.files, person=AUTHOR).after


def test_the_faults_are_there_and_the_task_without_them_scores_full(review: Review) -> None:
    assert score(review.files) == Score(False, False, False, True)
    assert score(dict(SUITE.files(TASK))) == Score(True, True, True, True)


@pytest.mark.parametrize("name", list(CASES))
def test_answers_are_told_apart(review: Review, name: str) -> None:
    reply, expected = CASES[name]
    face = "openai" if len(name) % 2 else "anthropic"
    draft = review.revised(face, reply, gate=passing)
    assert score(after(review, draft)) == expected
    # A changed must_not is always marked; so is the deletion. A matcher made stricter is not.
    marked = set(weakening(review.desk(AUTHOR), draft))
    assert marked == {"nothing": set(), "the checkpoint deleted": {1, 3}}.get(name, {1})


def test_a_good_answer_passes_the_gate_and_one_that_breaks_a_plan_comes_back(review: Review) -> None:
    from authoring.gate import run_gate

    runs = []

    def counted(files: Mapping[str, bytes], task: str) -> Any:
        runs.append(task)
        return run_gate(files, task=task)

    bad = answer(mend_threshold(), mend_note(), *mend_matcher("20 mg"))
    draft = review.revised("anthropic", bad, GOOD, gate=counted)
    assert draft.repairs == 1
    assert draft.gate is not None
    assert draft.gate.new == ()
    result = after(review, draft)
    assert score(result) == Score(True, True, True, True)
    # As the task was before the faults were put in: nothing of the gate is worse.
    clean = run_gate(dict(SUITE.files(TASK)), task=TASK)
    failing = {one.name for one in draft.gate.checks if one.state == "failed"}
    assert failing <= {one.name for one in clean.checks if one.state == "failed"}
    assert new_failures(clean, run_gate(result, task=TASK)) == ()
