"""Units of measured values, converted: prefixes and SI against conventional units, by analyte where it matters.

Only what the truth functions and their comparisons need. The factor of an analyte is SI unit per conventional unit, as
in the AMA Manual of Style, 11th ed. (2020), section 17.5, table of SI conversions; each follows from the molar mass
(creatinine 113.12 g/mol: 1 mg/dL = 88.4 umol/L). HbA1c: NGSP and IFCC master equation, Clin Chem 2004;50:166.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from tasks.errors import DeclarationError


class Unit(NamedTuple):
    """A unit as a multiple of its dimension's base: g/L, mol/L, kg, m, U/L, 1e9/L, mL/min, mL/min/1.73m2, 1, a."""

    dimension: str
    factor: Decimal


def _units() -> dict[str, Unit]:
    table: dict[str, Unit] = {}

    def add(dimension: str, factor: str, *spellings: str) -> None:
        for spelling in spellings:
            table[_key(spelling)] = Unit(dimension, Decimal(factor))

    add("mass/volume", "0.01", "mg/dL", "mg%", "mg/100mL")
    add("mass/volume", "10", "g/dL", "g%")
    add("mass/volume", "1", "g/L", "mg/mL")
    add("mass/volume", "0.001", "mg/L", "ug/mL", "mcg/mL")
    add("mass/volume", "0.00001", "ug/dL", "mcg/dL")
    add("mass/volume", "0.000001", "ug/L", "mcg/L", "ng/mL")
    add("moles/volume", "0.001", "mmol/L", "mM")
    add("moles/volume", "0.000001", "umol/L")
    add("moles/volume", "0.000000001", "nmol/L")
    add("mass", "1", "kg", "kilogram", "kilograms")
    add("mass", "0.001", "g")
    add("mass", "0.45359237", "lb", "lbs", "pounds", "[lb_av]")
    add("length", "1", "m")
    add("length", "0.01", "cm")
    add("length", "0.0254", "in", "inch", "inches", "[in_i]", "[in_us]")
    add("activity/volume", "1", "U/L", "IU/L", "[IU]/L", "units/L")
    add(
        "count/volume", "1", "10*9/L", "10^9/L", "x10^9/L", "10*3/uL", "10^3/uL", "x10^3/uL", "K/uL", "thou/uL", "k/mm3"
    )
    add("count/volume", "0.001", "/uL", "cells/uL", "/mm3")
    add("flow", "1", "mL/min")
    add("flow/area", "1", "mL/min/1.73m2", "mL/min/{1.73_m2}", "mL/min/1.73 m2", "mL/min/1.73m^2", "mL/min/1.73m²")
    add("mass/area", "1", "kg/m2", "kg/m^2", "kg/m²")
    add("fraction", "1", "%")
    add("hba1c", "1", "mmol/mol")
    add("number", "1", "", "1", "{score}", "points", "score", "ratio")
    add("time", "1", "a", "years", "year", "y", "yr")
    return table


def _key(unit: str) -> str:
    return "".join(unit.split()).replace("µ", "u").replace("μ", "u").replace("²", "2").casefold()


UNITS = _units()

#: mol per g of the analyte, from its SI factor: 1 mg/dL creatinine = 0.01 g/L = 88.4e-6 mol/L.
_MOLES_PER_GRAM: dict[str, Decimal] = {
    "creatinine": Decimal("0.00884"),
    "glucose": Decimal("0.00555"),
    "calcium": Decimal("0.02495"),
    "bilirubin": Decimal("0.00171"),
    "urate": Decimal("0.00595"),
    "cortisol": Decimal("0.00276"),
    "vitamin d": Decimal("0.002496"),
    "cholesterol": Decimal("0.00259"),
    "triglycerides": Decimal("0.00113"),
    "urea nitrogen": Decimal("0.0357"),
}


def convert(value: Decimal, unit: str, wanted: str, analyte: str = "") -> Decimal:
    """`value` in `unit`, as a number of `wanted`. DeclarationError where no conversion between the two is known."""
    if _key(unit) == _key(wanted):
        return value
    known, target = UNITS.get(_key(unit)), UNITS.get(_key(wanted))
    if known is None or target is None:
        lost = unit if known is None else wanted
        raise DeclarationError(f"the unit {lost!r} is not known", remedy="Use its UCUM code.")
    base = value * known.factor
    pair = (known.dimension, target.dimension)
    if known.dimension == target.dimension:
        return base / target.factor
    if pair == ("mass/volume", "moles/volume") and analyte in _MOLES_PER_GRAM:
        return base * _MOLES_PER_GRAM[analyte] / target.factor
    if pair == ("moles/volume", "mass/volume") and analyte in _MOLES_PER_GRAM:
        return base / _MOLES_PER_GRAM[analyte] / target.factor
    if pair == ("hba1c", "fraction") and analyte == "hba1c":
        return Decimal("0.09148") * value + Decimal("2.152")
    if pair == ("fraction", "hba1c") and analyte == "hba1c":
        return (value - Decimal("2.152")) / Decimal("0.09148")
    raise DeclarationError(f"{unit!r} cannot be converted to {wanted!r}", remedy="Give the unit of the same kind.")
