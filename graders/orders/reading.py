"""What the agent wrote, read into candidates: one thing ordered, or recommended in a message or note, each.

An order (MedicationRequest, ServiceRequest, Appointment) is one candidate. A message or a note gives one for every
drug, test, study, referral and procedure that a sentence of it speaks of, with the mood of that sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from graders.orders import drugs, durations, negation, regimen, services
from graders.orders.candidates import Candidate, State, bare_reference, urgency_of
from graders.orders.drugs import Drug
from graders.orders.durations import Span
from graders.orders.negation import Mood
from graders.orders.regimen import Regimen
from graders.orders.statements import read_text
from graders.orders.text import normal, squeeze
from tasks.fhir.resources import Resource

_ORDER_INTENTS = frozenset({"order", "original-order", "instance-order", "filler-order", "reflex-order"})
_APPOINTMENT = {
    "booked": "active", "arrived": "active", "checked-in": "active", "fulfilled": "active",
    "proposed": "draft", "pending": "draft", "waitlist": "draft",
}  # fmt: skip


def concept_texts(concept: Mapping[str, Any] | None) -> list[str]:
    """Text and displays of a CodeableConcept, text first."""
    if not concept:
        return []
    texts = [str(concept.get("text") or "")] + [str(c.get("display") or "") for c in concept.get("coding") or ()]
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _codings(concept: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(str(c.get("system") or ""), str(c.get("code") or "")) for c in (concept or {}).get("coding") or ()]


def _notes(body: Mapping[str, Any]) -> str:
    found = [str(note.get("text") or "") for note in body.get("note") or () if isinstance(note, Mapping)]
    return "\n".join(text for text in found if text)


def _state(body: Mapping[str, Any]) -> tuple[State, str]:
    """Active, draft or neither, with the reason why neither."""
    status, intent = str(body.get("status") or ""), str(body.get("intent") or "")
    if body.get("doNotPerform") is True:
        return "dead", "it says doNotPerform"
    if status not in ("active", "draft"):
        return "dead", f"its status is {status or 'missing'}"
    if intent in ("proposal", "plan"):
        return "draft", ""
    if intent not in _ORDER_INTENTS:
        return "dead", f"its intent is {intent or 'missing'}"
    return ("draft", "") if status == "draft" else ("active", "")


def read_order(
    resource: Resource, now: datetime, conditions: Mapping[str, Resource] | None = None
) -> tuple[Candidate, ...]:
    """The candidates of one written resource; a Communication gives one a sentence that names something.

    Read once for all checkpoints of a trial: what a resource says does not depend on who asks.
    """
    if conditions:
        return tuple(_read_order(resource, now, conditions))
    return _read_alone(resource.raw, resource.ref, now)


@lru_cache(maxsize=512)
def _read_alone(raw: str, ref: str, now: datetime) -> tuple[Candidate, ...]:
    return tuple(_read_order(Resource.parse(raw, where=ref), now, {}))


def _read_order(resource: Resource, now: datetime, conditions: Mapping[str, Resource]) -> list[Candidate]:
    body = resource.body
    match resource.type:
        case "MedicationRequest" | "MedicationStatement":
            return [_medication(resource.ref, body, now, conditions)]
        case "ServiceRequest":
            return [_service(resource.ref, body, now, conditions)]
        case "Appointment":
            return [_appointment(resource.ref, body, now)]
        case "Communication":
            return _communication(resource.ref, body, now)
    return []


# ---- medication ----------------------------------------------------------------------------------------------------


def _medication(ref: str, body: Mapping[str, Any], now: datetime, conditions: Mapping[str, Resource]) -> Candidate:
    if body.get("resourceType") == "MedicationStatement":
        state: State = "active" if body.get("status") in ("active", "intended") else "dead"
        why = "" if state == "active" else f"its status is {body.get('status')}"
        dosages = list(body.get("dosage") or ())
    else:
        state, why = _state(body)
        dosages = list(body.get("dosageInstruction") or ())
    concept = body.get("medicationCodeableConcept") or {}
    if not concept and (held := body.get("medicationReference")):
        inner = str(held.get("reference") or "").lstrip("#")
        contained = next((c for c in body.get("contained") or () if c.get("id") == inner), None)
        concept = (contained or {}).get("code") or {"text": str(held.get("display") or "")}
    names = concept_texts(concept)
    problems: list[str] = []
    drug = _ordered_drug(names, _codings(concept), problems)
    directions_by_dosage: list[list[str]] = []
    for dosage in dosages:
        told = [str(dosage.get("text") or ""), str(dosage.get("patientInstruction") or "")]
        told += [str((dosage.get("timing") or {}).get("code", {}).get("text") or "")]
        told += [text for extra in dosage.get("additionalInstruction") or () for text in concept_texts(extra)]
        directions_by_dosage.append([text for text in dict.fromkeys(told) if text])
    directions = _joined_directions(directions_by_dosage)
    notes = _notes(body)
    fields = [regimen.read_fields(dosage, now) for dosage in dosages]
    supply = None
    dispense = body.get("dispenseRequest") or {}
    if not dispense.get("numberOfRepeatsAllowed"):
        supply = regimen.span_of(dispense.get("expectedSupplyDuration") or {})
    read = Regimen()
    if drug is not None:
        own = [_own_part(name, drug) for name in names]
        sig_texts = [_own_part(text, drug) for text in directions]
        read = regimen.build(
            drug, names=own, directions=sig_texts, fields=fields, remarks=_remarks(notes, drug), supply=supply, now=now
        )
        drug = drugs.settle(replace(drug, release=read.release)) if not drug.is_combination else drug
    own_text = "\n".join([*names, *directions])
    mood, timed = _order_mood(own_text, notes, drug, now)
    start = next((field.start for field in fields if field.start), None)
    spans = _when_of_drug(own_text, notes, now)
    if start is not None and start > now.date():
        days = Decimal((start - now.date()).days)
        timed = timed or days > 1
        spans = (Span(days, days),)
    reasons, reason_codes = _reasons(body, conditions)
    said = "\n".join([own_text, notes])
    return Candidate(
        ref,
        "MedicationRequest",
        state,
        why,
        _subject(body),
        mood,
        timed,
        drug=drug,
        regimen=read,
        words=normal(own_text),
        codes=frozenset(code for _, code in _codings(concept)),
        urgency=urgency_of(str(body.get("priority") or ""), said),
        spans=spans,
        reasons=normal("\n".join([reasons, notes, *directions])),
        reason_codes=reason_codes,
        said=normal(said),
        prior=tuple(
            bare_reference(str(held.get("reference") or "")) for held in (body.get("priorPrescription") or {},) if held
        ),
        problems=(*problems, *read.problems),
    )


def _ordered_drug(names: Sequence[str], codings: Sequence[tuple[str, str]], problems: list[str]) -> Drug | None:
    """The one drug that an order is for; a context drug in its text ("continue metformin; start ...") is not."""
    coded = [drug for system, code in codings if (drug := drugs.of_code(system, code))]
    read: list[Drug] = []
    for name in names:
        text = normal(name)
        found = drugs.mentions(text)
        if len(found) > 1:
            found = _governed(text, found) or found[:1]
        if found:
            read.append(found[0].drug)
    if not read:
        return coded[0] if coded else None
    first = max(read, key=lambda drug: (len(drug.components), _specificity(drug)))
    for other in (*read, *coded):
        if not drugs.names_same(first, other) and not (set(other.components) < set(first.components)):
            problems.append(f"code and text contradict each other: {first.name} and {other.name}")
            break
    return first


def _joined_directions(by_dosage: Sequence[Sequence[str]]) -> list[str]:
    """Several dosage instructions as one text: steps where one of them has its days, else the doses of one day."""
    if len(by_dosage) < 2 or not all(by_dosage):
        return [text for told in by_dosage for text in told]
    texts = [" ".join(told) for told in by_dosage]
    stepped = any(
        re.search(r"\bthen\b|\bfor \d|\bx ?\d+ ?(?:d|w)|\b(?:days?|weeks?) \d", normal(text)) for text in texts
    )
    return [(" then " if stepped else " + ").join(texts)]


def _specificity(drug: Drug) -> int:
    return sum(1 for one in drug.components if drugs.base_of(one))


def _governed(text: str, found: Sequence[drugs.Mention]) -> list[drugs.Mention]:
    """Of several drugs named, the one that the text starts."""
    kept = []
    for sentence in negation.sentences(text):
        for mention in found:
            start = mention.start - sentence.start
            if 0 <= start < len(sentence.text):
                before = sentence.text[:start]
                if not re.search(
                    r"\b(?:continue|continuing|with|on|and stop|stop|hold|discontinue"
                    r"|in place of|instead of|replac\w+|from|added to"
                    r"|to)\s+(?:\w+\s+)?$",
                    before,
                ):
                    kept.append(mention)
    started = [m for m in kept if re.search(r"\b(?:start|begin|initiate|add|to|order)\s+$", text[: m.start])]
    return started or kept


def _own_part(text: str, drug: Drug) -> str:
    """The part of a text that speaks of the ordered drug: from its own name on, to where another drug is named."""
    t = normal(text)
    found = drugs.mentions(t)
    others = [
        m for m in found if not drugs.names_same(m.drug, drug) and not set(m.drug.components) <= set(drug.components)
    ]
    if not others:
        return text
    own = [m for m in found if m not in others]
    if not own:
        return t[: others[0].start] if _says_amount(t[: others[0].start]) else ""
    start = own[0].start
    before = [m for m in others if m.end <= start]
    head = t[: before[0].start] if before else t[:start]
    after = [m for m in others if m.start > start]
    end = after[0].start if after else len(t)
    return (head if not before else "") + t[start:end]


def _says_amount(text: str) -> bool:
    return bool(re.search(r"\d", text))


_REMARK = re.compile(
    r"\b(?:start|begin|take|give|dose|dosing|administer|initiate|prescribe|sig|order)\b|^\s*(?:\d|\.\d)"
)
_NOT_REMARK = re.compile(
    r"\b(?:previous|prior|was|were|had|home|increase|titrat|target|when|reduc|history"
    r"|level|cumulative|equivalent|adjust"
    r"|crcl|egfr|usual|label|instead|rather|versus|vs|not|avoid|stop|discontinu|hold"
    r"|may|could|consider|goal|until|after|later|if"
    r"|in \d+ (?:days?|weeks?|months?)|next|mg/dl|mmol|reaction|from|replac|stopped"
    r"|failed|trial|weigh|kg|then|taper)\w*"
)


def _remarks(notes: str, drug: Drug) -> list[str]:
    """Sentences of an order's note that direct this drug's dose: no context, no plan, no other drug."""
    found = []
    for sentence in negation.sentences(normal(notes)):
        text = sentence.text
        named = drugs.mentions(text, prose=True)
        if any(not drugs.names_same(m.drug, drug) for m in named):
            continue
        if _NOT_REMARK.search(text):
            continue
        if _REMARK.search(text) or any(drugs.names_same(m.drug, drug) for m in named) or _PLAIN_SIG.search(text):
            found.append(text)
    return found


_PLAIN_SIG = re.compile(
    r"\b(?:prn|as needed|max(?:imum)?|not to exceed|do not exceed|for \d+ (?:days?"
    r"|weeks?)|x ?\d+ ?(?:d|days?|doses)|po|by mouth|bid|tid|qid|daily)\b"
)


def _order_mood(own_text: str, notes: str, drug: Drug | None, now: datetime) -> tuple[Mood, bool]:
    own, remark = normal(own_text), normal(notes)

    def names_own(text: str) -> bool:
        return drug is not None and any(drugs.names_same(m.drug, drug) for m in drugs.mentions(text, prose=True))

    def names_other(text: str) -> bool:
        if any(drug is None or not drugs.names_same(m.drug, drug) for m in drugs.mentions(text, prose=True)):
            return True
        return any(True for _ in drugs.class_mentions(text)) and not names_own(text)

    denied = negation.denied(own, names_own, names_other) or negation.denied(remark, names_own, names_other)
    if drug is not None and not denied:
        cleaned = negation.harmless_blanked(own)
        denied = any(
            re.search(r"\b(?:no|not)\s+$", cleaned[: m.start]) or negation._DASH_DENY.match(cleaned[m.end :])
            for m in drugs.mentions(own)
            if drugs.names_same(m.drug, drug)
        )
    if denied:
        return "denied", False
    if negation.conditional_start(own, names_other) or negation.conditional_start(remark, names_other):
        return "conditional", False
    return "recommended", negation.timed_start(own) or negation.timed_start(remark)


def _when_of_drug(own: str, notes: str, now: datetime) -> tuple[Span, ...]:
    found = []
    for sentence in negation.sentences(normal(f"{own}\n{notes}")):
        if re.search(r"\b(?:start|begin|first dose|initiate|give|administer|resume|restart|due)\b", sentence.text):
            cut = re.sub(r"\bevery \d+[^,;]*|\bfor \d+ (?:days?|weeks?|months?)\b|\bq\d+\w*", " ", sentence.text)
            found += [one.span for one in durations.intervals(cut, now)]
    return tuple(found[:1])


def _subject(body: Mapping[str, Any]) -> str:
    return bare_reference(str((body.get("subject") or body.get("patient") or {}).get("reference") or ""))


def _reasons(body: Mapping[str, Any], conditions: Mapping[str, Resource]) -> tuple[str, frozenset[str]]:
    texts, codes = [], set()
    for concept in body.get("reasonCode") or ():
        texts += concept_texts(concept)
        codes |= {code for _, code in _codings(concept)}
    for held in body.get("reasonReference") or ():
        texts.append(str(held.get("display") or ""))
        condition = conditions.get(bare_reference(str(held.get("reference") or "")))
        if condition is not None:
            texts += concept_texts(condition.body.get("code"))
            codes |= {code for _, code in _codings(condition.body.get("code"))}
    return "\n".join(text for text in texts if text), frozenset(codes)


# ---- services ------------------------------------------------------------------------------------------------------


def _service(ref: str, body: Mapping[str, Any], now: datetime, conditions: Mapping[str, Resource]) -> Candidate:
    state, why = _state(body)
    code = body.get("code") or {}
    texts = concept_texts(code)
    details = [text for extra in body.get("orderDetail") or () for text in concept_texts(extra)]
    name = normal("; ".join([*texts, *details]))
    notes = normal(_notes(body) + "\n" + str(body.get("patientInstruction") or ""))
    problems: list[str] = []
    tests = _ordered_tests(code, texts, details, problems)
    if specimens := [text for held in body.get("specimen") or () if (text := str(held.get("display") or ""))]:
        said = services.specimen_in(normal(" ".join(specimens)))
        tests = tuple(test for test in tests if not said or services.specimen_of(test) == said)
    body_site = normal("; ".join(text for concept in body.get("bodySite") or () for text in concept_texts(concept)))
    modalities = services.modalities_in(name)
    sites = services.sites_in(name) | services.sites_in(body_site)
    contrast = _one_of(services.contrast_in(name), services.contrast_in(notes), "contrast", problems)
    side_codes = {c for concept in body.get("bodySite") or () for _, c in _codings(concept)}
    side_field = services.laterality_in(body_site) or next(
        (side for code_, side in _SIDES.items() if code_ in side_codes), ""
    )
    side_name = services.laterality_in(name)
    side = _one_of(side_name or side_field, side_field or side_name, "side", problems)
    side = side or (services.laterality_in(notes) if modalities else "")
    referrals = tuple(dict.fromkeys(named.name for named in services.referrals_in(name)))
    if not referrals and re.search(r"\b(?:referral|consult)", name):
        referrals = tuple(dict.fromkeys(named.name for named in services.referrals_in(notes)))[:1]
    if not referrals and (kind := body.get("performerType")):
        referrals = tuple(
            named.name for text in concept_texts(kind) for named in services.find("referrals", normal(text))
        )
    own = name
    mood = _service_mood(own, notes)
    spans, trouble = _when(body, f"{name}\n{notes}", now)
    if trouble:
        problems.append(trouble)
    reasons, reason_codes = _reasons(body, conditions)
    said_all = f"{name}\n{notes}"
    return Candidate(
        ref,
        "ServiceRequest",
        state,
        why,
        _subject(body),
        mood,
        tests=tests,
        modalities=modalities,
        sites=sites,
        contrast=contrast,
        laterality=side,
        referrals=referrals,
        words=name,
        codes=frozenset(code_ for _, code_ in _codings(code)),
        urgency=urgency_of(str(body.get("priority") or ""), said_all),
        spans=spans,
        reasons=f"{normal(reasons)}\n{notes}",
        reason_codes=reason_codes,
        said=said_all,
        problems=tuple(problems),
    )


_SIDES = {"7771000": "left", "24028007": "right", "51440002": "bilateral"}


def _one_of(first: str, second: str, what: str, problems: list[str]) -> str:
    if "contradicts" in (first, second):
        problems.append(f"the order contradicts itself on {what}")
        return ""
    if first and second and first != second:
        problems.append(f"the order contradicts itself on {what}: {first} and {second}")
        return ""
    return first or second


def _ordered_tests(
    code: Mapping[str, Any], texts: Sequence[str], details: Sequence[str], problems: list[str]
) -> tuple[str, ...]:
    coded = [
        test for system, value in _codings(code) if "loinc" in system.lower() and (test := services.coded_test(value))
    ]
    named: list[str] = []
    for text in texts:
        found = [one.name for one in services.named_tests(normal(text))]
        if coded and found and not any(_related(test, one) for test in coded for one in found):
            problems.append(f"code and text contradict each other: {coded[0]} and {found[0]}")
        named += found
    elsewhere = [text for text in texts if services.modalities_in(normal(text)) or services.referrals_in(normal(text))]
    if coded and not named and elsewhere and not any(services.holds_phrase(normal(text), coded[0]) for text in texts):
        problems.append(f"code and text contradict each other: {coded[0]} and another service")
    for text in details:
        named += [one.name for one in services.named_tests(normal(text))]
    return tuple(dict.fromkeys((*coded, *named)))


def _related(one: str, other: str) -> bool:
    return one in services.contains(other) or other in services.contains(one)


def _service_mood(own: str, notes: str) -> Mood:
    def names_own(text: str) -> bool:
        words = set(squeeze(own).split()) - {
            "referral",
            "to",
            "of",
            "in",
            "the",
            "and",
            "with",
            "without",
            "level",
            "serum",
        }
        return bool(words & set(squeeze(text).split()))

    def names_other(text: str) -> bool:
        return not names_own(text) and bool(
            drugs.mentions(text, prose=True) or any(True for _ in drugs.class_mentions(text))
        )

    if negation.denied(own, names_own, names_other) or negation.denied(notes, names_own, names_other):
        return "denied"
    cleaned = negation.harmless_blanked(own)
    if re.search(
        r"^\s*(?:no|not|cancel|stop|hold|do not \w+)\b|\b(?:not (?:needed|indicated"
        r"|required|necessary|recommended)|is contraindicated)\b",
        cleaned,
    ):
        return "denied"
    if negation.conditional_start(own, names_other) or _service_condition(notes):
        return "conditional"
    return "recommended"


def _service_condition(notes: str) -> bool:
    for match in negation._NOT_IF.finditer(notes):
        notes = notes[: match.start()] + " " * (match.end() - match.start()) + notes[match.end() :]
    return bool(
        re.search(r"\b(?:only (?:if|when|once)|conditional (?:on|upon))\b", notes)
        or re.search(
            r"\b(?:order|perform|obtain|do|draw|proceed|schedule|to be (?:done|drawn"
            r"|performed))\b[^.;\n]{0,30}?\b(?:if|once)\b",
            notes,
        )
    )


#: Words that time something else than this order: what is done if something happens, and a drug that starts today.
_OTHER_TIME = re.compile(
    r"[^.;\n]*\b(?:if|unless|in case)\b[^.;\n]*"
    r"|\b(?:start|began|begun|begin|initiat)\w*\b[^.;,\n]{0,40}?\b(?:today|now|this (?:morning|afternoon|evening))\b"
)


def _when(body: Mapping[str, Any], text: str, now: datetime) -> tuple[tuple[Span, ...], str]:
    """First occurrence in days from now, from the field, else from the words; a contradiction where they differ."""
    own_time = [one.span for one in durations.intervals(_OTHER_TIME.sub(" ", text), now)]
    other_time = [one.span for one in durations.intervals(text, now)]
    worded = own_time or other_time
    day = None
    for key in ("occurrenceDateTime",):
        if body.get(key):
            day = durations.local_day(str(body[key]), now.tzinfo)
    if period := body.get("occurrencePeriod"):
        day = durations.local_day(str(period.get("start") or ""), now.tzinfo)
    if timing := body.get("occurrenceTiming"):
        if events := timing.get("event"):
            day = min((d for e in events if (d := durations.local_day(str(e), now.tzinfo))), default=None)
        repeat = timing.get("repeat") or {}
        if day is None and (bounds := repeat.get("boundsPeriod")):
            day = durations.local_day(str(bounds.get("start") or ""), now.tzinfo)
        if day is None and repeat.get("period") is not None:
            every = regimen.span_of({"value": repeat["period"], "code": repeat.get("periodUnit")})
            return ((every,) if every else ()), ""
    if day is not None:
        away = Decimal((day - now.date()).days)
        field_span = Span(away, away)
        if own_time and not any(_near(field_span, one) for one in other_time):
            return (field_span,), f"the date is in {field_span} and the text says {own_time[0]}"
        return (field_span,), ""
    return ((min(worded, key=lambda one: one.low),) if worded else ()), ""


def _near(day: Span, said: Span) -> bool:
    slack = max(Decimal(1), said.low / 10)
    return said.low - slack <= day.low and (said.high is None or day.low <= said.high + slack)


# ---- appointments and messages -------------------------------------------------------------------------------------


def _appointment(ref: str, body: Mapping[str, Any], now: datetime) -> Candidate:
    status = str(body.get("status") or "")
    state: State = _APPOINTMENT.get(status, "dead")  # type: ignore[assignment]
    people = [
        bare_reference(str((one.get("actor") or {}).get("reference") or "")) for one in body.get("participant") or ()
    ]
    patient = next((one for one in people if one.startswith("Patient/")), "")
    concepts = [*(body.get("serviceType") or ()), *(body.get("specialty") or ()), body.get("appointmentType") or {}]
    texts = [str(body.get("description") or "")] + [text for concept in concepts for text in concept_texts(concept)]
    comment = "\n".join(str(body.get(key) or "") for key in ("comment", "patientInstruction"))
    name, remark = normal("; ".join(text for text in texts if text)), normal(comment)
    both = f"{name}\n{remark}"
    start = body.get("start") or next((str(p.get("start") or "") for p in body.get("requestedPeriod") or ()), "")
    spans, trouble = _when({"occurrenceDateTime": start} if start else {}, both, now)
    reasons, reason_codes = _reasons(body, {})
    referrals = services.find("referrals", name) or services.referrals_in(remark)
    return Candidate(
        ref,
        "Appointment",
        state,
        "" if state != "dead" else f"its status is {status or 'missing'}",
        patient,
        "denied" if negation.denied(name, lambda t: False, lambda t: bool(drugs.mentions(t))) else "recommended",
        tests=tuple(one.name for one in services.named_tests(name)),
        modalities=services.modalities_in(name),
        sites=services.sites_in(name),
        contrast=services.contrast_in(name).replace("contradicts", ""),
        laterality=services.laterality_in(name),
        referrals=tuple(dict.fromkeys(one.name for one in referrals)),
        words=both,
        urgency=urgency_of("", both),
        spans=spans,
        reasons=f"{normal(reasons)}\n{both}",
        reason_codes=reason_codes,
        said=both,
        problems=(trouble,) if trouble else (),
    )


def _communication(ref: str, body: Mapping[str, Any], now: datetime) -> list[Candidate]:
    status = str(body.get("status") or "")
    sent = status in ("in-progress", "completed")
    text = "\n".join(str(part.get("contentString") or "") for part in body.get("payload") or ())
    text = "\n".join([text, _notes(body)])
    state: State = "sent" if sent else "dead"
    why = "" if sent else f"its status is {status or 'missing'}"
    return read_text(ref, text, now, type="Communication", state=state, why=why, patient=_subject(body),
                     priority=str(body.get("priority") or ""))  # fmt: skip
