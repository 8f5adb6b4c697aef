"""How much: amounts with units, exact conversions (Decimal), strengths, tablets, elemental amounts.

Factors are rows of the table `units` (UCUM) and, where they depend on the drug, of `bridges` (40 IU = 1 mcg of
vitamin D; 20 mEq = 20 mmol of potassium chloride).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache

from graders import tables
from graders.orders.text import NUMBER, normal, number, numerals, plain

#: What is written for the base unit of each dimension.
_BASE = {"mass": "mg", "volume": "mL", "units": "units", "equivalents": "mEq", "substance": "mmol", "fraction": "%"}


@dataclass(frozen=True)
class Amount:
    """low..high in the base unit of `dimension` (mg, mL, units, mEq, mmol, puff, ...). `elemental` as stated."""

    low: Decimal
    high: Decimal
    dimension: str
    elemental: bool = False

    def __str__(self) -> str:
        unit = _BASE.get(self.dimension, self.dimension)
        shown = plain(self.low) if self.low == self.high else f"{plain(self.low)}-{plain(self.high)}"
        many = "s" if unit not in _BASE.values() and self.high != 1 else ""
        return f"{shown} {unit}{many}" + (" elemental" if self.elemental else "")

    def times(self, factor: Decimal) -> Amount:
        return replace(self, low=self.low * factor, high=self.high * factor)

    def within(self, other: Amount) -> bool:
        return self.dimension == other.dimension and other.low <= self.low and self.high <= other.high


#: A dose: one amount, or one for each part of a fixed combination.
Dose = tuple[Amount, ...]


def show(dose: Dose) -> str:
    """A dose for people: "5 mg", "875 mg + 125 mg"."""
    return " + ".join(str(amount) for amount in dose)


@dataclass(frozen=True)
class Unit:
    name: str
    dimension: str
    factor: Decimal


@cache
def _units() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for row in tables.rows("units"):
        unit = Unit(row["unit"], row["dimension"], Decimal(row["factor"]))
        for name in (*row["names"], normal(row["unit"]), normal(row["ucum"])):
            found.setdefault(normal(name), unit)
    return found


def unit(text: str) -> Unit | None:
    """The unit that a field names (`mg`, `{tbl}`, `[iU]`, `tablets`), None where the tables do not have it."""
    wanted = normal(text).strip(" .()")
    return _units().get(wanted) or _units().get(wanted.removesuffix("(s)")) or _units().get(wanted.strip("{}[]"))


def amount(low: Decimal, high: Decimal, of: Unit) -> Amount:
    return Amount(low * of.factor, high * of.factor, of.dimension)


@cache
def unit_pattern() -> str:
    """A regular expression of every unit name, longest first, that does not end inside a word."""
    names = sorted((name for name in _units() if re.fullmatch(r"[a-z%. ]+", name)), key=len, reverse=True)
    return "(?:" + "|".join(re.escape(name) for name in names) + r")(?:\(s\))?(?![a-z])"


def bridge(given: Amount, dimension: str, ingredients: Sequence[str]) -> Amount:
    """The amount in another dimension where a row of `bridges` for one of the ingredients says how; else as given."""
    if given.dimension == dimension:
        return given
    for row in tables.rows("bridges"):
        if row["ingredient"] not in ingredients:
            continue
        factor = Decimal(row["factor"])
        if (row["from"], row["to"]) == (given.dimension, dimension):
            return replace(given, low=given.low * factor, high=given.high * factor, dimension=dimension)
        if (row["to"], row["from"]) == (given.dimension, dimension):
            return replace(given, low=given.low / factor, high=given.high / factor, dimension=dimension)
    return given


def same(one: Amount, other: Amount, ingredients: Sequence[str] = ()) -> bool:
    """Whether two amounts are equal once in one unit."""
    moved = bridge(one, other.dimension, ingredients)
    return moved.dimension == other.dimension and (moved.low, moved.high) == (other.low, other.high)


_ONE = re.compile(
    rf"(?P<low>(?:\d+ )?\d+/\d+|{NUMBER})\s*(?:(?P<unit1>{unit_pattern()})?\s*(?:-|to)\s*(?P<high>{NUMBER}))?\s*-?\s*"
    rf"(?P<unit>{unit_pattern()})(?P<elemental>\s*(?:of )?elemental)?"
)


@cache
def read_amount(text: str) -> Amount | None:
    """One value or range with its unit ("5 mg", "2.5-5 mg", "65 mg elemental"); None where it cannot be read."""
    wanted = numerals(normal(text)).strip()
    match = _ONE.fullmatch(re.sub(r"\s*(?:iron|calcium|vitamin d)$", "", wanted))
    if match is None:
        return None
    of = _units().get(match["unit"])
    if of is None:
        return None
    low = number(match["low"])
    high = number(match["high"]) if match["high"] else low
    found = amount(low, high, of)
    if match["unit1"]:
        first = _units()[match["unit1"]]
        if first.dimension != of.dimension:
            return None
        found = replace(found, low=low * first.factor)
    if found.low > found.high or found.low < 0:
        return None
    return replace(found, elemental=bool(match["elemental"]))


@cache
def read_dose(text: str) -> Dose | None:
    """A declaration's dose: "5 mg", "2.5-5 mg", or a combination's "875 mg + 125 mg"; None where it cannot be read."""
    parts = [read_amount(part) for part in re.split(r"\s\+\s", text)]
    return tuple(part for part in parts if part) if all(parts) else None


@dataclass(frozen=True)
class Limit:
    """A daily amount as a declaration states it: a range, or an open limit (">700 mg")."""

    amount: Amount
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.amount}"

    def holds(self, given: Amount) -> bool:
        """Whether an amount a day, already in the same dimension, satisfies this."""
        if given.dimension != self.amount.dimension:
            return False
        match self.sign:
            case ">":
                return given.high > self.amount.high
            case ">=":
                return given.high >= self.amount.high
            case "<":
                return given.high < self.amount.low
            case "<=":
                return given.high <= self.amount.low
        return given.within(self.amount)


@cache
def read_limit(text: str) -> Limit | None:
    """A declaration's `daily`: "40 mg", "700-1400 mg", ">700 mg"; None where it cannot be read."""
    wanted = normal(text).strip()
    match = re.match(r"(>=|<=|>|<)?\s*", wanted)
    assert match is not None
    rest = re.sub(r"\s*(?:/|per |a )\s*(?:day|d|24 ?h(?:ours)?)$|\s*daily$", "", wanted[match.end() :])
    found = read_amount(rest)
    return Limit(found, match[1] or "") if found else None
