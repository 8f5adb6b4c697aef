"""Who is in the record: the patient, a look-alike, the clinicians and the places. No real person or place."""

from __future__ import annotations

from tasks.casebook.charting import SNOMED, Analyte, Code, Record

PATIENT = "Patient/p-7c41d9"
#: A man of nearly the same birth date in the same clinic, with healthy kidneys: an order on him is a wrong-patient one.
LOOKALIKE = "Patient/p-7c41e9"
#: The nephrologist for whom the agent answers.
CONSULTANT = "Practitioner/dr-linden"

#: Surnames are plants, so that nobody real is meant.
CLINICIANS = {
    "alder": ("Alder", "MD", "Internal medicine"),
    "willow": ("Willow", "NP", "Internal medicine"),
    "linden": ("Linden", "MD", "Nephrology"),
    "spruce": ("Spruce", "MD", "Nephrology"),
    "birch": ("Birch", "MD", "Cardiology"),
    "elm": ("Elm", "MD", "Gastroenterology"),
    "larch": ("Larch", "MD", "Urology"),
    "cedar": ("Cedar", "PA", "Urgent care"),
    "rowan": ("Rowan", "MD", "Hospital medicine"),
    "teasel": ("Teasel", "OD", "Optometry"),
    "sedge": ("Sedge", "DPT", "Physical therapy"),
    "hazel": ("Hazel", "PharmD", "Pharmacy"),
    "juniper": ("Juniper", "RD", "Nutrition"),
    "sorrel": ("Sorrel", "RN", "Nursing"),
    "him": ("Health information management", "", "Medical records"),
}

PLACES = {
    "clinic": "North Clinic Internal Medicine",
    "specialty": "North Clinic Specialty Care",
    "lab": "North Clinic Laboratory",
    "riverside": "Riverside Reference Laboratory",
    "urgent": "North Clinic Urgent Care",
    "eye": "Valley Eye Care",
    "therapy": "Northside Physical Therapy",
}


def clinician(key: str) -> str:
    """The reference of a clinician."""
    return f"Practitioner/dr-{key}"


def place(key: str) -> str:
    """The reference of an organization."""
    return f"Organization/org-{key}"


def add_people(record: Record) -> None:
    """Both patients, every clinician with role, every organization."""
    for reference, born in ((PATIENT, "1968-10-12"), (LOOKALIKE, "1968-10-21")):
        record.add(
            "Patient",
            reference.split("/")[1],
            {
                "active": True,
                "gender": "male",
                "birthDate": born,
                "maritalStatus": {"text": "Married"},
                "communication": [{"language": {"text": "English"}, "preferred": True}],
                "generalPractitioner": [{"reference": clinician("alder")}],
                "managingOrganization": {"reference": place("clinic")},
            },
        )
    for key, name in PLACES.items():
        record.add("Organization", f"org-{key}", {"active": True, "name": name})
    for key, (family, degree, specialty) in CLINICIANS.items():
        record.add(
            "Practitioner",
            f"dr-{key}",
            {
                "active": True,
                "name": [{"family": family, "suffix": [degree]}] if degree else [{"text": family}],
                "qualification": [{"code": {"text": specialty}}],
            },
        )
    _add_lookalike(record)


def _add_lookalike(record: Record) -> None:
    smoking = Analyte(Code("Tobacco use"), "", "")
    record.result("look-smoking", smoking, "Never smoker", "2025-09-16", subject=LOOKALIKE, category="social-history")
    record.add(
        "Condition",
        record.id("Condition", "look-htn"),
        {
            "clinicalStatus": {
                "coding": [{"system": "http://terminology.hl7.org/CodeSystem/condition-clinical", "code": "active"}]
            },
            "code": Code("Hypertension", "38341003", SNOMED).concept(),
            "subject": {"reference": LOOKALIKE},
            "recordedDate": "2021-02-02",
        },
    )
