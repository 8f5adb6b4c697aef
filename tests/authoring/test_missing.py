"""What a release still needs, told without files, keys or ids."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from authoring.missing import by_place, in_words
from tasks.package import load
from tests.tasks.packages import TINY_ID, tiny_files

Files = dict[str, bytes]


def without(prefix: str) -> Callable[[Files], Files]:
    return lambda files: {path: data for path, data in files.items() if not path.startswith(prefix)}


def cut(pattern: str, path: str = "task.toml") -> Callable[[Files], Files]:
    return lambda files: files | {path: re.sub(pattern.encode(), b"", files[path], flags=re.MULTILINE | re.DOTALL)}


def bare_plan(files: Files) -> Files:
    path = next(path for path in files if path.endswith("actions.jsonl"))
    lines = [line for line in files[path].splitlines() if b"write_file" not in line]
    written = path.replace("actions.jsonl", "reply.md")
    return {name: data for name, data in files.items() if name != written} | {path: b"\n".join(lines) + b"\n"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut(r"^practitioner = [^\n]*\n"), "Which clinician the agent acts for"),
        (cut(r"^now = [^\n]*\n"), "The date and time at which the case plays"),
        (cut(r"^authority = [^\n]*\n"), "Whether the agent orders"),
        (cut(r"^estimated_minutes = [^\n]*\n"), "How long a review takes"),
        (cut(r"^contamination_guid = [^\n]*\n"), "whether a model was trained on this task"),
        (without("CHANGELOG"), "What is new in version"),
        (without("solution/"), "There is no reference plan"),
        (bare_plan, "does not hand in the file"),
        (lambda files: files | {"instruction.md": b"# Short\n\nHe is on no anticoagulant now.\n"},
         "does not tell the agent which patient"),
        (lambda files: files | {"checkpoints.toml": files["checkpoints.toml"].replace(b'"critical"', b'"optional"')
                                .replace(b'"required"', b'"optional"')}, "No checkpoint is critical or required"),
    ],
)  # fmt: skip
def test_each_missing_part_is_told_in_plain_words(change: Callable[[Files], Files], words: str) -> None:
    missing = load(change(dict(tiny_files())), where=TINY_ID).missing_for_release()
    assert missing
    told = in_words(missing)
    assert any(words in one.part for one in told)
    for sentence, one in zip(missing, told, strict=True):
        assert one.part != sentence
        assert one.where
        # What has to be written word for word is quoted; nothing else names a file, a key or an id.
        told_of = re.sub(r"write “[^”]*”", "", f"{one.part}. {one.where}")
        assert not re.search(r"\.(toml|jsonl)|CHANGELOG|\[|_|solution/|/workspace|Patient/", told_of)


def test_a_draft_without_a_case_is_told_as_well() -> None:
    told = in_words(
        [
            "task.toml lacks [context] with patient, practitioner, now and authority",
            "task.toml lacks a [[deliverable]]",
            "chart/ is missing",
            "instruction.md lacks Practitioner/dr-1, which the agent is to know",
            "instruction.md lacks /workspace/output/note.md, which the agent is to know",
        ]
    )
    assert [one.part for one in told] == [
        "Patient, clinician, date and authority of the case are not stated",
        "What the agent has to hand in (a note, a reply) is not stated",
        "The patient's chart is missing",
        "The instruction does not tell the agent which clinician asks: write “Practitioner/dr-1”",
        "The instruction does not tell the agent what to hand in: write “/workspace/output/note.md”",
    ]


def test_a_sentence_that_is_not_known_stays_as_it_is() -> None:
    (one,) = in_words(["something.new lacks a part"])
    assert one.part == "something.new lacks a part"


def test_what_is_missing_is_listed_by_where_it_is_added() -> None:
    found = by_place(["chart/ is missing", "task.toml lacks estimated_minutes", "instruction.md lacks Patient/p-1, x"])
    assert [len(parts) for parts in found.values()] == [2, 1]
    assert "Proposals" in list(found)[1]
