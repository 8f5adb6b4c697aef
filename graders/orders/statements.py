"""Messages and notes in sentences: what each one recommends, denies, weighs or makes conditional, as candidates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from graders.orders import drugs, durations, frequencies, negation, regimen, services, sig
from graders.orders.candidates import URGENCIES, Candidate, State, urgency_of
from graders.orders.drugs import Drug
from graders.orders.durations import Interval, Span
from graders.orders.negation import Mood, Sentence
from graders.orders.regimen import Regimen
from graders.orders.text import normal


@lru_cache(maxsize=256)
def read_note(path: str, text: str, now: datetime) -> tuple[Candidate, ...]:
    """The candidates of a deliverable, read once for all checkpoints of a trial."""
    return tuple(read_text(path, text, now))


def read_text(
    ref: str,
    text: str,
    now: datetime,
    *,
    type: str = "",
    state: State = "stated",
    why: str = "",
    patient: str = "",
    priority: str = "",
) -> list[Candidate]:
    """The candidates of a message or note: what each sentence says of each thing it names, and the text as a whole."""
    whole_text = normal(text)
    found: list[Candidate] = []
    said = negation.sentences(whole_text)
    # A note that copies the chart says one thing many times; what a sentence says does not depend on where it stands.
    read: dict[tuple[str, str, str], tuple[Candidate, ...]] = {}
    for n, sentence in enumerate(said):
        following = said[n + 1].text if n + 1 < len(said) and _CONTINUES.match(said[n + 1].text) else ""
        key = (sentence.text, sentence.heading, following)
        if key not in read:
            read[key] = tuple(_of_sentence(sentence, following, now))
        for one in read[key]:
            found.append(
                replace(
                    one, reference=ref, type=type, state=state, why_dead=why, patient=patient,
                    urgency=max(one.urgency, urgency_of(priority, ""), key=URGENCIES.index),
                    reasons=whole_text, said=whole_text,
                )
            )  # fmt: skip
    recommended = [one for one in found if one.mood == "recommended"]
    found.append(
        Candidate(
            ref,
            type,
            state,
            why,
            patient,
            tests=tuple(dict.fromkeys(test for one in recommended for test in one.tests)),
            referrals=tuple(dict.fromkeys(name for one in recommended for name in one.referrals)),
            words=whole_text,
            urgency=urgency_of(priority, whole_text),
            spans=tuple(one.span for one in durations.intervals(whole_text, now)),
            reasons=whole_text,
            said=whole_text,
            whole=True,
        )
    )
    return found


#: A sentence that goes on with the dose of the one before it.
_CONTINUES = re.compile(r"\s*(?:dose|take|\d)")


def _of_sentence(sentence: Sentence, following: str, now: datetime) -> Iterator[Candidate]:
    text = sentence.text
    named = drugs.mentions(text, prose=True)
    tests = services.named_tests(text, prose=True)
    measured = _MEASURED.search(text)
    # "Check calcium weekly" asks for the test, "start calcium 600 mg" for the drug.
    named = [m for m in named if not (measured and text[m.start : m.end] in _BOTH_SENSES)]
    tests = [t for t in tests if not any(m.start <= t.start < m.end for m in named)]
    referrals = services.referrals_in(text, prose=True)
    procedures = services.find("procedures", text, prose=True)
    modalities = services.find("imaging", text, kind="modality", prose=True)
    taken = [(m.start, m.end) for m in named] + [(t.start, t.end) for t in tests]
    classes = [
        (start, end, name)
        for start, end, name in drugs.class_mentions(text)
        if not any(a < end and start < b for a, b in taken)
    ]
    starts = sorted(
        [m.start for m in named]
        + [t.start for t in tests]
        + [r.start for r in referrals]
        + [c[0] for c in classes]
        + [p.start for p in procedures]
        + [m.start for m in modalities]
    )

    def next_after(end: int) -> int:
        return next((start for start in starts if start >= end), len(text))

    if not starts:
        return
    urgency = urgency_of("", text)
    times = durations.intervals(text, now)
    for mention in named:
        stop = next((m.start for m in named if m.start >= mention.end), len(text))
        stop = min(stop, *[c[0] for c in classes if c[0] >= mention.end], len(text))
        mood = negation.mood(sentence, mention.start, mention.end, stop=next_after(mention.end))
        for drug, read in _regimens(text, mention, stop, following, now):
            yield Candidate(
                "", "", "stated", mood=mood, drug=drug, regimen=read, words=text, urgency=urgency,
                spans=_spans_for(times, mention.start, mention.end, starts), problems=read.problems,
                timed=negation.timed_start(text[: mention.start][-60:] + text[mention.start : stop]),
            )  # fmt: skip
    for start, end, name in classes:
        yield Candidate(
            "", "", "stated", mood=negation.mood(sentence, start, end, stop=next_after(end)), drug_class=name,
            words=text, urgency=urgency, spans=_spans_for(times, start, end, starts),
        )  # fmt: skip
    for test in tests:
        yield Candidate(
            "", "", "stated", mood=_list_mood(sentence, test.start, test.end, next_after(test.end)), tests=(test.name,),
            words=text, urgency=urgency, spans=_spans_for(times, test.start, test.end, starts),
        )  # fmt: skip
    for one in (*referrals, *procedures):
        yield Candidate(
            "", "", "stated", mood=_list_mood(sentence, one.start, one.end, next_after(one.end)),
            referrals=(one.name,) if one in referrals else (),
            words=text[one.start : one.end] if one in procedures else text,
            urgency=urgency, spans=_spans_for(times, one.start, one.end, starts),
        )  # fmt: skip
    if modalities:
        first = modalities[0]
        sites = services.sites_in(text, prose=True)
        yield Candidate(
            "", "", "stated", mood=_list_mood(sentence, first.start, first.end, next_after(first.end)),
            modalities=services.modalities_in(text, prose=True), sites=sites,
            contrast=services.contrast_in(text).replace("contradicts", ""), laterality=services.laterality_in(text),
            words=text, urgency=urgency, spans=_spans_for(times, first.start, first.end, starts),
        )  # fmt: skip


def _list_mood(sentence: Sentence, start: int, end: int, stop: int) -> Mood:
    return negation.mood(sentence, start, end, stop=stop)


_BOTH_SENSES = frozenset({"calcium", "iron"})
_MEASURED = re.compile(
    r"\b(?:(?:re)?check(?:ed|ing)?|measur\w*|monitor\w*|repeat(?:ed)?|obtain\w*|draw\w*|labs?|serum|ionized)\b"
)
_BEFORE_DOSE = re.compile(r"\d[\d.,]*\s*(?:mg|mcg|g|units?|meq)\s+(?:of\s+)?$")


def _regimens(
    text: str, mention: drugs.Mention, stop: int, following: str, now: datetime
) -> Iterator[tuple[Drug, Regimen]]:
    """The regimens that a sentence gives for a drug: two where it offers two whole plans joined by "or"."""
    segment = text[mention.end : stop]
    if before := _BEFORE_DOSE.search(text[: mention.start]):
        segment = f"{before[0]} {segment}"
    name = text[mention.start : mention.end]
    leading = sig.routes_in(text[max(0, mention.start - 14) : mention.start] + name)
    if len(leading) == 1 and not sig.routes_in(segment):
        segment = f"{segment} {leading[0].lower()}"
    release = drugs.release_in(f"{name} {segment[:24]}", name=True) or drugs.release_in(
        text[max(0, mention.start - 20) : mention.start], name=False
    )
    if following and not re.search(r"\d", segment):
        segment = f"{segment} {following}"
    plans = re.split(r"(?:,\s*)?\bor\b", segment)
    whole = all(re.search(r"\d\s*(?:mg|mcg|g|units?|meq)", plan) for plan in plans) and all(
        frequencies.find(plan) for plan in plans
    )
    for plan in plans if len(plans) > 1 and whole else [segment]:
        read = regimen.build(
            replace(mention.drug, release=mention.drug.release or release), names=[], directions=[plan], now=now
        )
        drug = (
            mention.drug if mention.drug.is_combination else drugs.settle(replace(mention.drug, release=read.release))
        )
        yield drug, read


def _spans_for(times: Sequence[Interval], start: int, end: int, starts: Sequence[int]) -> tuple[Span, ...]:
    """Of a sentence's intervals those of the thing at [start, end): after it, else the next after it, else before."""
    stop = next((one for one in starts if one >= end), math.inf)
    inside = [one.span for one in times if end <= one.start < stop]
    if inside:
        return tuple(inside)
    later = [one.span for one in times if one.start >= stop]
    if later:
        return tuple(later[:2])
    before = [one.span for one in times if one.end <= start]
    return tuple(before[-1:])
