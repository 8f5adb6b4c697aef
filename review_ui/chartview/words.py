"""Any resource in a line of clinical words, and as a table of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from review_ui.chartview.dosage import dose_words
from review_ui.chartview.elements import When, code_of, concept, each, quantity, reference_display, time_of
from review_ui.chartview.facts import reaction_words
from review_ui.chartview.labs import is_kind, point_of
from review_ui.chartview.medications import drug_words
from review_ui.chartview.notes import attachment_text, note_title
from tasks.fhir.chart import Records
from tasks.fhir.resources import Resource

#: Resource type -> what a physician calls it.
KINDS = {
    "AllergyIntolerance": "Allergy", "Appointment": "Appointment", "CarePlan": "Care plan", "CareTeam": "Care team",
    "Claim": "Claim", "Communication": "Message", "Composition": "Note", "Condition": "Problem", "Consent": "Consent",
    "Coverage": "Coverage", "Device": "Device", "DiagnosticReport": "Report", "DocumentReference": "Note",
    "Encounter": "Visit", "ExplanationOfBenefit": "Benefit statement", "FamilyMemberHistory": "Family history",
    "Goal": "Goal", "ImagingStudy": "Imaging", "Immunization": "Immunization", "Location": "Place",
    "Medication": "Drug", "MedicationAdministration": "Dose given", "MedicationDispense": "Fill",
    "MedicationRequest": "Medication order", "MedicationStatement": "Medication, as reported", "Observation": "Result",
    "Organization": "Organization", "Patient": "Patient", "Practitioner": "Clinician", "PractitionerRole": "Role",
    "Procedure": "Procedure", "Provenance": "Origin", "ServiceRequest": "Order", "Specimen": "Specimen",
}  # fmt: skip
_PLURALS = {
    "Allergy": "Allergies", "Medication order": "Medication orders", "Dose given": "Doses given",
    "Family history": "Family history", "Imaging": "Imaging", "Medication, as reported": "Medications, as reported",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A resource in one line: what it is, what it says, its details, when. `other`: it is about another patient."""

    ref: str
    kind: str
    what: str
    detail: str
    when: When | None
    other: bool = False


def kind_words(type: str) -> str:
    """ "MedicationRequest" -> "Medication order"; a type without a name here is split at its capitals."""
    return KINDS.get(type) or re.sub(r"(?<!^)([A-Z])", lambda found: f" {found[1].lower()}", type)


def kinds_words(type: str) -> str:
    """The same for several."""
    one = kind_words(type)
    return _PLURALS.get(one, f"{one}s")


def line(resource: Resource, records: Records, zone: tzinfo) -> Line:
    """The resource in one line."""
    body = resource.body
    what, detail = _said(resource, records, zone)
    kind = kind_words(resource.type)
    if resource.type == "Observation":
        kind = "Vital sign" if is_kind(body, "vital-signs") else "Lab" if is_kind(body, "laboratory") else "Finding"
    return Line(resource.ref, kind, what or "(no name)", detail, time_of(body, zone))


def _said(resource: Resource, records: Records, zone: tzinfo) -> tuple[str, str]:
    body = resource.body
    status = str(body.get("status") or "")
    match resource.type:
        case "Observation":
            point = point_of(resource, zone)
            value = point.written if point else _value(body)
            name = concept(body.get("code"))
            return (f"{name}: {value}" if value else name), status
        case "MedicationRequest" | "MedicationStatement" | "MedicationAdministration" | "MedicationDispense":
            refused = "do not give" if body.get("doNotPerform") is True else ""
            told = [dose_words(resource, zone=zone), refused, status.replace("-", " ")]
            return drug_words(resource, records), ", ".join(filter(None, told))
        case "Condition":
            sure = code_of(body.get("verificationStatus"))
            return concept(body.get("code")), ", ".join(
                filter(None, [code_of(body.get("clinicalStatus")), sure if sure != "confirmed" else ""])
            )
        case "AllergyIntolerance":
            return concept(body.get("code")), "; ".join(
                filter(None, [reaction_words(body), code_of(body.get("clinicalStatus"))])
            )
        case "Encounter":
            kinds = [concept(kind) for kind in each(body.get("type"))]
            return next(filter(None, kinds), concept(body.get("class"))), status
        case "Patient":
            return "The patient's own entry", ", ".join(
                filter(None, [str(body.get("gender") or ""), str(body.get("birthDate") or "")])
            )
        case "DocumentReference" | "Composition":
            return note_title(body), status
        case "Communication":
            texts = [str(part.get("contentString") or "") for part in each(body.get("payload"))]
            return _short(" ".join(texts)), status
        case "Appointment":
            return str(body.get("description") or concept(body.get("serviceType")) or "Appointment"), status
        case "Practitioner" | "Organization" | "Location":
            names = body.get("name")
            called = names if isinstance(names, str) else next((_person(one) for one in each(names)), "")
            return called or resource.id, ""
        case "ImagingStudy":
            return str(body.get("description") or "Imaging study"), status
        case _:
            coded = concept(body.get("code")) or concept(body.get("vaccineCode")) or concept(body.get("category"))
            refused = "not to be done" if body.get("doNotPerform") is True else ""
            return coded or concept(body.get("type")) or resource.id, ", ".join(filter(None, [refused, status]))


def _person(name: Mapping[str, Any]) -> str:
    if isinstance(name.get("text"), str):
        return str(name["text"])
    given = name.get("given")
    return " ".join(map(str, [*(given if isinstance(given, list) else []), name.get("family") or ""])).strip()


def _value(body: dict[str, Any]) -> str:
    return (
        quantity(body.get("valueQuantity"))
        or concept(body.get("valueCodeableConcept"))
        or str(body.get("valueString") or "")
    )


def _short(text: str, length: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


@dataclass(frozen=True)
class Field:
    """One field of a resource: its path in words, its path as FHIR writes it, its value as text."""

    name: str
    path: str
    value: str


def fields(resource: Resource) -> list[Field]:
    """Every value of the resource as a row, concepts and quantities in one piece, text attachments decoded."""
    return list(_fields(resource.body, ""))


def _fields(value: Any, path: str) -> Iterator[Field]:
    if isinstance(value, dict):
        if path and (words := _whole(value)):
            yield Field(_words(path), path, words)
            return
        for key, inner in value.items():
            if path or key not in {"resourceType", "meta", "text"}:
                yield from _fields(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            yield from _fields(inner, path if len(value) == 1 else f"{path} ({number})")
    elif value is not None:
        yield Field(_words(path), path, "yes" if value is True else "no" if value is False else str(value))


def _whole(value: dict[str, Any]) -> str:
    """An element that reads best in one piece."""
    if "coding" in value or set(value) == {"text"}:
        words = concept(value)
        codes = ", ".join(
            f"{coding.get('code')}" + (f" {system}" if (system := _system(coding.get("system"))) else "")
            for coding in each(value.get("coding"))
            if coding.get("code")
        )
        return f"{words} ({codes})" if codes and words else words or codes
    if "value" in value and set(value) <= {"value", "unit", "system", "code", "comparator"} and "unit" in value:
        return quantity(value)
    if "reference" in value and set(value) <= {"reference", "display", "type"}:
        shown = reference_display(value)
        return shown if shown == value["reference"] else f"{shown} ({value['reference']})"
    if "contentType" in value and (text := attachment_text(value)):
        return text
    if set(value) and set(value) <= {"start", "end"}:
        return f"{value.get('start', '…')} to {value.get('end', '…')}"
    return ""


_SYSTEMS = {
    "http://loinc.org": "LOINC", "http://snomed.info/sct": "SNOMED CT", "http://hl7.org/fhir/sid/cvx": "CVX",
    "http://hl7.org/fhir/sid/icd-10-cm": "ICD-10-CM", "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://unitsofmeasure.org": "UCUM",
}  # fmt: skip


def _system(system: Any) -> str:
    return _SYSTEMS.get(str(system), "")


def _words(path: str) -> str:
    last = path.rsplit(".", 2)[-2:] if path.count(".") > 1 else path.split(".")
    spaced = [re.sub(r"(?<=[a-z])([A-Z])", lambda found: f" {found[1].lower()}", part) for part in last]
    words = ", ".join(spaced)
    return words[:1].upper() + words[1:]
