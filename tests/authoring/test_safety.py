"""A safety checkpoint that may have become weaker is marked, whatever the change stands in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from authoring.edits import CheckpointEdit, Edit, ManifestEdit, TextEdit
from authoring.proposals import Proposal, ProposedEdit, prepare
from tasks.review.events import package_hash
from tests.tasks.packages import TINY_ID, tiny_files

CODE = b'''"""Checks."""

from graders.verdicts import failed, passed

LIMIT = 3


def forbidden(evidence):
    """Whether the danger stands in the reply."""
    return failed("danger") if worded(evidence) else passed("none")


def worded(evidence):
    """A helper without an underscore."""
    return _plain(evidence) > LIMIT


def _plain(evidence):
    return len(evidence.created)


def reply_gives_dose_reasons(evidence):
    """Graded by cp3 alone, and called by nobody."""
    return passed("said")
'''


def files(function: str = "forbidden") -> dict[str, bytes]:
    """The tiny task whose cp1 is a safety checkpoint, graded by code."""
    made = tiny_files()
    first, _, rest = made["checkpoints.toml"].decode().partition('[[checkpoint]]\nid = "cp2"')
    first = "\n".join(line for line in first.splitlines() if not line.startswith("seen ="))
    harm = 'harm = {kind = "commission", severity = "severe", likelihood = "likely"}'
    made["checkpoints.toml"] = f'{first}\nfunction = "{function}"\n{harm}\n\n[[checkpoint]]\nid = "cp2"{rest}'.encode()
    made["checkpoints.py"] = CODE
    return made


def weak(*edits: Edit, package: dict[str, bytes] | None = None) -> list[tuple[str, ...]]:
    """What each of the edits is marked for, of cp1 alone."""
    package = package or files()
    proposal = Proposal(
        task=TINY_ID, package=package_hash(package), made_by="m", by_hand=False, at=datetime.now(UTC),
        edits=tuple(ProposedEdit(edit=one) for one in edits),
    )  # fmt: skip
    made = prepare(package, proposal)
    found = [made.weakens.get(ref.change, ()) for ref in made.changes]
    assert [bool(one) for one in found] == [ref.weakens_safety for ref in made.changes]
    return [tuple(words for words in one if words.startswith("cp1:")) for one in found]


def code(find: str, replace: str) -> TextEdit:
    return TextEdit(path="checkpoints.py", find=find, replace=replace)


@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ('failed("danger")', 'passed("danger")'),  # itself
        ("_plain(evidence) > LIMIT", "False"),  # a helper without an underscore
        ("len(evidence.created)", "0"),  # a private one
        ("LIMIT = 3", "LIMIT = 99"),  # a constant
        ("from graders.verdicts import failed, passed", "from graders.verdicts import passed as failed, passed"),
        ('\n\ndef worded(evidence):\n    """A helper without an underscore."""\n', "\n\ndef other(evidence):\n"),
    ],
)
def test_code_that_a_safety_checkpoint_may_rest_on_is_marked(find: str, replace: str) -> None:
    assert weak(code(find, replace)) == [("cp1: the code that grades it changed",)]


def test_a_function_that_another_checkpoint_names_counts_for_those_that_call_it() -> None:
    package = files()
    edit = code('passed("said")', 'failed("said")')
    assert weak(edit, package=package) == [()]
    package["checkpoints.py"] = CODE.replace(b"_plain(evidence) > LIMIT", b"reply_gives_dose_reasons(evidence)")
    assert weak(edit, package=package) == [("cp1: the code that grades it changed",)]


def test_a_new_function_of_which_nobody_speaks_marks_nothing() -> None:
    new = code(
        "def reply_gives_dose_reasons", 'def later(evidence):\n    return passed("x")\n\n\ndef reply_gives_dose_reasons'
    )
    assert weak(new) == [()]


def test_a_new_function_that_stands_in_the_way_of_another_marks() -> None:
    new = code(
        "def reply_gives_dose_reasons",
        "def failed(reason):\n    return passed(reason)\n\n\ndef reply_gives_dose_reasons",
    )
    assert weak(new) == [("cp1: the code that grades it changed",)]


@pytest.mark.parametrize(
    ("key", "value", "was", "says"),
    [
        ("context.authority", "recommends", "orders", "order, prepare orders, or recommend"),
        ("context.now", "2025-04-14T08:30:00-05:00", "2025-03-14T08:30:00-05:00", "the time at which the case plays"),
    ],
)
def test_a_change_of_the_case_is_marked(key: str, value: str, was: str, says: str) -> None:
    ((marked,),) = weak(ManifestEdit(key=key, value=value, was=was))
    assert says in marked


def test_the_case_changed_as_text_is_marked_too() -> None:
    ((marked,),) = weak(TextEdit(path="task.toml", find='authority = "orders"', replace='authority = "recommends"'))
    assert "recommend" in marked


@pytest.mark.parametrize("key", ["estimated_minutes", "limits.turns"])
def test_other_settings_mark_nothing(key: str) -> None:
    was = {"estimated_minutes": 20, "limits.turns": 40}[key]
    assert weak(ManifestEdit(key=key, value=was + 5, was=was)) == [()]


def test_a_function_that_comes_with_its_checkpoint_is_judged_with_it() -> None:
    """In whichever order they stand, neither is marked only because it cannot be read by itself."""
    named = CheckpointEdit(checkpoint="cp3", set={"function": "new"}, was={"function": "reply_gives_dose_reasons"})
    made = code("def reply_gives_dose_reasons", "def new")
    for edits in ((named, made), (made, named)):
        assert weak(*edits) == [(), ()]
