"""Decide, drawn without a browser: a change that needs another one is decided on, one that cannot be read is not stuck,
a text that brings in a value is held against the chart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from authoring import tomltext
from authoring.comparing import edits_between
from tasks.workspace import Workspace
from tests.browser import reviews
from tests.browser.reviews import ONE

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
Said = Callable[[AppTest], str]
QUOTES = ["Observation/k-2", 'DocumentReference/n-2#"Stopped Ibuprofen"', 'instruction#"potassium"']
#: Words that the first checkpoint quotes, reworded, and the quotation, each in an edit of its own.
PAIR: tuple[dict[str, Any], ...] = (
    {"edit": {"kind": "text", "path": "instruction.md", "find": "The **potassium** is up.", "replace": "K is up."}},
    {
        "edit": {
            "kind": "checkpoint", "checkpoint": "cp1", "was": {"rests_on": QUOTES},
            "set": {"rests_on": ["Observation/k-2", 'instruction#"K is up"']},
        }
    },
)  # fmt: skip
REWORDED = "Creatinine is 2.7. What now?"
#: Words that the second checkpoint quotes, reworded alone.
ALONE = {"edit": {"kind": "text", "path": "instruction.md", "find": "Please advise.", "replace": REWORDED}}
#: A line's end more, in a text for people.
SPACE = tuple(
    {"edit": {"kind": "text", "path": "instruction.md", "find": words, "replace": words.replace(" ", "  ")}}
    for words in ("# Consult", "- write")
)


@pytest.fixture
def place(packages: ModuleType, tmp_path: Path, workspace: Path) -> Workspace:
    quoted = 'rests_on = ["Observation/k-2", \'instruction#"Please advise"\']\n'
    declared = packages.CHECKPOINTS.replace('rests_on = ["Observation/k-2"]\n', quoted)
    assert declared != packages.CHECKPOINTS
    packages.write(tmp_path / "suite", TASK, checkpoints=declared)
    made: Workspace = reviews.opened(Workspace(workspace), TASK, tmp_path / "suite")
    reviews.judged(made, TASK)
    return made


def decide() -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.query_params["as"] = ONE
    test.run()
    test.switch_page("review_ui/pages/decide.py")
    test.query_params["as"], test.query_params["id"] = ONE, TASK
    test.run()
    assert not test.exception
    return test


def button(test: AppTest, label: str) -> Any:
    return next(one for one in test.button if one.label == label)


def press(test: AppTest, label: str) -> None:
    button(test, label).click().run()
    assert not test.exception


def test_changes_that_can_only_be_read_together_are_shown_and_decided_on(place: Workspace, said: Said) -> None:
    reviews.proposed(place, TASK, PAIR)
    test = decide()
    for number in (1, 2):
        words = said(test)
        assert f"Change {number} of 2" in words
        assert "It cannot be read by itself: what follows is told with the changes" in words
        assert "Stands or falls with 1 other change<" in words
        assert not button(test, "Approve").disabled
        press(test, "Approve")
    assert "2 of 2 decided in this sitting" in said(test)


def test_changes_that_were_put_up_apart_are_read_with_those_of_their_proposal(
    place: Workspace, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("authoring.proposals._readable_groups", lambda package, edits, groups, task: groups)
        made = reviews.proposed(place, TASK, PAIR)
    assert {one.group for one in made.changes} == {""}
    test = decide()
    assert "what follows is told with the other changes of its proposal" in said(test)
    assert not button(test, "Approve").disabled


def test_a_change_that_cannot_be_read_is_not_approved_and_not_stuck(place: Workspace, said: Said) -> None:
    reviews.proposed(place, TASK, (ALONE,))
    test = decide()
    words = said(test)
    assert "This change cannot be read by itself." in words
    assert "A checkpoint quotes words that the instruction would not say." in words
    assert "What now?" in words
    assert button(test, "Approve").disabled
    assert not any(button(test, label).disabled for label in ("Reject", "Discuss", "Veto, unsafe"))
    press(test, "Reject")
    assert "Rejected: it still needs a reason." in said(test)


def test_a_text_that_states_a_value_which_no_result_has_says_so(place: Workspace, said: Said) -> None:
    reviews.proposed(place, TASK, (ALONE,))
    assert "Says creatinine 2.7: no result of the chart does, the latest is 152 µmol/L" in said(decide())


def whole(test: AppTest, change: str, said: Said) -> str:
    """What the page says once the whole checkpoint is unfolded."""
    test.session_state[f"whole-{change[:16]}"] = True
    test.run()
    assert not test.exception
    return said(test)


def test_a_checkpoint_can_be_read_whole_as_the_change_leaves_it(place: Workspace, said: Said) -> None:
    edit = {"kind": "checkpoint", "checkpoint": "cp1", "was": {"criticality": "critical"},
            "set": {"criticality": "required"}}  # fmt: skip
    (ref,) = reviews.proposed(place, TASK, ({"edit": edit},)).changes
    test = decide()
    assert "Passes with" not in said(test)
    words = whole(test, ref.change, said)
    assert "Passes with" in words
    assert ">Required<" in words
    assert "It would be removed" not in words


def test_a_checkpoint_that_would_go_can_be_read_whole_as_it_stands(
    place: Workspace, tmp_path: Path, said: Said
) -> None:
    was = (tmp_path / "suite" / TASK / "checkpoints.toml").read_text("utf-8")
    sides = [{"checkpoints.toml": one.encode()} for one in (was, tomltext.remove_checkpoint(was, "cp1"))]
    (edit,) = edits_between(*sides)
    (ref,) = reviews.proposed(place, TASK, ({"edit": edit.model_dump()},)).changes
    assert "It would be removed. As it stands:" in whole(decide(), ref.change, said)


def test_what_was_approved_in_bulk_is_taken_back_by_one_undo(place: Workspace, said: Said) -> None:
    reviews.proposed(place, TASK, SPACE)
    test = decide()
    press(test, "Summary")
    press(test, "Approve 2 changes that touch white space only")
    assert "2 of 2 decided in this sitting" in said(test)
    press(test, "Undo")
    assert "0 of 2 decided in this sitting" in said(test)
