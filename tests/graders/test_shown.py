"""What counts as shown: whole entries and quoted words inside the shown part, and nothing beyond the cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.shown import resource_spans, shown_entries
from tasks.anchors import holds
from tasks.trials import ToolCall


def call(result: str, *, shown: int | None = None, **keys: Any) -> ToolCall:
    base: dict[str, Any] = {"n": 1, "turn": 1, "call_id": "a", "tool": "fhir_observation_search_labs", "arguments": {}}
    return ToolCall(**(base | keys), result=result, shown=len(result) if shown is None else shown)


def note(id: str, text: str) -> dict[str, Any]:
    return {"resourceType": "DocumentReference", "id": id, "content": [{"attachment": {"data": text}}]}


def entries(*resources: dict[str, Any], indent: int | None = None) -> str:
    return json.dumps({"entries": resources, "total": len(resources), "pages": 1}, indent=indent)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_resource_is_whole_only_when_its_last_character_was_shown(indent: int | None) -> None:
    text = entries(note("n-1", "first"), note("n-2", "second"), indent=indent)
    end = resource_spans(text, len(text))[0][1]
    (whole,) = shown_entries([call(text, shown=end)])
    (cut,) = shown_entries([call(text, shown=end - 1)])
    assert (whole.ref, whole.whole, cut.whole) == ("DocumentReference/n-1", True, False)


def test_words_before_the_cut_count_and_words_after_it_do_not() -> None:
    text = entries(note("n-1", "Patient stopped warfarin in July.\nAfter that came a bleed."))
    shown = text.index("After")
    (entry,) = shown_entries([call(text, shown=shown)])
    assert entry.holds("stopped warfarin in July")
    assert not entry.holds("a bleed")


@pytest.mark.parametrize("cut", range(30))
def test_a_cut_inside_an_escape_loses_nothing_that_came_before(cut: int) -> None:
    text = entries(note("n-1", 'dose halved é\n"quoted" \\ end'))
    start = text.index("dose halved") + len("dose halved")
    (entry,) = shown_entries([call(text, shown=min(start + cut, len(text)))])
    assert entry.holds("dose halved")


def test_escapes_white_space_and_typography_do_not_matter() -> None:
    text = entries(note("n-1", "She\n  can’t take “statins” – ever"))
    (entry,) = shown_entries([call(text)])
    assert entry.holds('she can\'t take "statins" - ever')


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("5 mg", "takes 15 mg", False),
        ("5 mg", "takes 5 mg daily", True),
        ("1.2", "1.25 mg/dL", False),
        ("2.5", "12.5", False),
        ("33", "eGFR 33.", True),
        ("hydroxyz", "hydroxyzine", False),
        ("stopped", "STOPPED it", True),
        ("", "anything", False),
    ],
)
def test_a_quotation_never_matches_inside_a_longer_word_or_number(quote: str, text: str, found: bool) -> None:
    assert holds(quote, text) is found


def test_a_number_of_the_resource_can_be_quoted_and_a_key_cannot() -> None:
    lab = {"resourceType": "Observation", "id": "o", "valueQuantity": {"value": 5.3, "unit": "mmol/L"}}
    (entry,) = shown_entries([call(entries(lab))])
    assert entry.holds("5.3")
    assert not entry.holds("3")
    assert not entry.holds("valueQuantity")


def test_what_the_agent_wrote_and_read_back_is_no_fact_seen() -> None:
    text = entries({"resourceType": "ServiceRequest", "id": "w1", "note": [{"text": "euglycemic ketoacidosis"}]})
    assert list(shown_entries([call(text)], written=frozenset({"ServiceRequest/w1"}))) == []
    assert list(shown_entries([call(text, tool="fhir_service_request_create", writes=(1,))])) == []
    assert list(shown_entries([call(text, tool="write_file")])) == []


def test_an_error_shows_nothing() -> None:
    assert list(shown_entries([call(entries(note("n-1", "x")), error=True)])) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"entries": 3}', '{"entries": [1, {"id": 2}]}', '{"entries": [', "no JSON", '"x"']
)
def test_what_is_no_result_has_no_resources(text: str) -> None:
    assert resource_spans(text, len(text)) == []


def test_a_bundle_and_a_single_resource_are_read_too() -> None:
    bundle = json.dumps(
        {"resourceType": "Bundle", "type": "searchset", "entry": [{"fullUrl": "u", "resource": note("n-1", "x")}]}
    )
    assert [ref for *_, ref in resource_spans(bundle, len(bundle))] == ["DocumentReference/n-1"]
    single = json.dumps(note("n-2", "x"))
    assert resource_spans(single, 1) == [(0, len(single), "DocumentReference/n-2")]


@given(
    st.lists(st.text(max_size=40), min_size=1, max_size=5),
    st.integers(min_value=0, max_value=600),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_spans_are_the_entries_and_no_shown_text_leaves_the_shown_part(
    texts: list[str], shown: int, indent: int | None, ascii: bool
) -> None:
    resources = [note(f"n-{n}", text) for n, text in enumerate(texts)]
    result = json.dumps({"total": 1, "entries": resources}, indent=indent, ensure_ascii=ascii)
    shown = min(shown, len(result))
    for start, end, ref in resource_spans(result, shown):
        assert json.loads(result[start:end])["id"] == ref.split("/")[1]
        assert start < shown
    for entry in shown_entries([call(result, shown=shown)]):
        assert entry.shown in result[:shown]
        for text in entry.texts:
            assert len(text) <= len(entry.shown)
