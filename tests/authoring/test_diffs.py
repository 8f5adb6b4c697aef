"""A diff that is shown gives the committed bytes, whatever the text holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authoring.diffs import DiffError, FileDiff, apply_diff, check, diff, file_diff, only_white_space, words

NASTY = [
    "", "a", "a\n", "\n", "CR\r\n", "LS\u2028PS\u2029\n", "\x0b\x0c\x85\n", "\ttab\n", "nb\u00a0sp", "--- a\n",
    "+++ b\n", "@@ -1,1 +1,1 @@\n", "\\ No newline at end of file\n", "-x\n", "+x\n", " x\n",
]  # fmt: skip
texts = st.lists(st.sampled_from(NASTY) | st.text(max_size=12), max_size=12).map("".join)


@given(texts, texts)
def test_a_diff_applied_to_its_base_gives_the_new_bytes(old: str, new: str) -> None:
    made = file_diff("instruction.md", old.encode(), new.encode())
    assert apply_diff(made.text, old.encode()) == new.encode()


@given(texts, texts)
def test_word_marks_lose_nothing(old: str, new: str) -> None:
    pieces = words(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == new


def test_word_marks_follow_words_and_numbers() -> None:
    pieces = words("Start finerenone 20 mg daily.", "Start finerenone 10 mg daily.")
    assert [(p.kind, p.text) for p in pieces if p.kind != "same"] == [("removed", "20"), ("added", "10")]


@pytest.mark.parametrize(("old", "new"), [(None, b"new\n"), (b"old\n", None), (None, b"no end")])
def test_added_and_removed_files(old: bytes | None, new: bytes | None) -> None:
    made = file_diff("examples/a.md", old, new)
    assert ("/dev/null" in made.text) == (old is None or new is None)
    assert apply_diff(made.text, old or b"") == (new or b"")


def chart(count: int, changed: dict[int, str | None] | None = None) -> bytes:
    lines = []
    for n in range(count):
        value = (changed or {}).get(n, "same")
        if value is not None:
            body = {"resourceType": "Observation", "id": f"o-{n:06d}", "status": "final", "code": {"text": value}}
            lines.append(json.dumps(body))
    return ("\n".join(lines) + "\n").encode()


def test_a_chart_is_compared_resource_by_resource() -> None:
    old, new = chart(3000), chart(3001, {7: "changed", 8: None, 2999: "changed"})
    made = file_diff("chart/Observation.ndjson", old, new)
    assert made.counts == (3, 3)
    assert apply_diff(made.text, old) == new


def test_a_false_diff_is_never_shown() -> None:
    made = file_diff("instruction.md", b"one\ntwo\nthree\n", b"one\n2\nthree\n")
    for false in (made.text.replace("+2", "+22"), made.text.replace("-1,3", "-1,2"), made.text.replace("-two", "-tow")):
        with pytest.raises(DiffError):
            check(FileDiff("instruction.md", made.old, made.new, false))


def test_only_files_that_differ_are_listed() -> None:
    made = diff({"a.md": b"1\n", "b.md": b"2\n", "c.md": b"3\n"}, {"a.md": b"1\n", "b.md": b"22\n", "d.md": b"4\n"})
    assert [one.path for one in made] == ["b.md", "c.md", "d.md"]


def test_white_space_alone() -> None:
    assert only_white_space(b"a  b\n", b"a b\n\n")
    assert not only_white_space(b"a b\n", b"ab\n")
    assert not only_white_space(b'"a  b"', b'"a b"')
    assert not only_white_space(None, b"\n")


@given(st.lists(st.sampled_from("abcdefgh"), max_size=14), st.lists(st.sampled_from("abcdefgh"), max_size=14))
def test_long_texts_matched_at_unique_lines_give_the_new_bytes(a: list[str], b: list[str]) -> None:
    from authoring import diffs

    old, new = (["same\n"] + [f"{one}\n" for one in side] for side in (a, b))
    made = []
    for tag, i1, i2, j1, j2 in diffs._anchored(old, new):
        assert (tag == "equal") == (old[i1:i2] == new[j1:j2])
        made += old[i1:i2] if tag == "equal" else new[j1:j2]
    assert made == new
