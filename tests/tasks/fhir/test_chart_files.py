"""What a chart can be read from, and every way in which its files can be wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import ChartError
from tasks.fhir import source
from tasks.fhir.chart import Chart

A = '{"resourceType":"Condition","id":"a","subject":{"reference":"Patient/p"}}'
B = '{"resourceType":"Condition","id":"b","subject":{"reference":"Patient/p"}}'
P = '{"resourceType":"Patient","id":"p","birthDate":"1950-01-01"}'


def opened(**files: str | bytes) -> Chart:
    return Chart.open({f"{n}.ndjson": t.encode() if isinstance(t, str) else t for n, t in files.items()})


def refusal(files: dict[str, bytes]) -> str:
    with pytest.raises(ChartError) as caught:
        Chart.open(files)
    return str(caught.value)


def test_the_same_chart_is_read_from_every_layout(tmp_path: Path) -> None:
    folder = tmp_path / "chart"
    folder.mkdir()
    (folder / "Condition.ndjson").write_text(f"{A}\n{B}\n")
    (folder / "Patient.ndjson.gz").write_bytes(gzip.compress(f"{P}\n".encode()))
    one = tmp_path / "all.ndjson"
    one.write_text(f"{A}\n{P}\n{B}\n")
    bundle = tmp_path / "bundle.json"
    entries = ",".join(f'{{"fullUrl":"urn:x","resource":{text}}}' for text in (P, A, B))
    bundle.write_text(f'{{"resourceType":"Bundle","type":"collection","entry":[{entries}]}}')
    packed = tmp_path / "bundle.json.gz"
    packed.write_bytes(gzip.compress(bundle.read_bytes()))
    for layout in (folder, one, bundle, packed):
        chart = Chart.open(layout)
        assert chart.types == {"Condition": 2, "Patient": 1}
        assert [resource.raw for resource in chart.resources()] == [A, B, P]
        assert len(chart) == 3


def test_a_folder_and_the_same_files_as_bytes_have_one_digest(tmp_path: Path) -> None:
    (tmp_path / "Condition.ndjson").write_text(f"{A}\n")
    (tmp_path / "Patient.ndjson").write_text(f"{P}\n")
    digest = Chart.open(tmp_path).digest
    assert digest == opened(Patient=f"{P}\n", Condition=f"{A}\n").digest
    assert digest != opened(Patient=f"{P}\n", Condition=f"{B}\n").digest


def test_a_byte_order_mark_crlf_and_blank_lines_are_no_fault() -> None:
    chart = opened(Condition=b"\xef\xbb\xbf" + f"{A}\r\n\r\n  {B}  \r\n".encode())
    assert [resource.raw for resource in chart.resources()] == [A, B]


def test_a_last_line_without_a_line_feed_is_read() -> None:
    assert len(opened(Condition=f"{A}\n{B}")) == 2


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(mark: str) -> None:
    text = f"before{mark}after"
    written = json.dumps(text, ensure_ascii=False) if mark >= "\x80" else json.dumps(text)
    raw = f'{{"resourceType":"Basic","id":"a","code":{{"text":{written}}}}}'
    chart = opened(Basic=f"{raw}\n")
    resource = chart.get("Basic/a")
    assert resource is not None
    assert resource.raw == raw
    assert resource.body["code"]["text"] == text


def test_a_note_of_five_megabytes_is_read_and_served_whole(tmp_path: Path) -> None:
    data = "QUJD" * 1_310_720
    raw = (
        '{"resourceType":"DocumentReference","id":"n","status":"current","subject":{"reference":"Patient/p"},'
        f'"content":[{{"attachment":{{"contentType":"text/plain","data":"{data}"}}}}]}}'
    )
    files = {"DocumentReference.ndjson": f"{raw}\n".encode(), "Patient.ndjson": P.encode()}
    for chart in (Chart.open(files), Chart.open(files, cache=tmp_path), Chart.open(files, cache=tmp_path)):
        page = chart.search("DocumentReference", [("patient", "p"), ("status", "current")])
        assert [resource.raw for resource in page.rows] == [raw]


@pytest.mark.parametrize("written", ["5.00", "0.0", "1e3", "1E+3", "-0.50", "100"])
def test_a_decimal_is_served_as_written_through_load_search_and_cache(tmp_path: Path, written: str) -> None:
    raw = f'{{"resourceType":"Observation","id":"o","valueQuantity":{{"value":{written},"code":"mg"}}}}'
    files = {"Observation.ndjson": raw.encode()}
    for chart in (Chart.open(files), Chart.open(files, cache=tmp_path), Chart.open(files, cache=tmp_path)):
        for asked in (written, f"{float(written):g}", f"le{written}||mg"):
            page = chart.search("Observation", [("value-quantity", asked)])
            assert [resource.raw for resource in page.rows] == [raw]


@pytest.mark.parametrize(
    ("files", "place", "told"),
    [
        ({"Condition.ndjson": f"{A}\nnot json\n".encode()}, "Condition.ndjson:2", "not JSON"),
        ({"Condition.ndjson": f"{A}\n{B[:-5]}".encode()}, "Condition.ndjson:2", "not JSON"),
        ({"Condition.ndjson": b""}, "Condition.ndjson", "holds no resource"),
        ({"Condition.ndjson": b"\xef\xbb\xbf\r\n \n"}, "Condition.ndjson", "holds no resource"),
        ({"Condition.ndjson": A.encode(), "Patient.ndjson": b""}, "Patient.ndjson", "holds no resource"),
        (
            {"Condition.ndjson": f"{A}\n{B}\n{A}\n".encode()},
            "Condition.ndjson:3",
            "taken already, at Condition.ndjson:1",
        ),
        ({"a.ndjson": A.encode(), "b.ndjson": A.encode()}, "b.ndjson:1", "taken already, at a.ndjson:1"),
        ({"Condition.ndjson": b'{"resourceType":"Condition","id":"a","id":"b"}'}, "Condition.ndjson:1", "stands twice"),
        ({"Condition.ndjson": f"{A}\n[1]\n".encode()}, "Condition.ndjson:2", "a resource is a JSON object"),
        ({"Condition.ndjson": b'{"id":"a"}'}, "Condition.ndjson:1", "no resourceType"),
        ({"Condition.ndjson": b'{"resourceType":"Condition"}'}, "Condition.ndjson:1", "no valid id"),
        ({"Condition.ndjson": A.encode("utf-16")}, "Condition.ndjson:1", "not UTF-8"),
        ({"Condition.ndjson": A.encode().replace(b"Patient", b"Pat\xefent")}, "Condition.ndjson:1", "not UTF-8"),
        ({"Condition.ndjson.gz": b"plain"}, "Condition.ndjson.gz", "not whole gzip"),
        ({"Condition.ndjson.gz": gzip.compress(A.encode() * 99)[:-9]}, "Condition.ndjson.gz", "not whole gzip"),
        ({"b.json": b'{"resourceType":"Bundle","entry":[{"fullUrl":"x"}]}'}, "b.json: entry[0]", "no resource"),
        ({"b.json": b'{"resourceType":"Bundle","entry":{}}'}, "b.json", "are an array"),
        ({"b.json": b'{"resourceType":"Bundle"'}, "b.json", "not JSON"),
        ({"b.json": b""}, "b.json", "holds no resource"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(files: dict[str, bytes], place: str, told: str) -> None:
    message = refusal(files)
    assert message.startswith(f"{place}: ")
    assert told in message
    assert "\n" not in message


def test_a_gzip_file_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_BYTES", 1 << 20)
    assert "unpacks to more than 1 MB" in refusal({"x.ndjson.gz": gzip.compress(b" " * (1 << 24))})


def test_a_missing_or_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChartError, match="no such file or folder"):
        Chart.open(tmp_path / "nothing")
    with pytest.raises(ChartError, match="holds no FHIR file"):
        Chart.open(tmp_path)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(content: bytes) -> None:
    for name in ("x.ndjson", "x.json", "x.ndjson.gz"):
        try:
            Chart.open({name: content})
        except ChartError as error:
            assert str(error).startswith("x.")  # noqa: PT017


def test_an_empty_chart_answers_searches() -> None:
    chart = Chart.open({})
    assert len(chart) == 0
    assert chart.search("Patient", [("name", "x"), ("_sort", "-birthdate")]).total == 0
    assert chart.get("Patient/p") is None


def test_references_that_lead_nowhere_are_listed(tmp_path: Path) -> None:
    lines = [
        A,
        '{"resourceType":"Basic","id":"x","subject":{"reference":"urn:uuid:1"},"author":{"reference":"#c"}}',
        '{"resourceType":"Basic","id":"y","subject":{"reference":"https://other/Patient/9"}}',
        '{"resourceType":"Basic","id":"z","subject":{"reference":"Condition/a/_history/2"}}',
    ]
    files = {"all.ndjson": "\n".join(lines).encode()}
    wanted = [("Basic/x", "Basic.subject", "urn:uuid:1"), ("Condition/a", "Condition.subject", "Patient/p")]
    assert Chart.open(files).dangling() == wanted
    assert Chart.open(files, cache=tmp_path).dangling() == wanted


@pytest.mark.shared_data
def test_the_known_dangling_references_of_real_charts_are_counted(shared_data: Path) -> None:
    chart = Chart.open(shared_data / "hapi-answers" / "synthea.ndjson.gz")
    assert len(chart) == 606
    assert {holder.split("/")[0] for holder, _, _ in chart.dangling()} == {"Provenance"}
    assert len(chart.dangling()) == 177
