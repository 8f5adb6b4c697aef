"""Decisions before they are submitted: what Undo takes back, what is approved in bulk, what is told to be left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from review_ui.reviewing import changes, decide_bar, going
from review_ui.reviewing.going import Going
from review_ui.reviewing.sitting import Sitting
from tasks.review.events import ChangeRef

ONE, TWO, THREE = (digit * 64 for digit in "abc")


class Book:
    """Drafts without a page."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def again(self) -> Book:
        return self

    def values(self) -> dict[str, str]:
        return dict(self.kept)

    def save(self, item: str, value: str) -> None:
        self.kept[item] = value


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Going:
    found = Going(at=ONE)
    monkeypatch.setattr(going, "_going", lambda at: found)
    return found


def ref(change: str) -> ChangeRef:
    return ChangeRef(change=change, unit="instruction.md", base="0" * 64, result=change, made_by_hand=False)


def test_what_was_approved_together_is_one_step_of_undo(here: Going) -> None:
    book = Book()
    at = cast(Sitting, SimpleNamespace(book=book))
    refs = [ref(ONE), ref(TWO), ref(THREE)]
    book.save(f"decision.{TWO}", changes.kept(refs[1], "approve"))
    here.undo.append(((TWO, ""),))
    here.summary = True
    going.decide_all(at, refs, "approve")
    assert all(changes.drafted(one, book.kept) for one in refs)
    going.undo(at)
    drafted: list[Any] = [changes.drafted(one, book.kept) for one in refs]
    assert [one.decision if one else "" for one in drafted] == ["", "approve", ""]
    assert here.summary
    going.undo(at)
    assert not any(changes.drafted(one, book.kept) for one in refs)
    assert (here.at, here.summary, here.undo) == (TWO, False, [])


def test_nothing_is_put_on_the_stack_where_nothing_changed(here: Going) -> None:
    book = Book()
    at = cast(Sitting, SimpleNamespace(book=book))
    going.decide_all(at, [ref(ONE)], "approve")
    going.decide_all(at, [ref(ONE)], "approve")
    assert len(here.undo) == 1


def test_the_white_space_of_code_and_declarations_is_meaning() -> None:
    old, new = b"if severe:\n    fail()\n    stop()\n", b"if severe:\n    fail()\nstop()\n"
    assert not changes.white_space_only({"checkpoints.py": old}, {"checkpoints.py": new})
    assert not changes.white_space_only({"checkpoints.toml": b"a = 1\nb = 2"}, {"checkpoints.toml": b"a = 1 b = 2"})
    assert not changes.white_space_only(
        {"instruction.md": b"a b", "checkpoints.py": old}, {"instruction.md": b"a  b", "checkpoints.py": new}
    )


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((3, 3, 0, 0), "All decided."),
        ((3, 2, 0, 0), "1 left for later."),
        ((3, 1, 1, 0), "1 decision needs a reason or the harm first."),
        ((3, 1, 2, 1), "2 decisions need a reason or the harm first."),
        (
            (3, 2, 0, 1),
            "1 decision was made on other words than stand there now and will not be submitted: decide anew.",
        ),
    ],
)
def test_what_is_left_before_a_submission_is_told(counts: tuple[int, int, int, int], words: str) -> None:
    assert decide_bar.summary_words(*counts) == words
