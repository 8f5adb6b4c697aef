"""Charting: write one synthetic record, resource by resource, so that it rebuilds byte for byte.

A `Record` collects FHIR R4 resources and gives them out as `chart/<Type>.ndjson`, one a line, sorted by id (the Bulk
Data layout of a task package). Ids are short hashes of the task, the type and a key that the author names: they say
nothing about the resource, and one stays the same when others are added. Numbers that nobody decided (a pulse, a
platelet count) come from `jitter`, a hash as well, so that adding a visit does not move the values of the others.

Times are written as the author gives them, with their offset. `bundle()` refuses what was recorded after the task's
clock, so that a chart cannot know its own future.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from tasks.errors import ChartError
from tasks.fhir.resources import Number, dump_json

LOINC = "http://loinc.org"
RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm"
ICD10CM = "http://hl7.org/fhir/sid/icd-10-cm"
SNOMED = "http://snomed.info/sct"
CVX = "http://hl7.org/fhir/sid/cvx"
UCUM = "http://unitsofmeasure.org"
_HL7 = "http://terminology.hl7.org/CodeSystem/"
_FLAGS = {"H": "High", "L": "Low", "N": "Normal", "A": "Abnormal"}

Body = dict[str, Any]


class Code(NamedTuple):
    """A concept: its text, and a code of `system` where one is certain. Text alone is a valid concept."""

    text: str
    code: str = ""
    system: str = ""

    def concept(self) -> Body:
        """The CodeableConcept."""
        coding = [{"system": self.system, "code": self.code, "display": self.text}] if self.code else []
        return {**({"coding": coding} if coding else {}), "text": self.text}


class Analyte(NamedTuple):
    """A laboratory test or vital sign: unit as printed and in UCUM, decimal places, reference range."""

    code: Code
    unit: str
    ucum: str
    places: int = 0
    low: float | None = None
    high: float | None = None


@dataclass
class Record:
    """The resources of one chart. `task` seeds the ids and the undecided numbers; `subject` is the patient's reference
    that every clinical resource gets unless it names another."""

    task: str
    subject: str
    now: datetime
    _bodies: dict[str, dict[str, Body]] = field(default_factory=dict)

    # ---- ids and undecided numbers ------------------------------------------------------------------------------

    def id(self, kind: str, key: str) -> str:
        """The id of the resource that the author calls `key`."""
        prefix = "".join(letter for letter in kind if letter.isupper()).lower()
        return f"{prefix}-{hashlib.sha256(f'{self.task}|{kind}|{key}'.encode()).hexdigest()[:10]}"

    def ref(self, kind: str, key: str) -> str:
        """`Type/id` of the resource that the author calls `key`."""
        return f"{kind}/{self.id(kind, key)}"

    def jitter(self, key: str, spread: float = 1.0) -> float:
        """A number in [-spread, spread] that depends on the task and the key alone."""
        drawn = int.from_bytes(hashlib.sha256(f"{self.task}|jitter|{key}".encode()).digest()[:6], "big")
        return (drawn / (2**48 - 1) * 2 - 1) * spread

    # ---- the record's own resources -----------------------------------------------------------------------------

    def add(self, kind: str, id_: str, body: Mapping[str, Any]) -> str:
        """Put one resource in; returns its reference. Elements that are None are left out."""
        bodies = self._bodies.setdefault(kind, {})
        if id_ in bodies:
            raise ChartError("two resources have the same id", where=f"{kind}/{id_}")
        bodies[id_] = {
            "resourceType": kind,
            "id": id_,
            **{name: value for name, value in body.items() if value is not None},
        }
        return f"{kind}/{id_}"

    def encounter(
        self, key: str, start: str, end: str, *, kind: str, reason: str, by: str, at: str, setting: str = "AMB"
    ) -> str:
        """A finished encounter. `setting` is the act code: AMB, VR (telephone, portal), EMER, IMP."""
        display = {"AMB": "ambulatory", "VR": "virtual", "EMER": "emergency", "IMP": "inpatient encounter"}[setting]
        return self.add(
            "Encounter",
            self.id("Encounter", key),
            {
                "status": "finished",
                "class": {"system": _HL7 + "v3-ActCode", "code": setting, "display": display},
                "type": [{"text": kind}],
                "subject": {"reference": self.subject},
                "participant": [{"individual": {"reference": by}}],
                "period": {"start": start, "end": end},
                "reasonCode": [{"text": reason}],
                "serviceProvider": {"reference": at},
            },
        )

    def result(
        self,
        key: str,
        test: Analyte,
        value: float | str,
        at: str,
        *,
        issued: str | None = None,
        encounter: str | None = None,
        by: str | None = None,
        comment: str | None = None,
        flag: str | None = None,
        subject: str | None = None,
        category: str = "laboratory",
    ) -> str:
        """One result. A number gets the analyte's decimals, range and flag; a text is served as text."""
        quantity: Body | None = None
        interpretation = flag
        if not isinstance(value, str):
            written = f"{value:.{test.places}f}"
            number = int(written) if test.places == 0 else Number(written)
            quantity = {"value": number, "unit": test.unit, "system": UCUM, "code": test.ucum}
            if test.low is not None or test.high is not None:
                low, high = float(written) < (test.low or float("-inf")), float(written) > (test.high or float("inf"))
                interpretation = flag or ("L" if low else "H" if high else "N")
        ranges = {
            name: {"value": Number(str(limit)), "unit": test.unit}
            for name, limit in (("low", test.low), ("high", test.high))
            if limit is not None
        }
        display = {"laboratory": "Laboratory", "vital-signs": "Vital Signs", "social-history": "Social History"}
        return self.add(
            "Observation",
            self.id("Observation", key),
            {
                "status": "final",
                "category": [
                    {"coding": [{"system": _HL7 + "observation-category", "code": category,
                                 "display": display[category]}]}
                ],
                "code": test.code.concept(),
                "subject": {"reference": subject or self.subject},
                "encounter": {"reference": encounter} if encounter else None,
                "effectiveDateTime": at,
                "issued": issued,
                "performer": [{"reference": by}] if by else None,
                "valueQuantity": quantity,
                "valueString": value if isinstance(value, str) else None,
                "interpretation": [
                    {"coding": [{"system": _HL7 + "v3-ObservationInterpretation", "code": interpretation,
                                 "display": _FLAGS[interpretation]}]}
                ] if interpretation and category == "laboratory" else None,
                "note": [{"text": comment}] if comment else None,
                "referenceRange": [ranges] if ranges else None,
            },
        )  # fmt: skip

    def blood_pressure(self, key: str, systolic: int, diastolic: int, at: str, encounter: str) -> str:
        """A blood pressure panel, mm[Hg]."""
        parts = [
            (Code("Systolic blood pressure", "8480-6", LOINC), systolic),
            (Code("Diastolic blood pressure", "8462-4", LOINC), diastolic),
        ]
        return self.add(
            "Observation",
            self.id("Observation", key),
            {
                "status": "final",
                "category": [
                    {"coding": [{"system": _HL7 + "observation-category", "code": "vital-signs",
                                 "display": "Vital Signs"}]}
                ],
                "code": Code("Blood pressure panel", "85354-9", LOINC).concept(),
                "subject": {"reference": self.subject},
                "encounter": {"reference": encounter},
                "effectiveDateTime": at,
                "component": [
                    {
                        "code": code.concept(),
                        "valueQuantity": {"value": value, "unit": "mmHg", "system": UCUM, "code": "mm[Hg]"},
                    }
                    for code, value in parts
                ],
            },
        )  # fmt: skip

    def report(self, key: str, name: Code, at: str, issued: str, results: Sequence[str], by: str) -> str:
        """A laboratory report over results that are already in the record."""
        return self.add(
            "DiagnosticReport",
            self.id("DiagnosticReport", key),
            {
                "status": "final",
                "category": [{"coding": [{"system": _HL7 + "v2-0074", "code": "LAB", "display": "Laboratory"}]}],
                "code": name.concept(),
                "subject": {"reference": self.subject},
                "effectiveDateTime": at,
                "issued": issued,
                "performer": [{"reference": by}],
                "result": [{"reference": result} for result in results],
            },
        )

    def note(
        self,
        key: str,
        kind: Code,
        title: str,
        text: str,
        filed: str,
        *,
        by: str,
        encounter: str | None = None,
        period: tuple[str, str] | None = None,
    ) -> str:
        """A note as plain text in base64. `filed` is when it reached the record, `period` what it is about."""
        context: Body = {}
        if encounter:
            context["encounter"] = [{"reference": encounter}]
        if period:
            context["period"] = {"start": period[0], "end": period[1]}
        return self.add(
            "DocumentReference",
            self.id("DocumentReference", key),
            {
                "status": "current",
                "type": kind.concept(),
                "category": [{"text": "Clinical Note"}],
                "subject": {"reference": self.subject},
                "date": filed,
                "author": [{"reference": by}],
                "description": title,
                "content": [
                    {
                        "attachment": {
                            "contentType": "text/plain",
                            "data": base64.b64encode(text.encode()).decode(),
                            "title": title,
                            "creation": filed,
                        }
                    }
                ],
                "context": context or None,
            },
        )  # fmt: skip

    def problem(
        self,
        key: str,
        code: Code,
        *,
        onset: str | None,
        recorded: str,
        status: str = "active",
        abated: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> str:
        """A problem-list entry. `status`: active, resolved, inactive."""
        return self.add(
            "Condition",
            self.id("Condition", key),
            {
                "clinicalStatus": {"coding": [{"system": _HL7 + "condition-clinical", "code": status}]},
                "verificationStatus": {"coding": [{"system": _HL7 + "condition-ver-status", "code": "confirmed"}]},
                "category": [
                    {"coding": [{"system": _HL7 + "condition-category", "code": "problem-list-item",
                                 "display": "Problem List Item"}]}
                ],
                "code": code.concept(),
                "subject": {"reference": self.subject},
                "onsetDateTime": onset,
                "abatementDateTime": abated,
                "recordedDate": recorded,
                "recorder": {"reference": by} if by else None,
                "note": [{"text": note}] if note else None,
            },
        )  # fmt: skip

    def prescription(
        self,
        key: str,
        drug: Code,
        sig: str,
        written: str,
        *,
        by: str,
        status: str = "active",
        dose: tuple[float, str] | None = None,
        why: str | None = None,
        stopped_for: str | None = None,
        encounter: str | None = None,
        days: int | None = 90,
        refills: int = 3,
        note: str | None = None,
        reported: bool = False,
    ) -> str:
        """A prescription, or what the patient is reported to take. `stopped_for` is the list's reason for stopping."""
        amount: Body | None = None
        if dose:
            number = int(dose[0]) if float(dose[0]).is_integer() else Number(str(dose[0]))
            amount = {"value": number, "unit": dose[1], "system": UCUM, "code": {"units": "[iU]"}.get(dose[1], dose[1])}
        supply: Body | None = None
        if days and not reported:
            supply = {
                "numberOfRepeatsAllowed": refills,
                "expectedSupplyDuration": {"value": days, "unit": "days", "system": UCUM, "code": "d"},
            }
        return self.add(
            "MedicationRequest",
            self.id("MedicationRequest", key),
            {
                "status": status,
                "statusReason": {"text": stopped_for} if stopped_for else None,
                "intent": "order",
                "category": [
                    {"coding": [{"system": _HL7 + "medicationrequest-category", "code": "community",
                                 "display": "Community"}]}
                ],
                "reportedBoolean": True if reported else None,
                "medicationCodeableConcept": drug.concept(),
                "subject": {"reference": self.subject},
                "encounter": {"reference": encounter} if encounter else None,
                "authoredOn": written,
                "requester": {"reference": by},
                "reasonCode": [{"text": why}] if why else None,
                "note": [{"text": note}] if note else None,
                "dosageInstruction": [{"text": sig, **({"doseAndRate": [{"doseQuantity": amount}]} if amount else {})}],
                "dispenseRequest": supply,
            },
        )  # fmt: skip

    def procedure(self, key: str, code: Code, at: str, *, by: str | None = None, note: str | None = None) -> str:
        """A procedure that was done."""
        return self.add(
            "Procedure",
            self.id("Procedure", key),
            {
                "status": "completed",
                "code": code.concept(),
                "subject": {"reference": self.subject},
                "performedDateTime": at,
                "performer": [{"actor": {"reference": by}}] if by else None,
                "note": [{"text": note}] if note else None,
            },
        )

    def service(
        self,
        key: str,
        code: Code,
        written: str,
        *,
        by: str,
        status: str = "completed",
        category: str = "",
        why: str | None = None,
        encounter: str | None = None,
        note: str | None = None,
        priority: str = "routine",
    ) -> str:
        """An order for a test, an image or a referral."""
        return self.add(
            "ServiceRequest",
            self.id("ServiceRequest", key),
            {
                "status": status,
                "intent": "order",
                "category": [{"text": category}] if category else None,
                "priority": priority,
                "code": code.concept(),
                "subject": {"reference": self.subject},
                "encounter": {"reference": encounter} if encounter else None,
                "authoredOn": written,
                "requester": {"reference": by},
                "reasonCode": [{"text": why}] if why else None,
                "note": [{"text": note}] if note else None,
            },
        )  # fmt: skip

    def vaccine(self, key: str, code: Code, at: str, *, status: str = "completed", why: str | None = None) -> str:
        """An immunization, or why it was not given."""
        return self.add(
            "Immunization",
            self.id("Immunization", key),
            {
                "status": status,
                "statusReason": {"text": why} if why else None,
                "vaccineCode": code.concept(),
                "patient": {"reference": self.subject},
                "occurrenceDateTime": at,
                "primarySource": True,
            },
        )

    def allergy(
        self, key: str, code: Code, recorded: str, *, kind: str, criticality: str, reaction: str, by: str
    ) -> str:
        """An allergy or intolerance (`kind`)."""
        return self.add(
            "AllergyIntolerance",
            self.id("AllergyIntolerance", key),
            {
                "clinicalStatus": {"coding": [{"system": _HL7 + "allergyintolerance-clinical", "code": "active"}]},
                "verificationStatus": {
                    "coding": [{"system": _HL7 + "allergyintolerance-verification", "code": "confirmed"}]
                },
                "type": kind,
                "category": ["medication"],
                "criticality": criticality,
                "code": code.concept(),
                "patient": {"reference": self.subject},
                "recordedDate": recorded,
                "recorder": {"reference": by},
                "reaction": [{"manifestation": [{"text": reaction}]}],
            },
        )

    # ---- out ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(len(bodies) for bodies in self._bodies.values())

    def bundle(self) -> dict[str, bytes]:
        """`chart/<Type>.ndjson` -> bytes. Raises ChartError for what was recorded after `now`."""
        files = {}
        for kind, bodies in sorted(self._bodies.items()):
            for id_, body in bodies.items():
                for path, written in _times(body):
                    if _after(written, self.now):
                        raise ChartError(f"{path} is after the task's clock", where=f"{kind}/{id_}")
            lines = [dump_json(bodies[id_]) for id_ in sorted(bodies)]
            files[f"chart/{kind}.ndjson"] = ("\n".join(lines) + "\n").encode()
        return files


#: Elements that say when something was recorded or happened. A birth date, an expiry or a due date is no such thing.
_RECORDED = frozenset(
    {"authoredOn", "recordedDate", "issued", "date", "effectiveDateTime", "performedDateTime", "occurrenceDateTime",
     "creation", "onsetDateTime", "abatementDateTime", "start", "end"}
)  # fmt: skip


def _after(written: str, now: datetime) -> bool:
    """Whether a date or date-time is later than the clock; a date alone counts by its day."""
    if "T" in written:
        return datetime.fromisoformat(written) > now
    return written > now.date().isoformat()[: len(written)]


def _times(value: Any, path: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _RECORDED and isinstance(inner, str):
                found.append((f"{path}.{name}".lstrip("."), inner))
            else:
                found += _times(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += _times(inner, f"{path}[{number}]")
    return found
