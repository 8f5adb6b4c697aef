"""write_file stays inside the trial's workspace, whatever path it is given."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.tools import files
from tests.runtime.conftest import Caller


def write(call: Caller, path: str, content: str = "text", mode: str = "w") -> dict[str, object]:
    answer: dict[str, object] = call("write_file", {"file_path": path, "content": content, "mode": mode})
    return answer


@pytest.mark.parametrize(
    "path", ["/workspace/output/note.md", "output/note.md", "note.md", "./note.md", "workspace/output/note.md"]
)
def test_the_ways_to_name_a_deliverable_are_one_file(call: Caller, output: Path, path: str) -> None:
    assert write(call, path, "Ärztlicher Brief\n") == {
        "file_path": "/workspace/output/note.md",
        "mode": "w",
        "bytes": 18,
    }
    assert (output / "note.md").read_text("utf-8") == "Ärztlicher Brief\n"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/x", "../x", "output/../../x", "a/../../x", "/workspace/output/../x", "/workspace/x", "/workspace/output",
        "/workspace/output/", "/", "..", ".", "output/", "a/..", "~/x", "/workspace/outputs/x", "//etc/x", "x\x00y",
        "..\\x", "C:\\x", "a\nb", "/proc/self/environ", "/workspace/output/./../../etc/x",
    ],
)  # fmt: skip
def test_a_path_that_leaves_the_workspace_is_refused(call: Caller, output: Path, tmp_path: Path, path: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    answer = write(call, path)
    assert answer["fields"][0]["field"] == "file_path"  # type: ignore[index]
    assert call.calls[0].error
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_in_the_way_is_refused_and_its_target_untouched(call: Caller, output: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.md").write_text("kept")
    output.mkdir(parents=True)
    (output / "folder").symlink_to(outside)
    (output / "kept.md").symlink_to(outside / "kept.md")
    for path, mode in (("folder/x.md", "w"), ("kept.md", "w"), ("kept.md", "a"), ("folder/kept.md", "a")):
        assert "link" in str(write(call, path, "changed", mode)["error"])
    assert [item.name for item in outside.iterdir()] == ["kept.md"]
    assert (outside / "kept.md").read_text() == "kept"


def test_a_workspace_that_was_swapped_for_a_link_is_refused(call: Caller, output: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    output.parent.mkdir(parents=True)
    output.symlink_to(outside)
    assert "link" in str(write(call, "x.md")["error"])
    assert list(outside.iterdir()) == []


def test_a_hundred_megabytes_are_refused(call: Caller, output: Path) -> None:
    answer = write(call, "big.txt", "x" * 100_000_000)
    assert answer["fields"][0]["field"] == "content"  # type: ignore[index]
    assert not output.exists() or list(output.iterdir()) == []


def test_appending_cannot_pass_the_limit_either(call: Caller, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    assert write(call, "a", "12345678")["bytes"] == 8
    assert "error" in write(call, "a", "123", "a")
    assert write(call, "a", "12", "a")["bytes"] == 10
    assert (output / "a").read_text() == "1234567812"


def test_many_files_cannot_fill_the_disk(call: Caller, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_WORKSPACE_BYTES", 10)
    write(call, "a", "123456")
    assert "error" in write(call, "b", "123456")
    assert write(call, "a", "1234567890")["bytes"] == 10
    monkeypatch.setattr(files, "MAX_WORKSPACE_BYTES", 10_000)
    monkeypatch.setattr(files, "MAX_FILES", 1)
    assert "error" in write(call, "b", "")


def test_w_replaces_and_a_appends(call: Caller, output: Path) -> None:
    write(call, "n.md", "one\n")
    write(call, "n.md", "two\n", "a")
    assert (output / "n.md").read_text() == "one\ntwo\n"
    write(call, "n.md", "three\n")
    assert (output / "n.md").read_text() == "three\n"
    write(call, "new/deep/n.md", "x", "a")
    assert (output / "new" / "deep" / "n.md").read_text() == "x"


def test_half_a_surrogate_pair_is_refused(call: Caller) -> None:
    text = json.dumps({"file_path": "x", "content": "a"})[:-2] + '\\ud800"}'
    assert "error" in call("write_file", text)


def test_a_folder_in_the_place_of_the_file_is_refused(call: Caller, output: Path) -> None:
    write(call, "a/b", "x")
    assert "error" in write(call, "a", "x")
    assert "error" in write(call, "a/b/c", "x")
    assert "error" in write(call, "n" * 300, "x")
    assert not list(output.rglob("*.part"))


def test_a_pipe_in_the_place_of_the_file_does_not_hang(call: Caller, output: Path) -> None:
    output.mkdir(parents=True)
    os.mkfifo(output / "pipe")
    write(call, "pipe", "x")
    assert (output / "pipe").read_text() == "x"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.lists(
        st.sampled_from(["..", ".", "/", "output", "workspace", "a", "~", " ", "etc", "\\", "%2e%2e", "\u2025"]),
        min_size=1,
        max_size=7,
    ).map("/".join)
)
def test_no_path_at_all_writes_outside(call: Caller, output: Path, tmp_path: Path, path: str) -> None:
    write(call, path)
    assert {item.name for item in tmp_path.iterdir()} <= {"workspace"}
    if (tmp_path / "workspace").exists():
        assert {item.name for item in (tmp_path / "workspace").iterdir()} <= {"output"}
