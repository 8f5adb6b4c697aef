"""The nine searches. A parameter maps to the FHIR search parameter of the same name, `_` to `-`."""

from __future__ import annotations

import base64
import binascii
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field, field_validator

from runtime.tools.declaration import Call, Optional, Place, Tool
from tasks.fhir.resources import Resource, dump_json

_DATE = "a date with an optional prefix: ge2022-01-01 is on or after, le2022-02-01 on or before"
_PATIENT = "the patient's id, or Patient/<id>"
_CATEGORY_SYSTEM = "http://terminology.hl7.org/CodeSystem/observation-category"


def _said(text: str, **more: Any) -> Any:
    return Field(default=None, description=text, **more)


class Search(Tool):
    """A FHIR search over one resource type; `count` rows a page, at most `page_limit` pages."""

    resource_type: ClassVar[str]
    #: A parameter that is always sent with this value, whether the model gives it or not.
    fixed: ClassVar[tuple[tuple[str, str], ...]] = ()
    last = ("count", "page_limit")

    count: int = Field(default=50, ge=1, description="rows a page")
    page_limit: int = Field(default=6, ge=1, description="pages read at most")

    def params(self) -> list[tuple[str, str]]:
        """The search as (FHIR parameter, value), in the order of declaration, `_count` last."""
        fixed = dict(self.fixed)
        own = [
            (name.replace("_", "-"), value)
            for name in type(self).model_fields
            if name not in ("count", "page_limit") and name not in fixed and (value := getattr(self, name)) is not None
        ]
        return [*own, *self.fixed, ("_count", str(self.count))]

    def run(self, place: Place) -> Call:
        params = self.params()
        query = "&".join(f"{name}={quote(value, safe='/:|,')}" for name, value in params)
        page = place.session.search(self.resource_type, params)
        rows, total, pages = list(page.rows), page.total, 1
        while page.next is not None and pages < self.page_limit:
            page = place.session.search(self.resource_type, params, page_token=page.next)
            rows += page.rows
            pages += 1
        entries = ",".join(self.shown(row) for row in rows)
        return Call(
            f'{{"entries":[{entries}],"total":{total},"pages":{pages}}}', False, f"GET {self.resource_type}?{query}"
        )

    def shown(self, row: Resource) -> str:
        """The JSON text of one entry: as stored, unless a subclass unpacks it."""
        return row.raw


class PatientSearch(Search):
    """Search Patient resources by demographics: name, birth date, gender, address, telecom or identifier."""

    tool = "fhir_patient_search_demographics"
    resource_type = "Patient"
    vendor_only = ("own_name", "own_prefix", "partner_name", "partner_prefix", "legal_sex")

    address: Optional = _said("any part of the address")
    address_city: Optional = _said("city")
    address_postalcode: Optional = _said("postal code")
    address_state: Optional = _said("state")
    birthdate: Optional = _said(f"birth date; {_DATE}")
    family: Optional = _said("family name")
    gender: Optional = _said("male, female, other or unknown")
    given: Optional = _said("given name")
    identifier: Optional = _said("an identifier such as the medical record number, or system|value")
    name: Optional = _said("any part of the name")
    telecom: Optional = _said("telephone number or e-mail address")
    own_name: Optional = _said("not available on this server")
    own_prefix: Optional = _said("not available on this server")
    partner_name: Optional = _said("not available on this server")
    partner_prefix: Optional = _said("not available on this server")
    legal_sex: Optional = _said("not available on this server")


class ConditionSearch(Search):
    """Search the patient's problem list and diagnoses (Condition)."""

    tool = "fhir_condition_search_problems"
    resource_type = "Condition"

    subject: Optional = _said("the patient as a reference, Patient/<id>")
    patient: Optional = _said(_PATIENT)
    clinical_status: Optional = _said("active, recurrence, relapse, inactive, remission or resolved")
    category: Optional = _said("problem-list-item or encounter-diagnosis")
    code: Optional = _said("diagnosis code, e.g. an ICD-10-CM code, or system|code")
    onset_date: Optional = _said(f"onset; {_DATE}")
    count: int = Field(default=10, ge=1, description="rows a page")
    page_limit: int = Field(default=3, ge=1, description="pages read at most")


def _only(value: str | None, code: str) -> str | None:
    if value not in (None, code, f"|{code}", f"{_CATEGORY_SYSTEM}|{code}"):
        raise ValueError(f"this tool searches category {code} only; leave the parameter out or give {code}")
    return value


class LabSearch(Search):
    """Search laboratory results (Observation, category laboratory) by code and date."""

    tool = "fhir_observation_search_labs"
    resource_type = "Observation"
    fixed = (("category", "laboratory"),)

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    category: Optional = _said("always laboratory")
    code: Optional = _said("LOINC code, e.g. 2823-3 (potassium); several separated by commas")
    date: Optional = _said(f"when it was measured; {_DATE}")

    @field_validator("category")
    @classmethod
    def _fixed_category(cls, value: str | None) -> str | None:
        return _only(value, "laboratory")


class VitalSearch(Search):
    """Search vital signs (Observation, category vital-signs): blood pressure, pulse, weight and the like."""

    tool = "fhir_observation_search_vitals"
    resource_type = "Observation"
    fixed = (("category", "vital-signs"),)

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    category: Optional = _said("always vital-signs")
    code: Optional = _said("LOINC code, e.g. 85354-9 (blood pressure panel); several separated by commas")
    date: Optional = _said(f"when it was measured; {_DATE}")

    @field_validator("category")
    @classmethod
    def _fixed_category(cls, value: str | None) -> str | None:
        return _only(value, "vital-signs")


class SocialHistorySearch(Search):
    """Search social history (Observation, category social-history): tobacco, alcohol, occupation and the like."""

    tool = "fhir_observation_search_social_history"
    resource_type = "Observation"
    fixed = (("category", "social-history"),)

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    code: Optional = _said("LOINC code, e.g. 72166-2 (tobacco smoking status)")
    date: Optional = _said(f"when it was recorded; {_DATE}")


class ProcedureSearch(Search):
    """Search procedures that were done (Procedure)."""

    tool = "fhir_procedure_search_orders"
    resource_type = "Procedure"

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    date: Optional = _said(f"when it was done; {_DATE}")
    category: Optional = _said("category code, or system|code")


class MedicationSearch(Search):
    """Search medication orders and the medication list (MedicationRequest)."""

    tool = "fhir_medication_request_search_orders"
    resource_type = "MedicationRequest"

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    category: Optional = _said("inpatient, outpatient, community or discharge")
    status: Optional = _said("active, on-hold, cancelled, completed, entered-in-error, stopped, draft or unknown")
    authoredon: Optional = _said(f"when it was ordered; {_DATE}")
    date: Optional = _said(f"when it is to be taken; {_DATE}")
    intent: Optional = _said("order, plan, proposal and the like")


class NoteSearch(Search):
    """Search clinical notes (DocumentReference). The text of each note comes with it, decoded."""

    tool = "fhir_document_reference_search_clinical_notes"
    resource_type = "DocumentReference"

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    category: Optional = _said("document category, e.g. clinical-note")
    type: Optional = _said("kind of note as a LOINC code, e.g. 11506-3 (progress note)")
    date: Optional = _said(f"when the note was made; {_DATE}")
    encounter: Optional = _said("the encounter as a reference, Encounter/<id>")
    count: int = Field(default=5, ge=1, description="notes a page")
    page_limit: int = Field(default=2, ge=1, description="pages read at most")

    def shown(self, row: Resource) -> str:
        """The entry with every text attachment decoded in place; anything else stays as stored."""
        content = row.body.get("content")
        if not isinstance(content, list):
            return row.raw
        decoded = [_with_text(item) for item in content]
        if decoded == content:
            return row.raw
        return dump_json({key: decoded if key == "content" else value for key, value in row.body.items()})


class ServiceRequestSearch(Search):
    """Search orders for tests, imaging, referrals and other services (ServiceRequest)."""

    tool = "fhir_service_request_search"
    resource_type = "ServiceRequest"

    patient: Optional = _said(_PATIENT)
    subject: Optional = _said("the patient as a reference, Patient/<id>")
    status: Optional = _said("draft, active, on-hold, revoked, completed, entered-in-error or unknown")
    intent: Optional = _said("order, plan, proposal and the like")
    category: Optional = _said("category code, or system|code")
    code: Optional = _said("code of the service, or system|code")
    authored: Optional = _said(f"when it was ordered; {_DATE}")
    requester: Optional = _said("who ordered it, e.g. Practitioner/<id>")
    performer: Optional = _said("who is to do it, e.g. Practitioner/<id> or Organization/<id>")
    encounter: Optional = _said("the encounter as a reference, Encounter/<id>")


def _with_text(content: Any) -> Any:
    """One DocumentReference.content with base64 `data` of a text type replaced by the text itself."""
    attachment = content.get("attachment") if isinstance(content, dict) else None
    if not isinstance(attachment, dict) or not isinstance(attachment.get("data"), str):
        return content
    kind, _, rest = str(attachment.get("contentType", "")).partition(";")
    if not kind.strip().lower().startswith("text/"):
        return content
    charset = rest.partition("charset=")[2].strip(" \"'") or "utf-8"
    try:
        text = base64.b64decode("".join(attachment["data"].split()), validate=True).decode(charset)
    except (binascii.Error, UnicodeDecodeError, LookupError):
        return content
    return content | {"attachment": attachment | {"data": text}}
