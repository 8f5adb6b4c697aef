"""Who is at the page and what they see: secrets that cannot be read, names in headers, plans before others' words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
import streamlit as st
from streamlit import config
from streamlit.testing.v1 import AppTest

from review_ui import autosave, identity
from review_ui.autosave import Notebook
from review_ui.reviewing import worklist
from review_ui.reviewing.sitting import Listed, unheard
from tasks.errors import SettingsError
from tasks.people import person
from tasks.statedb import StateDb
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
PHARMACIST = "demo-pharmacist"
Said = Callable[[AppTest], str]
Configure = Callable[..., Path]


@pytest.fixture
def secrets(tmp_path: Path) -> Iterator[Configure]:
    """Streamlit's secrets in this file; `named`: somebody has said that they are there."""
    before = config.get_option("secrets.files")
    file = tmp_path / "secrets.toml"

    def written(text: str | None, *, named: bool = False) -> Path:
        if text is not None:
            file.write_text(text, "utf-8")
        config.set_option("secrets.files", [str(file)], "here" if named else "<default>")
        st.secrets._reset()
        return file

    yield written
    config.set_option("secrets.files", before, "<default>")
    st.secrets._reset()


def opened(file: str, who: str, **parameters: str) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.run()
    if file:
        test.switch_page(f"review_ui/pages/{file}")
    test.query_params.update({"as": who, **parameters})
    test.run()
    assert not test.exception
    return test


def test_whether_one_signs_on_stands_in_the_secrets(secrets: Configure) -> None:
    secrets(None)
    assert not identity.single_sign_on()
    secrets("[other]\nkey = 1\n")
    assert not identity.single_sign_on()
    secrets('[auth]\nclient_id = "x"\n')
    assert identity.single_sign_on()


def test_secrets_that_cannot_be_read_open_no_page(secrets: Configure, said: Said) -> None:
    file = secrets('[auth]\ncookie_secret = "never shown\n')
    with pytest.raises(SettingsError, match="cannot be read"):
        identity.single_sign_on()
    for page in ("", "tasks.py", "run.py"):
        words = said(opened(page, "demo-reviewer-1"))
        assert "This page stopped." in words
        assert str(file) in words
        assert "never shown" not in words
        assert "Demo reviewer" not in words


def test_secrets_that_are_named_and_are_not_there_open_no_page(secrets: Configure) -> None:
    secrets(None, named=True)
    with pytest.raises(SettingsError, match="are not there"):
        identity.single_sign_on()


@pytest.fixture
def judged(reviews: ModuleType, packages: ModuleType, tmp_path: Path, workspace: Path) -> Workspace:
    """The first round is in; then somebody else is assigned."""
    packages.write(tmp_path / "suite")
    made: Workspace = reviews.opened(Workspace(workspace), TASK, tmp_path / "suite")
    reviews.judged(made, TASK, demo_reviewer_2=(reviews.finding("F1", "The dose is missing."),))
    reviews.desk(made, reviews.LEAD).assign(TASK, PHARMACIST, "pharmacist")
    return made


def test_who_is_assigned_after_a_round_reads_no_review_before_their_own_plan(
    judged: Workspace, reviews: ModuleType, said: Said
) -> None:
    assert "The dose is missing." in said(opened("review.py", reviews.ONE, id=TASK))
    for page in ("review.py", "propose.py", "proposals.py"):
        words = said(opened(page, PHARMACIST, id=TASK))
        assert "Your own plan comes first." in words, page
        assert "The dose is missing." not in words, page
    at = reviews.desk(judged, reviews.LEAD)
    assert "The dose is missing." in said(opened("signoff.py", reviews.ONE, id=TASK))
    for step in (lambda: None, lambda: at.dismiss(TASK, "F1", "Out of scope."), lambda: at.open_round(TASK)):
        step()
        words = said(opened("signoff.py", PHARMACIST, id=TASK))
        assert "The dose is missing." not in words
        assert "Out of scope." not in words
    assert "Out of scope." in said(opened("signoff.py", reviews.ONE, id=TASK))


def test_who_is_assigned_after_a_round_sees_no_checkpoint_before_their_own_plan(
    judged: Workspace, reviews: ModuleType, said: Said
) -> None:
    assert "Passes with" in said(opened("task.py", reviews.ONE, id=TASK, view="Checkpoints"))
    assert "Passes with" not in said(opened("task.py", PHARMACIST, id=TASK, view="Checkpoints"))
    # In the round that is theirs they solve it; then they are asked like everybody.
    at = reviews.desk(judged, reviews.LEAD)
    at.dismiss(TASK, "F1", "Out of scope.")
    at.open_round(TASK)
    assert "Your own plan comes first." not in said(opened("review.py", PHARMACIST, id=TASK))
    reviews.desk(judged, PHARMACIST).lock_plan(TASK, reviews.PLAN)
    assert "Passes with" in said(opened("task.py", PHARMACIST, id=TASK, view="Checkpoints"))


def test_who_is_assigned_before_the_first_round_sees_no_checkpoint_yet(
    reviews: ModuleType, packages: ModuleType, tmp_path: Path, workspace: Path, said: Said
) -> None:
    packages.write(tmp_path / "suite")
    lead = reviews.desk(Workspace(workspace), reviews.LEAD, tmp_path / "suite")
    assert "Passes with" in said(opened("task.py", reviews.ONE, id=TASK, view="Checkpoints"))
    lead.assign(TASK, reviews.ONE, "reviewer")
    assert "Passes with" not in said(opened("task.py", reviews.ONE, id=TASK, view="Checkpoints"))
    assert "Passes with" in said(opened("task.py", reviews.LEAD, id=TASK, view="Checkpoints"))
    with lead.store.at() as view:
        state = lead.snapshot(view, TASK).state
    assert [unheard(state, who) for who in (reviews.ONE, reviews.TWO, reviews.LEAD)] == [True, False, False]


def test_the_header_of_a_review_page_names_who_is_there(judged: Workspace, reviews: ModuleType, said: Said) -> None:
    for page in ("review.py", "propose.py", "decide.py", "signoff.py"):
        assert "Demo reviewer 1, not verified" in said(opened(page, reviews.ONE, id=TASK)), page


def test_reading_counts_as_work_and_is_noted_once_a_minute(
    judged: Workspace, reviews: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, str, int]] = []
    monkeypatch.setattr(StateDb, "active", lambda self, *who: noted.append(who))
    clock = [1_000_000_000.0]
    monkeypatch.setattr(autosave.time, "time", lambda: clock[0])
    book = Notebook(StateDb(judged.state_db), reviews.ONE, TASK, 1)
    book.alive()
    book.again().alive()
    assert noted == [(reviews.ONE, TASK, 1)]
    clock[0] += 60
    opened("signoff.py", reviews.ONE, id=TASK)
    assert noted == [(reviews.ONE, TASK, 1)] * 2
    clock[0] += 60
    opened("task.py", reviews.ONE, id=TASK)
    assert len(noted) == 2


def test_what_was_left_in_an_earlier_round_is_not_resumed(judged: Workspace, reviews: ModuleType) -> None:
    who = person(judged.settings.people, reviews.ONE)
    db = StateDb(judged.state_db)
    at = reviews.desk(judged, reviews.LEAD)
    at.dismiss(TASK, "F1", "Out of scope.")
    at.open_round(TASK)
    with at.store.at() as view:
        snapshot = at.snapshot(view, TASK)
    listed = Listed(TASK, "A task", "Nephrology", "", 0, "open", snapshot.events, snapshot.state)
    now = datetime.now(UTC)
    old = worklist.work(listed, who, db, {(TASK, 1): now})
    assert (old.drafted, old.verb) == (False, "Review")
    new = worklist.work(listed, who, db, {(TASK, 1): now, (TASK, 2): now})
    assert (new.drafted, new.verb) == (True, "Resume")
