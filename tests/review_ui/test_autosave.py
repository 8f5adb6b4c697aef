"""What the server does with what the browser has sent: messages joined, repeated, out of date, forged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review_ui.autosave import FOLDER, LIMIT, Allowed, Memory, Notebook, settle_sheet, settle_text
from review_ui.markup import visible
from tasks.errors import EnvironmentFault
from tasks.statedb import Draft, StateDb

KEY = "draft-p-t-1-sheet.s"


@pytest.fixture
def book(tmp_path: Path) -> Notebook:
    return Notebook(StateDb(tmp_path / "state.db"), "p", "t", 1)


def memory() -> Memory:
    found = Memory(token="now")
    found.sheets[KEY] = {
        "verdict": Allowed(frozenset({"good", "bad", ""})),
        "many": Allowed(frozenset({"a", "b", ""}), several=True),
        "line": Allowed(None, start="as it was"),
    }
    found.areas[KEY] = ("why",)
    return found


def send(book: Notebook, found: Memory, seq: int, session: str = "now", **entries: Any) -> None:
    made = {
        item: entry if isinstance(entry, dict) else {"value": entry, "was": "", "old": False}
        for item, entry in entries.items()
    }
    message = {"session": session, "seq": seq, "entries": made}
    settle_sheet(book.again(), KEY, found, {KEY: SimpleNamespace(chosen=message, drafts=None)})


def kept(book: Notebook) -> dict[str, str]:
    return book.again().values()


def test_a_message_is_kept_once_however_often_a_run_finds_it(book: Notebook) -> None:
    found = memory()
    send(book, found, 5, verdict="good", many="a\nb")
    send(book, found, 5, verdict="good", many="a\nb")
    assert kept(book) == {"verdict": "good", "many": "a\nb"}
    assert found.changed == [("verdict", "good"), ("many", "a\nb")]
    # Another window chose since; the old message, found again at the next run, takes nothing back.
    book.again().save("verdict", "bad")
    send(book, found, 5, verdict="good")
    assert kept(book)["verdict"] == "bad"
    # A newer click does.
    send(book, found, 6, verdict="good")
    assert kept(book)["verdict"] == "good"


def test_after_a_restart_a_choice_stands_unless_something_newer_was_chosen_elsewhere(book: Notebook) -> None:
    book.again().save("verdict", "bad")
    send(book, memory(), 7, session="before", verdict={"value": "good", "was": "", "old": False})
    assert kept(book)["verdict"] == "bad"
    send(book, memory(), 8, session="before", verdict={"value": "good", "was": "bad", "old": False})
    assert kept(book)["verdict"] == "good"
    send(book, memory(), 9, verdict={"value": "bad", "was": "", "old": True})
    assert kept(book)["verdict"] == "good"


def test_words_of_another_window_are_never_overwritten_unasked(book: Notebook) -> None:
    found = memory()
    send(book, found, 1, line={"value": "5", "was": "as it was", "old": False})
    # Typed on before the first was confirmed: what it replaces is this window's own.
    send(book, found, 2, line={"value": "5 mg", "was": "as it was", "old": False})
    assert kept(book)["line"] == "5 mg"
    book.again().save("line", "10 mg")
    send(book, found, 3, line={"value": "5 mg daily", "was": "5 mg", "old": False})
    assert kept(book)["line"] == "10 mg"
    assert found.mark(KEY).conflicts == {"line"}
    send(book, found, 4, line={"value": "5 mg daily", "was": "10 mg", "old": False})
    assert kept(book)["line"] == "5 mg daily"
    assert found.mark(KEY).conflicts == set()


def said(book: Notebook, found: Memory, seq: int, text: str, base: int) -> None:
    settle_text(book.again(), "why", KEY, found, {"text": text, "seq": seq, "base": base})


def base_of(book: Notebook, found: Memory) -> int:
    """What a page that is drawn now tells the field of the saving that it shows."""
    present = book.again().all().get("why")
    return int(present.saved_at.timestamp() * 1_000_000) if present else 0


def test_what_is_typed_while_an_action_takes_the_field_empty_is_saved_and_is_no_other_windows(book: Notebook) -> None:
    found = memory()
    book.again().save("why", "from yesterday")
    book.again().save("line", "5 mg")
    read = base_of(book, found)
    book.again().drop("why", "line")
    said(book, found, 1, "from yesterday, and more", read)
    send(book, found, 1, line={"value": "5 mg daily", "was": "5 mg", "old": False})
    assert kept(book) == {"why": "from yesterday, and more", "line": "5 mg daily"}
    assert not found.mark(f"{KEY} why").conflict
    assert found.mark(KEY).conflicts == set()


def test_a_text_that_was_cleared_is_kept_empty_where_its_field_starts_with_words(book: Notebook) -> None:
    found = memory()
    found.mark(f"{KEY} why").start = "I have reviewed this."
    said(book, found, 1, "I have reviewed this.", 0)
    assert kept(book) == {}
    said(book, found, 2, "", 0)
    assert kept(book) == {"why": ""}
    said(book, found, 3, "I have reviewed this.", base_of(book, found))
    assert kept(book) == {"why": "I have reviewed this."}


def test_a_text_whose_drafts_cannot_be_read_is_said_to_be_unsaved_and_comes_again(
    book: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = memory()

    def busy(*_: object) -> dict[str, Draft]:
        raise EnvironmentFault("state.db is busy.")

    with monkeypatch.context() as broken:
        broken.setattr(StateDb, "drafts", busy)
        said(book, found, 1, "words", 0)
    assert found.unsettled(book, "why")
    said(book, found, 1, "words", 0)
    assert kept(book) == {"why": "words"}


def test_words_that_were_written_after_the_field_was_taken_empty_are_not_overwritten_by_another_window(
    book: Notebook,
) -> None:
    here, there = memory(), memory()
    said(book, here, 1, "one", 0)
    read = base_of(book, here)  # both windows show this first saving
    book.again().drop("why")
    said(book, here, 2, "two", 0)  # again the first saving since there is a row
    said(book, there, 1, "one, typed on", read)
    assert kept(book) == {"why": "two"}
    assert there.mark(f"{KEY} why").conflict


def test_what_a_window_could_not_save_is_kept_beside_until_it_is_settled_there(book: Notebook) -> None:
    book = replace(book, beside=lambda item: item == "why")
    here, there = memory(), memory()
    said(book, here, 1, "one", 0)
    said(book, there, 1, "two", 0)
    assert kept(book) == {"why": "one", "beside.why": "two"}
    said(book, there, 2, "two and more", 0)
    assert kept(book) == {"why": "one", "beside.why": "two and more"}
    # "Take the other": the field sends what stands here.
    said(book, there, 3, "one", base_of(book, there))
    assert kept(book) == {"why": "one"}


def test_what_a_sheet_does_not_offer_is_not_kept(book: Notebook) -> None:
    found = memory()
    send(book, found, 1, verdict="maybe", many="a\nc", composer="x", line="x" * 5_000)
    assert kept(book) == {}
    for forged in ({"seq": "x"}, {"seq": 3}, {"seq": 3, "entries": 4}, {"seq": 3, "entries": {"verdict": "good"}}, []):
        settle_sheet(book.again(), KEY, found, {KEY: SimpleNamespace(chosen=forged, drafts={"other": {}, "why": 3})})
    assert kept(book) == {}


def test_a_choice_that_cannot_be_saved_is_not_confirmed_and_comes_again(
    book: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = memory()

    def full(*_: object) -> Draft:
        raise EnvironmentFault("the disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(StateDb, "save_draft", full)
        send(book, found, 1, verdict="good")
    assert found.mark(KEY).seq == 0
    send(book, found, 1, verdict="good")
    assert kept(book) == {"verdict": "good"}
    assert found.mark(KEY).seq == 1


@settings(deadline=None, max_examples=60)
@given(text=st.text(st.characters(codec=None), max_size=50))
def test_any_text_is_kept_as_it_is_but_for_half_a_character(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    book = Notebook(StateDb(tmp_path_factory.mktemp("any") / "state.db"), "p", "t", 1)
    settle_text(book, "why", KEY, memory(), {"text": text, "seq": 1, "base": 0})
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert kept(book).get("why", "") == whole


def test_a_text_over_the_limit_is_refused_whole_and_never_cut(book: Notebook) -> None:
    found = memory()
    settle_text(book, "why", KEY, found, {"text": "x" * (LIMIT + 1), "seq": 1, "base": 0})
    assert kept(book) == {}
    assert found.mark(f"{KEY} why").seq == 0
    settle_text(book, "why", KEY, found, {"text": "x" * LIMIT, "seq": 2, "base": 0})
    assert len(kept(book)["why"]) == LIMIT


def test_a_field_tells_of_the_characters_that_the_pages_show_as_marks() -> None:
    """unseen.js and review_ui.markup name the same characters, one written for each language."""
    (written,) = re.findall(r"^const UNSEEN = /(\[.*\])/gu;$", (FOLDER / "unseen.js").read_text("utf-8"), re.MULTILINE)
    told = re.compile(re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", written))
    other = [hex(code) for code in range(0x110000) if bool(told.match(chr(code))) != (visible(chr(code)) != chr(code))]
    assert other == []


def test_a_notebook_reads_its_drafts_once_and_knows_what_it_changed_itself(book: Notebook) -> None:
    assert book.values() == {}
    book.save("a", "1")
    book.db.save_draft("p", "t", 1, "b", "elsewhere")
    assert book.values() == {"a": "1"}
    assert book.again().values() == {"a": "1", "b": "elsewhere"}
    book.drop("a")
    assert book.values() == {"b": "elsewhere"}


def test_an_action_waits_for_a_text_that_is_not_kept_as_it_stands(book: Notebook) -> None:
    found = memory()

    def text(seq: int, **message: Any) -> bool:
        settle_text(book.again(), "why", KEY, found, {"seq": seq, "base": 0, **message})
        return found.unsettled(book, "why")

    assert not text(1, text="short")
    assert text(2, over=5)
    assert not found.unsettled(book, "other")
    assert not text(3, text="short again")
    book.again().save("why", "from another window")
    assert text(4, text="mine")
    # Taking the other's words settles it, as keeping one's own does.
    assert not text(5, text="from another window")
    book.again().save("line", "from another window")
    send(book, found, 1, line={"value": "5", "was": "something else", "old": False})
    assert found.unsettled(book, "line")
