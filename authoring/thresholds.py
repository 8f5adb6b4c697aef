"""The lines that decide something about a value, and whether a change moves it across one.

Lines are the reference range of the resource, comparisons that a checkpoint states in words ("potassium above 5.0"),
and the GFR categories of KDIGO 2024 (CKD guideline, table 2: 90, 60, 45, 30, 15 mL/min/1.73 m2). A comparison counts
only where the quantity is named right before it; what a text leaves open is no line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from authoring.quantities import Quantity, cased, in_own_unit, named, numbers, readings, usual_units
from graders.analytes import unit_words
from graders.orders.text import NUMBER, normal
from tasks.declarations import Checkpoint, OrderRow

Sign = Literal["above", "at or above", "below", "at or below"]
#: What says which side of a number is meant, before it or behind it; the longer ones first.
_MORE, _LESS = r"\b(?:greater|more|higher) than", r"\b(?:less|lower) than"
_SAID: dict[Sign, str] = {
    "at or above": rf">=|\bat or above|\bat least|{_MORE} or equal to|\bnot? (?:less|lower) than",
    "at or below": rf"<=|\bat or below|\bat most|{_LESS} or equal to|\bnot? (?:more|higher) than|\bup to",
    "above": rf">|\babove|\bover|\bexceed(?:s|ing)?|{_MORE}",
    "below": rf"<|\bbelow|\bunder|{_LESS}",
}
_BEFORE = tuple((sign, re.compile(rf"(?:{words})\s*(?:a |an |about )?$")) for sign, words in _SAID.items())
_BEHIND: tuple[tuple[Sign, re.Pattern[str]], ...] = (
    ("at or above", re.compile(r"\s*,?\s*(?:or|and) (?:more|higher|above|greater|over)\b")),
    ("at or below", re.compile(r"\s*,?\s*(?:or|and) (?:less|lower|below|under)\b")),
)
_TO = re.compile(r"\s*(?:to|-|and|up to)\s*(?P<sign><=?)?\s*$")
#: Words that may stand between a quantity and its comparison without being about something else.
_FILLER = re.compile(
    rf"(?:(?:<=?|>=?|\b(?:above|below|over|under))\s*{NUMBER}\s*(?:%|[a-zµ]+(?:/[a-z0-9.]+)*)?\s*,?\s*\b(?:or|and)\b|"
    r"[\s,:(+=-]|\b(?:is|are|was|of|the|a|an|if|when|level|levels|value|result|rises?|rising|falls?|falling|drops?|"
    r"remains?|stays?|still|to|at|it|that|between|from|now|latest|current|serum|plasma|blood|goes|comes|back)\b)*"
)
#: KDIGO 2024 Clinical Practice Guideline for CKD, table 2: GFR category and its lower limit in mL/min/1.73 m2.
_GFR = (("G1", 90), ("G2", 60), ("G3a", 45), ("G3b", 30), ("G4", 15), ("G5", 0))


@dataclass(frozen=True)
class Threshold:
    """A comparison that a checkpoint names. `unit` "" = none is written."""

    checkpoint: str
    name: str
    sign: Sign
    value: Decimal
    unit: str = ""

    @property
    def words(self) -> str:
        """ "potassium above 5.0"."""
        return f"{self.name} {self.sign} {self.value} {cased(self.unit)}".strip()

    def met(self, value: Decimal) -> bool:
        """Whether a value in the threshold's unit lies on its side."""
        return {
            "above": value > self.value, "at or above": value >= self.value,
            "below": value < self.value, "at or below": value <= self.value,
        }[self.sign]  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One line: what it is, where the value lies before and after, and the answer. `crossed`: it decides otherwise.
    `checkpoint`: which names it, "" where none does."""

    what: str
    before: str
    after: str
    answer: str
    crossed: bool
    checkpoint: str = ""


def stated(checkpoint: Checkpoint) -> Iterator[str]:
    """Every text of a checkpoint that may name a threshold."""
    yield checkpoint.title
    rows: list[OrderRow] = [*checkpoint.must_not, *checkpoint.followup]
    if checkpoint.order is not None:
        rows += [*checkpoint.order.accept, *checkpoint.order.also_accept]
    for row in rows:
        yield from (text for text in (row.trigger, row.when, row.act, row.reason) if text)
    if checkpoint.rubric is not None:
        yield from filter(None, (checkpoint.rubric.passed, checkpoint.rubric.partial, checkpoint.rubric.fail))
    for source in checkpoint.source:
        yield from filter(None, (source.section, source.title))


def thresholds(checkpoints: Iterable[Checkpoint], of: Quantity) -> tuple[Threshold, ...]:
    """The comparisons about this quantity that checkpoints name, each once a checkpoint."""
    found: dict[Threshold, None] = {}
    for checkpoint in checkpoints:
        for text in stated(checkpoint):
            for one in _in_text(checkpoint.id, text, of):
                found.setdefault(one)
    return tuple(found)


def _in_text(checkpoint: str, text: str, of: Quantity) -> Iterator[Threshold]:
    for clause in re.split(r"[;\n]|\.(?!\d)", normal(text)):
        names = named(clause)
        every = list(numbers(clause, of))
        for place, one in enumerate(every):
            before = clause[: one.start]
            last = next((name for name in reversed(names) if name.end <= one.start), None)
            if last is None or last.name != of.name:
                continue
            between = before[last.end :]
            sign = next((sign for sign, pattern in _BEFORE if pattern.search(between)), None)
            behind = next((sign for sign, pattern in _BEHIND if pattern.match(clause, one.end)), None)
            if sign is not None:
                lead = next(pattern for found, pattern in _BEFORE if found == sign).sub("", between)
                if _FILLER.fullmatch(lead):
                    yield Threshold(checkpoint, of.name, sign, one.value, one.unit)
            elif behind is not None and _FILLER.fullmatch(between):
                yield Threshold(checkpoint, of.name, behind, one.value, one.unit)
            if place and (range_ := _TO.search(clause[every[place - 1].end : one.start])):
                low = every[place - 1]
                if low.start >= last.end and _FILLER.fullmatch(clause[last.end : low.start]):
                    unit = low.unit or one.unit
                    upper: Sign = "below" if range_["sign"] == "<" else "at or below"
                    yield Threshold(checkpoint, of.name, upper, one.value, unit)
                    yield Threshold(checkpoint, of.name, "at or above", low.value, unit)


# ---- what a change crosses ------------------------------------------------------------------------------------------


def crossings(
    old: Quantity | None, new: Quantity | None, checkpoints: Sequence[Checkpoint], title: Mapping[str, str]
) -> tuple[Line, ...]:
    """The lines of a changed value: the resource's own range, then the thresholds that checkpoints name.

    `title`: how a checkpoint is called. Empty where the value is a dose, or nothing is known to compare.
    """
    known = new or old
    if known is None or known.drug:
        return ()
    out = []
    sides = [one.side if one else "" for one in (old, new)]
    if any(sides):
        out.append(_range_line(old, new, sides))
    return (*out, *(_threshold_line(one, old, new, title) for one in thresholds(checkpoints, known)))


def _range_line(old: Quantity | None, new: Quantity | None, sides: list[str]) -> Line:
    words = {"low": "below it", "high": "above it", "in": "within it", "": "not known"}
    before, after = (words[side] for side in sides)
    crossed = sides[0] != sides[1] and all(sides)
    if crossed:
        answer = f"yes: from {before.removesuffix(' it')} to {after.removesuffix(' it')} the range"
    elif all(sides):
        answer = f"no, still {after.removesuffix(' it')}"
    else:
        answer = "cannot be told"
    ranges = [range_words(one) for one, side in ((old, sides[0]), (new, sides[1])) if one is not None and side]
    what = "Reference range" if len(set(ranges)) == 1 else f"Reference range, now {ranges[-1]}"
    return Line(what, before, after, answer, crossed)


def range_words(one: Quantity) -> str:
    """ "0.7 to 1.3 mg/dL"."""
    unit = unit_words(one.unit)
    if one.low is not None and one.high is not None:
        return f"{one.low} to {one.high} {unit}".strip()
    return f"from {one.low} {unit}".strip() if one.low is not None else f"up to {one.high} {unit}".strip()


def _threshold_line(one: Threshold, old: Quantity | None, new: Quantity | None, title: Mapping[str, str]) -> Line:
    known = new or old
    assert known is not None
    units = (one.unit,) if one.unit else readings(one.value, known)
    found = {unit: _both_met(one, unit, old, new) for unit in units}
    met, read_as, why = found[units[0]], "", ""
    if not one.unit:
        if len(set(found.values())) > 1 and in_own_unit(one.value, units[0], known) != one.value:
            # It decides otherwise in the one unit than in the other, and the value speaks for neither.
            met, why = (None, None), f": in {' or '.join(map(_printed, units))} is not said"
        elif len(usual_units(known)) != 1 and units[0]:
            read_as = f" (read as {_printed(units[0])})"
    before, after = ("not known" if each is None else "met" if each else "not met" for each in met)
    crossed = None not in met and met[0] != met[1]
    answer = "yes" if crossed else f"cannot be told{why}" if None in met else "no"
    what = f"{title.get(one.checkpoint, one.checkpoint)}: {one.words}{read_as}"
    return Line(what, before, after, answer, crossed, one.checkpoint)


def _both_met(one: Threshold, unit: str, *sides: Quantity | None) -> tuple[bool | None, ...]:
    """Whether it is met before and after, the limit read in this unit; None where that is open."""
    met: list[bool | None] = []
    for value in sides:
        limit = in_own_unit(one.value, unit, value) if value else None
        met.append(None if value is None or limit is None or value.comparator else _met(one, value.number, limit))
    return tuple(met)


def _printed(unit: str) -> str:
    return unit_words(unit).replace("uL", "µL")


def _met(one: Threshold, value: Decimal, limit: Decimal) -> bool:
    return Threshold(one.checkpoint, one.name, one.sign, limit).met(value)


def gfr_category(egfr: Decimal) -> str:
    """The GFR category, "G3b", of an eGFR in mL/min/1.73 m2 (KDIGO 2024, table 2)."""
    return next(name for name, limit in _GFR if egfr >= limit)


def derived(name: str, before: str, after: str, checkpoints: Sequence[Checkpoint], title: Mapping[str, str]) -> Line:
    """What follows from a changed value, as the facts strip says it ("eGFR, CKD-EPI 2021", "42 mL/min/1.73 m²"): the
    thresholds of checkpoints for it, and the GFR category of an eGFR. "no threshold named" where there is neither; no
    answer for what is no number. That the category stays decides nothing by itself."""
    was, now = _numbers(name, before), _numbers(name, after)
    if len(was) != len(now) or not was:
        return Line(name, before, after, "", crossed=False)
    lines = [
        one for pair in zip(was, now, strict=True) for one in crossings(*pair, checkpoints, title) if one.checkpoint
    ]
    said = [f"yes: {one.what} {'now' if one.after == 'met' else 'no longer'} met" for one in lines if one.crossed]
    still = ""
    if name.startswith("eGFR"):
        old, new = (gfr_category(each[0].number) for each in (was, now))
        if old != new:
            said.append(f"yes: {old} to {new}")
        still = f"; still {new}"
    otherwise = "no: no threshold crossed" if lines else "no threshold named"
    if open_ := [one.what for one in lines if one.answer.startswith("cannot")]:
        otherwise = f"cannot be told: {'; '.join(open_)}"
    return Line(name, before, after, "; ".join(said) or otherwise + still, crossed=bool(said))


#: Facts at the clock by how their name begins: what each of their numbers is, in which unit.
_FACTS = (
    ("eGFR", re.compile(r"(\d+(?:\.\d+)?) mL/min"), ("eGFR",), "mL/min/1.73m2"),
    ("CrCl", re.compile(r"(\d+(?:\.\d+)?) mL/min"), ("CrCl",), "mL/min"),
    ("Weight", re.compile(r"(\d+(?:\.\d+)?) kg"), ("weight",), "kg"),
    ("BP", re.compile(r"(\d+)/(\d+)"), ("systolic pressure", "diastolic pressure"), "mmHg"),
)


def _numbers(name: str, said: str) -> list[Quantity]:
    for begins, pattern, kinds, unit in _FACTS:
        if name.startswith(begins) and (found := pattern.match(said)):
            return [Quantity(Decimal(one), unit, kind) for one, kind in zip(found.groups(), kinds, strict=True)]
    return []
