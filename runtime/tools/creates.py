"""The four creates, as FHIR R4 resources. Times are the task's own clock, never the wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field

from runtime.tools.declaration import Amount, Call, Optional, Place, Required, Tool

_RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm"
_LOINC = "http://loinc.org"
_SNOMED = "http://snomed.info/sct"
_UCUM = "http://unitsofmeasure.org"
_APPOINTMENT_TYPE = "http://terminology.hl7.org/CodeSystem/v2-0276"

#: What models write for a length of time -> UCUM.
_UCUM_TIME = {
    "d": "d", "day": "d", "days": "d", "wk": "wk", "week": "wk", "weeks": "wk", "mo": "mo", "month": "mo",
    "months": "mo", "h": "h", "hour": "h", "hours": "h", "a": "a", "year": "a", "years": "a",
    "min": "min", "minute": "min", "minutes": "min",
}  # fmt: skip

_PATIENT = "the patient as a reference, Patient/<id>"
_NOTE = "free text that goes with it"
_ENCOUNTER = "the encounter as a reference, Encounter/<id>"
_REASON_SYSTEM = "code system of reason_code, e.g. http://hl7.org/fhir/sid/icd-10-cm"


def _need(text: str) -> Any:
    return Field(description=text)


def _said(text: str, default: str | None = None) -> Any:
    return Field(default=default, description=text)


def _filled(body: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping without what is None, {} or []: R4 has no empty elements."""
    return {key: value for key, value in body.items() if value is not None and value != {} and value != []}


def _reference(value: str | None) -> dict[str, Any] | None:
    return {"reference": value} if value else None


def _concept(code: str | None, display: str | None, system: str | None) -> dict[str, Any] | None:
    """A CodeableConcept from a code and its words; either may be missing, and None where both are."""
    coding = _filled({"system": system, "code": code, "display": display}) if code else {}
    return _filled({"coding": [coding] if coding else None, "text": display}) or None


def _quantity(value: Any, unit: str | None) -> dict[str, Any] | None:
    return _filled({"value": value, "unit": unit}) or None


def _listed(value: Any) -> list[Any] | None:
    return None if value is None else [value]


class Create(Tool):
    """A create: the resource is stored once, and the answer is the stored resource."""

    resource_type: ClassVar[str]
    writes = True

    def resource(self, stamp: datetime) -> dict[str, Any]:
        """The resource to store, with `stamp` as the time at which it was made."""
        raise NotImplementedError

    def run(self, place: Place) -> Call:
        # One create, one request: a repeat after a time-out could order twice, so there is none.
        stored = place.session.create(
            {"resourceType": self.resource_type} | _filled(self.resource(place.stamp)), call=place.number
        )
        return Call(stored.raw, False, f"POST {self.resource_type}")


class MedicationRequestCreate(Create):
    """Order a medication (MedicationRequest) with dose, frequency, route, duration and quantity. An order that
    stops or replaces another one says so in status or note_text."""

    tool = "fhir_medication_request_create"
    resource_type = "MedicationRequest"

    patient_reference: Required = _need(_PATIENT)
    medication_display: Required = _need("name of the drug, with strength and form if known")
    requester_reference: Required = _need("who orders it, Practitioner/<id>")
    medication_code: Optional = _said("RxNorm code of the drug")
    medication_system: str = _said("code system of medication_code", _RXNORM)
    status: str = _said("active, on-hold, cancelled, completed, entered-in-error, stopped, draft or unknown", "active")
    intent: str = _said("order, plan, proposal and the like", "order")
    dose_value: Amount | None = Field(default=None, description="amount of one dose")
    dose_unit: Optional = _said("unit of the dose, e.g. mg")
    frequency_text: Optional = _said("how often, e.g. once daily, BID, every 8 hours")
    route_code: Optional = _said("SNOMED CT code of the route")
    route_display: Optional = _said("route in words, e.g. oral")
    duration_value: Amount | None = Field(default=None, description="how long it is to be taken")
    duration_unit: Optional = _said("unit of the duration: d, wk or mo")
    dispense_quantity: Amount | None = Field(default=None, description="amount to dispense")
    dispense_unit: Optional = _said("unit of dispense_quantity, e.g. tablet")
    num_refills: int | None = Field(default=None, ge=0, description="number of refills")
    reason_code: Optional = _said("code of the reason")
    reason_display: Optional = _said("reason in words")
    reason_system: Optional = _said(_REASON_SYSTEM)
    note_text: Optional = _said(_NOTE)
    encounter_reference: Optional = _said(_ENCOUNTER)
    priority: Optional = _said("routine, urgent, asap or stat")

    def resource(self, stamp: datetime) -> dict[str, Any]:
        unit = _UCUM_TIME.get((self.duration_unit or "").strip().lower())
        bounds = _quantity(self.duration_value, self.duration_unit)
        if bounds and unit and self.duration_value is not None:
            bounds |= {"system": _UCUM, "code": unit}
        timing = _filled(
            {
                "repeat": _filled({"boundsDuration": bounds}),
                "code": _filled({"text": self.frequency_text}),
            }
        )
        route = _concept(self.route_code, self.route_display, _SNOMED)
        dose = _quantity(self.dose_value, self.dose_unit)
        dosage = _filled(
            {
                "text": self.frequency_text,
                "timing": timing,
                "route": route,
                "doseAndRate": [{"doseQuantity": dose}] if dose else None,
            }
        )
        dispense = _filled(
            {
                "numberOfRepeatsAllowed": self.num_refills,
                "quantity": _quantity(self.dispense_quantity, self.dispense_unit),
            }
        )
        return {
            "status": self.status,
            "intent": self.intent,
            "priority": self.priority,
            "medicationCodeableConcept": _concept(
                self.medication_code, self.medication_display, self.medication_system
            ),
            "subject": _reference(self.patient_reference),
            "encounter": _reference(self.encounter_reference),
            "authoredOn": stamp.isoformat(timespec="seconds"),
            "requester": _reference(self.requester_reference),
            "reasonCode": _listed(_concept(self.reason_code, self.reason_display, self.reason_system)),
            "note": [{"text": self.note_text}] if self.note_text else None,
            "dosageInstruction": [dosage] if dosage else None,
            "dispenseRequest": dispense,
        }


class ServiceRequestCreate(Create):
    """Order a laboratory test, imaging study, referral, procedure or other service (ServiceRequest)."""

    tool = "fhir_service_request_create"
    resource_type = "ServiceRequest"

    patient_reference: Required = _need(_PATIENT)
    code_code: Required = _need("code of the service: LOINC, CPT or SNOMED CT")
    code_display: Required = _need("name of the service")
    requester_reference: Required = _need("who orders it, Practitioner/<id>")
    category_code: str = _said(
        "SNOMED CT category: 108252007 laboratory, 363679005 imaging, 387713003 surgery, 3457005 referral",
        "108252007",
    )
    category_display: str = _said("category in words", "Laboratory procedure")
    category_system: str = _said("code system of category_code", _SNOMED)
    code_system: str = _said("code system of code_code", _LOINC)
    status: str = _said("draft, active, on-hold, revoked, completed, entered-in-error or unknown", "active")
    intent: str = _said("order, plan, proposal and the like", "order")
    priority: Optional = _said("routine, urgent, asap or stat")
    encounter_reference: Optional = _said(_ENCOUNTER)
    performer_reference: Optional = _said("who is to do it, e.g. Organization/<id>")
    reason_code: Optional = _said("code of the reason")
    reason_display: Optional = _said("reason in words")
    reason_system: Optional = _said(_REASON_SYSTEM)
    note_text: Optional = _said(_NOTE)
    occurrence_datetime: Optional = _said("when it is to be done, as an ISO date or date-time")
    body_site_code: Optional = _said("code of the body site")
    body_site_display: Optional = _said("body site in words, with the side")
    body_site_system: str = _said("code system of body_site_code", _SNOMED)

    def resource(self, stamp: datetime) -> dict[str, Any]:
        return {
            "status": self.status,
            "intent": self.intent,
            "category": _listed(_concept(self.category_code, self._category_words(), self.category_system)),
            "priority": self.priority,
            "code": _concept(self.code_code, self.code_display, self.code_system),
            "subject": _reference(self.patient_reference),
            "encounter": _reference(self.encounter_reference),
            "occurrenceDateTime": self.occurrence_datetime,
            "authoredOn": stamp.isoformat(timespec="seconds"),
            "requester": _reference(self.requester_reference),
            "performer": _listed(_reference(self.performer_reference)),
            "reasonCode": _listed(_concept(self.reason_code, self.reason_display, self.reason_system)),
            "bodySite": _listed(_concept(self.body_site_code, self.body_site_display, self.body_site_system)),
            "note": [{"text": self.note_text}] if self.note_text else None,
        }

    def _category_words(self) -> str | None:
        """The words given; the default words belong to the default code alone and never label another one."""
        if "category_display" in self.model_fields_set or self.category_code == "108252007":
            return self.category_display
        return None


class AppointmentCreate(Create):
    """Book a visit (Appointment) of the patient with a practitioner. based_on names the order or referral that it
    fulfils, where there is one."""

    tool = "fhir_appointment_create"
    resource_type = "Appointment"

    patient_reference: Required = _need(_PATIENT)
    practitioner_reference: Required = _need("whom the patient sees, Practitioner/<id>")
    description: Required = _need("what the visit is for")
    start: Optional = _said("start as an ISO date-time with offset")
    end: Optional = _said("end as an ISO date-time with offset")
    status: str = _said("proposed, pending, booked, arrived, fulfilled, cancelled, noshow or waitlist", "booked")
    based_on: Optional = _said("the order that the visit fulfils, ServiceRequest/<id>")
    appointment_type_code: Optional = _said("kind of visit, e.g. FOLLOWUP")
    appointment_type_display: Optional = _said("kind of visit in words")
    appointment_type_system: str = _said("code system of appointment_type_code", _APPOINTMENT_TYPE)
    reason_code: Optional = _said("code of the reason")
    reason_display: Optional = _said("reason in words")
    reason_system: Optional = _said(_REASON_SYSTEM)
    note_text: Optional = _said(_NOTE)
    service_type_code: Optional = _said("code of the kind of service")
    service_type_display: Optional = _said("kind of service in words")
    minutes_duration: int | None = Field(default=None, ge=1, description="length in minutes")

    def resource(self, stamp: datetime) -> dict[str, Any]:
        return {
            "status": self.status,
            "serviceType": _listed(_concept(self.service_type_code, self.service_type_display, None)),
            "appointmentType": _concept(
                self.appointment_type_code, self.appointment_type_display, self.appointment_type_system
            ),
            "reasonCode": _listed(_concept(self.reason_code, self.reason_display, self.reason_system)),
            "description": self.description,
            "start": self.start,
            "end": self.end,
            "minutesDuration": self.minutes_duration,
            "created": stamp.isoformat(timespec="seconds"),
            "comment": self.note_text,
            "basedOn": _listed(_reference(self.based_on)),
            "participant": [
                {"actor": _reference(actor), "status": "accepted"}
                for actor in (self.patient_reference, self.practitioner_reference)
            ],
        }


class CommunicationCreate(Create):
    """Send a message about the patient (Communication) to a clinician or the patient."""

    tool = "fhir_communication_create_message"
    resource_type = "Communication"

    patient_reference: Required = _need(_PATIENT)
    message_text: Required = _need("the message")
    recipient_reference: Optional = _said("who receives it, e.g. Practitioner/<id>")
    based_on_service_request: Optional = _said("the order that it is about, ServiceRequest/<id>")
    part_of_task: Optional = _said("the task that it is part of, Task/<id>")
    in_response_to_communication: Optional = _said("the message that it answers, Communication/<id>")
    encounter_reference: Optional = _said(_ENCOUNTER)
    sender_reference: Optional = _said("who sends it, e.g. Practitioner/<id>")
    status: str = _said(
        "preparation, in-progress, not-done, on-hold, stopped, completed, entered-in-error or unknown", "in-progress"
    )

    def resource(self, stamp: datetime) -> dict[str, Any]:
        return {
            "basedOn": _listed(_reference(self.based_on_service_request)),
            "partOf": _listed(_reference(self.part_of_task)),
            "inResponseTo": _listed(_reference(self.in_response_to_communication)),
            "status": self.status,
            "subject": _reference(self.patient_reference),
            "encounter": _reference(self.encounter_reference),
            "sent": stamp.isoformat(timespec="seconds"),
            "recipient": _listed(_reference(self.recipient_reference)),
            "sender": _reference(self.sender_reference),
            "payload": [{"contentString": self.message_text}],
        }
