"""The stored index: made once, whole or not at all, rebuilt when torn or stale, shared by builders that race."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from tasks.fhir import index, source
from tasks.fhir.chart import Chart, Overlay
from tasks.fhir.index import StoredIndex
from tasks.fhir.resources import Resource


def observation(number: int) -> str:
    body = {
        "resourceType": "Observation",
        "id": f"o-{number:04d}",
        "status": "final",
        "code": {
            "coding": [{"system": "http://loinc.org", "code": f"{number % 7}-1", "display": f"Test {number % 7}"}]
        },
        "subject": {"reference": "Patient/p"},
        "effectiveDateTime": f"20{number % 20 + 5:02d}-0{number % 9 + 1}-11",
        "valueQuantity": {"value": number / 4, "unit": "mg", "code": "mg"},
        "component": [{"code": {"coding": [{"code": "c"}]}, "valueQuantity": {"value": number, "code": "mg"}}],
    }
    return json.dumps(body)


FILES = {
    "Observation.ndjson": "\n".join(observation(number) for number in range(120)).encode(),
    "Patient.ndjson": '{"resourceType":"Patient","id":"p","name":[{"family":"Ångström"}]}'.encode(),
    "Odd.ndjson": b'{"resourceType":"NotInRelease","id":"x"}',
}

ASKED = [
    ("Observation", [("code", "3-1"), ("date", "ge2010"), ("_sort", "-date,code")]),
    ("Observation", [("code:text", "test 2"), ("value-quantity", "gt5||mg"), ("_sort", "value-quantity")]),
    ("Observation", [("component-code-value-quantity", "c$gt100")]),
    ("Observation", [("subject.name", "angstrom"), ("_count", "5"), ("_include", "Observation:subject")]),
    ("Observation", [("method:missing", "true"), ("_sort", "method,_id")]),
    ("Patient", [("name", "ang"), ("_sort", "family")]),
    ("Encounter", [("status", "finished")]),
]


def answers(chart: Chart) -> list[object]:
    pages = [chart.search(kind, params) for kind, params in ASKED]
    return [([r.raw for r in page.rows], [r.raw for r in page.included], page.total, page.next) for page in pages]


def folder_of(cache: Path) -> Path:
    (folder,) = (path for path in (cache / "charts").iterdir() if path.is_dir())
    return folder


def test_a_stored_index_answers_as_one_in_memory(tmp_path: Path) -> None:
    wanted = answers(Chart.open(FILES))
    assert answers(Chart.open(FILES, cache=tmp_path)) == wanted
    chart = Chart.open(FILES, cache=tmp_path)
    assert isinstance(chart.index, StoredIndex)
    assert answers(chart) == wanted
    assert [r.raw for r in chart.resources()] == [r.raw for r in Chart.open(FILES).resources()]
    assert chart.get("NotInRelease/x") is not None
    for absent in ("Observation/o-9999", "Observation/", "Observation", "", "Nope/x", "Observation/o-0001\0", "A/ü"):
        assert chart.get(absent) is None


@pytest.mark.parametrize(
    "name", ["meta.json", "bodies", "rows", "Observation.columns", "Observation.json", "dangling.json"]
)
@pytest.mark.parametrize("harm", ["gone", "cut", "grown"])
def test_a_torn_cache_is_rebuilt(tmp_path: Path, name: str, harm: str) -> None:
    wanted = answers(Chart.open(FILES, cache=tmp_path))
    path = folder_of(tmp_path) / name
    if harm == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if harm == "cut" else content + b"x")
    chart = Chart.open(FILES, cache=tmp_path)
    assert answers(chart) == wanted
    assert isinstance(chart.index, StoredIndex)
    assert StoredIndex.open(folder_of(tmp_path), chart.digest) is not None
    assert not [path for path in (tmp_path / "charts").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("key", ["version", "digest"])
def test_an_index_of_another_version_or_chart_is_not_taken(tmp_path: Path, key: str) -> None:
    digest = Chart.open(FILES, cache=tmp_path).digest
    meta = folder_of(tmp_path) / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {key: "other"}))
    assert StoredIndex.open(folder_of(tmp_path), digest) is None
    assert answers(Chart.open(FILES, cache=tmp_path)) == answers(Chart.open(FILES))


def test_a_chart_that_is_open_survives_the_replacement_of_its_index(tmp_path: Path) -> None:
    chart = Chart.open(FILES, cache=tmp_path)
    wanted = answers(chart)
    for path in folder_of(tmp_path).iterdir():
        path.unlink()
    folder_of(tmp_path).rmdir()
    Chart.open(FILES, cache=tmp_path)
    assert answers(chart) == wanted


def _build(cache: str) -> int:
    return Chart.open(FILES, cache=Path(cache)).search("Observation", [("code", "3-1")]).total


def test_builders_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(_build, [str(tmp_path)] * 6, chunksize=1))) == 1
    assert len(list((tmp_path / "charts").iterdir())) == 1


def test_a_cache_that_cannot_be_written_does_not_stop_the_chart(tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("a file where the folder should be")
    assert answers(Chart.open(FILES, cache=tmp_path)) == answers(Chart.open(FILES))


def _settled(folder: Path) -> None:
    """Make the files old enough to be remembered, as they are a few seconds later."""
    for path in folder.iterdir():
        os.utime(path, ns=(10**18, 10**18))


def test_a_folder_seen_before_is_opened_without_reading_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = tmp_path / "chart", tmp_path / "cache"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    now = time.time_ns() + 10**10
    monkeypatch.setattr(source.time, "time_ns", lambda: now)
    wanted = answers(Chart.open(folder, cache=cache))

    def refuse(*_: object) -> dict[str, bytes]:
        raise AssertionError("the files were read again")

    with monkeypatch.context() as patched:
        patched.setattr(source, "read_files", refuse)
        assert answers(Chart.open(folder, cache=cache)) == wanted
    (folder / "Patient.ndjson").write_bytes(b'{"resourceType":"Patient","id":"q"}')
    assert Chart.open(folder, cache=cache).get("Patient/q") is not None


def test_a_file_that_may_still_change_is_not_remembered(tmp_path: Path) -> None:
    folder, cache = tmp_path / "chart", tmp_path / "cache"
    folder.mkdir()
    path = folder / "Patient.ndjson"
    path.write_bytes(b'{"resourceType":"Patient","id":"p"}')
    Chart.open(folder, cache=cache)
    # Same size, and the same time as far as a coarse clock can tell.
    stat = path.stat()
    path.write_bytes(b'{"resourceType":"Patient","id":"q"}')
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert Chart.open(folder, cache=cache).get("Patient/q") is not None


def test_nothing_of_a_chart_is_in_a_file_name(tmp_path: Path) -> None:
    Chart.open(FILES, cache=tmp_path)
    types = {"Observation", "Patient", "NotInRelease"}
    for path in tmp_path.rglob("*"):
        name = path.name.removesuffix(".json").removesuffix(".columns")
        assert name in {"charts", "meta", "bodies", "rows", "dangling", *types} or path.is_dir()


def test_a_session_on_a_stored_index_sees_its_own_writes_at_once(tmp_path: Path) -> None:
    Chart.open(FILES, cache=tmp_path)
    chart = Chart.open(FILES, cache=tmp_path)
    first, second = Overlay(chart), Overlay(chart)
    new = Resource.parse(observation(9000))
    before = first.search("Observation", [("patient", "p")]).total
    first.add(new)
    assert first.search("Observation", [("patient", "p")]).total == before + 1
    assert first.get(new.ref) == new
    assert second.search("Observation", [("patient", "p")]).total == before
    assert second.get(new.ref) is None
    assert chart.get(new.ref) is None


def test_an_index_does_not_outlive_a_change_of_the_code_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart = Chart.open(FILES, cache=tmp_path)
    assert folder_of(tmp_path).name == f"{chart.digest[:40]}-{index.version()}"
    monkeypatch.setattr(index, "version", lambda: "another")
    assert answers(Chart.open(FILES, cache=tmp_path)) == answers(chart)
    assert len([path for path in (tmp_path / "charts").iterdir() if path.is_dir()]) == 2


def test_what_a_killed_builder_left_is_swept_after_a_day(tmp_path: Path) -> None:
    charts = tmp_path / "charts"
    for name, age in ((".building-old", 100_000), (".building-new", 10), (".torn-old", 100_000)):
        (charts / name).mkdir(parents=True)
        os.utime(charts / name, (time.time() - age, time.time() - age))
    Chart.open(FILES, cache=tmp_path)
    assert {path.name for path in charts.iterdir() if path.name.startswith(".")} == {".building-new"}
