"""Analytes: their LOINC codes (serum, plasma or blood) and the two units in which each is usually reported.

The conversion itself is graders.lab_units, with its sources; a unit that it does not know is never converted.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from graders.lab_units import convert
from tasks.errors import DeclarationError


class Analyte(NamedTuple):
    """One analyte: its name, its LOINC codes (serum, plasma or blood), its two units, its name in the unit table."""

    name: str
    codes: tuple[str, ...]
    conventional: str
    si: str
    table: str = ""


#: Reported eGFR: CKD-EPI 2021, CKD-EPI 2009, MDRD and the codes without a named formula.
_EGFR = ("98979-8", "62238-1", "33914-3", "48642-3", "48643-1", "69405-9", "88293-6")
#: In the order in which the page shows them: kidney and electrolytes first. LOINC names checked against loinc.org's.
ANALYTES: tuple[Analyte, ...] = (
    Analyte("Creatinine", ("2160-0", "38483-4", "14682-9"), "mg/dL", "umol/L", "creatinine"),
    Analyte("eGFR, as reported", _EGFR, "mL/min/1.73m2", "mL/min/1.73m2"),
    Analyte("Urea nitrogen", ("3094-0", "6299-2"), "mg/dL", "mmol/L", "urea nitrogen"),
    Analyte("Potassium", ("2823-3", "6298-4"), "mmol/L", "mmol/L"),
    Analyte("Sodium", ("2951-2", "2947-0"), "mmol/L", "mmol/L"),
    Analyte("Bicarbonate", ("1963-8", "2028-9", "1959-6"), "mmol/L", "mmol/L"),
    Analyte("Chloride", ("2075-0", "2069-3"), "mmol/L", "mmol/L"),
    Analyte("Glucose", ("2345-7", "2339-0", "1558-6", "14749-6", "15074-8"), "mg/dL", "mmol/L", "glucose"),
    Analyte("HbA1c", ("4548-4", "17856-6", "59261-8"), "%", "mmol/mol", "hba1c"),
    Analyte("Urine albumin/creatinine", ("9318-7", "14959-1", "32294-1", "14958-3"), "mg/g", "mg/mmol"),
    Analyte("Calcium", ("17861-6", "2000-8"), "mg/dL", "mmol/L", "calcium"),
    Analyte("Albumin", ("1751-7",), "g/dL", "g/L"),
    Analyte("Phosphate", ("2777-1",), "mg/dL", "mg/dL"),
    Analyte("Hemoglobin", ("718-7", "20509-6"), "g/dL", "g/L"),
    Analyte("Platelets", ("777-3", "26515-7"), "10*9/L", "10*9/L"),
    Analyte("Leukocytes", ("6690-2", "26464-8"), "10*9/L", "10*9/L"),
    Analyte("ALT", ("1742-6",), "U/L", "U/L"),
    Analyte("AST", ("1920-8",), "U/L", "U/L"),
    Analyte("Bilirubin", ("1975-2", "14631-6"), "mg/dL", "umol/L", "bilirubin"),
    Analyte("INR", ("6301-6", "34714-6"), "", ""),
    Analyte("LDL cholesterol", ("13457-7", "18262-6", "2089-1"), "mg/dL", "mmol/L", "cholesterol"),
    Analyte("Cholesterol", ("2093-3", "14647-2"), "mg/dL", "mmol/L", "cholesterol"),
    Analyte("Triglycerides", ("2571-8", "14927-8"), "mg/dL", "mmol/L", "triglycerides"),
    Analyte("Uric acid", ("3084-1", "14933-6"), "mg/dL", "umol/L", "urate"),
    Analyte("25-OH vitamin D", ("1989-3", "62292-8", "14635-7"), "ng/mL", "nmol/L", "vitamin d"),
    Analyte("Cortisol", ("2143-6",), "ug/dL", "nmol/L", "cortisol"),
)  # fmt: skip
_BY_CODE = {code: analyte for analyte in ANALYTES for code in analyte.codes}
#: 1 mg albumin per g creatinine = 0.1131 mg/mmol (creatinine 113.12 g/mol); the unit table does not hold the ratio.
_RATIO = Decimal("0.11312")
_EQUAL = {"meq/l": "mmol/L"}


def analyte_of(codes: Iterable[str]) -> Analyte | None:
    """The analyte that one of these LOINC codes stands for; None where none is known."""
    return next((_BY_CODE[code] for code in sorted(codes) if code in _BY_CODE), None)


def to_unit(value: Decimal, unit: str, wanted: str, analyte: Analyte | None) -> float | None:
    """`value` in `unit` as a number of `wanted`; None where no conversion is known."""
    if _plain(unit) == _plain(wanted):
        return float(value)
    if _plain(unit) == "mg/g" and wanted == "mg/mmol":
        return float(value * _RATIO)
    if _plain(unit) == "mg/mmol" and wanted == "mg/g":
        return float(value / _RATIO)
    try:
        return float(convert(value, unit, wanted, analyte.table if analyte else ""))
    except (DeclarationError, ArithmeticError):
        return None


def _plain(unit: str) -> str:
    key = "".join(unit.split()).replace("µ", "u").replace("μ", "u").casefold().replace("{creat}", "")
    return _EQUAL.get(key, key).casefold()


def unit_words(unit: str) -> str:
    """A unit as it is printed: µmol/L, 10⁹/L, mL/min/1.73 m²."""
    printed = {"umol/L": "µmol/L", "10*9/L": "10⁹/L", "mL/min/1.73m2": "mL/min/1.73 m²", "ug/dL": "µg/dL"}
    return printed.get(unit, unit)
