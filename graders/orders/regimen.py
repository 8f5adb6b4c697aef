"""A drug order as a pharmacist reads it: name, fields, directions and notes brought together, contradictions named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from graders.orders import doses, drugs, durations, frequencies, sig
from graders.orders.doses import Amount, Dose
from graders.orders.drugs import Drug, Release
from graders.orders.durations import Span
from graders.orders.frequencies import Frequency
from graders.orders.sig import Cap, Part, Sig, TaperText
from graders.orders.text import normal

#: A bare dose field against the strength in the name: a half, or up to four whole ones, are tablets.
_TABLETS = tuple(Decimal(n) for n in ("0.5", "1", "2", "3", "4"))


@dataclass(frozen=True)
class Given:
    """One dose and its times. `dose`: every way in which the amount can be said (5 mL, 5 mg); empty = not stated."""

    dose: tuple[Dose, ...] = ()
    frequency: tuple[Frequency, ...] = ()
    per_day: bool = False
    time_of_day: bool = False


@dataclass(frozen=True)
class Stage:
    """A step of the regimen: what is given in its days, and for how many days (None = not stated)."""

    given: tuple[Given, ...]
    duration: Span | None = None


@dataclass(frozen=True)
class Regimen:
    """What is to be given. `problems`: contradictions between fields and words; each one keeps a row from matching."""

    stages: tuple[Stage, ...] = ()
    prn: bool | None = None
    routes: tuple[str, ...] = ()
    release: Release | None = None
    strengths: tuple[Dose, ...] = ()
    caps: tuple[Cap, ...] = ()
    duration: Span | None = None
    taper: TaperText | None = None
    undosed: str = ""
    alternatives: str = ""
    frequency_alternatives: bool = False
    problems: tuple[str, ...] = ()

    def daily(self, stage: Stage, ingredients: Sequence[str]) -> Amount | None:
        """Amount a day in a stage: unequal doses of one day are added; None where a dose or its times are unknown."""
        total: Amount | None = None
        for given in stage.given:
            if not given.dose or len(given.dose[0]) != 1:
                return None
            amount = given.dose[0][0]
            rates = [rate for one in given.frequency if (rate := one.per_day) is not None]
            if given.per_day:
                rates = [Decimal(1)]
            if not rates:
                return None
            amount = replace(amount, low=amount.low * min(rates), high=amount.high * max(rates))
            if total is None:
                total = amount
            else:
                moved = doses.bridge(amount, total.dimension, ingredients)
                if moved.dimension != total.dimension:
                    return None
                total = replace(total, low=total.low + moved.low, high=total.high + moved.high)
        return total


@dataclass(frozen=True)
class Fields:
    """The structured part of one dosage: FHIR Dosage elements, read."""

    dose: Amount | None = None
    bare: Decimal | None = None
    frequency: tuple[Frequency, ...] = ()
    prn: bool | None = None
    routes: tuple[str, ...] = ()
    duration: Span | None = None
    count: Decimal | None = None
    cap: Cap | None = None
    start: date | None = None


def read_fields(dosage: Mapping[str, Any], now: datetime) -> Fields:
    """What a FHIR Dosage states in its elements (its text is read as words)."""
    dose: Amount | None = None
    bare: Decimal | None = None
    for rate in dosage.get("doseAndRate") or ():
        quantity = rate.get("doseQuantity")
        span = rate.get("doseRange")
        if quantity and quantity.get("value") is not None:
            value = Decimal(str(quantity["value"]))
            of = doses.unit(str(quantity.get("unit") or quantity.get("code") or ""))
            if of is None:
                bare = value
            else:
                dose = doses.amount(value, value, of)
            break
        if span and span.get("high"):
            low = Decimal(str((span.get("low") or span["high"]).get("value", 0)))
            high = Decimal(str(span["high"].get("value", 0)))
            of = doses.unit(str(span["high"].get("unit") or span["high"].get("code") or ""))
            if of is not None:
                dose = doses.amount(low, high, of)
            break
    timing = dosage.get("timing") or {}
    repeat = timing.get("repeat") or {}
    frequency = frequencies.of_repeat(repeat)
    coded = [str(coding.get("code", "")).lower() for coding in (timing.get("code") or {}).get("coding") or ()]
    for code in coded:
        if not frequency and code in frequencies.CODES:
            frequency = frequencies.read(frequencies.CODES[code]) or ()
    prn: bool | None = dosage.get("asNeededBoolean")
    if dosage.get("asNeededCodeableConcept"):
        prn = True
    route = dosage.get("route") or {}
    routes = [found for text in _said(route) for found in sig.routes_in(normal(text))]
    for coding in route.get("coding") or ():
        if (code := str(coding.get("code", ""))).isalpha():
            routes += sig.routes_in(normal(code))
    known = sig.route_codes()
    routes += [known[code] for coding in route.get("coding") or () if (code := str(coding.get("code", ""))) in known]
    duration, start = _bounds(repeat, now)
    count = repeat.get("countMax") or repeat.get("count")
    cap = _cap(dosage.get("maxDosePerPeriod"))
    return Fields(
        dose, bare, frequency, prn, tuple(dict.fromkeys(routes)), duration,
        Decimal(str(count)) if count is not None else None, cap, start,
    )  # fmt: skip


def _said(concept: Mapping[str, Any]) -> list[str]:
    texts = [str(concept.get("text") or "")] + [str(c.get("display") or "") for c in concept.get("coding") or ()]
    return [text for text in texts if text]


def _bounds(repeat: Mapping[str, Any], now: datetime) -> tuple[Span | None, date | None]:
    if length := repeat.get("boundsDuration"):
        return span_of(length), None
    if bounds := repeat.get("boundsRange"):
        low, high = span_of(bounds.get("low") or {}), span_of(bounds.get("high") or {})
        return (Span(low.low, high.high) if low and high else low or high), None
    if period := repeat.get("boundsPeriod"):
        start = durations.local_day(str(period.get("start", "")), now.tzinfo)
        end = durations.local_day(str(period.get("end", "")), now.tzinfo)
        if start and end and end >= start:
            days = Decimal((end - start).days + 1)
            return Span(days, days), start
        return None, start
    return None, None


def span_of(quantity: Mapping[str, Any]) -> Span | None:
    """A FHIR Duration as a span of days, None where value or unit is missing or not a length of time."""
    value, unit = quantity.get("value"), str(quantity.get("code") or quantity.get("unit") or "")
    unit = normal(unit).strip()
    if value is None or not unit or unit[0] not in "hdwmya" or unit in ("min", "minute", "minutes"):
        return None
    number = Decimal(str(value))
    return durations.span(number, number, "y" if unit == "a" else unit, point=True)


def _cap(ratio: Mapping[str, Any] | None) -> Cap | None:
    """maxDosePerPeriod as a ceiling a day; None where it has no unit or its period is not a day or 24 h."""
    if not ratio:
        return None
    top, bottom = ratio.get("numerator") or {}, ratio.get("denominator") or {}
    of = doses.unit(str(top.get("unit") or top.get("code") or ""))
    period = span_of(bottom)
    if of is None or top.get("value") is None or period is None or period.low <= 0:
        return None
    value = Decimal(str(top["value"])) / period.low
    value = value.quantize(Decimal("0.000001")).normalize()
    return Cap(doses.amount(value, value, of))


def build(
    drug: Drug,
    *,
    names: Iterable[str],
    directions: Iterable[str],
    fields: Sequence[Fields] = (),
    remarks: Iterable[str] = (),
    supply: Span | None = None,
    now: datetime,
) -> Regimen:
    """The regimen of one order.

    `names`: the medication's text and displays. `directions`: sig texts. `fields`: one a dosage instruction.
    `remarks`: sentences of notes that speak of this order's drug as directions, used where nothing else says it.
    `supply`: days of supply, where it counts as the duration.
    """
    size = len(drug.components)
    problems: list[str] = []
    name_sigs = [sig.read(text, now, parts=size) for text in dict.fromkeys(names)]
    sigs = [sig.read(text, now, parts=size) for text in dict.fromkeys(directions) if text.strip()]
    notes = [sig.read(text, now, parts=size) for text in remarks]
    names = list(names)
    strengths, ratios = _strengths(name_sigs, size, drug)
    if not strengths and size > 1:
        strengths = [
            dose
            for name in names
            if (told := drugs.named_strength(drug.components, normal(name))) and (dose := doses.read_dose(told))
        ][:1]
    worded = [one for one in name_sigs if one.has_times] + sigs
    said = [
        _stages(one, strengths, ratios + [s.ratio for s in worded if s.ratio], now, problems, drug) for one in worded
    ]
    stages = _agree([one for one in said if one], problems, drug)
    stages = _with_fields(stages, fields, strengths, ratios, problems, drug)
    if not any(given.dose for stage in stages for given in stage.given) and not any(s.alternatives for s in worded):
        stages = _implied_dose(stages, strengths, worded)
    for one in notes:
        stages = _with_note(stages, one, strengths, ratios, now, problems, drug)
    prns = {f.prn for f in fields if f.prn is not None} | {s.prn for s in (*name_sigs, *sigs) if s.prn is not None}
    if not prns:
        prns = {s.prn for s in notes if s.prn is not None}
    if len(prns) > 1:
        problems.append("fields and text contradict each other: as needed, and not as needed")
    prn = next(iter(prns)) if len(prns) == 1 else None
    routes = _routes(fields, name_sigs, sigs, notes, problems)
    every = (*name_sigs, *sigs, *notes)
    caps = tuple(cap for f in fields if (cap := f.cap)) + tuple(cap for one in every for cap in one.caps)
    release = _release(drug, names, directions)
    duration = _duration(stages, fields, every, supply, now)
    return Regimen(
        tuple(stages),
        prn,
        routes,
        release,
        tuple(strengths),
        caps,
        duration,
        next((one.taper for one in every if one.taper), None),
        next((one.undosed for one in (*name_sigs, *sigs) if one.undosed), ""),
        next((one.alternatives for one in (*name_sigs, *sigs) if one.alternatives), ""),
        any(one.frequency_alternatives for one in (*name_sigs, *sigs)),
        tuple(dict.fromkeys(problems)),
    )


def _strengths(name_sigs: Sequence[Sig], size: int, drug: Drug) -> tuple[list[Dose], list[tuple[Amount, Amount]]]:
    found: list[Dose] = []
    ratios: list[tuple[Amount, Amount]] = []
    for one in name_sigs:
        if one.ratio:
            ratios.append(one.ratio)
        for step in one.steps:
            for part in step.parts:
                if part.strength:
                    found.append(part.strength)
                elif (
                    part.dose
                    and (not one.has_times or part.loose)
                    and part.dose[0].dimension in ("mass", "units", "equivalents")
                ):
                    found.append(part.dose)
    if size > 1:
        found = [_whole_combination(dose, drug) for dose in found]
    return list(dict.fromkeys(found)), ratios


def _whole_combination(dose: Dose, drug: Drug) -> Dose:
    """ "Augmentin 875 mg" names the first part: the label's strength with that part, where there is just one."""
    if len(dose) != 1:
        return dose
    fits = [
        known
        for text in drugs.combination_strengths(drug.components)
        if (known := doses.read_dose(text)) and known[0] == dose[0]
    ]
    return fits[0] if len(fits) == 1 else dose


def _times(dose: Dose, factor: Decimal) -> Dose:
    return tuple(amount.times(factor) for amount in dose)


def _stages(
    one: Sig,
    strengths: Sequence[Dose],
    ratios: Sequence[tuple[Amount, Amount] | None],
    now: datetime,
    problems: list[str],
    drug: Drug,
) -> list[Stage]:
    stages: list[Stage] = []
    for step in one.steps:
        given = tuple(_given(part, strengths, ratios, problems, drug) for part in step.parts)
        stages.append(Stage(given, _days(step.duration, given, now)))
    if len(stages) == 1 and not any(g.dose or g.frequency for g in stages[0].given) and stages[0].duration is None:
        return []
    return stages


def _given(
    part: Part,
    strengths: Sequence[Dose],
    ratios: Sequence[tuple[Amount, Amount] | None],
    problems: list[str],
    drug: Drug,
) -> Given:
    strength = part.strength or (strengths[0] if len(strengths) == 1 else None)
    ways: list[Dose] = []
    dose = part.dose
    if dose and len(drug.components) > 1:
        dose = _whole_combination(dose, drug)
    count = part.count
    if dose and count and strength and dose[0].dimension == strength[0].dimension and len(dose) == len(strength):
        if _times(strength, count.low) != dose:
            if dose == strength and not part.bracketed:
                dose = _times(dose, count.low)
            elif not part.loose:
                problems.append(f"{count} of {doses.show(strength)} is not {doses.show(dose)}")
    elif dose and count and part.loose:
        dose = tuple(replace(a, low=a.low * count.low, high=a.high * count.high) for a in dose)
    elif not dose and count and strength:
        dose = tuple(replace(a, low=a.low * count.low, high=a.high * count.high) for a in strength)
    elif not dose and not count and part.strength and part.frequency:
        dose = part.strength
    if dose and part.divided:
        dose = tuple(replace(a, low=a.low / part.divided, high=a.high / part.divided) for a in dose)
    if dose:
        ways.append(dose)
    if count:
        ways.append((count,))
    if part.elemental:
        ways.append((part.elemental,))
    for ratio in ratios:
        if ratio and dose and len(dose) == 1 and dose[0].dimension == ratio[1].dimension:
            factor = ratio[0].low / ratio[1].low
            ways.insert(0, (Amount(dose[0].low * factor, dose[0].high * factor, ratio[0].dimension),))
            break
    if dose and dose[0].dimension == "puff" and len(drug.components) > 1 and strength and len(strength) > 1:
        puffs = dose[0]
        ways.insert(0, tuple(replace(a, low=a.low * puffs.low, high=a.high * puffs.high) for a in strength))
    frequency = part.frequency
    if part.divided:
        named = [one for one in frequency if one.kind == "hours" or (one.kind == "per_day" and one.n > 1)]
        frequency = tuple(named) or (Frequency("per_day", Decimal(part.divided)),)
    return Given(tuple(ways), frequency, part.per_day and not part.divided, part.time_of_day)


def _days(found: durations.Found | None, given: Sequence[Given], now: datetime) -> Span | None:
    if found is None:
        return None
    if found.days is not None:
        return found.days
    if found.until is not None:
        days = Decimal((found.until - now.date()).days + (1 if found.inclusive else 0))
        return Span(days, days) if days > 0 else None
    if found.doses is not None and given and len(given[0].frequency) == 1:
        rate = given[0].frequency[0].per_day
        if rate:
            days = found.doses / rate
            return Span(days, days)
    return None


def equal_dose(one: Sequence[Dose], other: Sequence[Dose], drug: Drug) -> bool:
    """Whether two statements of a dose agree in any way of saying it."""
    return any(
        len(a) == len(b) and all(doses.same(x, y, drug.components) for x, y in zip(a, b, strict=True))
        for a in one
        for b in other
    )


def _comparable(one: Sequence[Dose], other: Sequence[Dose], drug: Drug) -> bool:
    return any(
        len(a) == len(b)
        and all(
            doses.bridge(x, y.dimension, drug.components).dimension == y.dimension for x, y in zip(a, b, strict=True)
        )
        for a in one
        for b in other
    )


def same_frequency(one: Sequence[Frequency], other: Sequence[Frequency]) -> bool:
    return frequencies.any_satisfies(one, other) or frequencies.any_satisfies(other, one)


def _agree(said: list[list[Stage]], problems: list[str], drug: Drug) -> list[Stage]:
    """One list of stages from several texts; what one leaves out another fills in, what differs is a problem."""
    if not said:
        return []
    first = said[0]
    for other in said[1:]:
        if len(first) == len(other) == 1 and len(first[0].given) == len(other[0].given) == 1:
            a, b = first[0].given[0], other[0].given[0]
            if a.dose and b.dose and _comparable(a.dose, b.dose, drug) and not equal_dose(a.dose, b.dose, drug):
                problems.append(f"the texts contradict each other: {doses.show(a.dose[0])} and {doses.show(b.dose[0])}")
            if a.frequency and b.frequency and not same_frequency(a.frequency, b.frequency):
                problems.append(f"the texts contradict each other: {_list(a.frequency)} and {_list(b.frequency)}")
            joined = Given(
                b.dose or a.dose, b.frequency or a.frequency, b.per_day or a.per_day, b.time_of_day or a.time_of_day
            )
            first = [Stage((joined,), other[0].duration or first[0].duration)]
        elif len(other) > len(first) or len(other[0].given) > len(first[0].given):
            first = other
    return list(first)


def _list(given: Iterable[Frequency]) -> str:
    return " to ".join(str(one) for one in given)


def _with_fields(
    stages: list[Stage],
    fields: Sequence[Fields],
    strengths: Sequence[Dose],
    ratios: Sequence[tuple[Amount, Amount] | None],
    problems: list[str],
    drug: Drug,
) -> list[Stage]:
    told = [one for one in fields if one.dose or one.bare is not None or one.frequency]
    if not told:
        return stages
    if len(told) > 1:
        return _several_fields(stages, told, strengths, ratios, problems, drug)
    field = told[0]
    ways = _field_dose(field, stages, strengths, ratios, problems, drug)
    if not stages:
        return [Stage((Given(tuple(ways), field.frequency),))]
    worded = [given for stage in stages for given in stage.given if given.dose]
    if ways and worded:
        if not any(equal_dose(given.dose, ways, drug) for given in worded):
            daily = _sum_of_day(stages, drug)
            if daily is None or not equal_dose([(daily,)], ways, drug):
                if _comparable(worded[0].dose, ways, drug):
                    problems.append(
                        f"field and text contradict each other: {doses.show(ways[0])}"
                        f" and {doses.show(worded[0].dose[0])}"
                    )
                else:
                    stages = _put(stages, dose=tuple(ways) + worded[0].dose)
        elif len(worded) == 1:
            stages = _put(stages, dose=tuple(dict.fromkeys((*worded[0].dose, *ways))))
    elif ways:
        stages = _put(stages, dose=tuple(ways))
    timed = [given for stage in stages for given in stage.given if given.frequency]
    if field.frequency and timed:
        combined = _combined_day(stages)
        if not any(same_frequency(given.frequency, field.frequency) for given in timed) and not (
            combined and same_frequency(combined, field.frequency)
        ):
            problems.append(
                f"field and text contradict each other: {_list(field.frequency)} and {_list(timed[0].frequency)}"
            )
    elif field.frequency:
        stages = _put(stages, frequency=field.frequency)
    return stages


def _combined_day(stages: Sequence[Stage]) -> tuple[Frequency, ...]:
    parts = stages[0].given
    if len(parts) > 1 and all(given.time_of_day for given in parts):
        return (Frequency("per_day", Decimal(len(parts))),)
    return ()


def _sum_of_day(stages: Sequence[Stage], drug: Drug) -> Amount | None:
    if len(stages) == 1 and len(stages[0].given) > 1:
        return Regimen().daily(stages[0], drug.components)
    return None


def _put(stages: Sequence[Stage], *, dose: tuple[Dose, ...] = (), frequency: tuple[Frequency, ...] = ()) -> list[Stage]:
    """The stages with a dose or times filled in where they have none (all of one stage; a lone dose replaced)."""
    made = []
    for stage in stages:
        given = tuple(
            replace(
                one,
                dose=(dose if dose and (not one.dose or len(stages) == len(stage.given) == 1) else one.dose),
                frequency=one.frequency or frequency,
            )
            for one in stage.given
        )
        made.append(replace(stage, given=given))
    return made


def _several_fields(
    stages: list[Stage],
    told: Sequence[Fields],
    strengths: Sequence[Dose],
    ratios: Sequence[tuple[Amount, Amount] | None],
    problems: list[str],
    drug: Drug,
) -> list[Stage]:
    """Several dosage instructions: steps where each has its days, else the doses of one day."""
    given = [Given(tuple(_field_dose(one, [], strengths, ratios, problems, drug)), one.frequency) for one in told]
    if all(one.dose for one in given):
        fielded = (
            [Stage((one,), field.duration) for one, field in zip(given, told, strict=True)]
            if any(field.duration for field in told)
            else [Stage(tuple(given))]
        )
        worded = {way for stage in stages for one in stage.given for way in one.dose}
        if worded and len([one for stage in stages for one in stage.given]) == len(given):
            agree = all(any(equal_dose(one.dose, [way], drug) for way in worded) for one in given)
            if not agree:
                problems.append("the dose fields and the text contradict each other")
            return stages
        if worded and not any(equal_dose(one.dose, [way], drug) for one in given for way in worded):
            problems.append("the dose fields and the text contradict each other")
        return fielded
    return stages


def _field_dose(
    field: Fields,
    stages: Sequence[Stage],
    strengths: Sequence[Dose],
    ratios: Sequence[tuple[Amount, Amount] | None],
    problems: list[str],
    drug: Drug,
) -> list[Dose]:
    """The dose field in every way it can be said; against the name's strength it must be tablets."""
    worded = [given for stage in stages for given in stage.given if given.dose]
    amount = field.dose
    if amount is None:
        if field.bare is None:
            return []
        for given in worded:
            for way in given.dose:
                if way[0].low == way[0].high == field.bare or _written(way[0], field.bare):
                    return list(given.dose)
        if worded:
            way = worded[0].dose[0]
            amount = replace(way[0], low=field.bare, high=field.bare)
        elif strengths:
            strength = strengths[0]
            if _written(strength[0], field.bare):
                return [strength]
            whole = strength[0].low
            if field.bare in _TABLETS and field.bare * 2 < whole:
                return [_times(strength, field.bare), (Amount(field.bare, field.bare, "tablet"),)]
            amount = replace(strength[0], low=field.bare, high=field.bare)
        else:
            return []
    if amount.dimension == "tablet":
        if strengths and amount.low == amount.high:
            return [_times(strengths[0], amount.low), (amount,)]
        return [(amount,)]
    ways: list[Dose] = [(amount,)]
    if len(drug.components) > 1:
        ways = [_whole_combination((amount,), drug)]
        if strengths and len(strengths[0]) > 1 and len(ways[0]) == 1:
            for n in _TABLETS:
                if strengths[0][0].times(n) == amount:
                    return [_times(strengths[0], n)]
    for ratio in ratios:
        if ratio and amount.dimension == ratio[1].dimension:
            factor = ratio[0].low / ratio[1].low
            ways.insert(0, (Amount(amount.low * factor, amount.high * factor, ratio[0].dimension),))
            break
    counted = any(way[0].dimension == "tablet" for given in worded for way in given.dose) or (
        worded and any(equal_dose(given.dose, ways, drug) for given in worded)
    )
    if strengths and not counted and not ratios:
        fits = any(
            doses.same(strength[0].times(n), amount, drug.components)
            for strength in strengths
            for n in _TABLETS
            if len(strength) == 1
        )
        comparable = [s for s in strengths if len(s) == 1 and s[0].dimension == amount.dimension]
        if comparable and not fits and amount.low == amount.high:
            problems.append(
                f"field and text contradict each other: {amount} and the strength {doses.show(comparable[0])}"
            )
    return ways


def _written(amount: Amount, value: Decimal) -> bool:
    """Whether a bare number is this amount as it is usually written, in its base unit or mcg or g."""
    return amount.low == amount.high and (
        amount.low == value
        or (amount.dimension == "mass" and value in (amount.low * 1000, amount.low / 1000) and amount.low < 1)
        or (amount.dimension == "units" and amount.low / 1000000 == value)
    )


def _implied_dose(stages: list[Stage], strengths: Sequence[Dose], worded: Sequence[Sig]) -> list[Stage]:
    """A strength in the name and times without a count: one of it each time."""
    if len(strengths) == 1 and stages and any(given.frequency for stage in stages for given in stage.given):
        return _put(stages, dose=(strengths[0],))
    return stages


def _with_note(
    stages: list[Stage],
    one: Sig,
    strengths: Sequence[Dose],
    ratios: Sequence[tuple[Amount, Amount] | None],
    now: datetime,
    problems: list[str],
    drug: Drug,
) -> list[Stage]:
    noted = _stages(one, strengths, list(ratios), now, problems, drug)
    if not noted:
        return stages
    if not stages:
        return noted
    worded = [given for stage in stages for given in stage.given]
    for stage in noted:
        for given in stage.given:
            if not given.dose:
                continue
            ours = [w for w in worded if w.dose and _comparable(w.dose, given.dose, drug)]
            if ours and not any(equal_dose(w.dose, given.dose, drug) for w in ours):
                day = _sum_of_day(stages, drug) or (
                    Regimen().daily(stages[0], drug.components) if len(stages) == 1 else None
                )
                if given.per_day and day is not None and equal_dose([(day,)], given.dose, drug):
                    continue
                problems.append(
                    "order and note contradict each other:"
                    f" {doses.show(ours[0].dose[0])} and {doses.show(given.dose[0])}"
                )
            if (
                given.frequency
                and ours
                and all(w.frequency for w in ours)
                and not any(same_frequency(w.frequency, given.frequency) for w in ours)
            ):
                problems.append(
                    f"order and note contradict each other: {_list(ours[0].frequency)} and {_list(given.frequency)}"
                )
    first = noted[0].given[0]
    if not any(w.dose for w in worded) and first.dose:
        stages = _put(stages, dose=first.dose)
    if not any(w.frequency for w in worded) and first.frequency:
        stages = _put(stages, frequency=first.frequency)
    if len(stages) == 1 and stages[0].duration is None and len(noted) == 1 and noted[0].duration:
        stages = [replace(stages[0], duration=noted[0].duration)]
    return stages


def _routes(
    fields: Sequence[Fields],
    name_sigs: Sequence[Sig],
    sigs: Sequence[Sig],
    notes: Sequence[Sig],
    problems: list[str],
) -> tuple[str, ...]:
    fielded = [route for one in fields for route in one.routes]
    worded = [route for one in (*sigs, *name_sigs) for route in one.routes]
    if fielded and worded and not set(fielded) & set(worded):
        problems.append(f"field and text contradict each other: route {fielded[0]} and {worded[0]}")
    for found in (fielded, worded, [route for one in notes for route in one.routes]):
        if found:
            return tuple(dict.fromkeys(found))
    forms = dict.fromkeys(route for one in (*name_sigs, *sigs) for route in one.form_routes)
    return tuple(forms) if len(forms) == 1 else ()


def _release(drug: Drug, names: Iterable[str], directions: Iterable[str]) -> Release | None:
    if drug.release:
        return drug.release
    for text in names:
        if found := drugs.release_in(normal(text), name=True):
            return found
    for text in directions:
        if found := drugs.release_in(normal(text), name=False):
            return found
    return drugs.own_release(drug.components[0]) if not drug.is_combination else None


def _duration(
    stages: Sequence[Stage], fields: Sequence[Fields], every: Sequence[Sig], supply: Span | None, now: datetime
) -> Span | None:
    """Of the whole course: words, then bounds, then days of supply."""
    if len(stages) > 1 and all(stage.duration for stage in stages):
        low, high = Decimal(0), Decimal(0)
        for stage in stages:
            assert stage.duration is not None
            low += stage.duration.low
            high += stage.duration.high or stage.duration.low
        return Span(low, high)
    for one in stages:
        if one.duration is not None and len(stages) == 1:
            return one.duration
    given = stages[0].given if len(stages) == 1 else ()
    for sig_read in every:
        for step in sig_read.steps:
            if step.duration is not None and len(sig_read.steps) == 1:
                found = _days(step.duration, given or (Given(),), now)
                if found is not None:
                    return found
    for field in fields:
        if field.duration is not None:
            return field.duration
        if field.count is not None and given and len(given[0].frequency) == 1 and given[0].frequency[0].per_day:
            days = field.count / given[0].frequency[0].per_day
            return Span(days, days)
    return supply
