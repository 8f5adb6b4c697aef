"""What a press of a button comes to: once, never on words that are not kept, and told where it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from authoring.desk import Desk
from review_ui import by_hand, failure, frame, starting
from review_ui.autosave import Mark, Memory
from review_ui.reviewing import acting, going
from runtime import jobs
from runtime.batch import Item, run_batch
from runtime.executors import LocalExecutor
from runtime.trial import Settings
from tasks.errors import EnvironmentFault
from tasks.package import FolderSource
from tasks.review.events import Decided, Proposed
from tasks.review.state import ReviewState
from tasks.statedb import StateDb
from tasks.stored import Batch
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
Said = Callable[[AppTest], str]


@pytest.fixture
def judged(reviews: ModuleType, packages: ModuleType, tmp_path: Path, workspace: Path) -> Workspace:
    """A task whose first round is in."""
    packages.write(tmp_path / "suite")
    made: Workspace = reviews.opened(Workspace(workspace), TASK, tmp_path / "suite")
    reviews.judged(made, TASK)
    return made


def page(file: str, who: str, **parameters: str) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.run()
    test.switch_page(f"review_ui/pages/{file}")
    test.query_params.update({"as": who, **parameters})
    test.run()
    assert not test.exception
    return test


def press(test: AppTest, label: str) -> AppTest:
    next(one for one in test.button if one.label == label).click().run()
    assert not test.exception
    return test


def state(workspace: Workspace, reviews: ModuleType) -> ReviewState:
    at: Desk = reviews.desk(workspace, reviews.LEAD)
    with at.store.at() as view:
        return at.snapshot(view, TASK).state


def files(workspace: Workspace, reviews: ModuleType) -> dict[str, bytes]:
    at: Desk = reviews.desk(workspace, reviews.LEAD)
    with at.store.at() as view:
        return at.snapshot(view, TASK).files


def events(workspace: Workspace, reviews: ModuleType, kind: type[Any]) -> list[Any]:
    at: Desk = reviews.desk(workspace, reviews.LEAD)
    with at.store.at() as view:
        return [one for one in at.snapshot(view, TASK).events if isinstance(one, kind)]


def unsettle(test: AppTest, item: str) -> None:
    """As the field of this item says "Not saved: this was changed in another window"."""
    found = test.session_state["autosave-memory"]
    assert isinstance(found, Memory)
    (book,) = [one for one in (found.here,) if one]
    found.marks[f"{book.key(item)} {item}"] = Mark(conflict=True)


def draft(workspace: Workspace, who: str, item: str, value: str) -> None:
    StateDb(workspace.state_db).save_draft(who, TASK, 1, item, value)


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both clicks of a double click reach the button that was pressed."""
    drawn = st.button

    def button(*args: Any, on_click: Callable[..., None], **look: Any) -> bool:
        def both(*given: Any) -> None:
            on_click(*given)
            on_click(*given)

        return drawn(*args, on_click=both, **look)

    monkeypatch.setattr(acting.st, "button", button)


def one_change(workspace: Workspace, reviews: ModuleType) -> Any:
    edit = {"kind": "text", "path": "instruction.md", "find": "advise.", "replace": "advise today."}
    (ref,) = reviews.proposed(workspace, TASK, ({"edit": edit, "rationale": "Today."},)).changes
    return ref


def test_decisions_wait_for_a_reason_that_is_not_kept_as_it_stands(
    judged: Workspace, reviews: ModuleType, said: Said
) -> None:
    ref = one_change(judged, reviews)
    draft(judged, reviews.ONE, f"decision.{ref.change}", f"reject {ref.base} {ref.result}")
    test = page("decide.py", reviews.ONE, id=TASK)
    press(test, "Reject")
    draft(judged, reviews.ONE, f"comment.{ref.change}", "What the other window says.")
    press(press(test, "Summary"), "Back to the changes")
    press(test, "Summary")
    unsettle(test, f"comment.{ref.change}")
    press(test, "Submit 1 decision")
    assert "Not submitted: the comment on change 1 is not saved as it stands" in said(test)
    assert events(judged, reviews, Decided) == []
    test.session_state["autosave-memory"].marks.clear()
    press(test, "Submit 1 decision")
    (stored,) = events(judged, reviews, Decided)
    assert (stored.decision, stored.reason) == ("reject", "What the other window says.")


@pytest.mark.usefixtures("twice")
def test_a_double_click_on_submit_decides_once_and_says_nothing_else(
    judged: Workspace, reviews: ModuleType, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "_AGAIN", 0.0)
    one_change(judged, reviews)
    test = press(page("decide.py", reviews.ONE, id=TASK), "Approve")
    press(test, "Submit 1 decision")
    assert len(events(judged, reviews, Decided)) == 1
    assert [one.value for one in test.toast] == ["1 decision stored."]
    assert "Not submitted" not in said(press(test, "Summary"))


def test_the_second_click_that_meets_the_next_button_says_nothing_of_what_is_done(
    judged: Workspace, reviews: ModuleType, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = files(judged, reviews)
    text = at["instruction.md"].decode()
    test = page("propose.py", reviews.ONE, id=TASK)
    item = next(name for name in test.session_state["autosave-memory"].texts.values() if name.startswith("hand.inst"))
    draft(judged, reviews.ONE, item, text.replace("advise.", "advise today."))
    draft(judged, reviews.ONE, "hand.why.instruction", "Today.")
    press(test, "Add to the proposal")
    assert "1 change, not put up yet" in said(test)
    press(test, "Add to the proposal")
    assert "Nothing was changed yet." not in said(test)
    # With other words, however soon, it is another press.
    draft(judged, reviews.ONE, item, text.replace("advise.", "advise soon."))
    draft(judged, reviews.ONE, "hand.why.instruction", "Soon.")
    press(test, "Add to the proposal")
    assert "Your proposal changes this place already" in said(test)
    draft(judged, reviews.ONE, item, text)
    monkeypatch.setattr(acting, "_AGAIN", 0.0)
    press(test, "Add to the proposal")
    assert "Nothing was changed yet." in said(test)
    # Taken out and added again, it is another part and no second click.
    press(test, "Take out")
    draft(judged, reviews.ONE, item, text.replace("advise.", "advise now."))
    press(test, "Add to the proposal")
    assert "1 change, not put up yet" in said(test)
    press(test, "Put up for decision")
    assert len(events(judged, reviews, Proposed)) == 1


def test_a_statement_is_signed_as_it_is_kept_and_in_nobodys_place(
    judged: Workspace, reviews: ModuleType, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = page("signoff.py", reviews.ONE, id=TASK)
    (item,) = [one for one in test.session_state["autosave-memory"].texts.values() if one.startswith("sign.")]
    asked: list[str] = []
    monkeypatch.setattr(Desk, "sign", lambda self, task, words, **_: asked.append(words))
    monkeypatch.setattr("review_ui.reviewing.signoff_view.requirements", lambda *_, **__: ())
    draft(judged, reviews.ONE, item, "")
    test.run()
    press(test, "Sign")
    assert asked == []
    assert "The statement is empty." in said(test)
    draft(judged, reviews.ONE, item, "I hold it to be right.")
    unsettle(test, item)
    press(test, "Sign")
    assert asked == []
    assert "Something is not saved as it stands." in said(test)
    test.session_state["autosave-memory"].marks.clear()
    press(test, "Sign")
    assert asked == ["I hold it to be right."]


def test_an_unexpected_error_of_a_press_is_told_with_an_id_and_quotes_nothing(
    judged: Workspace,
    reviews: ModuleType,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one_change(judged, reviews)
    test = page("decide.py", reviews.ONE, id=TASK)

    def breaks(*_: Any) -> None:
        raise KeyError("Mr. Somebody, born 1964")

    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR):
        broken.setattr(going, "settle_all", breaks)
        press(test, "Approve")
    words = said(test)
    mark = words.split("That was not done, or not whole. Error ")[1][:8]
    assert f"error {mark}: KeyError: (message withheld" in caplog.text
    assert "Somebody" not in words + caplog.text
    # The page stands below it, and the next press that works takes it off.
    press(test, "Approve")
    assert "That was not done" not in said(test)


def test_a_full_database_of_drafts_is_told_above_the_page(
    judged: Workspace, reviews: ModuleType, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_change(judged, reviews)
    test = page("decide.py", reviews.ONE, id=TASK)

    def full(*_: object) -> None:
        raise EnvironmentFault("the disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(StateDb, "save_draft", full)
        press(test, "Approve")
    assert "That was not done. Error " in said(test)
    assert "the disk is full." in said(test)


def test_a_run_is_started_by_those_who_may_and_in_their_name(
    judged: Workspace, reviews: ModuleType, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(starting.jobs, "start", lambda *_, person, **__: started.append(person))

    def start(who: str) -> AppTest:
        test = page("run.py", who)
        return press(test, next(one.label for one in test.button if one.label.startswith("Start")))

    refused = start(reviews.JUDGE)
    assert "may not run trials" in said(refused)
    assert started == []
    start(reviews.ONE)
    assert started == [reviews.ONE]
    start("")
    assert started == [reviews.ONE, ""]


def test_a_run_is_not_stopped_by_those_who_may_not_run(
    judged: Workspace, reviews: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(jobs, "stop", lambda _, id: stopped.append(id))

    def script(who: str) -> None:
        import streamlit as st

        from review_ui import failure, frame, identity, starting

        st.query_params["as"] = who
        frame.show(frame.notice(failure.failed().title or "-", failure.failed().words))
        st.button("Stop", on_click=starting.stop, args=("j1", identity.current()))

    for who, done in ((reviews.JUDGE, []), (reviews.ONE, ["j1"])):
        test = AppTest.from_function(script, kwargs={"who": who})
        press(test.run(), "Stop")
        assert stopped == done


def test_what_streamlit_logs_of_an_error_that_nobody_caught_quotes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    failure.withhold()
    failure.withhold()
    uncaught = logging.getLogger("streamlit.error_util")
    assert len([one for one in uncaught.filters if isinstance(one, failure.Withheld)]) == 1
    uncaught.addHandler(caplog.handler)
    try:
        raise KeyError("Mr. Somebody, born 1964")
    except KeyError as error:
        uncaught.error("Uncaught app execution", exc_info=error)
    finally:
        uncaught.removeHandler(caplog.handler)
    assert "Somebody" not in caplog.text
    assert "test_actions.py" in caplog.text
    assert "Uncaught app execution: error " in caplog.text


def test_a_verdict_by_hand_waits_for_a_reason_that_is_not_kept_as_it_stands(
    packages: ModuleType, tmp_path: Path, workspace: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FolderSource(tmp_path / "tasks")
    packages.write(tmp_path / "tasks")
    monkeypatch.setattr(frame, "source", lambda: source)
    batch = Batch.create(workspace / "runs", "b-1")
    with LocalExecutor(1) as executor:
        run_batch(batch, [Item(source.load(TASK), "noop", 1, tmp_path / "tasks" / TASK)], Settings(), executor)
    given: list[str] = []
    monkeypatch.setattr(by_hand, "give", lambda *_, **__: given.append("a verdict"))
    test = page("trial.py", "demo-reviewer-1", batch="b-1", task=TASK, agent="noop", run="1")
    test.toggle(key="disagree").set_value(True).run()
    (choice,) = [one for one in test.get("button_group") if str(one.key).startswith("verdict-")]
    mark = str(choice.key).removeprefix("verdict-")
    db = StateDb(Workspace(workspace).state_db)
    db.save_draft("demo-reviewer-1@verdicts", TASK, 0, mark, "What the other window says.")
    choice.set_value("Pass").run()
    found = test.session_state["autosave-memory"]
    key = f"draft-demo-reviewer-1@verdicts-{TASK}-0-{mark}"
    assert found.texts[key] == mark
    found.marks[f"{key} {mark}"].conflict = True
    press(test, "Save verdict")
    assert "Something is not saved as it stands." in said(test)
    assert given == []
    found.marks[f"{key} {mark}"].conflict = False
    monkeypatch.setattr(by_hand, "read_back", lambda _: None)
    press(test, "Save verdict")
    assert given == ["a verdict"]
