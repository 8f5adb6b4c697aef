"""Quantities of a record: what a number measures, how texts name it, and its second usual unit.

Second units: laboratory values by graders.analytes (factors of the AMA Manual of Style, 11th ed., graders.lab_units);
body weight 1 lb = 0.45359237 kg and height 1 in = 2.54 cm exactly, temperature degF = degC x 9/5 + 32 (NIST SP 811,
2008, appendix B); doses by UCUM prefixes and the table `bridges` (vitamin D: 40 IU = 1 mcg, DailyMed; potassium
chloride: 1 mEq = 1 mmol). What stands in none of these has no second unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any

from authoring.jsontext import value_at
from graders.analytes import Analyte, analyte_of, to_unit, unit_words
from graders.describe import concept
from graders.lab_units import UNITS
from graders.orders import doses, drugs, services
from graders.orders.text import NUMBER, normal, number

_LOINC = "http://loinc.org"
#: Vital signs by LOINC code: how they are called here, and the two units that are usual.
_VITALS = {
    "29463-7": ("weight", "kg", "lb"), "3141-9": ("weight", "kg", "lb"),
    "8302-2": ("height", "cm", "in"), "3137-7": ("height", "cm", "in"),
    "8310-5": ("temperature", "°C", "°F"),
    "8480-6": ("systolic pressure", "mmHg", "mmHg"), "8462-4": ("diastolic pressure", "mmHg", "mmHg"),
    "8867-4": ("heart rate", "/min", "/min"),
}  # fmt: skip
_DEGREES = {"cel": "°C", "°c": "°C", "degc": "°C", "c": "°C", "[degf]": "°F", "°f": "°F", "degf": "°F", "f": "°F"}
#: Names in texts beside those of the table `tests`; they come first, so that a clearance is no creatinine.
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"\b(?:{pattern})\b"))
    for name, pattern in (
        ("CrCl", r"crcl|cr cl|(?:creatinine|cockcroft-gault|renal) clearance|cockcroft-gault"),
        ("eGFR", r"e?gfr|(?:estimated )?glomerular filtration rate"),
        # Short names that the tables leave out of prose: read only where a number of theirs stands behind.
        ("creatinine", r"s?cr"),
        ("hemoglobin", r"hgb|hb"),
        ("sodium", r"na\+?"),
        ("weight", r"(?:body ?)?weight|weighs|weighed|wt"),
        ("height", r"(?:body )?height"),
        ("temperature", r"temperature|temp"),
        ("systolic pressure", r"systolic(?: (?:blood )?pressure)?|sbp"),
        ("diastolic pressure", r"diastolic(?: (?:blood )?pressure)?|dbp"),
        ("heart rate", r"heart rate|pulse(?! ox)|hr"),
        ("age", r"aged?|years old"),
    )
)
#: Members whose numbers are told as a dose.
_DOSED = re.compile(r"/(?:doseQuantity|maxDosePerPeriod/numerator)$")


@dataclass(frozen=True)
class Quantity:
    """One number of a record.

    `name`: what is measured, as the tables name it ("creatinine"), or the drug; "" where they do not know it. `low`,
    `high`: the reference range in force, in `unit`. `drug`: the ingredients where it is a dose.
    """

    number: Decimal
    unit: str
    name: str
    comparator: str = ""
    analyte: Analyte | None = None
    low: Decimal | None = None
    high: Decimal | None = None
    drug: tuple[str, ...] = ()

    @property
    def side(self) -> str:
        """Where it lies in its range: "low", "high", "in"; "" without a range, or where a comparator leaves it open."""
        if self.low is None and self.high is None:
            return ""
        if self.high is not None and (self.number > self.high or (self.number == self.high and self.comparator == ">")):
            return "high" if "<" not in self.comparator else ""
        if self.low is not None and (self.number < self.low or (self.number == self.low and self.comparator == "<")):
            return "low" if ">" not in self.comparator else ""
        return "" if self.comparator else "in"


def quantity_at(body: Mapping[str, Any], pointer: str) -> Quantity | None:
    """The quantity that stands at a JSON pointer of a resource; None where there is none, or no plain number."""
    found = value_at(body, pointer)
    value = found.get("value") if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    unit = unit_in_force(found)
    comparator = str(found.get("comparator") or "")
    if _DOSED.search(pointer):
        parts = drug_of(body)
        return Quantity(Decimal(value), unit, " and ".join(parts), comparator, drug=parts)
    if not pointer.endswith("/valueQuantity"):
        return None
    holder = body if pointer == "/valueQuantity" else value_at(body, pointer.removesuffix("/valueQuantity"))
    if not isinstance(holder, Mapping):
        return None
    codes = _codes(holder.get("code"))
    analyte = analyte_of(codes)
    low, high = _range(holder, unit, analyte)
    return Quantity(Decimal(value), unit, _name(codes, analyte, holder.get("code")), comparator, analyte, low, high)


def unit_in_force(quantity: Mapping[str, Any]) -> str:
    """The unit of a Quantity of a record, as it is written; where its code is another unit, the code, which is what
    grading reads (graders.truths)."""
    written, code = str(quantity.get("unit") or ""), str(quantity.get("code") or "")
    return code if not written or (code and same_unit(written, code) is False) else written


def same_unit(one: str, other: str) -> bool | None:
    """Whether two words are the same unit ("lb", "[lb_av]"); None where the tables do not know one of them."""
    if _plainly(one) == _plainly(other):
        return True
    degrees = [_degrees(each) for each in (one, other)]
    if all(each in ("°C", "°F") or _in_table(each) for each in degrees):
        return degrees[0] == degrees[1] or to_unit(Decimal(1), _spelled(one), _spelled(other), None) == 1.0
    dosed = [doses.unit(normal(each)) for each in (one, other)]
    given = [doses.amount(Decimal(1), Decimal(1), each) for each in dosed if each is not None]
    return given[0] == given[1] if len(given) == 2 else None


def _in_table(unit: str) -> bool:
    return _plainly(_spelled(unit)) in UNITS


#: UCUM codes of units as they are written, beside those that are written as they are coded (UCUM 2.1).
_CODED = {
    "lb": "[lb_av]", "lbs": "[lb_av]", "pounds": "[lb_av]", "in": "[in_i]", "inch": "[in_i]", "inches": "[in_i]",
    "mmhg": "mm[Hg]", "bpm": "/min", "beats/min": "/min", "beats/minute": "/min", "breaths/min": "/min",
    "°c": "Cel", "°f": "[degF]", "mcg": "ug", "mcg/dl": "ug/dL", "mcg/l": "ug/L", "mcg/ml": "ug/mL",
    "meq/l": "meq/L", "meq": "meq", "iu/l": "[IU]/L", "miu/l": "m[IU]/L", "uiu/ml": "u[IU]/mL", "iu": "[iU]",
    "10^9/l": "10*9/L", "k/ul": "10*3/uL", "10^3/ul": "10*3/uL", "10^12/l": "10*12/L", "cells/ul": "/uL",
    "ml/min/1.73m2": "mL/min/{1.73_m2}", "kg/m^2": "kg/m2", "years": "a",
}  # fmt: skip
_CODES = (
    "kg", "g", "mg", "ug", "ng", "m", "cm", "mm[Hg]", "%", "/min", "Cel", "[degF]", "[lb_av]", "[in_i]", "mg/dL",
    "g/dL", "g/L", "mg/L", "ug/dL", "ug/L", "ug/mL", "ng/mL", "ng/dL", "pg/mL", "ng/L", "mmol/L", "umol/L", "nmol/L",
    "pmol/L", "mmol/mol", "mmol", "U/L", "[IU]/L", "m[IU]/L", "10*9/L", "10*3/uL", "10*12/L", "/uL", "mL/min",
    "mL/min/{1.73_m2}", "kg/m2", "mg/g", "mg/mmol", "mL", "L", "fL", "pg", "a",
)  # fmt: skip


def ucum(unit: str) -> str:
    """The UCUM code of a unit as it is written; "" where the table does not have it."""
    plain = _plainly(_spelled(unit))
    return _CODED.get(plain) or next((code for code in _CODES if _plainly(code) == plain), "")


def second_unit(one: Quantity) -> str:
    """The same in the other usual unit, "152 µmol/L"; "" where none is usual, or no published factor is known."""
    if one.drug:
        return _other_dose(one)
    if one.analyte is not None:
        for own, other in ((one.analyte.conventional, one.analyte.si), (one.analyte.si, one.analyte.conventional)):
            if own != other and to_unit(Decimal(1), one.unit, own, None) == 1.0:
                return _said(converted(one.number, one, other), one, unit_words(other))
        return ""
    vital = next((row for row in _VITALS.values() if row[0] == one.name), None)
    if vital is None:
        return ""
    for own, other in ((vital[1], vital[2]), (vital[2], vital[1])):
        if own == other:
            continue
        if own.startswith("°") and _degrees(one.unit) == own:
            moved = converted(one.number, one, other)
            return f"{one.comparator}{moved:.1f} {other}" if moved is not None else ""
        if to_unit(Decimal(1), one.unit, own, None) == 1.0:
            return _said(converted(one.number, one, other), one, other)
    return ""


def converted(value: Decimal, of: Quantity, wanted: str) -> Decimal | None:
    """`value` in the unit of `of`, as a number of `wanted`; None where no conversion is known."""
    return _moved(value, of.unit, wanted, of.analyte)


def _moved(value: Decimal, unit: str, wanted: str, analyte: Analyte | None) -> Decimal | None:
    own, other = _degrees(unit), _degrees(wanted)
    unit, wanted = _spelled(unit), _spelled(wanted)
    if own == other:
        return value
    if (own, other) == ("°C", "°F"):
        return value * 9 / 5 + 32
    if (own, other) == ("°F", "°C"):
        return (value - 32) * 5 / 9
    found = to_unit(value, unit, wanted, analyte)
    return None if found is None else Decimal(repr(found))


def _spelled(unit: str) -> str:
    """A unit of counts as the unit table spells it: "x 10⁹/L" is 10^9/L, "/mcL" is /uL."""
    for written, spelled in (("⁹", "^9"), ("³", "^3"), ("mcl", "ul"), ("mcL", "uL"), ("mm^3", "mm3")):
        unit = unit.replace(written, spelled)
    return re.sub(r"^\s*[x×]\s*(?=10)", "", unit)


def _degrees(unit: str) -> str:
    return _DEGREES.get(unit.strip().casefold(), unit.strip())


def _said(value: Decimal | None, of: Quantity, unit: str) -> str:
    if value is None:
        return ""
    return f"{of.comparator}{figures(value, max(2, min(3, _significant(of.number))))} {unit}"


def _significant(value: Decimal) -> int:
    return len(str(abs(value)).replace(".", "").lstrip("0")) or 1


def figures(value: Decimal, significant: int) -> str:
    """A number to so many significant figures; digits before the point are all kept."""
    if not value:
        return "0"
    places = max(0, significant - 1 - value.adjusted())
    return f"{value:.{places}f}"


def _other_dose(one: Quantity) -> str:
    of = doses.unit(one.unit)
    if of is None:
        return ""
    given = doses.amount(one.number, one.number, of)
    if of.dimension == "mass":
        if of.name == "mcg":
            return f"{_plain(one.number / 1000)} mg"
        return f"{_plain(given.low * 1000)} mcg" if 0 < given.low < 1 else ""
    if of.dimension in ("units", "equivalents"):
        other = {"units": "mass", "equivalents": "substance"}[of.dimension]
        moved = doses.bridge(given, other, one.drug)
        if moved.dimension == other:
            return f"{_plain(moved.low * 1000)} mcg" if other == "mass" else f"{_plain(moved.low)} mmol"
    return ""


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"


# ---- names in texts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A quantity or a drug that a normalised text names at [start, end)."""

    start: int
    end: int
    name: str
    drug: tuple[str, ...] = ()


def named(text: str) -> list[Named]:
    """Everything measured, and every drug, that a normalised text names, in order."""
    own = [Named(*match.span(), name) for name, pattern in _NAMES for match in pattern.finditer(text)]
    blanked = list(text)
    for one in own:
        blanked[one.start : one.end] = " " * (one.end - one.start)
    rest = "".join(blanked)
    tests = [Named(one.start, one.end, one.name) for one in services.named_tests(rest, prose=True)]
    medicines = [
        Named(one.start, one.end, " and ".join(one.drug.components), one.drug.components)
        for one in drugs.mentions(rest, prose=True)
        if not any(test.start < one.end and one.start < test.end for test in tests)
    ]
    return sorted([*own, *tests, *medicines], key=lambda one: one.start)


#: What may stand right behind a number and makes it no result: a time, a count, a dose form.
_NOT_A_RESULT = re.compile(
    r"\s*-?\s*(?:(?:h|hrs?|hours?|d|days?|wks?|weeks?|mo|months?|y|yrs?|years?|min|minutes?|times?|x(?!\s*10[*^⁹³⁶])|tab\w*|cap\w*|"
    r"pills?|doses?|puffs?|drops?|st|nd|rd|th)\b|/\d)"
)
#: Units that stand behind a stroke alone: counts and rates.
_PER = r"/\s?(?:[µu]l|mcl|mm(?:\^?3|³)|min)\b"
_NUMBER = re.compile(rf"(?<![\w.,/])(?:{NUMBER})(?!\d|(?!{_PER})/|[.,]\d)")
_UNIT = re.compile(
    rf"\s*(?P<unit>%|{_PER}|x\s*10[*^]?[936⁹³⁶]\s?/\s?[µu]?l\b|°?[a-zµ\[{{][a-z0-9µ/.*^_\]}}-]*(?:/1\.73 ?m[2²])?)"
)


def cased(unit: str) -> str:
    """A unit of a normalised text as it is printed: mmol/L, mg/dL, µmol/L, mL/min, mEq/L."""
    return unit_words(re.sub(r"(?<=/)(d?)l$", r"\1L", unit.replace("meq", "mEq").replace("ml/", "mL/")))


@dataclass(frozen=True)
class Number:
    """A number of a normalised text; `unit` as written behind it, "" where no unit stands there."""

    start: int
    end: int
    value: Decimal
    unit: str
    places: int


def numbers(text: str, of: Quantity) -> Iterator[Number]:
    """The numbers of a normalised text that can be one of this quantity: not times, counts, nor in a foreign unit."""
    read = 0
    for match in _NUMBER.finditer(text):
        # The 10 of "x 10^9/L" belongs to the unit before it.
        if match.start() < read or _NOT_A_RESULT.match(text, match.end()):
            continue
        behind = _UNIT.match(text, match.end())
        unit = behind["unit"].rstrip(".-") if behind else ""
        if unit and not _convertible(unit, of):
            if _is_unit(unit):
                continue
            unit = ""
        try:
            value = number(match[0])
        except InvalidOperation:
            continue
        places = len(match[0].partition(".")[2])
        read = behind.end() if behind and unit else match.end()
        yield Number(match.start(), read, value, unit, places)


def _convertible(unit: str, of: Quantity) -> bool:
    if of.drug:
        mine, own = doses.unit(unit), doses.unit(of.unit)
        if mine is None or own is None:
            return False
        moved = doses.bridge(doses.amount(Decimal(1), Decimal(1), mine), own.dimension, of.drug)
        return moved.dimension == own.dimension
    return in_own_unit(Decimal(1), unit, of) is not None


def in_own_unit(value: Decimal, unit: str, of: Quantity) -> Decimal | None:
    """A number as a text writes it, in the unit of the quantity. Without a unit it is read in the conventional one."""
    if not unit:
        unit = of.analyte.conventional if of.analyte else of.unit
    if of.name == "eGFR" and _plainly(unit) == "ml/min" and _plainly(of.unit).startswith("ml/min/1.73m2"):
        # An eGFR is called so in short; it is always by body surface.
        return value
    return value if unit.casefold() == of.unit.casefold() else _moved(value, unit, of.unit, of.analyte)


def _plainly(unit: str) -> str:
    plain = "".join(unit.split()).replace("µ", "u").replace("μ", "u").casefold()
    return plain.replace("²", "2").replace("{1.73_m2}", "1.73m2")


#: A limit that lies further from the value than this factor was not meant in that unit.
_FAR = 5
#: Below it a temperature is in °C, above in °F.
_WARMEST = 50


def usual_units(of: Quantity) -> tuple[str, ...]:
    """The units in which texts write this quantity, the likeliest first; () where the tables know of none."""
    if of.name in ("eGFR", "CrCl"):
        return (of.unit,)
    if to_unit(Decimal(1), _spelled(of.unit), "10*9/L", None) is not None:
        return ("10*9/L", "/uL")
    vital = next((row for row in _VITALS.values() if row[0] == of.name), None)
    if vital is not None:
        return tuple(dict.fromkeys(vital[1:]))
    return tuple(dict.fromkeys((of.analyte.conventional, of.analyte.si))) if of.analyte else ()


def readings(value: Decimal, of: Quantity) -> tuple[str, ...]:
    """The units in which a number that a text writes without one may be meant, the likeliest first: those in which it
    lies near the quantity's own number, where there are any."""
    usual = usual_units(of)
    if of.name == "temperature" and _degrees(of.unit) in usual:
        return ("°C",) if value < _WARMEST else ("°F",)
    if len(usual) < 2:
        return usual or (of.unit,)
    moved = {unit: in_own_unit(value, unit, of) for unit in usual}
    near = tuple(
        unit
        for unit, limit in moved.items()
        if limit is not None and abs(of.number) <= _FAR * abs(limit) and abs(limit) <= _FAR * abs(of.number)
    )
    return near or usual


@cache
def _is_unit(text: str) -> bool:
    return to_unit(Decimal(1), text, "mg/dL", None) is not None or doses.unit(text) is not None or "/" in text


# ---- reading a resource ---------------------------------------------------------------------------------------------


def _codes(code: Any) -> tuple[str, ...]:
    codings = code.get("coding") if isinstance(code, Mapping) else None
    if not isinstance(codings, list):
        return ()
    return tuple(
        str(one.get("code")) for one in codings if isinstance(one, Mapping) and one.get("system", _LOINC) == _LOINC
    )


def _name(codes: Sequence[str], analyte: Analyte | None, code: Any) -> str:
    every = [*codes, *(analyte.codes if analyte else ())]
    coded = next((name for one in every if (name := services.coded_test(one))), "")
    vital = next((_VITALS[one][0] for one in codes if one in _VITALS), "")
    if coded or vital:
        return coded or vital
    # A code of no table: what it calls itself, where that is one name of the tables alone.
    said = {one.name for one in named(normal(concept(code)))}
    return said.pop() if len(said) == 1 else ""


def _range(holder: Mapping[str, Any], unit: str, analyte: Analyte | None) -> tuple[Decimal | None, Decimal | None]:
    ranges = holder.get("referenceRange")
    first = ranges[0] if isinstance(ranges, list) and ranges and isinstance(ranges[0], Mapping) else {}
    found: list[Decimal | None] = []
    for side in ("low", "high"):
        limit = first.get(side)
        value = limit.get("value") if isinstance(limit, Mapping) else None
        if not isinstance(limit, Mapping) or isinstance(value, bool) or not isinstance(value, int | Decimal):
            found.append(None)
            continue
        own = str(limit.get("unit") or limit.get("code") or unit)
        same = own.casefold() == unit.casefold()
        moved = Decimal(value) if same else to_unit(Decimal(value), own, unit, analyte)
        found.append(None if moved is None else Decimal(str(moved)))
    return found[0], found[1]


def drug_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The ingredients of a medication resource by its name; () where the tables do not know it."""
    mentioned = drugs.mentions(normal(concept(body.get("medicationCodeableConcept"))))
    return mentioned[0].drug.components if mentioned else ()


def dose_amounts(text: str) -> list[tuple[int, int, doses.Amount]]:
    """[start, end) and amount of each dose or strength that a normalised text writes (mg, mcg, units, mEq)."""
    out = []
    for match in _amount_pattern().finditer(text):
        of = doses.unit(match["unit"])
        if of is not None and of.dimension in ("mass", "units", "equivalents", "substance"):
            value = number(match["n"])
            out.append((match.start(), match.end(), doses.amount(value, value, of)))
    return out


@cache
def _amount_pattern() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.,/])(?P<n>{NUMBER})\s*-?\s*(?P<unit>{doses.unit_pattern()})(?!/[a-z]*l\b)")
