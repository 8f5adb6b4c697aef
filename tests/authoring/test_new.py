"""A draft task from one patient's record: theirs, what it refers to, nobody else's, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from authoring import draft as drafting
from authoring.__main__ import app
from authoring.draft import Draft, new_draft, select
from tasks import package
from tasks.errors import UsageError
from tasks.fhir.chart import Chart
from tasks.fhir.resources import Resource, references

Body = dict[str, Any]


def made(kind: str, ident: str, **more: Any) -> Body:
    return {"resourceType": kind, "id": ident, **more}


def to(reference: str, **more: Any) -> Body:
    return {"reference": reference, **more}


def observation(ident: str, subject: str, **more: Any) -> Body:
    return made("Observation", ident, status="final", code={"text": "x"}, subject=to(subject), **more)


RECORD: list[Body] = [
    made("Patient", "ana", gender="female", link=[{"other": to("Patient/ben"), "type": "seealso"}]),
    made("Patient", "ben", gender="male", generalPractitioner=[to("Practitioner/other-doctor")]),
    observation(
        "a1", "Patient/ana", encounter=to("Encounter/e"), performer=[to("Practitioner/doctor", display="Dr Haddad")]
    ),
    observation("a2", "Patient/ana", performer=[to("Practitioner/gone", display="Dr Gone"), to("Organization/gone")]),
    observation("a3", "Patient/ana", focus=[to("Patient/ben")], hasMember=[to("Observation/b1")]),
    observation("b1", "Patient/ben", performer=[to("Patient/ana")]),
    made("Encounter", "e", status="finished", subject=to("Patient/ana"), location=[{"location": to("Location/l")}])
    | {"class": {"code": "AMB"}},
    made(
        "DocumentReference",
        "note",
        status="current",
        subject=to("Patient/ana"),
        content=[{"attachment": {"contentType": "text/plain", "url": "Binary/text"}}],
    ),
    made("Binary", "text", contentType="text/plain", data="SGVsbG8="),
    made("Binary", "not-hers", contentType="text/plain", data="SGVsbG8="),
    made("Location", "l", managingOrganization=to("Organization/o")),
    made("Organization", "o", name="Clinic"),
    made("Organization", "unused", name="Elsewhere"),
    made("Practitioner", "doctor"),
    made("Practitioner", "other-doctor"),
    made(
        "Group", "g", type="person", actual=True, member=[{"entity": to("Patient/ana")}, {"entity": to("Patient/ben")}]
    ),
    made(
        "Provenance",
        "prov",
        target=[to("Observation/a1")],
        recorded="2024-01-01T00:00:00Z",
        agent=[{"who": to("Practitioner/doctor")}],
    ),
    made(
        "Provenance",
        "both",
        target=[to("Observation/a1"), to("Observation/b1")],
        recorded="2024-01-01T00:00:00Z",
        agent=[{"who": to("Practitioner/doctor")}],
    ),
]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    folder = tmp_path / "record"
    folder.mkdir()
    (folder / "all.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in RECORD), "utf-8")
    return folder


@pytest.fixture
def draft(record: Path, tmp_path: Path) -> Draft:
    return new_draft(record, "ana", tmp_path / "ana-draft", title="Potassium before surgery", data_class="open")


def chart_of(draft: Draft) -> Chart:
    return Chart.open(draft.folder / "chart")


def test_a_draft_holds_the_patient_what_is_theirs_and_what_that_refers_to(draft: Draft) -> None:
    assert sorted(row.ref for row in chart_of(draft).resources()) == [
        "Binary/text",
        "DocumentReference/note",
        "Encounter/e",
        "Location/l",
        "Observation/a1",
        "Observation/a2",
        "Observation/a3",
        "Organization/o",
        "Patient/ana",
        "Practitioner/doctor",
        "Provenance/prov",
    ]
    assert draft.taken.total() == 11
    assert draft.others == {
        "another patient's": 1,
        "another patient's, though it names this one": 2,
        "nothing of this patient refers to it": 4,
    }


def test_nothing_of_another_patient_is_left_in_it(draft: Draft) -> None:
    text = b"".join(draft.files.values())
    assert b"Patient/ben" not in text
    assert b"Observation/b1" not in text
    assert b"other-doctor" not in text


def test_a_reference_that_leads_nowhere_keeps_what_it_says_about_its_target(draft: Draft) -> None:
    performer = (chart_of(draft).get("Observation/a2") or Resource("", "", "{}")).body["performer"]
    assert performer == [{"display": "Dr Gone"}, {"display": "not in this record"}]
    assert draft.unlinked == {
        "Observation.performer": 2,
        "Observation.focus": 1,
        "Observation.hasMember": 1,
        "Patient.link.other": 1,
    }
    assert chart_of(draft).dangling() == []


def test_a_draft_is_a_valid_package_that_says_what_a_release_still_needs(draft: Draft) -> None:
    assert package.faults(draft.files, where=draft.folder.name) == []
    task = package.FolderSource(draft.folder.parent).load("ana-draft")
    assert task.is_draft
    assert task.meta.title == "Potassium before surgery"
    assert task.meta.data_class == "open"
    assert task.meta.context is not None
    assert task.meta.context.patient == "Patient/ana"
    assert "Patient/ana" in task.instruction
    assert task.missing_for_release()


def test_the_files_on_disk_are_the_files_returned(draft: Draft) -> None:
    on_disk = {
        str(path.relative_to(draft.folder)): path.read_bytes() for path in draft.folder.rglob("*") if path.is_file()
    }
    assert on_disk == dict(draft.files)


def test_a_draft_is_phi_until_somebody_says_otherwise(record: Path, tmp_path: Path) -> None:
    made = new_draft(record, "Patient/ana", tmp_path / "by-default")
    assert package.FolderSource(tmp_path).load("by-default").meta.data_class == "phi"
    assert made.taken.total() == 11


def test_an_unknown_patient_is_refused_with_some_that_are_there(record: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Patients there: ana, ben\."):
        new_draft(record, "cleo", tmp_path / "cleo-draft")
    assert not (tmp_path / "cleo-draft").exists()


def test_ten_of_many_patients_are_listed() -> None:
    many = [Resource.from_body(made("Patient", f"p{n:02}")) for n in range(13)]
    with pytest.raises(UsageError, match="p09 and 3 more"):
        select(many, "Patient/x")
    with pytest.raises(UsageError, match="no patient at all"):
        select([], "Patient/x")


@pytest.mark.parametrize(
    ("out", "options"),
    [
        ("record", {}),
        ("Not An Id", {}),
        ("ok-name", {"specialty": "Cardiolgy"}),
        ("ok-name", {"workflow": "Guessing"}),
        ("ok-name", {"data_class": "secret"}),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    record: Path, tmp_path: Path, out: str, options: dict[str, str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError):
        new_draft(record, "ana", tmp_path / out, **options)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_draft_that_fails_in_the_middle_leaves_nothing(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.write_bytes
    written: list[Path] = []

    def failing(self: Path, data: bytes) -> int:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(self)
        return real(self, data)

    monkeypatch.setattr(drafting.Path, "write_bytes", failing)
    with pytest.raises(UsageError, match="No space left"):
        new_draft(record, "ana", tmp_path / "ana-draft")
    assert [path.name for path in tmp_path.iterdir()] == ["record"]


def test_a_dangling_link_in_the_place_of_the_draft_is_not_overwritten(record: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="exists already"):
        new_draft(record, "ana", tmp_path / "linked")


@pytest.fixture
def run(record: Path, tmp_path: Path) -> Callable[..., Any]:
    def command(*more: str, patient: str = "ana", out: str = "ana-draft") -> Any:
        return CliRunner().invoke(
            app, ["new", "--chart", str(record), "--patient", patient, "--out", str(tmp_path / out), *more]
        )

    return command


def test_the_command_prints_what_was_taken_and_what_was_not(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("--title", "A title", "--specialty", "Cardiology")
    assert done.exit_code == 0, done.output
    assert "11 resources" in done.output
    assert "nothing of this patient refers to it" in done.output
    assert "tasks validate" in done.output
    assert 'specialty = "Cardiology"' in (tmp_path / "ana-draft" / "task.toml").read_text("utf-8")
    again = run()
    assert (again.exit_code, again.output.count("\n")) == (2, 1)


def test_the_command_gives_its_counts_as_json(run: Callable[..., Any]) -> None:
    said = json.loads(run("--json").output)
    assert said["counts"]["taken"]["Observation"] == 3


def test_the_command_refuses_in_one_line(run: Callable[..., Any]) -> None:
    done = run(patient="cleo")
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert "ana, ben" in done.output


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("place", "patient"),
    [
        ("fhir-synthea", "d88f994a-5efa-421d-9c40-5f116d2114a6"),
        ("fhir-synthea/bundle-10.json.gz", "0ce18c7d-fd78-46d9-81b5-8bed231c337a"),
        ("fhir-clinosim", "pt-00ddd5bb1c41"),
        ("hapi-answers/synthea.ndjson.gz", "1c5a49ea-fc04-456b-9d86-82d3e8f25ab1"),
    ],
)
def test_drafts_from_real_exports_are_valid_and_hold_one_person(
    shared_data: Path, tmp_path: Path, place: str, patient: str
) -> None:
    draft = new_draft(shared_data / place, patient, tmp_path / "draft-from-record")
    assert package.faults(draft.files, where="draft-from-record") == []
    chart = chart_of(draft)
    assert chart.types["Patient"] == 1
    named = {target for row in chart.resources() for _, target in references(row.body) if target.startswith("Patient/")}
    assert named == {f"Patient/{patient}"}
    assert chart.dangling() == []
    assert sum(chart.types.values()) == draft.taken.total() > 100
