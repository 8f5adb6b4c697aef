"""Every kind of broken package gives exactly one message, with file and place."""

# ruff: noqa: E501 (a table with a row a mistake)

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.errors import PackageError
from tasks.package import FolderSource, faults, load
from tests.tasks.packages import TINY_ID, tiny_files

Files = dict[str, bytes]
Break = Callable[[Files], None]

NOTE = "chart/DocumentReference.ndjson"
LABS = "chart/Observation.ndjson"
ACTIONS = "solution/apixaban/actions.jsonl"


def replaced(path: str, old: str, new: str) -> Break:
    def change(files: Files) -> None:
        before = files[path].decode()
        assert before.count(old) >= 1, f"{old!r} is not in {path}"
        files[path] = before.replace(old, new, 1).encode()

    return change


def written(path: str, data: bytes | str) -> Break:
    return lambda files: files.__setitem__(path, data.encode() if isinstance(data, str) else data)


def removed(path: str) -> Break:
    return lambda files: files.pop(path) and None


def appended(path: str, text: str) -> Break:
    return lambda files: files.__setitem__(path, files[path] + text.encode())


def resource(path: str, line: int, **changed: object) -> Break:
    """One resource of the chart with elements set, or removed where None."""

    def change(files: Files) -> None:
        lines = files[path].decode().split("\n")
        body = json.loads(lines[line - 1]) | changed
        body = {key: value for key, value in body.items() if value is not None}
        lines[line - 1] = json.dumps(body, separators=(",", ":"))
        files[path] = "\n".join(lines).encode()

    return change


def swapped(path: str) -> Break:
    def change(files: Files) -> None:
        lines = files[path].decode().rstrip("\n").split("\n")
        files[path] = ("\n".join([lines[1], lines[0], *lines[2:]]) + "\n").encode()

    return change


def doubled(path: str) -> Break:
    def change(files: Files) -> None:
        lines = files[path].decode().rstrip("\n").split("\n")
        files[path] = ("\n".join([lines[0], *lines]) + "\n").encode()

    return change


#: What is broken, how, where the one message stands, and words that it says.
BROKEN: list[tuple[str, Break, str, str]] = [
    # files
    ("no task.toml", removed("task.toml"), "task.toml", "the file is missing"),
    ("no instruction", removed("instruction.md"), "instruction.md", "the file is missing"),
    ("unknown file", written("notes.txt", "x"), "notes.txt", "does not belong"),
    ("unknown folder", written("data/x.csv", "x"), "data/x.csv", "does not belong"),
    ("unknown file in chart", written("chart/README.md", "x"), "chart/README.md", "does not belong"),
    ("nested solution file", written("solution/apixaban/a/b.md", "x"), "solution/apixaban/a/b.md", "does not belong"),
    ("python in examples", written("examples/x.py", "x"), "examples/x.py", "does not belong"),
    ("plan with a bad name", written("solution/Plan B/x.md", "x"), "solution/Plan B/x.md", "no name for a plan"),
    ("empty instruction", written("instruction.md", ""), "instruction.md", "empty"),
    ("blank task.toml", written("task.toml", " \n\n"), "task.toml", "empty"),
    ("empty chart file", written(LABS, ""), LABS, "empty"),
    ("empty checkpoints.py", written("checkpoints.py", ""), "checkpoints.py", "empty"),
    ("empty checkpoints.toml", written("checkpoints.toml", ""), "checkpoints.toml", "empty"),
    ("empty actions", written(ACTIONS, ""), ACTIONS, "empty"),
    ("empty deliverable", written("solution/apixaban/reply.md", ""), "solution/apixaban/reply.md", "empty"),
    ("empty example", written("examples/cp2-brand.json", ""), "examples/cp2-brand.json", "empty"),
    ("BOM in the instruction", written("instruction.md", b"\xef\xbb\xbf# x on no anticoagulant now"), "instruction.md:1", "byte order"),
    ("BOM in the chart", lambda f: f.__setitem__(LABS, b"\xef\xbb\xbf" + f[LABS]), f"{LABS}:1", "byte order mark"),
    ("CRLF in the chart", lambda f: f.__setitem__(LABS, f[LABS].replace(b"\n", b"\r\n")), f"{LABS}:1", "CRLF"),
    ("CRLF in task.toml", lambda f: f.__setitem__("task.toml", f["task.toml"].replace(b"\n", b"\r\n")), "task.toml:1", "CRLF"),
    ("Latin-1", written("instruction.md", b"# Fran\xe7ois"), "instruction.md:1", "UTF-8"),
    ("NUL", written("CHANGELOG.md", "## 1\n\x00"), "CHANGELOG.md:2", "NUL"),
    # task.toml
    ("bad TOML", replaced("task.toml", "\nversion = 1", "\nversion = = 1"), "task.toml:3", "not valid TOML"),
    ("key twice", appended("task.toml", 'generator = "a"\ngenerator = "b"\n'), "task.toml:28", "overwrite"),
    ("unknown key", replaced("task.toml", "workflow =", "workflwo ="), "task.toml:6", "Did you mean 'workflow'"),
    ("unknown key in a table", replaced("task.toml", "turns = 40", "turn = 40"), "task.toml:21", "Did you mean 'turns'"),
    ("unknown table", appended("task.toml", "[author]\n"), "task.toml:27", "unknown key"),
    ("missing key", replaced("task.toml", 'title = "Anticoagulant after warfarin was given up"\n', ""), "task.toml", "title: the key is missing"),
    ("bad id", replaced("task.toml", f'id = "{TINY_ID}"', 'id = "Tiny Task"'), "task.toml:2", "id:"),
    ("id is not the folder", replaced("task.toml", f'id = "{TINY_ID}"', 'id = "tiny-other"'), "task.toml:2", "folder's name"),
    ("wrong schema", replaced("task.toml", "schema_version = 1", "schema_version = 2"), "task.toml:1", "not one of 1"),
    ("version as text", replaced("task.toml", "\nversion = 1\n", '\nversion = "1"\n'), "task.toml:3", "integer"),
    ("wrong specialty", replaced("task.toml", '"Cardiology"', '"Cardiolgy"'), "task.toml:5", "Did you mean 'Cardiology'"),
    ("wrong workflow", replaced("task.toml", '"Medication Prescribing"', '"Prescribing"'), "task.toml:6", "not one of"),
    ("wrong data class", replaced("task.toml", '"open"', '"secret"'), "task.toml:7", "not one of"),
    ("wrong split", replaced("task.toml", '"public"', '"test"'), "task.toml:8", "not one of"),
    ("wrong authority", replaced("task.toml", '"orders"', '"order"'), "task.toml:15", "Did you mean 'orders'"),
    ("naive date", replaced("task.toml", "08:30:00-05:00", "08:30:00"), "task.toml:14", "no offset"),
    ("bad date", replaced("task.toml", "2025-03-14T", "2025-02-30T"), "task.toml:14", "not valid TOML"),
    ("date without time", replaced("task.toml", "2025-03-14T08:30:00-05:00", "2025-03-14"), "task.toml:14", "offset"),
    ("date as text", replaced("task.toml", "2025-03-14T08:30:00-05:00", '"2025-03-14T08:30:00-05:00"'), "task.toml:14", "without quotes"),
    ("patient is no reference", replaced("task.toml", '"Patient/p-7001"', '"p-7001"'), "task.toml:12", "Patient/<id>"),
    ("deliverable leaves", replaced("task.toml", "/workspace/output/reply.md", "/workspace/output/../reply.md"), "task.toml:18", "inside the workspace"),
    ("zero turns", replaced("task.toml", "turns = 40", "turns = 0"), "task.toml:21", "greater than"),
    ("deliverable twice", appended("task.toml", '[[deliverable]]\npath = "/workspace/output/reply.md"\n'), "task.toml:28", "twice"),
    ("patient is not there", replaced("task.toml", "Patient/p-7001", "Patient/p-7002"), "task.toml:12", "not in the chart"),
    ("practitioner is not there", replaced("task.toml", "Practitioner/d-20", "Practitioner/d-21"), "task.toml:13", "not in the chart"),
    # chart
    ("a line is not JSON", replaced(NOTE, '"status":', '"status"'), f"{NOTE}:1", "not JSON"),
    ("a blank line", replaced(LABS, "\n", "\n\n"), f"{LABS}:2", "blank"),
    ("a JSON list", written("chart/Encounter.ndjson", "[]\n"), "chart/Encounter.ndjson:1", "object"),
    ("key twice in a resource", replaced(LABS, '"status":"final"', '"status":"final","status":"final"'), f"{LABS}:1", "twice"),
    ("no id", resource("chart/Condition.ndjson", 2, id=None), "chart/Condition.ndjson:2", "id"),
    ("another type", resource("chart/Condition.ndjson", 2, resourceType="Basic"), "chart/Condition.ndjson:2", "Basic"),
    ("no FHIR type", written("chart/Labs.ndjson", "{}\n"), "chart/Labs.ndjson", "no R4 resource type"),
    ("out of order", swapped(LABS), f"{LABS}:2", "sort"),
    ("duplicate id", doubled(LABS), f"{LABS}:2", "stands twice"),
    ("unknown element", resource(LABS, 2, colour="red"), f"{LABS}:2", "colour"),
    ("bad code", resource(LABS, 2, status="done"), f"{LABS}:2", "status"),
    ("wrong type", resource(LABS, 2, effectiveDateTime=20250303), f"{LABS}:2", "effectiveDateTime"),
    ("bad date in a resource", resource(LABS, 2, effectiveDateTime="2025-13-03"), f"{LABS}:2", "effectiveDateTime"),
    ("missing element", resource(LABS, 2, code=None), f"{LABS}:2", "required"),
    ("dangling reference", resource(LABS, 2, encounter={"reference": "Encounter/e-9"}), f"{LABS}:2", "Encounter/e-9"),
    ("urn reference", resource(LABS, 2, encounter={"reference": "urn:uuid:1-2"}), f"{LABS}:2", "out of the chart"),
    ("odd reference", resource(LABS, 2, encounter={"reference": "e-1"}), f"{LABS}:2", "Type/id"),
    ("contained is not there", resource(LABS, 2, encounter={"reference": "#x"}), f"{LABS}:2", "contained"),
    ("5 MB note", resource(NOTE, 1, description="w" * 5_000_000), f"{NOTE}:1", "4,000,000"),
    # checkpoints.toml
    ("bad TOML there", replaced("checkpoints.toml", "[[checkpoint]]", "[checkpoint]]"), "checkpoints.toml:1", "not valid TOML"),
    ("no checkpoint", written("checkpoints.toml", "# later\n"), "checkpoints.toml", "no [[checkpoint]]"),
    ("unknown checkpoint key", replaced("checkpoints.toml", 'criticality = "required"', 'critical = "required"'), "checkpoints.toml:5", "Did you mean 'criticality'"),
    ("unknown order key", replaced("checkpoints.toml", 'dose = "5 mg"', 'dosage = "5 mg"'), "checkpoints.toml:29", "order.accept[1].dosage"),
    ("duplicate checkpoint", replaced("checkpoints.toml", 'id = "cp3"', 'id = "cp1"'), "checkpoints.toml:32", "twice"),
    ("bad checkpoint id", replaced("checkpoints.toml", 'id = "cp3"', 'id = "third"'), "checkpoints.toml:32", "form"),
    ("no such function", replaced("checkpoints.toml", 'function = "reply_gives', 'function = "reply_give'), "checkpoints.toml:39", "has no function"),
    ("two arguments", replaced("checkpoints.py", "reasons(evidence)", "reasons(evidence, more)"), "checkpoints.toml:39", "one argument"),
    ("grader without its key", replaced("checkpoints.toml", 'function = "reply_gives_dose_reasons"\n', ""), "checkpoints.toml:31", "needs one of"),
    ("key of another grader", replaced("checkpoints.toml", "function =", 'file = "/workspace/output/reply.md"\nfunction ='), "checkpoints.toml:31", "no use for file"),
    ("capability without kind", replaced("checkpoints.toml", '"documentation"', '"clinical_reasoning"'), "checkpoints.toml:31", "needs a kind"),
    ("no such example", replaced("checkpoints.toml", "cp2-brand.json", "cp2-brnd.json"), "checkpoints.toml:23", "cp2-brand.json"),
    ("rests on no resource", replaced("checkpoints.toml", '"Observation/o-weight", \'inst', '"Observation/o-height", \'inst'), "checkpoints.toml:19", "Observation/o-height is not in the chart"),
    ("rests on words not said", replaced("checkpoints.toml", "on no anticoagulant now", "on warfarin now"), "checkpoints.toml:19", "does not say"),
    ("rests on bad grammar", replaced("checkpoints.toml", "'instruction#\"on no anticoagulant now\"'", '"the note"'), "checkpoints.toml:19", "Type/id"),
    ("seen beside rests_on", replaced("checkpoints.toml", 'seen = ["Observation/o-creatinine"', 'seen = ["Observation/o-weight"'), "checkpoints.toml:9", "not in rests_on"),
    # checkpoints.py
    ("not Python", written("checkpoints.py", "def f(:\n"), "checkpoints.py:1", "not valid Python"),
    ("Python too deep", written("checkpoints.py", "x = " + "(" * 500 + ")" * 500), "checkpoints.py:1", "not valid Python"),
    # examples
    ("example is not JSON", written("examples/cp2-brand.json", "{"), "examples/cp2-brand.json:1", "not valid JSON"),
    ("example is no order", written("examples/cp2-brand.json", '{"resourceType":"Basic"}'), "examples/cp2-brand.json", "not an order"),
    ("example is not R4", replaced("examples/cp2-brand.json", '"active"', '"running"'), "examples/cp2-brand.json", "not valid R4"),
    # solution
    ("no actions", removed(ACTIONS), "solution/apixaban", "no actions.jsonl"),
    ("action is not JSON", replaced(ACTIONS, '{"tool"', '{"tool'), f"{ACTIONS}:1", "not valid JSON"),
    ("action is a list", replaced(ACTIONS, '{"tool"', '[]\n{"tool"'), f"{ACTIONS}:1", "not a JSON object"),
    ("blank action", replaced(ACTIONS, '{"tool"', '\n{"tool"'), f"{ACTIONS}:1", "blank"),
    ("no such tool", replaced(ACTIONS, "fhir_observation_search_labs", "fhir_observation_search_lab"), f"{ACTIONS}:2", "Did you mean 'fhir_observation_search_labs'"),
    ("unknown action key", replaced(ACTIONS, '"save_as"', '"saveas"'), f"{ACTIONS}:6", ""),
    ("placeholder of nothing", replaced(ACTIONS, "{{laboratory.reference}}", "{{labs.reference}}"), f"{ACTIONS}:7", "no earlier line saves"),
    ("odd placeholder", replaced(ACTIONS, "{{laboratory.reference}}", "{{laboratory}}"), f"{ACTIONS}:7", "{{name.reference}}"),
    ("save_as of a search", replaced(ACTIONS, '"p-7001"}}', '"p-7001"}, "save_as": "x"}'), f"{ACTIONS}:1", "creates nothing"),
    ("write_file leaves", replaced(ACTIONS, "/workspace/output/reply.md", "/etc/reply.md"), f"{ACTIONS}:8", "inside the workspace"),
    ("content inline", replaced(ACTIONS, '"content_file": "reply.md"', '"content_file": "reply.md", "content": "x"'), f"{ACTIONS}:8", "content does not belong"),
    ("unused deliverable", written("solution/apixaban/old.md", "x"), "solution/apixaban/old.md", "no write_file"),
    # reviews
    ("events are not JSON", written("reviews/events.ndjson", "{}\n{\n"), "reviews/events.ndjson:2", "not valid JSON"),
    ("proposal is not JSON", written("reviews/proposals/x.json", "x"), "reviews/proposals/x.json:1", "not valid JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "place", "words"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_one_mistake_gives_one_message_with_its_place(broken: Break, place: str, words: str) -> None:
    files = tiny_files()
    broken(files)
    found = faults(files, where=TINY_ID)
    assert [fault.place for fault in found] == [f"{TINY_ID}/{place}"], found
    assert words in found[0].message
    assert "\n" not in found[0].message


def refusal(files: Files) -> tuple[str, str] | None:
    """Where and why loading is refused; None where it is not."""
    try:
        load(files, where=TINY_ID)
    except PackageError as error:
        return error.where, error.what
    return None


@pytest.mark.parametrize("broken", [row[1] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_loading_stops_at_the_fault_or_leaves_it_to_the_chart(broken: Break) -> None:
    files = tiny_files()
    broken(files)
    told = [tuple(fault) for fault in faults(files, where=TINY_ID)]
    # What needs the chart or the element table to be seen is seen by `faults` alone.
    by_chart = re.compile(r"/chart/[A-Z][A-Za-z]+\.ndjson|not in the chart|not an order|not valid R4")
    assert refusal(files) == next((fault for fault in told if not by_chart.search(": ".join(fault))), None)


def test_chart_text_never_reaches_a_message() -> None:
    files = tiny_files()
    files[LABS] = files[LABS].replace(b'"final"', b'"Ostrander, secret"')
    files[NOTE] = files[NOTE].replace(b'"current"', b'"current" Ostrander')
    assert not [fault for fault in faults(files, where=TINY_ID) if "Ostrander" in fault.message]


def test_many_faults_of_one_file_are_counted_after_twenty() -> None:
    files = tiny_files()
    line = '{{"resourceType":"Basic","id":"b-{:03}","code":{{"text":"x"}},"colour":1}}'
    files["chart/Basic.ndjson"] = "".join(line.format(n) + "\n" for n in range(50)).encode()
    found = faults(files, where=TINY_ID)
    assert len(found) == 21
    assert found[-1].message == "30 more faults in this file"


def test_a_draft_may_lack_checkpoints_solution_and_clock_and_a_release_may_not() -> None:
    files = {
        path: data
        for path, data in tiny_files().items()
        if not path.startswith(("checkpoints", "solution", "examples", "CHANGELOG"))
    }
    files["task.toml"] = files["task.toml"].replace(b"now = 2025-03-14T08:30:00-05:00\n", b"")
    assert faults(files, where=TINY_ID) == []
    task = load(files, where=TINY_ID)
    assert task.is_draft
    missing = task.missing_for_release()
    assert [fault.message for fault in faults(files, where=TINY_ID, release=True)] == missing
    assert sorted(sentence.split(" ")[0] for sentence in missing) == [
        "CHANGELOG.md", "checkpoints.toml", "solution/", "task.toml",
    ]  # fmt: skip


def test_a_release_needs_an_instruction_that_names_whom_it_is_about_and_where_to_write() -> None:
    files = tiny_files()
    files["instruction.md"] = b"# Short\n\nHe is on no anticoagulant now.\n"
    assert faults(files, where=TINY_ID) == []
    found = faults(files, where=TINY_ID, release=True)
    assert [fault.place for fault in found] == [f"{TINY_ID}/instruction.md"] * 3
    assert "/workspace/output/reply.md" in found[-1].message


@pytest.mark.parametrize("target", ["instruction.md", "chart"])
def test_a_symbolic_link_is_refused(tiny_package: Path, tmp_path: Path, target: str) -> None:
    (tiny_package / target).rename(tmp_path / "elsewhere")
    (tiny_package / target).symlink_to(tmp_path / "elsewhere")
    found = faults(FolderSource(tiny_package.parent).files(TINY_ID), where=TINY_ID)
    assert found[0].place == f"{TINY_ID}/{target}"
    assert "symbolic link" in found[0].message


def test_a_pipe_is_refused_and_never_opened(tiny_package: Path) -> None:
    os.mkfifo(tiny_package / "pipe")
    found = faults(FolderSource(tiny_package.parent).files(TINY_ID), where=TINY_ID)
    assert [(fault.place, fault.message) for fault in found] == [
        (f"{TINY_ID}/pipe", "not a regular file; remove it"),
    ]
