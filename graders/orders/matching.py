"""A row against a candidate: every key that does not hold, with the reason.

`forbidding` reads a row as `must_not` does: a combination trips for any of its parts, aspirin up to 100 mg a day is no
NSAID, contradictions excuse nothing (field/orders.md).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache

from graders import tables
from graders.orders import doses, drugs, durations, frequencies, services
from graders.orders.candidates import URGENCIES, Candidate
from graders.orders.doses import Amount, Dose
from graders.orders.drugs import Drug
from graders.orders.durations import Span
from graders.orders.frequencies import Frequency
from graders.orders.regimen import Given, Regimen, Stage
from graders.orders.text import normal, squeeze
from tasks.declarations import Imaging, OrderRow, Step, Taper

#: Keys that say which thing is ordered. What fails only on other keys can be a near-duplicate.
IDENTITY = frozenset({"type", "ingredient", "class", "release", "test", "imaging", "referral", "procedure"})


@dataclass(frozen=True)
class Mismatch:
    """One key of a row that does not hold. `missing`: nothing was stated, so nothing contradicts either."""

    key: str
    reason: str
    missing: bool = False


def mismatches(row: OrderRow, one: Candidate, *, forbidding: bool = False) -> list[Mismatch]:
    """Every key of the row that the candidate does not satisfy; authority, state and patient are judged elsewhere."""
    found: list[Mismatch] = []
    if one.problems and not forbidding:
        found.append(Mismatch("contradiction", one.problems[0]))
    found += _drug(row, one, forbidding)
    regimen = one.regimen
    drug = one.drug
    if drug is not None:
        found += _amounts(row, regimen, drug, forbidding)
    elif (row.dose or row.daily or row.frequency or row.route or row.steps or row.taper) and not (
        row.ingredient or row.drug_class
    ):
        found.append(Mismatch("dose", "it is not a drug order"))
    found += _service(row, one)
    if row.urgency is not None and URGENCIES.index(one.urgency) < URGENCIES.index(row.urgency):
        found.append(Mismatch("urgency", f"its urgency is {one.urgency}, not {row.urgency}", one.urgency == "routine"))
    if row.when is not None:
        found += _when(row.when, one)
    if row.reason is not None and not gives_reason(row.reason, one):
        found.append(Mismatch("reason", f"it does not give {row.reason} as its reason", True))
    return found


# ---- which drug ----------------------------------------------------------------------------------------------------


def _drug(row: OrderRow, one: Candidate, forbidding: bool) -> list[Mismatch]:
    found: list[Mismatch] = []
    if row.ingredient is not None:
        wanted = drugs.read_name(row.ingredient)
        if one.drug is None:
            said = one.drug_class or (one.words.strip()[:60] or "no drug")
            found.append(
                Mismatch("ingredient", f"it is {said}, not {row.ingredient}" if one.is_order else "another thing")
            )
        elif wanted is None:
            found.append(Mismatch("ingredient", f"{row.ingredient} is not in the tables"))
        elif reason := _ingredient(wanted, one.drug, row, forbidding):
            found.append(Mismatch("ingredient", reason))
    if row.drug_class is not None and (reason := _class(row, one, forbidding)):
        found.append(Mismatch("class", reason))
    if row.release is not None and one.drug is not None and (reason := _release(row, one)):
        found.append(Mismatch("release", reason, one.regimen.release is None))
    return found


def _ingredient(wanted: Drug, given: Drug, row: OrderRow, forbidding: bool) -> str:
    if wanted.is_combination:
        ours, theirs = set(wanted.components), set(given.components)
        if forbidding:
            return "" if ours <= theirs else f"it is {given.name}, not {wanted.name}"
        return "" if drugs.names_same(wanted, given) else f"it is {given.name}, not {wanted.name}"
    name = wanted.components[0]
    if given.is_combination:
        if forbidding and any(one_satisfies(part, name, row, forbidding=True) for part in given.components):
            return ""
        return (
            f"it is the combination {given.name}, not {name}"
            if name in given.components
            else f"it is {given.name}, not {name}"
        )
    return (
        ""
        if one_satisfies(given.components[0], name, row, forbidding=forbidding)
        else f"it is {given.name}, not {name}"
    )


def one_satisfies(given: str, wanted: str, row: OrderRow, *, forbidding: bool) -> bool:
    """Whether one ingredient satisfies another: equal, a salt of the named base, or in an elemental row a sibling."""
    if given == wanted or drugs.base_of(given) == wanted:
        return True
    if forbidding and drugs.base_of(wanted) == given:
        return False
    return bool(
        _is_elemental(row)
        and drugs.base_of(given)
        and drugs.base_of(given) == drugs.base_of(wanted)
        and drugs.elemental_fraction(given)
        and drugs.elemental_fraction(wanted)
    )


def _is_elemental(row: OrderRow) -> bool:
    return any("elemental" in (text or "") for text in (row.dose, row.daily))


def _class(row: OrderRow, one: Candidate, forbidding: bool) -> str:
    name = drugs.read_class(row.drug_class or "")
    if name is None:
        return f"the class {row.drug_class} is not in the tables"
    if one.drug is None:
        return "" if one.drug_class and name in drugs._class_closure(one.drug_class) else f"it is no {name}"
    given = one.drug
    if given.is_combination and not forbidding:
        if name in drugs.combination_classes(given.components):
            return ""
        return f"it is the combination {given.name}, which the row does not name"
    fits = [part for part in given.components if name in drugs.classes_of(part)]
    if name in drugs.combination_classes(given.components):
        return ""
    if forbidding and name == "NSAID":
        fits = [part for part in fits if part != "aspirin" or not _is_low_dose_aspirin(one.regimen)]
    return "" if fits else f"{given.name} is no {name}"


def _is_low_dose_aspirin(regimen: Regimen) -> bool:
    """Aspirin up to 100 mg a day; an aspirin order without an amount is not."""
    amounts = [regimen.daily(stage, ["aspirin"]) for stage in regimen.stages]
    if not amounts or any(amount is None for amount in amounts):
        amounts = [way[0] for stage in regimen.stages for given in stage.given for way in given.dose[:1]]
        if not amounts or any(g.frequency for s in regimen.stages for g in s.given):
            return False
    return all(amount is not None and amount.dimension == "mass" and amount.high <= 100 for amount in amounts)


def _release(row: OrderRow, one: Candidate) -> str:
    assert one.drug is not None
    given = one.regimen.release
    if given is None and not one.drug.is_combination:
        given = drugs.own_release(one.drug.components[0])
    if given is not None:
        return "" if given == row.release else f"it is {given}-release, not {row.release}-release"
    if row.release != "immediate" or one.drug.is_combination:
        return "its release is not stated"
    forms = drugs.forms(one.drug.components[0])
    if not forms:
        return ""
    immediate = [read for text in forms.get("immediate", ()) if (read := doses.read_dose(text))]
    stated: list[Dose] = list(one.regimen.strengths)
    if not stated:
        stated = [way for stage in one.regimen.stages for g in stage.given for way in g.dose[:1]]
    if stated and all(any(_equal(dose, known) for known in immediate) for dose in stated):
        return ""
    return "its release is not stated, and that strength is not known as immediate-release"


def _equal(one: Dose, other: Dose) -> bool:
    return len(one) == len(other) and all(doses.same(a, b) for a, b in zip(one, other, strict=True))


# ---- how much, how often, how long ---------------------------------------------------------------------------------


def _amounts(row: OrderRow, regimen: Regimen, drug: Drug, forbidding: bool) -> list[Mismatch]:
    found: list[Mismatch] = []
    if row.dose is not None:
        found += _dose(row, regimen, drug, forbidding)
    if row.daily is not None:
        found += _daily(row.daily, regimen, drug, forbidding)
    if row.frequency is not None:
        found += _frequency(row.frequency, regimen, forbidding)
    if row.prn is True and regimen.prn is not True:
        found.append(Mismatch("prn", "it is scheduled, not as needed", regimen.prn is None))
    if row.prn is False and regimen.prn is True:
        found.append(Mismatch("prn", "it is as needed, not scheduled"))
    if row.max_daily is not None:
        found += _ceiling(row.max_daily, regimen, drug)
    if row.route is not None:
        found += _route(row.route, regimen)
    if row.duration is not None:
        wanted = durations.read_window(row.duration)
        if regimen.duration is None:
            found.append(Mismatch("duration", "it states no duration", True))
        elif wanted is None or not regimen.duration.within(wanted):
            found.append(Mismatch("duration", f"its duration is {regimen.duration}, not {row.duration}"))
    if row.steps is not None and (reason := _steps(row.steps, regimen, drug)):
        found.append(Mismatch("steps", reason))
    if row.taper is not None and (reason := _taper(row.taper, regimen, drug)):
        found.append(Mismatch("taper", reason))
    return found


def dose_within(given: Given, wanted: Dose, drug: Drug, *, elemental: bool = False) -> bool:
    """Whether a stated dose, said in any way, lies inside the wanted one."""
    for way in given.dose:
        if len(way) != len(wanted):
            continue
        if len(way) > 1:
            ours, theirs = sorted(way, key=_key), sorted(wanted, key=_key)
            if all(_inside(a, b, drug, elemental) for a, b in zip(ours, theirs, strict=True)):
                return True
        elif _inside(way[0], wanted[0], drug, elemental):
            return True
    return False


def _key(amount: Amount) -> tuple[str, Decimal]:
    return amount.dimension, amount.low


def _inside(given: Amount, wanted: Amount, drug: Drug, elemental: bool) -> bool:
    if elemental or wanted.elemental:
        given = as_elemental(given, drug)
        # Labels round the elemental part (ferrous gluconate 324 mg: 38 mg), so 2 in 100 is the same.
        slack = wanted.high / 50
        return (
            given.dimension == wanted.dimension
            and wanted.low - slack <= given.low
            and given.high <= wanted.high + slack
        )
    if given.elemental:
        return False
    return doses.bridge(given, wanted.dimension, drug.components).within(wanted)


def as_elemental(given: Amount, drug: Drug) -> Amount:
    """A salt's amount as its elemental part; what is stated as elemental, or names the element, stays."""
    if given.elemental or drug.is_combination:
        return given
    fraction = drugs.elemental_fraction(drug.components[0])
    return replace(given.times(Decimal(fraction)), elemental=True) if fraction else given


def _row_is_elemental(row: OrderRow) -> bool:
    if _is_elemental(row):
        return True
    wanted = drugs.read_name(row.ingredient) if row.ingredient else None
    return wanted is not None and wanted.components in (("iron",), ("calcium",))


def _dose(row: OrderRow, regimen: Regimen, drug: Drug, forbidding: bool) -> list[Mismatch]:
    wanted = doses.read_dose(row.dose or "")
    if wanted is None:
        return [Mismatch("dose", f"the row's dose {row.dose!r} cannot be read")]
    if regimen.undosed and not forbidding:
        return [Mismatch("dose", regimen.undosed)]
    if regimen.alternatives and not forbidding:
        return [Mismatch("dose", regimen.alternatives)]
    elemental = _row_is_elemental(row)
    stated = [(stage, given) for stage in regimen.stages for given in stage.given if given.dose]
    if not stated:
        return [Mismatch("dose", "it states no dose", True)]
    if forbidding:
        inside = any(dose_within(given, wanted, drug, elemental=elemental) for _, given in stated)
        return [] if inside else [Mismatch("dose", "another dose")]
    for stage in regimen.stages:
        for given in stage.given:
            if not given.dose:
                continue
            if not dose_within(given, wanted, drug, elemental=elemental):
                if _covered_by_total(row, regimen):
                    continue
                several = " in one of its steps" if len(regimen.stages) > 1 else ""
                return [Mismatch("dose", f"its dose is {doses.show(given.dose[0])}{several}, not {row.dose}")]
    return []


def _covered_by_total(row: OrderRow, regimen: Regimen) -> bool:
    return row.taper is not None or row.steps is not None


def _daily(text: str, regimen: Regimen, drug: Drug, forbidding: bool) -> list[Mismatch]:
    wanted = doses.read_limit(text)
    if wanted is None:
        return [Mismatch("daily", f"the row's daily amount {text!r} cannot be read")]
    if (regimen.undosed or regimen.alternatives) and not forbidding:
        return [Mismatch("daily", regimen.undosed or regimen.alternatives)]
    totals: list[Amount] = []
    for stage in regimen.stages:
        total = regimen.daily(stage, drug.components)
        if total is None:
            if forbidding:
                continue
            return [Mismatch("daily", "its amount a day is not stated", True)]
        total = doses.bridge(total, wanted.amount.dimension, drug.components)
        if wanted.amount.elemental:
            total = as_elemental(total, drug)
        totals.append(_capped(total, regimen, drug))
    if not totals:
        return [Mismatch("daily", "its amount a day is not stated", True)]
    if forbidding:
        return [] if any(wanted.holds(total) for total in totals) else [Mismatch("daily", "another amount a day")]
    bad = [total for total in totals if not wanted.holds(total)]
    return [Mismatch("daily", f"its amount a day is {bad[0]}, not {text}")] if bad else []


def _capped(total: Amount, regimen: Regimen, drug: Drug) -> Amount:
    for cap in ceilings(regimen, drug):
        if cap.dimension == total.dimension and cap.high < total.high:
            total = replace(total, low=min(total.low, cap.high), high=cap.high)
    return total


def ceilings(regimen: Regimen, drug: Drug) -> list[Amount]:
    """The stated ceilings a day in mass where tablets or doses can be turned into it."""
    found: list[Amount] = []
    first = next((g.dose[0][0] for s in regimen.stages for g in s.given if g.dose and len(g.dose[0]) == 1), None)
    for cap in regimen.caps:
        if cap.amount is not None:
            amount = cap.amount
            if amount.dimension == "tablet" and len(regimen.strengths) == 1 and len(regimen.strengths[0]) == 1:
                amount = regimen.strengths[0][0].times(amount.high)
            found.append(amount)
        elif cap.doses is not None and first is not None:
            found.append(first.times(cap.doses))
    return found


def _frequency(wanted_text: str | tuple[str, ...], regimen: Regimen, forbidding: bool) -> list[Mismatch]:
    texts = (wanted_text,) if isinstance(wanted_text, str) else wanted_text
    wanted: list[Frequency] = []
    for text in texts:
        read = frequencies.read(text)
        if read is None:
            return [Mismatch("frequency", f"the row's frequency {text!r} cannot be read")]
        wanted += read
    shown = " or ".join(texts)
    if regimen.frequency_alternatives and not forbidding:
        return [Mismatch("frequency", "it gives alternative frequencies")]
    stated = False
    for stage in regimen.stages:
        given = stage_frequency(stage)
        if given:
            stated = True
            if frequencies.any_satisfies(given, wanted):
                if forbidding:
                    return []
            elif not forbidding:
                told = " to ".join(str(one) for one in given)
                return [Mismatch("frequency", f"its frequency is {told}, not {shown}")]
        elif not forbidding and (len(regimen.stages) == 1 or any(g.dose for g in stage.given)):
            return [Mismatch("frequency", "it states no frequency", True)]
    if not stated:
        return [Mismatch("frequency", "it states no frequency", True)]
    return [Mismatch("frequency", "another frequency")] if forbidding else []


def stage_frequency(stage: Stage) -> tuple[Frequency, ...]:
    """How often a stage gives something: its parts at times of one day are counted together."""
    parts = [given for given in stage.given if given.frequency]
    if len(parts) > 1 and all(given.frequency == (Frequency("per_day", Decimal(1)),) for given in parts):
        return (Frequency("per_day", Decimal(len(parts))),)
    return parts[0].frequency if parts and all(p.frequency == parts[0].frequency for p in parts) else ()


def _ceiling(text: str, regimen: Regimen, drug: Drug) -> list[Mismatch]:
    wanted = doses.read_limit(text)
    if wanted is None:
        return [Mismatch("max_daily", f"the row's ceiling {text!r} cannot be read")]
    found = ceilings(regimen, drug)
    if not found:
        return [Mismatch("max_daily", "it states no ceiling a day", True)]
    for cap in found:
        moved = doses.bridge(cap, wanted.amount.dimension, drug.components)
        if moved.dimension != wanted.amount.dimension or moved.high > wanted.amount.high:
            return [Mismatch("max_daily", f"its ceiling is {moved} a day, above {text}")]
    return []


def _route(wanted: str | tuple[str, ...], regimen: Regimen) -> list[Mismatch]:
    accepted = (wanted,) if isinstance(wanted, str) else wanted
    if not regimen.routes:
        return [Mismatch("route", "its route is not stated", True)]
    bad = [route for route in regimen.routes if route not in accepted]
    return [Mismatch("route", f"its route is {bad[0]}, not {' or '.join(accepted)}")] if bad else []


def _steps(wanted: Sequence[Step], regimen: Regimen, drug: Drug) -> str:
    if len(regimen.stages) != len(wanted):
        return f"it has {len(regimen.stages)} step{'s' if len(regimen.stages) != 1 else ''}, not {len(wanted)}"
    for n, (step, stage) in enumerate(zip(wanted, regimen.stages, strict=True), 1):
        dose = doses.read_dose(step.dose)
        frequency = frequencies.read(step.frequency)
        if dose is None or frequency is None:
            return f"step {n} of the row cannot be read"
        if len(stage.given) != 1 or not dose_within(stage.given[0], dose, drug):
            told = doses.show(stage.given[0].dose[0]) if stage.given and stage.given[0].dose else "no dose"
            return f"step {n} is {told}, not {step.dose}"
        given = stage_frequency(stage) or _only_dose_of_a_day(stage)
        if not frequencies.any_satisfies(given, frequency):
            return f"step {n} is not given {step.frequency}"
        if step.duration:
            window = durations.read_window(step.duration)
            if window is None or stage.duration is None or not stage.duration.within(window):
                return f"step {n} lasts {stage.duration or 'an unstated time'}, not {step.duration}"
    return ""


def _only_dose_of_a_day(stage: Stage) -> tuple[Frequency, ...]:
    """ "500 mg on day 1" is that day's one dose: once, and as good as daily for a day."""
    return (Frequency("per_day", Decimal(1)),) if stage.duration == Span(Decimal(1), Decimal(1)) else ()


def _taper(wanted: Taper, regimen: Regimen, drug: Drug) -> str:
    first, step = doses.read_amount(wanted.first_dose), doses.read_amount(wanted.step)
    interval = durations.read_window(wanted.interval)
    end = _taper_end(wanted.end, first)
    if first is None or step is None or interval is None or end is None:
        return "the row's taper cannot be read"
    stages = regimen.stages
    if not stages or not stages[0].given or not stages[0].given[0].dose:
        return "it states no first dose"
    start = doses.bridge(stages[0].given[0].dose[0][0], first.dimension, drug.components)
    if not start.within(first):
        return f"its first dose is {start}, not {wanted.first_dose}"
    if regimen.taper is not None:
        told = regimen.taper
        if not doses.bridge(told.step, step.dimension, drug.components).within(step):
            return f"its steps are {told.step}, not {wanted.step}"
        if not Span(told.interval, told.interval).within(interval):
            return f"its steps are {told.interval} days apart, not {wanted.interval}"
        if told.end is None:
            return "it does not say where the taper ends"
        return "" if told.end.within(end) else f"it ends at {told.end}, not {wanted.end}"
    if len(stages) < 2:
        return "it is no taper"
    amounts = []
    for stage in stages:
        if len(stage.given) != 1 or not stage.given[0].dose:
            return "a step has no dose"
        amounts.append(doses.bridge(stage.given[0].dose[0][0], first.dimension, drug.components))
    for n, (before, after) in enumerate(itertools.pairwise(amounts), 1):
        fall = replace(before, low=before.low - after.low, high=before.high - after.high)
        if not fall.within(step):
            return f"from step {n} to {n + 1} the dose falls by {fall}, not {wanted.step}"
    for n, stage in enumerate(stages, 1):
        if stage.duration is None and n == len(stages) and amounts[-1].within(end):
            continue
        if stage.duration is None or not stage.duration.within(interval):
            return f"step {n} lasts {stage.duration or 'an unstated time'}, not {wanted.interval}"
    last = amounts[-1]
    off = replace(last, low=last.low - step.high, high=last.high - step.low)
    return "" if last.within(end) or (end.high == 0 and off.low <= 0) else f"it ends at {last}, not {wanted.end}"


def _taper_end(text: str, first: Amount | None) -> Amount | None:
    if squeeze(normal(text)) in ("off", "0", "stop", "stopped", "zero", "none", "0 mg"):
        return Amount(Decimal(0), Decimal(0), first.dimension if first else "mass")
    return doses.read_amount(text)


# ---- tests, imaging, referrals, procedures -------------------------------------------------------------------------


def _service(row: OrderRow, one: Candidate) -> list[Mismatch]:
    found: list[Mismatch] = []
    if row.test is not None and not names_test(row.test, one):
        told = ", ".join(one.tests) or one.words.strip()[:60] or "no test"
        found.append(Mismatch("test", f"it is {told}, not {row.test}"))
    if row.imaging is not None:
        found += _imaging(row.imaging, one)
    if row.referral is not None and (reason := _referral(row.referral, one)):
        found.append(Mismatch("referral", reason))
    if row.procedure is not None and not names_procedure(row.procedure, one):
        found.append(Mismatch("procedure", f"it is not {row.procedure}"))
    return found


def names_test(wanted: str, one: Candidate) -> bool:
    """Whether one order names the wanted test: itself, a panel with it, or all of its parts; or its code."""
    name = services.canonical("tests", wanted) or services.coded_test(wanted.split("|")[-1].strip())
    if name is not None:
        return services.covers(one.tests, name)
    if wanted.split("|")[-1].strip() in one.codes:
        return True
    return bool(one.words) and services.holds_phrase(one.words, wanted)


def _imaging(wanted: Imaging, one: Candidate) -> list[Mismatch]:
    found: list[Mismatch] = []
    modality = services.canonical("imaging", wanted.modality, kind="modality")
    if not (modality in one.modalities if modality else services.holds_phrase(one.words, wanted.modality)):
        told = ", ".join(sorted(one.modalities)) or "no imaging"
        return [Mismatch("imaging", f"it is {told}, not {wanted.modality}")]
    sites = services.site_names(wanted.site)
    if modality == "DXA" and not one.sites:
        sites = frozenset()
    if not sites <= one.sites and not (not one.sites and services.holds_phrase(one.words, wanted.site)):
        told = ", ".join(sorted(one.sites)) or "no site"
        found.append(Mismatch("imaging", f"it images {told}, not {wanted.site}"))
    if wanted.contrast is not None:
        accepted = (wanted.contrast,) if isinstance(wanted.contrast, str) else wanted.contrast
        if one.contrast not in accepted:
            told = f"contrast is {one.contrast}" if one.contrast else "contrast is not stated"
            found.append(Mismatch("imaging", f"its {told}, not {' or '.join(accepted)}"))
    if wanted.laterality is not None:
        listed = (wanted.laterality,) if isinstance(wanted.laterality, str) else wanted.laterality
        if one.laterality not in listed:
            told_side = f"side is {one.laterality}" if one.laterality else "side is not stated"
            found.append(Mismatch("imaging", f"its {told_side}, not {' or '.join(listed)}"))
    return found


def _referral(wanted: str, one: Candidate) -> str:
    name = services.canonical("referrals", wanted)
    if name is None:
        code = wanted.split("|")[-1].strip()
        return (
            "" if code in one.codes or services.holds_phrase(one.words, wanted) else f"it is not a referral to {wanted}"
        )
    if services.E_CONSULT in one.referrals and name != services.E_CONSULT:
        return "it is an e-consult, not a referral"
    if any(services.is_specialty(given, name) for given in one.referrals):
        return ""
    told = ", ".join(one.referrals) or "no referral"
    return f"it is {told}, not {wanted}"


def names_procedure(wanted: str, one: Candidate) -> bool:
    """Whether the order names the procedure, by the tables' synonyms, by code, or by its own words."""
    name = services.canonical("procedures", wanted)
    if name is not None and any(named.name == name for named in services.find("procedures", one.words)):
        return True
    return wanted.split("|")[-1].strip() in one.codes or services.holds_phrase(one.words, wanted)


# ---- when, why -----------------------------------------------------------------------------------------------------


def _when(text: str, one: Candidate) -> list[Mismatch]:
    window = durations.read_window(text)
    if window is None:
        return [Mismatch("when", f"the row's window {text!r} cannot be read")]
    if not one.spans:
        return [Mismatch("when", "it states no date or interval", True)]
    spans = one.spans[:1] if one.is_order else one.spans
    if any(span.within(window) for span in spans):
        return []
    return [Mismatch("when", f"it is due in {spans[0]}, not {text}")]


@cache
def _reason_rows() -> dict[str, tables.Row]:
    return {squeeze(normal(text)): row for row in tables.rows("reasons") for text in (row["name"], *row["synonyms"])}


_ICD = re.compile(r"^[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,4})?$")


def gives_reason(wanted: str, one: Candidate) -> bool:
    """Whether the order gives this reason: in words or synonyms not denied, or by a code of the same category."""
    wanted_code = wanted.split("|")[-1].strip().upper()
    if _ICD.match(wanted_code):
        return any(code.upper()[:3] == wanted_code[:3] for code in one.reason_codes) or any(
            _says(one.reasons, text)
            for row in tables.rows("reasons")
            if wanted_code[:3] in row["icd10cm"]
            for text in (row["name"], *row["synonyms"])
        )
    row = _reason_rows().get(squeeze(normal(wanted)))
    texts = (wanted,) if row is None else (wanted, row["name"], *row["synonyms"])
    if any(_says(one.reasons, text) for text in texts):
        return True
    return row is not None and any(code.upper()[:3] in row["icd10cm"] for code in one.reason_codes)


def _says(text: str, phrase: str) -> bool:
    wanted = re.escape(squeeze(normal(phrase)))
    words = squeeze(text)
    for match in re.finditer(rf"(?<![a-z0-9]){wanted}(?![a-z0-9])", words):
        if not re.search(
            r"\b(?:no|not|without|denies|negative for|ruled out|no evidence of|no history of)\s*$",
            words[: match.start()],
        ):
            return True
    return False
