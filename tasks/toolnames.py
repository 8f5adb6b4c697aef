"""The names of the 14 tools that an agent may call (profile `paper`): the one list that packages and runtime share."""

from __future__ import annotations

WRITE_FILE = "write_file"

#: The tools that write into the record; `save_as` in a solution plan belongs to these alone.
CREATE_TOOLS: tuple[str, ...] = (
    "fhir_medication_request_create",
    "fhir_service_request_create",
    "fhir_appointment_create",
    "fhir_communication_create_message",
)

#: The tools that read the record.
READ_TOOLS: tuple[str, ...] = (
    "fhir_patient_search_demographics",
    "fhir_condition_search_problems",
    "fhir_observation_search_labs",
    "fhir_observation_search_vitals",
    "fhir_observation_search_social_history",
    "fhir_procedure_search_orders",
    "fhir_medication_request_search_orders",
    "fhir_document_reference_search_clinical_notes",
    "fhir_service_request_search",
)

#: In the order that a model is shown them.
TOOL_NAMES: tuple[str, ...] = (*READ_TOOLS, *CREATE_TOOLS, WRITE_FILE)
