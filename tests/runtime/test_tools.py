"""The 14 tools: what they send, what they answer, what they refuse."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.base import ToolRequest
from runtime import ehr
from runtime.tools import TOOLS, TOOLS_BY_NAME, Toolbox, tool_specs
from runtime.tools.box import SHOWN_CHARACTERS
from runtime.tools.creates import Create
from runtime.tools.reads import Search
from tasks.errors import EnvironmentFault
from tasks.toolnames import TOOL_NAMES
from tests.runtime.conftest import NOW, PATIENT, PRACTITIONER, Caller, chart_of
from tests.tasks.packages import NOTE_TEXT
from tests.tasks.packages import chart as tiny_chart

SEARCHES = [tool for tool in TOOLS if issubclass(tool, Search)]
CREATES = [tool for tool in TOOLS if issubclass(tool, Create)]

#: A value that means something for each search parameter that any tool declares.
VALUES = {
    "patient": "p-7001", "subject": PATIENT, "encounter": "Encounter/e-1", "requester": PRACTITIONER,
    "performer": PRACTITIONER, "date": "ge2022-01-01", "onset_date": "ge2010", "authoredon": "le2025-02",
    "authored": "ge2022-01-01", "birthdate": "1956-08-02", "code": "http://loinc.org|2160-0", "status": "active",
    "intent": "order", "clinical_status": "active", "type": "11506-3", "gender": "male", "identifier": "MRN|1",
}  # fmt: skip

NEEDED = {
    "patient_reference": PATIENT, "requester_reference": PRACTITIONER, "practitioner_reference": PRACTITIONER,
    "medication_display": "apixaban 5 mg tablet", "code_code": "2823-3", "code_display": "Potassium",
    "description": "Follow-up", "message_text": "Please call the patient.",
}  # fmt: skip

#: Something valid for each optional parameter of the creates.
OPTIONAL: dict[str, Any] = {
    "dose_value": 5, "duration_value": 14, "dispense_quantity": 28, "num_refills": 0, "minutes_duration": 30,
    "encounter_reference": "Encounter/e-1", "performer_reference": PRACTITIONER, "recipient_reference": PRACTITIONER,
    "sender_reference": PRACTITIONER, "part_of_task": "Task/t-1", "based_on_service_request": "ServiceRequest/s-1",
    "in_response_to_communication": "Communication/k-1", "based_on": "ServiceRequest/s-1", "priority": "urgent",
    "occurrence_datetime": "2025-04-01", "start": "2025-04-01T09:00:00-05:00", "end": "2025-04-01T09:30:00-05:00",
    "status": None, "intent": "order",
}  # fmt: skip


def needed(tool: type[Create]) -> dict[str, Any]:
    return {name: NEEDED[name] for name, info in tool.model_fields.items() if info.is_required()}


def test_the_tools_are_the_fourteen_in_the_shared_order() -> None:
    assert tuple(tool.tool for tool in TOOLS) == TOOL_NAMES


def test_a_schema_names_every_parameter_with_its_type_and_default() -> None:
    specs = {spec.name: spec.parameters for spec in tool_specs()}
    labs = specs["fhir_observation_search_labs"]
    assert list(labs["properties"]) == ["patient", "subject", "category", "code", "date", "count", "page_limit"]
    assert labs["properties"]["count"] == {"type": "integer", "description": "rows a page", "default": 50, "minimum": 1}
    assert labs["properties"]["code"]["type"] == "string"
    drug = specs["fhir_medication_request_create"]
    assert drug["required"] == ["patient_reference", "medication_display", "requester_reference"]
    assert drug["properties"]["dose_value"] == {"type": "number", "description": "amount of one dose"}
    assert drug["properties"]["status"]["default"] == "active"
    assert specs["write_file"]["properties"]["mode"]["enum"] == ["w", "a"]
    assert all(parameters["additionalProperties"] is False for parameters in specs.values())


@pytest.mark.parametrize(
    ("tool", "count", "pages"),
    [
        ("fhir_patient_search_demographics", 50, 6),
        ("fhir_condition_search_problems", 10, 3),
        ("fhir_observation_search_labs", 50, 6),
        ("fhir_observation_search_vitals", 50, 6),
        ("fhir_observation_search_social_history", 50, 6),
        ("fhir_procedure_search_orders", 50, 6),
        ("fhir_medication_request_search_orders", 50, 6),
        ("fhir_document_reference_search_clinical_notes", 5, 2),
        ("fhir_service_request_search", 50, 6),
    ],
)
def test_page_defaults_are_the_papers(tool: str, count: int, pages: int) -> None:
    fields = TOOLS_BY_NAME[tool].model_fields
    assert (fields["count"].default, fields["page_limit"].default) == (count, pages)


def test_no_tool_text_names_a_tool_that_does_not_exist() -> None:
    for spec in tool_specs():
        for word in re.findall(r"\b(?:fhir|write|read|get|list)_\w+", json.dumps([spec.description, spec.parameters])):
            assert word in TOOL_NAMES, f"{spec.name} speaks of {word}"


# ---- reads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        (tool.tool, name)
        for tool in SEARCHES
        for name in tool.model_fields
        if name not in ("count", "page_limit", *tool.vendor_only)
    ],
)
def test_every_declared_parameter_is_accepted_by_the_server(call: Caller, tool: str, parameter: str) -> None:
    fixed = dict(TOOLS_BY_NAME[tool].fixed) if issubclass(TOOLS_BY_NAME[tool], Search) else {}
    value = fixed.get(parameter) or VALUES.get(parameter, "x")
    answer = call(tool, {parameter: value})
    assert "error" not in answer
    assert set(answer) == {"entries", "total", "pages"}
    assert call.calls[0].request.startswith(f"GET {TOOLS_BY_NAME[tool].resource_type}?")  # type: ignore[attr-defined]
    assert f"{parameter.replace('_', '-')}=" in call.calls[0].request


@pytest.mark.parametrize("parameter", ["own_name", "own_prefix", "partner_name", "partner_prefix", "legal_sex"])
def test_a_vendors_own_parameter_is_answered_without_a_request(call: Caller, parameter: str) -> None:
    answer = call("fhir_patient_search_demographics", {"family": "x", parameter: "y"})
    assert answer["fields"][0]["field"] == parameter
    assert call.calls[0].error
    assert call.calls[0].request == ""


@pytest.mark.parametrize("tool", ["fhir_observation_search_labs", "fhir_observation_search_vitals"])
def test_another_category_is_refused_and_never_ignored(call: Caller, tool: str) -> None:
    answer = call(tool, {"patient": "p-7001", "category": "imaging"})
    assert answer["fields"][0]["field"] == "category"
    assert call.calls[0].request == ""


def test_labs_and_vitals_are_apart(call: Caller) -> None:
    labs = call("fhir_observation_search_labs", {"patient": "p-7001", "category": "laboratory"})
    vitals = call("fhir_observation_search_vitals", {"subject": PATIENT})
    assert {row["id"] for row in labs["entries"]} == {"o-creatinine", "o-hemoglobin"}
    assert {row["id"] for row in vitals["entries"]} == {"o-pressure", "o-weight"}


def test_null_and_empty_text_are_not_sent(call: Caller) -> None:
    answer = call("fhir_condition_search_problems", {"patient": "p-7001", "code": None, "category": ""})
    assert answer["total"] == 2
    assert call.calls[0].request == "GET Condition?patient=p-7001&_count=10"


def test_entries_keep_the_text_they_were_stored_with() -> None:
    weight = next(row for row in tiny_chart() if row["id"] == "o-weight")
    chart = chart_of([weight | {"id": f"w-{n}", "subject": {"reference": "Patient/p"}} for n in range(3)])
    raw = [row.raw for row in chart.resources("Observation")]
    with ehr.open(chart, now=NOW) as session:
        box = Toolbox(session, Path("/nowhere"), now=NOW)
        text = box.answer(
            ToolRequest("c", "fhir_observation_search_vitals", '{"patient": "p"}'), number=1, turn=1
        ).call.result
    assert text == f'{{"entries":[{",".join(raw)}],"total":3,"pages":1}}'


def test_pages_are_followed_as_declared_and_no_further() -> None:
    conditions = [row for row in tiny_chart() if row["resourceType"] == "Condition"]
    chart = chart_of([conditions[0] | {"id": f"c-{n:03}"} for n in range(45)])
    with ehr.open(chart, now=NOW) as session:
        call = Caller(Toolbox(session, Path("/nowhere"), now=NOW))
        default = call("fhir_condition_search_problems", {"patient": "p-7001"})
        asked = call("fhir_condition_search_problems", {"patient": "p-7001", "count": 20, "page_limit": 9})
    assert (len(default["entries"]), default["total"], default["pages"]) == (30, 45, 3)
    assert (len(asked["entries"]), asked["total"], asked["pages"]) == (45, 45, 3)


def test_a_note_comes_with_its_text(call: Caller) -> None:
    answer = call("fhir_document_reference_search_clinical_notes", {"patient": "p-7001"})
    attachment = answer["entries"][0]["content"][0]["attachment"]
    assert attachment == {"contentType": "text/plain", "data": NOTE_TEXT}


@pytest.mark.parametrize(
    ("attachment", "shown"),
    [
        ({"contentType": "text/plain; charset=latin-1", "data": base64.b64encode("é".encode("latin-1")).decode()}, "é"),
        ({"contentType": "TEXT/HTML", "data": base64.b64encode(b"<p>a</p>").decode()}, "<p>a</p>"),
        ({"contentType": "application/pdf", "data": "JVBERg=="}, "JVBERg=="),
        ({"contentType": "text/plain", "data": "!!!"}, "!!!"),
        ({"contentType": "text/plain", "data": "/w=="}, "/w=="),
        ({"contentType": "text/plain; charset=klingon", "data": "YQ=="}, "YQ=="),
    ],
)
def test_only_text_that_decodes_is_decoded(attachment: dict[str, str], shown: str) -> None:
    note = next(row for row in tiny_chart() if row["resourceType"] == "DocumentReference")
    chart = chart_of([note | {"content": [{"attachment": attachment}]}])
    with ehr.open(chart, now=NOW) as session:
        call = Caller(Toolbox(session, Path("/nowhere"), now=NOW))
        answer = call("fhir_document_reference_search_clinical_notes", {"patient": "p-7001"})
    assert answer["entries"][0]["content"][0]["attachment"]["data"] == shown


def test_a_long_result_is_cut_for_the_model_and_stored_whole() -> None:
    note = next(row for row in tiny_chart() if row["resourceType"] == "DocumentReference")
    text = "Long note. " * 500_000
    data = base64.b64encode(text.encode()).decode()
    chart = chart_of([note | {"content": [{"attachment": {"contentType": "text/plain", "data": data}}]}])
    with ehr.open(chart, now=NOW) as session:
        call = Caller(Toolbox(session, Path("/nowhere"), now=NOW))
        answer = call("fhir_document_reference_search_clinical_notes", {"patient": "p-7001"})
    stored, read = call.calls[0], call.texts[0]
    assert answer["entries"][0]["content"][0]["attachment"]["data"] == text
    assert stored.shown == SHOWN_CHARACTERS
    assert read.startswith(stored.seen)
    notice = read[SHOWN_CHARACTERS:]
    assert notice.startswith("\n\n[OUTPUT TRUNCATED")
    assert f"first 10000 of {len(stored.result)} characters" in notice
    assert all(word in notice for word in ("code", "ge2022-01-01", "smaller count"))


def test_a_result_of_exactly_the_limit_is_not_cut(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    call("fhir_condition_search_problems", {"patient": "p-7001"})
    length = len(call.calls[0].result)
    monkeypatch.setattr("runtime.tools.box.SHOWN_CHARACTERS", length)
    call("fhir_condition_search_problems", {"patient": "p-7001"})
    assert call.texts[1] == call.calls[1].result
    monkeypatch.setattr("runtime.tools.box.SHOWN_CHARACTERS", length - 1)
    call("fhir_condition_search_problems", {"patient": "p-7001"})
    assert "[OUTPUT TRUNCATED" in call.texts[2]


def test_what_the_server_refuses_comes_back_with_its_outcome(call: Caller) -> None:
    answer = call("fhir_observation_search_labs", {"patient": "p-7001", "date": "last spring"})
    assert answer["operation_outcome"]["resourceType"] == "OperationOutcome"
    assert call.calls[0].error
    assert call.calls[0].writes == ()


# ---- creates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [tool.tool for tool in CREATES])
def test_a_create_with_only_what_is_required_is_stored_and_answered(
    call: Caller, session: ehr.Session, tool: str
) -> None:
    kind = TOOLS_BY_NAME[tool]
    assert issubclass(kind, Create)
    answer = call(tool, needed(kind))
    assert "error" not in answer
    (write,) = session.ledger
    assert write.reference == f"{answer['resourceType']}/{answer['id']}"
    assert call.calls[0].writes == (1,)
    assert call.calls[0].result == write.resource
    assert write.call == 1


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [(tool.tool, name) for tool in CREATES for name, info in tool.model_fields.items() if not info.is_required()],
)
def test_every_optional_parameter_of_a_create_makes_valid_r4(call: Caller, tool: str, parameter: str) -> None:
    kind = TOOLS_BY_NAME[tool]
    assert issubclass(kind, Create)
    value = OPTIONAL.get(parameter, kind.model_fields[parameter].default or "x")
    if parameter == "reason_system" or parameter.endswith("_system"):
        value = "http://snomed.info/sct"
    answer = call(tool, needed(kind) | {parameter: value, "reason_code": "I10"} if "reason_code" in kind.model_fields
                  else needed(kind) | {parameter: value})  # fmt: skip
    assert "error" not in answer, answer


def test_a_drug_order_says_everything_in_r4(call: Caller) -> None:
    answer = call(
        "fhir_medication_request_create",
        needed(TOOLS_BY_NAME["fhir_medication_request_create"])  # type: ignore[arg-type]
        | {
            "medication_code": "1364445",
            "dose_value": 2.5,
            "dose_unit": "mg",
            "frequency_text": "BID",
            "route_code": "26643006",
            "route_display": "Oral route",
            "duration_value": 14,
            "duration_unit": "days",
            "dispense_quantity": 28,
            "dispense_unit": "tablet",
            "num_refills": 0,
            "reason_code": "I48.20",
            "reason_display": "Atrial fibrillation",
            "reason_system": "http://hl7.org/fhir/sid/icd-10-cm",
            "note_text": "replaces warfarin",
            "priority": "urgent",
        },
    )
    dosage = answer["dosageInstruction"][0]
    assert answer["medicationCodeableConcept"] == {
        "coding": [
            {
                "system": "http://www.nlm.nih.gov/research/umls/rxnorm",
                "code": "1364445",
                "display": "apixaban 5 mg tablet",
            }
        ],
        "text": "apixaban 5 mg tablet",
    }
    assert dosage["text"] == dosage["timing"]["code"]["text"] == "BID"
    assert dosage["timing"]["repeat"]["boundsDuration"] == {
        "value": 14,
        "unit": "days",
        "system": "http://unitsofmeasure.org",
        "code": "d",
    }
    assert dosage["doseAndRate"] == [{"doseQuantity": {"value": 2.5, "unit": "mg"}}]
    assert dosage["route"]["coding"][0]["system"] == "http://snomed.info/sct"
    assert answer["dispenseRequest"] == {"numberOfRepeatsAllowed": 0, "quantity": {"value": 28, "unit": "tablet"}}
    assert answer["subject"] == {"reference": PATIENT}
    assert answer["requester"] == {"reference": PRACTITIONER}
    assert answer["note"] == [{"text": "replaces warfarin"}]
    assert (answer["status"], answer["intent"], answer["priority"]) == ("active", "order", "urgent")


def test_a_dose_is_stored_with_the_digits_that_the_model_wrote(call: Caller) -> None:
    text = json.dumps(needed(TOOLS_BY_NAME["fhir_medication_request_create"]))  # type: ignore[arg-type]
    call("fhir_medication_request_create", text[:-1] + ', "dose_value": 0.50, "dose_unit": "mg"}')
    assert '"value":0.50,' in call.calls[0].result


def test_the_default_words_of_a_category_never_label_another_code(call: Caller) -> None:
    who = needed(TOOLS_BY_NAME["fhir_service_request_create"])  # type: ignore[arg-type]
    lab = call("fhir_service_request_create", who)
    imaging = call("fhir_service_request_create", who | {"category_code": "363679005"})
    assert lab["category"][0]["coding"][0]["display"] == "Laboratory procedure"
    assert imaging["category"][0] == {"coding": [{"system": "http://snomed.info/sct", "code": "363679005"}]}


def test_writes_carry_the_tasks_clock_and_one_second_more_each(call: Caller) -> None:
    stamps = []
    for tool, element in (
        ("fhir_medication_request_create", "authoredOn"),
        ("fhir_service_request_create", "authoredOn"),
        ("fhir_appointment_create", "created"),
        ("fhir_communication_create_message", "sent"),
    ):
        stamps.append(call(tool, needed(TOOLS_BY_NAME[tool]))[element])  # type: ignore[arg-type]
        call(tool, {})  # refused, so it takes no second
        call("fhir_condition_search_problems", {"patient": "p-7001"})
    assert stamps == [f"2025-03-14T08:30:0{n}-05:00" for n in (1, 2, 3, 4)]


def test_an_honest_follow_up_visit_that_names_a_specialty_is_booked(call: Caller) -> None:
    answer = call(
        "fhir_appointment_create",
        needed(TOOLS_BY_NAME["fhir_appointment_create"])  # type: ignore[arg-type]
        | {"description": "Follow-up after the cardiology referral"},
    )
    assert answer["status"] == "booked"
    assert [part["actor"]["reference"] for part in answer["participant"]] == [PATIENT, PRACTITIONER]


@pytest.mark.parametrize(
    ("change", "named"),
    [({"status": "ordered"}, "status"), ({"patient_reference": "Patient/nobody"}, "subject")],
)
def test_what_is_not_valid_is_refused_by_the_server_and_nothing_is_stored(
    call: Caller, session: ehr.Session, change: dict[str, str], named: str
) -> None:
    tool = "fhir_medication_request_create"
    answer = call(tool, needed(TOOLS_BY_NAME[tool]) | change)  # type: ignore[arg-type]
    assert named in json.dumps(answer["operation_outcome"])
    assert session.ledger == ()
    assert call.calls[0].error


class _Lost:
    """A session whose server goes away after it has taken the request."""

    def __init__(self, session: ehr.Session) -> None:
        self.session = session
        self.creates = 0

    @property
    def ledger(self) -> Any:
        return self.session.ledger

    def create(self, body: Any, *, call: int | None = None) -> Any:
        self.creates += 1
        raise EnvironmentFault("The EHR does not answer.")


def test_a_create_is_never_sent_twice(session: ehr.Session) -> None:
    lost = _Lost(session)
    call = Caller(Toolbox(lost, Path("/nowhere"), now=NOW))  # type: ignore[arg-type]
    with pytest.raises(EnvironmentFault):
        call("fhir_service_request_create", needed(TOOLS_BY_NAME["fhir_service_request_create"]))  # type: ignore[arg-type]
    assert lost.creates == 1


# ---- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["{", "not json", '{"a": 1,}', '{"a": 1} trailing', "\x00", '{"patient": NaN}'])
def test_arguments_that_are_not_json_are_a_structured_error(call: Caller, text: str) -> None:
    answer = call("fhir_condition_search_problems", text)
    assert "not valid JSON" in answer["error"]
    assert call.calls[0].arguments == text
    assert call.calls[0].request == ""


@pytest.mark.parametrize("text", ["[]", "3", '"x"', "null", "true"])
def test_arguments_that_are_no_object_are_a_structured_error(call: Caller, text: str) -> None:
    assert "not a JSON object" in call("fhir_condition_search_problems", text)["error"]


def test_no_arguments_at_all_are_an_empty_object(call: Caller) -> None:
    assert call("fhir_condition_search_problems", "")["total"] == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "words"),
    [
        ("fhir_observation_search_labs", {"code": 2160}, "code", "must be text"),
        ("fhir_observation_search_labs", {"count": "50"}, "count", "must be a whole number"),
        ("fhir_observation_search_labs", {"count": 0}, "count", "must be 1 or more"),
        ("fhir_observation_search_labs", {"count": True}, "count", "must be a whole number"),
        ("fhir_observation_search_labs", {"loinc": "2160-0"}, "loinc", "there is no such parameter"),
        ("fhir_observation_search_labs", {"base_url": "http://elsewhere"}, "base_url", "there is no such parameter"),
        ("fhir_medication_request_create", {"dose_value": "5"}, "dose_value", "must be a number"),
        ("fhir_medication_request_create", {"dose_value": True}, "dose_value", "must be a number"),
        ("fhir_medication_request_create", {"num_refills": 1.5}, "num_refills", "must be a whole number"),
        ("fhir_medication_request_create", {"num_refills": -1}, "num_refills", "must be 0 or more"),
        ("fhir_medication_request_create", {}, "medication_display", "is required"),
        ("fhir_medication_request_create", {"patient_reference": ""}, "patient_reference", "must not be empty"),
        ("fhir_appointment_create", {"patient_reference": None}, "patient_reference", "is required"),
        ("write_file", {"file_path": "a", "content": "", "mode": "x"}, "mode", "must be 'w' or 'a'"),
        ("write_file", {"file_path": "a"}, "content", "is required"),
        ("write_file", {"file_path": ["a"], "content": "x"}, "file_path", "must be text"),
    ],
)
def test_a_wrong_or_missing_argument_is_named(
    call: Caller, session: ehr.Session, tool: str, arguments: dict[str, Any], field: str, words: str
) -> None:
    answer = call(tool, arguments)
    named = {row["field"]: row["problem"] for row in answer["fields"]}
    assert words in named[field]
    assert field in answer["error"]
    assert call.calls[0].request == ""
    assert session.ledger == ()


def test_an_unknown_tool_is_answered_with_the_tools_there_are(call: Caller) -> None:
    answer = call("fhir_allergy_search", {})
    assert answer["tools"] == list(TOOL_NAMES)
    assert call.calls[0].error


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(TOOL_NAMES),
    arguments=st.dictionaries(
        st.sampled_from(sorted({name for tool in TOOLS for name in tool.model_fields})),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        max_size=6,
    ),
)
def test_whatever_a_model_sends_is_answered_with_json(call: Caller, tool: str, arguments: dict[str, Any]) -> None:
    answer = call(tool, json.dumps(arguments))
    assert isinstance(answer, dict)
    last = call.calls[-1]
    assert last.error == ("error" in answer)
    # What is stored must come back from the disk as it was.
    assert type(last).model_validate_json(last.model_dump_json()) == last
