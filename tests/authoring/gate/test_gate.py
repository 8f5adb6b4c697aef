"""The gate on packages made wrong in one way each: the check that must see it does, and says where."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from authoring.gate import Check, GateResult, run_gate
from authoring.gate import package as texts
from tasks.package import SUITE, Task, load
from tests.tasks.packages import TINY_ID, tiny_files

IDENTIFIERS = "Nothing looks like an identifier"
ASKED = "Nothing is graded that is not asked"
LEAKS = "No answer in what the agent can read"
CLOCK = "Nothing was recorded after the clock"
SOURCES = "Sources are not newer than the clock and not superseded"


def checks(files: dict[str, bytes]) -> dict[str, Check]:
    """The checks of text and chart, by name."""
    return {check.name: check for check in texts.checks(load(files, where=TINY_ID))}


def with_line(files: dict[str, bytes], path: str, resource: dict[str, Any]) -> dict[str, bytes]:
    """The package with one resource more, in order of ids."""
    lines = [line for line in files.get(path, b"").decode().split("\n") if line]
    lines = sorted([*lines, json.dumps(resource)], key=lambda line: json.loads(line)["id"])
    return files | {path: ("\n".join(lines) + "\n").encode()}


def with_note(text: str, **keys: Any) -> dict[str, bytes]:
    """The tiny package with one more clinical note."""
    data = base64.b64encode(text.encode()).decode()
    note = {
        "resourceType": "DocumentReference",
        "id": "z-note",
        "status": "current",
        "subject": {"reference": "Patient/p-7001"},
        "date": "2025-03-01T08:00:00-05:00",
        "content": [{"attachment": {"contentType": "text/plain", "data": data}}],
    } | keys
    return with_line(tiny_files(), "chart/DocumentReference.ndjson", note)


@pytest.fixture(scope="module")
def bundled() -> GateResult:
    """The whole gate on the bundled case, once."""
    heard: list[Check] = []
    result = run_gate(SUITE.files("nephrology-finerenone-011"), task="nephrology-finerenone-011", progress=heard.append)
    assert tuple(heard) == result.checks
    return result


def test_every_mutant_of_the_bundled_case_is_caught_and_every_harmless_variant_passes(bundled: GateResult) -> None:
    assert bundled.passed, bundled.failures
    assert bundled.survivors == ()
    assert bundled.mutation_score == 1
    assert bundled.broken_variants == ()


@pytest.mark.parametrize(
    "kind",
    [
        "order left out", "ten-fold dose", "wrong unit", "wrong patient", "draft", "cancelled", "negated", "duplicated",
        "contradictory extra", "note without orders", "orders without note",
    ],
)  # fmt: skip
def test_each_mutant_kind_was_really_made(bundled: GateResult, kind: str) -> None:
    assert any(mutant.kind == kind for mutant in bundled.mutants)


@pytest.mark.parametrize(
    "kind",
    [
        "order of writes", "extra reads", "brand name", "equivalent unit", "frequency in other words",
        "other code of the test", "panel that holds the test", "other accepted interval",
    ],
)  # fmt: skip
def test_each_kind_of_harmless_variant_was_really_made(bundled: GateResult, kind: str) -> None:
    assert any(variant.kind == kind for variant in bundled.variants)


# ---- a task whose checkpoints look away -----------------------------------------------------------------------------


def weakened(change: Callable[[str], str]) -> GateResult:
    """The gate on the tiny task with other checkpoints."""
    files = tiny_files()
    files["checkpoints.toml"] = change(files["checkpoints.toml"].decode()).encode()
    return run_gate(files, task=TINY_ID)


def test_a_checkpoint_that_does_not_read_the_dose_lets_a_mutant_through_that_the_gate_names() -> None:
    strict, blind = weakened(lambda toml: toml), weakened(lambda toml: toml.replace('dose = "5 mg", ', ""))
    assert not any(mutant.kind == "ten-fold dose" for mutant in strict.survivors)
    assert any(mutant.kind == "ten-fold dose" and "apixaban" in mutant.what for mutant in blind.survivors)
    assert blind.mutation_score is not None
    assert blind.mutation_score < 1
    (failed,) = (check for check in blind.checks if check.name == "Mutants are caught")
    assert failed.state == "failed"
    assert "ten-fold dose" in failed.detail
    assert not blind.passed


def test_a_checkpoint_that_counts_no_duplicates_lets_one_through() -> None:
    blind = weakened(lambda toml: toml.replace('count = "one"', 'count = "at_least_one"'))
    assert not any(mutant.kind == "duplicated" for mutant in blind.mutants), "two orders are then as declared"


# ---- text and chart -------------------------------------------------------------------------------------------------


def test_the_tiny_package_is_clean() -> None:
    found = checks(tiny_files())
    assert {name for name, check in found.items() if check.state == "failed"} == {ASKED}, "its cp1 and cp3 quote no ask"


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("SSN 219-09-9999 on file", "social security number"),
        ("Call (555) 010-4477 with questions", "telephone number"),
        ("Reached at 555-010-4477.", "telephone number"),
        ("MRN: 00412233", "medical record number"),
        ("Medical record number 4122-3344 was merged", "medical record number"),
        ("Write to pat.doe@example.org please", "e-mail address"),
        ("See https://portal.example.org/p/12 for images", "web address"),
        ("Lives at 12 Old Mill Road since May", "postal address"),
        ("logged in from 192.0.2.44 today", "IP address"),
    ],
)
def test_what_looks_like_an_identifier_is_named_by_kind_and_place_and_never_repeated(said: str, what: str) -> None:
    check = checks(with_note(said))[IDENTIFIERS]
    assert check.state == "failed"
    assert f"DocumentReference/z-note holds what looks like a{'n' if what[0] in 'eI' else ''} {what}" in check.detail
    secret = next(word for word in said.split() if any(letter.isdigit() or letter == "@" for letter in word))
    assert secret not in check.detail


@pytest.mark.parametrize(
    "said",
    [
        "BP 140-90, potassium 4.7",
        "eGFR 33 on 2025-03-01",
        "LOINC 24321-2",
        "1,000 mg 2-3 times",
        "Room 12, bed 3",
        "v1.2.3",
    ],
)
def test_clinical_numbers_are_no_identifiers(said: str) -> None:
    assert checks(with_note(said))[IDENTIFIERS].state == "passed"


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"date": "2025-12-01T08:00:00-05:00"}, "DocumentReference.date"),
        ({"meta": {"lastUpdated": "2026-01-01T00:00:00Z"}}, "DocumentReference.meta.lastUpdated"),
        ({"date": "2025-03-14T13:30:01Z"}, "DocumentReference.date"),
    ],
)
def test_what_was_recorded_after_the_clock_is_named_with_its_element(keys: dict[str, Any], path: str) -> None:
    check = checks(with_note("text", **keys))[CLOCK]
    assert check.state == "failed"
    assert f"DocumentReference/z-note {path} is" in check.detail


def test_what_is_planned_for_later_is_no_leak_of_time() -> None:
    visit = {
        "resourceType": "Appointment",
        "id": "z-visit",
        "status": "booked",
        "start": "2025-12-01T08:00:00-05:00",
        "end": "2025-12-01T08:30:00-05:00",
        "participant": [{"actor": {"reference": "Patient/p-7001"}, "status": "accepted"}],
    }
    assert checks(with_line(tiny_files(), "chart/Appointment.ndjson", visit))[CLOCK].state == "passed"


def test_a_sentence_of_the_solution_in_the_chart_is_a_leak() -> None:
    task = load(tiny_files(), where=TINY_ID)
    sentence = max(
        (said for _, said in texts._sentences(task) if "warfarin" not in said), key=len
    )  # the longest one that quotes no graded fact
    assert checks(tiny_files())[LEAKS].state == "passed"
    padded = f"{sentence} And a little more so that it is long enough to be no accident."
    files = tiny_files()
    path = next(path for path in files if path.startswith("solution/") and path.endswith(".md"))
    files[path] = files[path] + f"\n{padded}\n".encode()
    note = with_note(f"Seen today. {padded}")
    check = checks(note | {path: files[path]})[LEAKS]
    assert check.state == "failed"
    assert "DocumentReference/z-note holds a sentence of solution/" in check.detail


def test_the_dose_of_the_answer_in_the_instruction_is_a_leak_and_the_drug_alone_is_not() -> None:
    files = tiny_files()
    drug = files["instruction.md"] + b"\nIs apixaban right for him?\n"
    assert checks(files | {"instruction.md": drug})[LEAKS].state == "passed"
    told = files["instruction.md"] + b"\nPlease start apixaban 5 mg.\n"
    check = checks(files | {"instruction.md": told})[LEAKS]
    assert (check.state, "gives the answer of cp2: apixaban 5 mg" in check.detail) == ("failed", True)


def test_a_checkpoint_title_in_the_instruction_is_a_leak() -> None:
    files = tiny_files()
    task = load(files, where=TINY_ID)
    long = next(one for one in task.checkpoints if len(one.title.split()) >= 4)
    check = checks(files | {"instruction.md": files["instruction.md"] + f"\n{long.title}\n".encode()})[LEAKS]
    assert f"holds the title of {long.id}" in check.detail


def changed_toml(task: Task, **keys: Any) -> dict[str, Check]:
    """The checks on a task whose first checkpoint has other keys."""
    from dataclasses import replace

    first = task.checkpoints[0].model_copy(update=keys)
    return {check.name: check for check in texts.checks(replace(task, checkpoints=(first, *task.checkpoints[1:])))}


def test_what_no_word_of_the_instruction_asks_for_is_named(tiny_task: Task) -> None:
    check = changed_toml(tiny_task, rests_on=("Observation/o-creatinine",))[ASKED]
    assert (check.state, check.detail.startswith("cp1: rests_on quotes no words")) == ("failed", True)


def test_sources_newer_than_the_clock_and_superseded_ones_are_named(tiny_task: Task) -> None:
    from tasks.declarations import Source

    newer = Source(org="ACC", year=2031)
    old = Source(org="AHA", year=2014, superseded_by="AHA 2023")
    check = changed_toml(tiny_task, source=(newer, old))[SOURCES]
    assert check.state == "failed"
    assert "ACC 2031 is newer" in check.detail
    assert "AHA 2014 is superseded by AHA 2023" in check.detail


# ---- reach and examples ---------------------------------------------------------------------------------------------


def test_evidence_of_a_kind_that_no_tool_searches_cannot_be_reached(tiny_task: Task) -> None:
    from dataclasses import replace

    from authoring.gate import reach

    unreachable = next(r.ref for r in tiny_task.chart.resources() if r.type in ("Practitioner", "AllergyIntolerance"))
    first = tiny_task.checkpoints[0].model_copy(update={"rests_on": (unreachable,), "reachable": ("paper",)})
    (check,) = (c for c in reach.checks(replace(tiny_task, checkpoints=(first,))))
    assert (check.state, unreachable in check.detail) == ("failed", True)


def test_a_fact_behind_the_part_that_is_shown_cannot_be_reached() -> None:
    from dataclasses import replace

    from authoring.gate import reach

    files = with_note(f"Words at the start. {'filler ' * 2000} the last words of a long note")
    task = load(files, where=TINY_ID)
    found = {}
    for quote in ("the last words of a long note", "Words at the start"):
        first = task.checkpoints[0].model_copy(
            update={"rests_on": (f'DocumentReference/z-note#"{quote}"',), "reachable": ("paper",)}
        )
        (check,) = reach.checks(replace(task, checkpoints=(first,)))
        found[quote] = check.state
    assert found == {"the last words of a long note": "failed", "Words at the start": "passed"}


def test_an_example_that_does_not_match_as_declared_is_named(tiny_task: Task) -> None:
    from dataclasses import replace

    from authoring.gate import examples

    right = json.dumps(
        {
            "resourceType": "MedicationRequest", "id": "x", "status": "active", "intent": "order",
            "medicationCodeableConcept": {"text": "apixaban 5 mg BID by mouth"},
            "subject": {"reference": "Patient/p-7001"},
        }
    ).encode()  # fmt: skip
    second = tiny_task.checkpoints[1]
    for keys, said in (("must_match", ""), ("must_not_match", "must not match and does")):
        changed = second.model_copy(update={"must_match": (), "must_not_match": (), keys: ("examples/r.json",)})
        task = replace(tiny_task, checkpoints=(changed,), examples={"examples/r.json": right})
        check = list(examples.checks(task))[-1]
        assert check.name == "Examples match as declared"
        assert (said in check.detail) if said else check.state == "passed", check.detail


def test_a_package_that_is_not_valid_stops_at_the_first_check() -> None:
    files = tiny_files() | {"chart/Condition.ndjson": b"{"}
    result = run_gate(files, task=TINY_ID)
    assert [check.state for check in result.checks] == ["failed"]
    assert not result.passed


def test_the_result_for_a_script_holds_every_mutant_and_variant(bundled: GateResult) -> None:
    told = json.loads(json.dumps(bundled.as_json()))
    assert (told["passed"], told["mutation_score"]) == (True, 1)
    assert len(told["mutants"]) == len(bundled.mutants)
    assert all(mutant["checkpoints"] for mutant in told["mutants"])
