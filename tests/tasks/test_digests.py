"""Digests: what voids a stored trial, what voids a stored verdict, and what voids neither."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from graders.truths import TRUTHS
from tasks.declarations import BUILT_IN_TRUTHS
from tasks.errors import PackageError
from tasks.folders import FolderFiles
from tasks.package import FolderSource, Task, load
from tests.tasks.packages import TINY_ID, tiny_files

Files = dict[str, bytes]


def changed(path: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        assert old in files[path]
        files[path] = files[path].replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("change", "agent", "grade"),
    [
        (changed("instruction.md", b"reply", b"answer"), True, False),
        (changed("chart/Observation.ndjson", b'"value":84', b'"value":84.0'), True, False),
        (changed("task.toml", b"08:30:00-05:00", b"08:31:00-05:00"), True, False),
        (changed("task.toml", b'"orders"', b'"pends"'), True, False),
        (changed("task.toml", b"turns = 40", b"turns = 41"), True, False),
        (changed("checkpoints.toml", b"Apixaban at", b"Apixaban in"), False, True),
        (changed("checkpoints.py", b"all three", b"all"), False, True),
        (changed("examples/cp2-tenfold.json", b"50", b"60"), False, True),
        (changed("task.toml", b"Anticoagulant after", b"Anticoagulation after"), False, False),
        (changed("task.toml", b"[limits]\n", b"# a comment\n[limits]\n"), False, False),
        (changed("CHANGELOG.md", b"First", b"1st"), False, False),
        (changed("solution/apixaban/reply.md", b"84 kg", b"84 kilograms"), False, False),
        (lambda files: files.pop("chart/Encounter.ndjson"), True, False),
    ],
)
def test_each_digest_changes_with_what_it_stands_for(change: Callable[[Files], None], agent: bool, grade: bool) -> None:
    before, files = load(tiny_files(), where=TINY_ID), tiny_files()
    change(files)
    after = load(files, where=TINY_ID)
    assert (before.agent_digest != after.agent_digest, before.grade_digest != after.grade_digest) == (agent, grade)


def test_the_same_instant_written_with_another_offset_is_another_task() -> None:
    # The agent reads the clock in its zone, and order windows count days in it.
    files = tiny_files()
    changed("task.toml", b"08:30:00-05:00", b"14:30:00+01:00")(files)
    assert load(files, where=TINY_ID).agent_digest != load(tiny_files(), where=TINY_ID).agent_digest


def test_a_file_renamed_changes_the_digest() -> None:
    files = tiny_files()
    files["examples/cp9.txt"] = b"one\n"
    first = load(files, where=TINY_ID).grade_digest
    files["examples/cp8.txt"] = files.pop("examples/cp9.txt")
    assert load(files, where=TINY_ID).grade_digest != first


def test_a_changed_chart_file_is_hashed_again(tiny_package: Path) -> None:
    source = FolderSource(tiny_package.parent)
    before = source.load(TINY_ID).agent_digest
    labs = tiny_package / "chart" / "Observation.ndjson"
    labs.write_bytes(labs.read_bytes().replace(b'"value":84', b'"value":48'))
    assert source.load(TINY_ID).agent_digest != before


def test_a_file_that_changes_under_a_loaded_task_is_refused(tiny_package: Path, tiny_task: Task) -> None:
    labs = tiny_package / "chart" / "Observation.ndjson"
    labs.write_bytes(labs.read_bytes() + b"\n")
    with pytest.raises(PackageError, match="changed while the task was being read"):
        _ = tiny_task.agent_digest
    labs.unlink()
    with pytest.raises(PackageError, match="cannot be read"):
        _ = tiny_task.agent_digest


def test_a_loaded_task_stays_what_it_was_while_its_author_goes_on_writing(tiny_package: Path, tiny_task: Task) -> None:
    before = load(tiny_files(), where=TINY_ID).grade_digest
    (tiny_package / "checkpoints.toml").write_text("# all new\n", "utf-8")
    (tiny_package / "CHANGELOG.md").unlink()
    assert tiny_task.grade_digest == before
    assert not tiny_task.is_draft


def test_a_file_swapped_for_a_link_after_listing_is_refused(tiny_package: Path, tmp_path: Path) -> None:
    files = FolderFiles(tiny_package)
    secret = tmp_path / "secret"
    secret.write_text("never", "utf-8")
    (tiny_package / "instruction.md").unlink()
    (tiny_package / "instruction.md").symlink_to(secret)
    with pytest.raises(PackageError):
        _ = files["instruction.md"]


def test_what_an_editor_leaves_behind_is_no_part_of_a_package(tiny_package: Path) -> None:
    (tiny_package / "__pycache__").mkdir()
    (tiny_package / "__pycache__" / "checkpoints.cpython-311.pyc").write_bytes(b"x")
    (tiny_package / ".DS_Store").write_bytes(b"x")
    assert set(FolderFiles(tiny_package)) == set(tiny_files())


def test_loading_reads_no_chart(tiny_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = FolderFiles.__getitem__

    def watched(files: FolderFiles, path: str) -> bytes:
        read.append(path)
        return real(files, path)

    monkeypatch.setattr(FolderFiles, "__getitem__", watched)
    task = FolderSource(tiny_package.parent).load(TINY_ID)
    assert not task.is_draft
    assert not [path for path in read if path.startswith("chart/")]


def test_a_task_survives_being_sent_to_another_process(tiny_task: Task) -> None:
    import pickle

    there = pickle.loads(pickle.dumps(tiny_task))
    assert (there.id, there.agent_digest) == (tiny_task.id, tiny_task.agent_digest)


def test_a_folder_without_permission_is_one_message(tiny_package: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tiny_package / "instruction.md").chmod(0)
    with pytest.raises(PackageError, match="cannot be read"):
        FolderSource(tiny_package.parent).load(TINY_ID)


def test_the_built_in_truths_that_a_declaration_may_name_are_those_that_graders_compute() -> None:
    assert set(BUILT_IN_TRUTHS) == set(TRUTHS)
