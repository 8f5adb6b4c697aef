"""What Undo takes back: one press is one step, also where it decided on several changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from review_ui.reviewing import changes, going
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
