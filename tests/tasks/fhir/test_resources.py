"""Resources keep what was written: decimals, key order, text; and what is not JSON is refused without a quotation."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import ChartError
from tasks.fhir.resources import Number, Resource, dump_json, parse_json, references

DECIMALS = st.from_regex(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | DECIMALS.map(lambda text: Number(text)) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "text", ["5.00", "0.0", "1e3", "1E+3", "-0", "-0.0", "0.10", "123456789012345678901234567890.5"]
)
def test_a_decimal_is_written_as_it_was_read(text: str) -> None:
    assert dump_json(parse_json(f'{{"value":{text}}}')) == f'{{"value":{text}}}'
    assert parse_json(text) == Decimal(text)
    assert f"{parse_json(text)}" == text
    assert f"{parse_json(text):.3f}" == f"{Decimal(text):.3f}"


@given(DECIMALS)
def test_every_number_comes_back_byte_for_byte(text: str) -> None:
    assert dump_json(parse_json(f"[{text}]")) == f"[{text}]"


@given(VALUES)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    text = dump_json(value)
    assert dump_json(parse_json(text)) == text
    assert json.loads(text, parse_float=Decimal) == parse_json(text)
    assert "\n" not in text


def test_a_decimal_survives_copying_and_pickling() -> None:
    number = parse_json("[5.00]")[0]
    for twin in (copy.copy(number), copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert str(twin) == "5.00"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a":1,"a":2}', "twice"),
        ('{"x":{"a":1,"b":{"c":1,"c":1}}}', "the key c stands twice"),
        ('{"a":NaN}', "NaN"),
        ('{"a":Infinity}', "Infinity"),
        ('{"a":01}', "not JSON"),
        ('{"a":1} x', "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "number is too long"),
        ('{"a":"\\ud800"}', "surrogate"),
        ('{"a":"line\nbreak"}', "not JSON"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ChartError, match=told) as caught:
        parse_json(text, where="Condition.ndjson:7")
    assert str(caught.value).startswith("Condition.ndjson:7: ")


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(ChartError, match="not UTF-8 at byte 6"):
        parse_json(b'{"a":"\xff"}')


def test_an_error_never_quotes_the_record() -> None:
    for text in ('{"resourceType":"Patient","id":"Jane Roe"}', '{"Jane Roe":1,"Jane Roe":2}', '{"a":"Jane Roe}'):
        with pytest.raises(ChartError) as caught:
            Resource.parse(text, where="f:1")
        assert "Jane" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        "{}",
        '{"resourceType":"Patient"}',
        '{"id":"a"}',
        '{"resourceType":"Patient","id":""}',
        '{"resourceType":"Patient","id":"a_b"}',
        '{"resourceType":5,"id":"a"}',
        '{"resourceType":"Patient","id":7}',
        '{"resourceType":"Patient","id":"' + "x" * 65 + '"}',
        '{"resourceType":"../x","id":"a"}',
    ],
)
def test_a_resource_has_a_type_and_a_valid_id(text: str) -> None:
    with pytest.raises(ChartError):
        Resource.parse(text)


def test_a_resource_keeps_its_text_and_parses_it_when_asked() -> None:
    raw = '{"resourceType":"Observation","id":"o-1","valueQuantity":{"value":5.00},"note":[{"text":"a\u2028b"}]}'
    resource = Resource.parse(f"\ufeff  {raw}\r\n")
    assert (resource.type, resource.id, resource.ref, resource.raw) == ("Observation", "o-1", "Observation/o-1", raw)
    again = pickle.loads(pickle.dumps(resource))
    assert again == resource
    assert again.body == resource.body
    assert list(resource.body) == ["resourceType", "id", "valueQuantity", "note"]


def test_a_resource_written_over_several_lines_is_stored_on_one() -> None:
    resource = Resource.parse('{\n  "resourceType": "Basic",\n  "id": "b",\n  "x": 1.50\n}')
    assert resource.raw == '{"resourceType":"Basic","id":"b","x":1.50}'


def test_a_resource_cannot_be_changed() -> None:
    resource = Resource.parse('{"resourceType":"Basic","id":"b"}')
    with pytest.raises(AttributeError):
        resource.id = "c"
    with pytest.raises(AttributeError):
        del resource.raw


def test_references_are_found_wherever_they_stand() -> None:
    body = parse_json(
        '{"resourceType":"Observation","subject":{"reference":"Patient/a"},"performer":[{"reference":"#p"},'
        '{"display":"no link"},{"reference":"Practitioner/b"}],"contained":[{"resourceType":"Practitioner",'
        '"extension":[{"valueReference":{"reference":"http://x/Organization/c"}}]}]}'
    )
    assert list(references(body)) == [
        ("Observation.subject", "Patient/a"),
        ("Observation.performer[0]", "#p"),
        ("Observation.performer[2]", "Practitioner/b"),
        ("Observation.contained[0].extension[0].valueReference", "http://x/Organization/c"),
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("Infinity")])
def test_what_is_not_a_number_cannot_be_written(value: object) -> None:
    with pytest.raises(ValueError, match="no NaN"):
        dump_json({"a": value})


def test_what_json_does_not_have_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        dump_json({"a": object()})
    with pytest.raises(TypeError):
        dump_json({1: "a"})
