"""What the review pages decide without a page: what is missing, what a draft becomes, what a change looks like."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authoring.diffs import file_diff
from authoring.edits import Package, TextEdit
from review_ui.reviewing import changes, examples, forms, handmade
from review_ui.reviewing.forms import ReviewForm
from tasks.errors import UsageError
from tasks.fhir.resources import dump_json, parse_json
from tasks.package import SUITE, FolderSource, Task
from tasks.review.checklist import checklist
from tasks.review.events import ChangeRef, Finding, ReviewSubmitted

COMPLETE = {
    **{f"verdict.{one.id}": "acceptable" for one in checklist().dimensions},
    "rating.cp1": "essential",
    "rating.cp2": "optional",
    "confidence": "sure",
}


def form(drafts: dict[str, str], examples: dict[str, tuple[str, ...]] | None = None) -> ReviewForm:
    return ReviewForm(checklist(), ("cp1", "cp2"), examples or {}, drafts)


def test_locking_names_each_field_that_is_empty() -> None:
    drafts = {f"plan.{key}": "said" for key, _, _ in forms.PLAN}
    assert forms.plan_missing(drafts) == ["how sure"]
    assert forms.plan_missing({**drafts, "plan.must_not": "  ", "plan.confidence": "sure"}) == ["must not be done"]
    assert forms.plan_missing({**drafts, "plan.confidence": "sure"}) == []


def test_a_complete_review_lacks_nothing_and_is_one_event() -> None:
    made = form(COMPLETE)
    assert made.missing == ()
    event = ReviewSubmitted.model_validate(
        {"submission": "s", "task": "t-1", "actor": "a", "role": "reviewer", "at": "2026-01-01T00:00:00Z", "round": 1,
         "package": "0" * 64, "checklist": "x", **made.submission()}
    )  # fmt: skip
    assert {one.checkpoint: one.rating for one in event.ratings} == {"cp1": "essential", "cp2": "optional"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdict.patient_safety": ""}, "A verdict on patient safety"),
        ({"verdict.patient_safety": "cannot judge"}, "Why patient safety cannot be judged"),
        ({"verdict.patient_safety": "needs change"}, "A finding that says what is wrong in patient safety"),
        ({"verdict.patient_safety": "unsafe"}, "A finding with its harm, that says what is unsafe in patient safety"),
        ({"rating.cp2": ""}, "A rating of checkpoint 2"),
        ({"rating.cp2": "wrong"}, "Why checkpoint 2 is wrong"),
        ({"confidence": ""}, "How sure you are overall"),
    ],
)
def test_what_is_missing_is_said(change: dict[str, str], words: str) -> None:
    assert [one.words for one in form({**COMPLETE, **change}).missing] == [words]


def test_an_example_that_nobody_looked_at_is_not_right() -> None:
    made = form({**COMPLETE, "tick.cp1.aa": "wrong"}, {"cp1": ("aa", "bb")})
    assert [one.words for one in made.missing] == ["1 example order of checkpoint 1"]
    assert made.submission()["ticks"] == ({"checkpoint": "cp1", "example": "aa", "right": False},)


def test_a_finding_says_what_it_needs_and_a_blocking_one_names_the_harm() -> None:
    drafts = {"new.f.text": "Wrong dose.", "new.f.dimension": "patient_safety", "new.f.weight": "blocking",
              "new.f.confidence": "sure"}  # fmt: skip
    made, needs = forms.finding_of(drafts, "f")
    assert made is None
    assert needs == ["harm severity and likelihood (blocking)"]
    harm = {"new.f.severity": "severe", "new.f.likelihood": "likely"}
    # Whether by doing or by leaving out is never guessed.
    assert forms.finding_of({**drafts, **harm}, "f") == (None, ["how it would harm"])
    made, needs = forms.finding_of({**drafts, **harm, "new.f.kind": "omission"}, "f")
    assert made is not None
    assert made.harm is not None
    assert (made.harm.severity, made.harm.kind) == ("severe", "omission")
    assert form({"finding.f": made.model_dump_json()}).findings == (made,)


@pytest.mark.parametrize(
    ("harm", "needs"),
    [
        ({}, []),
        ({"severity": "severe", "kind": "omission"}, ["likelihood of the harm"]),
        ({"likelihood": "likely"}, ["harm severity"]),
        ({"severity": "mild", "likelihood": "likely"}, ["how it would harm"]),
        # Its field is not on the page while no severity is chosen.
        ({"kind": "omission"}, []),
    ],
)
def test_half_a_harm_is_asked_for_and_never_dropped(harm: dict[str, str], needs: list[str]) -> None:
    drafts = {"new.f.text": "Late.", "new.f.dimension": "patient_safety", "new.f.weight": "should",
              "new.f.confidence": "sure", **{f"new.f.{name}": value for name, value in harm.items()}}  # fmt: skip
    made, said = forms.finding_of(drafts, "f")
    assert said == needs
    assert (made is None) == bool(needs)


def added(id: str, text: str, dimension: str = "patient_safety", severity: str = "", weight: str = "should") -> str:
    harm = {"kind": "omission", "severity": severity, "likelihood": "possible"} if severity else None
    return Finding.model_validate(
        {"id": id, "dimension": dimension, "anchor": {"kind": "task"}, "weight": weight, "text": text, "harm": harm}
    ).model_dump_json()


def test_unsafe_stands_on_a_finding_with_a_harm_whose_words_are_the_vetos_reason() -> None:
    unsafe = {**COMPLETE, "verdict.patient_safety": "unsafe", "finding.a": added("a", "A mere note.", weight="note"),
              "finding.b": added("b", "Of another dimension.", "clinical_reasoning", "death")}  # fmt: skip
    assert [one.place for one in form(unsafe).missing] == ["finding.patient_safety"]
    harmed = {**unsafe, "finding.c": added("c", "It may bleed.", severity="moderate"),
              "finding.d": added("d", "It may kill.", severity="death")}  # fmt: skip
    made = form(harmed)
    assert made.missing == ()

    def comments(made: ReviewForm) -> dict[str, str]:
        return {one["dimension"]: one["comment"] for one in made.submission()["verdicts"] if one["comment"]}

    assert comments(made) == {"patient_safety": "It may kill."}
    assert comments(form({**harmed, "comment.patient_safety": "Said so."})) == {"patient_safety": "Said so."}
    # Nobody's words are put into a dimension that is no veto.
    assert comments(form({**harmed, "verdict.patient_safety": "needs change"})) == {}


def test_the_reason_of_a_rating_that_was_changed_is_not_sent_and_is_told_of() -> None:
    made = form({**COMPLETE, "rating.cp2": "wrong", "why.cp2": "It forgets the repeat."})
    assert made.left == ()
    assert made.submission()["ratings"][1]["comment"] == "It forgets the repeat."
    made = form({**COMPLETE, "rating.cp2": "essential", "why.cp2": "It forgets the repeat."})
    assert made.submission()["ratings"][1]["comment"] == ""
    assert [(one.words, one.items) for one in made.left] == [("It forgets the repeat.", ("why.cp2",))]


def test_what_was_written_and_not_added_is_counted_named_and_led_to() -> None:
    made = form(
        {**COMPLETE, "composer": "b", "new.b.text": "Half.", "new.a.text": "Waits.", "new.a.source": "A label.",
         "new.c.dimension": "patient_safety", "amend.0": "By phone.", "amend.1": " ",
         "finding.d": '{"id":"d","text":"Of a later version."}', "finding.e": "{"}
    )  # fmt: skip
    assert made.missing == ()
    assert [(one.words, one.items[0]) for one in made.left] == [
        ("Half.", "new.b.text"), ("Waits.\nA label.", "new.a.text"), ("By phone.", "amend.0"),
        ("Of a later version.", "finding.d"), ("{", "finding.e"),
    ]  # fmt: skip
    assert "under New finding" in made.left[0].where
    assert "Not added yet" in made.left[1].where
    assert made.summary() == "2 findings not added · 1 correction not added · 2 findings that cannot be read"
    assert [one.item for one in made.open] == [one.items[0] for one in made.left]


# ---- edits by hand --------------------------------------------------------------------------------------------------


@pytest.fixture
def task(packages: ModuleType, tmp_path: Path) -> Task:
    packages.write(tmp_path)
    return FolderSource(tmp_path).load("nephrology-small")


LAB = {
    "resourceType": "Observation", "id": "k-1", "status": "final", "valueQuantity": {"value": 5, "unit": "mmol/L"},
    "note": [{"text": "hemolyzed"}],
}  # fmt: skip


def test_a_typed_value_becomes_a_tested_replace_and_nothing_else() -> None:
    line = dump_json(LAB).encode()
    edits = handmade.resource_edits(
        line, "Observation/k-1", {"/valueQuantity/value": "5.60", "/note/0/text": "hemolyzed"}
    )
    assert [edit.model_dump()["operations"] for edit in edits] == [
        ({"op": "test", "path": "/valueQuantity/value", "value": 5},
         {"op": "replace", "path": "/valueQuantity/value", "value": parse_json("5.60")})
    ]  # fmt: skip
    after = Package({"chart/Observation.ndjson": line + b"\n"}).apply(edits[0]).read("chart/Observation.ndjson")
    assert after == line.replace(b'"value":5,', b'"value":5.60,') + b"\n"


@pytest.mark.parametrize(("typed", "said"), [("high", "is a number"), ("NaN", "is a number"), ("", "is a number")])
def test_a_number_that_is_none_is_refused(typed: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        handmade.resource_edits(dump_json(LAB).encode(), "Observation/k-1", {"/valueQuantity/value": typed})


def test_nothing_typed_is_no_edit() -> None:
    line = dump_json(LAB).encode()
    typed = {leaf.pointer: leaf.text for leaf in handmade.leaves(LAB)}
    assert handmade.resource_edits(line, "Observation/k-1", typed) == ()


@given(st.text(min_size=1, max_size=200), st.text(max_size=200))
def test_text_in_place_gives_exactly_that_text(before: str, after: str) -> None:
    try:
        files = {"instruction.md": before.encode()}
        wanted = after.encode()
    except UnicodeEncodeError:
        return
    if not after or "\r" in before + after:
        return
    edits = handmade.text_edits(files, "instruction.md", after)
    package = Package(files)
    for edit in edits:
        package = package.apply(edit)
    assert package.read("instruction.md") == wanted


def test_a_part_of_a_proposal_is_kept_and_read_back_with_its_decimals() -> None:
    edits = handmade.resource_edits(dump_json(LAB).encode(), "Observation/k-1", {"/valueQuantity/value": "5.60"})
    kept = handmade.entry(edits, ["f-1"], "Because.")
    assert "5.60" in kept
    again = handmade.parsed(kept)
    assert again[0].edit == edits[0]
    assert again[0].findings == ("f-1",)


def test_a_checkpoint_edit_sets_only_what_changed(task: Task) -> None:
    edits = handmade.checkpoint_edits(
        task.files, "cp2", {"title": "Potassium checked again", "criticality": "critical"}
    )
    assert [edit.model_dump(include={"set", "was"}) for edit in edits] == [
        {"set": {"criticality": "critical"}, "was": {"criticality": "required"}}
    ]
    assert handmade.checkpoint_edits(task.files, "cp2", {"title": "Potassium checked again"}) == ()


# ---- decisions ------------------------------------------------------------------------------------------------------


def ref(**more: Any) -> ChangeRef:
    return ChangeRef(change="a" * 64, unit="instruction.md", base="b" * 64, result="c" * 64, **more)


def test_a_drafted_decision_is_bound_to_the_bytes_that_were_seen() -> None:
    drafts = {f"decision.{'a' * 64}": changes.kept(ref(), "approve")}
    made = changes.drafted(ref(), drafts)
    assert made is not None
    assert not made.stale
    other = ChangeRef(change="a" * 64, unit="instruction.md", base="d" * 64, result="c" * 64)
    stale = changes.drafted(other, drafts)
    assert stale is not None
    assert stale.stale


def test_a_veto_lacks_a_reason_and_the_harm_until_both_are_there() -> None:
    made = changes.Drafted("veto", "", {})
    assert made.lacks == ("a reason", "the harm")
    harm = {"kind": "omission", "severity": "severe", "likelihood": "likely"}
    assert changes.Drafted("veto", "Danger.", harm).lacks == ()
    assert changes.Drafted("approve", "", {}).lacks == ()


def test_damaged_drafts_are_no_decision() -> None:
    assert changes.drafted(ref(), {f"decision.{'a' * 64}": "{"}) is None
    assert changes.drafted(ref(), {f"decision.{'a' * 64}": json.dumps({"decision": "merge"})}) is None


def test_a_prose_diff_shows_old_above_new_with_the_changed_words_marked() -> None:
    old = b"First line.\nHe takes a baby aspirin daily.\nLast line.\n"
    edit = TextEdit(path="instruction.md", find="a baby aspirin", replace="aspirin 81 mg")
    new = Package({"instruction.md": old}).apply(edit).read("instruction.md")
    lines = changes.prose_lines(file_diff("instruction.md", old, new))
    assert [line.kind for line in lines] == ["same", "removed", "added", "same"]
    removed = "".join(piece.text for piece in lines[1].pieces)
    added = "".join(piece.text for piece in lines[2].pieces)
    assert removed == "He takes a baby aspirin daily."
    assert added == "He takes aspirin 81 mg daily."
    assert any(piece.kind == "removed" and "baby" in piece.text for piece in lines[1].pieces)
    assert all(piece.kind != "added" for piece in lines[1].pieces)


def test_only_white_space_is_white_space() -> None:
    assert changes.white_space_only({"instruction.md": b"a b"}, {"instruction.md": b"a  b\n"})
    assert not changes.white_space_only({"instruction.md": b"5 mg"}, {"instruction.md": b"50 mg"})
    assert not changes.white_space_only({}, {})


# ---- example orders -------------------------------------------------------------------------------------------------


def test_a_checkpoint_without_orders_has_no_examples_and_keys_are_by_content(task: Task) -> None:
    assert examples.examples(task, task.checkpoints[0]) == ()


def test_the_bundled_task_has_ten_orders_with_both_verdicts_where_orders_are_judged() -> None:
    bundled = SUITE.load(SUITE.list()[0])
    judged = 0
    for checkpoint in bundled.checkpoints:
        found = examples.examples(bundled, checkpoint)
        if checkpoint.order is None or not checkpoint.must_match:
            continue
        judged += 1
        assert len(found) == examples.MOST
        # Why an order fails is said without the names that only the record has for it.
        assert not any(one.why for one in found if one.result == "pass")
        assert all(one.why or one.detail != "active order" for one in found if one.result == "fail")
        assert not any("/example-" in one.why for one in found)
        assert {"pass", "fail"} <= {one.result for one in found}
        assert len({one.key for one in found}) == len(found)
        assert examples.examples(bundled, checkpoint) == found
    assert judged


def test_a_dose_with_a_fraction_is_varied_as_exactly_as_a_whole_one() -> None:
    def dose(value: str) -> str:
        return f'{{"dosageInstruction":[{{"doseAndRate":[{{"doseQuantity":{{"value":{value},"unit":"mg"}}}}]}}]}}'

    for value, tenfold, half in (("2.5", "25", "1.25"), ("0.125", "1.25", "0.0625"), ("5", "50", "2.5"),
                                 ("10", "100", "5"), ("2.50", "25", "1.25")):  # fmt: skip
        doses = [dump_json(one[0]) for one in examples._variants(parse_json(dose(value)), "p")][:2]
        assert doses == [dose(tenfold), dose(half)]
