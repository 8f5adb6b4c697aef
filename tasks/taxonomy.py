"""The fixed vocabularies of a task: 21 specialties in 8 groups, 4 workflows, 4 capabilities, 4 kinds of reasoning."""

from __future__ import annotations

from typing import Literal, get_args

#: Specialty -> the group that results are reported by.
SPECIALTIES: dict[str, str] = {
    "Cardiology": "Cardiology",
    "Endocrinology": "Endocrinology",
    "Gastroenterology": "Gastroenterology & Hepatology",
    "Hepatology": "Gastroenterology & Hepatology",
    "Hematology": "Hematology & Oncology",
    "Oncology": "Hematology & Oncology",
    "Allergy & Immunology": "Immunology & Infectious Disease",
    "Infectious Disease": "Immunology & Infectious Disease",
    "Rheumatology": "Immunology & Infectious Disease",
    "Nephrology": "Nephrology & Urology",
    "Urology": "Nephrology & Urology",
    "Psychiatry": "Psychiatry, Neurology & Addiction",
    "Neurology": "Psychiatry, Neurology & Addiction",
    "Addiction Medicine": "Psychiatry, Neurology & Addiction",
    "Pulmonology": "Pulmonology & Other Specialties",
    "Dermatology": "Pulmonology & Other Specialties",
    "Gynecology": "Pulmonology & Other Specialties",
    "Geriatric Medicine": "Pulmonology & Other Specialties",
    "Primary Care": "Pulmonology & Other Specialties",
    "Internal Medicine": "Pulmonology & Other Specialties",
    "Family Medicine": "Pulmonology & Other Specialties",
}

#: The eight groups, in the order that reports list them.
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(SPECIALTIES.values()))

Workflow = Literal[
    "Medication Prescribing",
    "Treatment Planning",
    "Workup & Risk Stratification",
    "Diagnosis & Interpretation",
]
WORKFLOWS: tuple[str, ...] = get_args(Workflow)

Capability = Literal["data_retrieval", "clinical_reasoning", "action_execution", "documentation"]
CAPABILITIES: tuple[str, ...] = get_args(Capability)

#: What a checkpoint of capability clinical_reasoning asks for.
ReasoningKind = Literal["score_calculation", "synthesis", "differential_decision", "guideline_application"]
REASONING_KINDS: tuple[str, ...] = get_args(ReasoningKind)

Authority = Literal["orders", "pends", "recommends"]
DataClass = Literal["open", "dua", "phi"]
Profile = Literal["paper", "extended"]
PROFILES: tuple[str, ...] = get_args(Profile)
