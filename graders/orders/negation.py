"""What a sentence does to the thing it names: recommends, denies, makes conditional, weighs, or merely mentions it.

The nearest governing word before the thing decides ("stop warfarin and start apixaban"), then what is said after it
("clindamycin should be avoided"). What only looks like a negation is blanked first (field/orders.md, Decided).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Mood = Literal["recommended", "denied", "conditional", "considered", "mentioned"]

#: Not a negation of the order: rule-outs, hold parameters, ends of courses, manners of taking, ceilings.
_HARMLESS = re.compile(
    r"\brule[sd]?[- ]?out\b|\br/o\b"
    r"|\bhold (?:for(?! now)|if|when|dose (?:for|if)) [^.;\n]*|\bhold parameters?[^.;\n]*"
    r"|\b(?:then|and then) (?:stop|discontinue)\b"
    r"|\b(?:stop|discontinue|hold|call|return|reduce|notify)\b[^.;,\n]{0,40}?\b(?:if"
    r"|when|after (?:\d+|the)|for (?:sbp|hr|k)\b)[^.;\n]*"
    r"|\bdo(?: not|n't) (?:crush|chew|split|break|cut|open|exceed|skip|miss|stop"
    r"|discontinue|hold|take (?:with|more|if|on)|drive|drink|delay|wait|lie|double"
    r"|abruptly|freeze|shake|substitute|refrigerate|withhold|forget|hesitate|use"
    r" (?:more|with))\b[^.;,\n]*"
    r"|\bnot (?:to exceed|exceed(?:ing)?|daily|weekly|bid|tid|qid|qd|more than|less"
    r" than|fasting|prn|crushed|later than|sooner than|on an empty stomach|urgent|stat"
    r"|allergic|pregnant|available)\b"
    r"|\bfasting (?:is )?not (?:required|needed|necessary)\b|\bno fasting(?: (?:required|needed))?\b|\bnon-?fasting\b"
    r"|\bno (?:loading dose|load|more than|refills?|substitutions?|known|prior|history"
    r"|evidence|later than|sooner than|contrast|change(?:s)? to|further (?:increase"
    r"|titration)|interactions?|contraindications?|concerns?|signs?|symptoms?"
    r"|allerg\w+)\b"
    r"|\bwithout (?:contrast|food|load\w*|delay|regard|differential|reflex|stopping|interruption|symptoms|evidence)\b"
    r"|\b(?:avoid|without) (?:alcohol|grapefruit|driving|sun\w*|dairy|antacids?"
    r"|crushing|abrupt\w*|interruption|missing|delay\w*|food|heavy|dehydration"
    r"|potassium-rich|salt|lying)[^.;\n]*"
    r"|\b(?:hold|held|holding|withhold|skip)\b(?: (?:it|this|dose|doses|the dose|am"
    r" dose|morning dose))?(?: the)? (?:on |the |for )?(?:morning of|day (?:of|before)"
    r"|\d+(?:-\d+)? ?(?:h|hours?|d|days?) (?:before|prior|after)|before (?:surgery"
    r"|procedure|the)|perioperatively|night before)[^.;\n]*"
    r"|\bhold (?:for )?(?:\d+(?:-\d+)?) (?:days?|doses?|hours?|weeks?)\b[^.;\n]*"
    r"|\bstop (?:date|on|after|by)\b|\bno need to (?:stop|hold|adjust|fast|taper"
    r"|repeat|monitor|change)\b[^.;,\n]*|\bnot only\b"
)

_VERB = (
    r"(?:start(?:ing)?|begin(?:ning)?|initiat(?:e|ing|ion of)|giv(?:e|ing)|us(?:e|ing)"
    r"|order(?:ing)?|prescrib(?:e|ing)|restart(?:ing)?"
    r"|resum(?:e|ing)|tak(?:e|ing)|continu(?:e|ing)|add(?:ing)?|perform(?:ing)?"
    r"|obtain(?:ing)?|administer(?:ing)?|check(?:ing)?"
    r"|draw(?:ing)?|collect|fill|dispense|plac(?:e|ing)|proceed(?: with)?|scan|run"
    r"|refer(?:ring)?|repeat(?:ing)?|recommend|schedul(?:e|ing)|send(?:ing)?|(?:switch"
    r"|chang|transition|convert)(?:e|ing)? (?:[\w-]+ )?to|treat(?:ing)?(?: with)?"
    r"|rechalleng(?:e|ing)(?: with)?|challeng(?:e|ing)(?: with)?)"
)
_DENY = re.compile(
    r"\b(?:do not|don't|does not|should not|shouldn't|would not|wouldn't|must not"
    r"|cannot|can't|will not|never|not|no need to|rather than|instead of|avoid|without"
    rf"|against|hold off(?: on)?|defer|delay|before) {_VERB}\b"
    r"|\b(?:avoid(?:ing|ed)?|hold(?:ing)?|withhold(?:ing)?|discontinu(?:e|ing|ation"
    r" of)|stop(?:ping)?|ceas(?:e|ing)|cancel(?:led)?|defer(?:ring)?|declin(?:e|ed)"
    r"|remov(?:e|ing)"
    r"|no need for|no indication for|no role for|not? (?:recommended|indicated)"
    r"|contraindications? to|no longer needs?|against|in place of|instead of|rather"
    r" than|replac(?:e|es|ing)"
    r"|(?:switch|chang|transition|convert)(?:e|ing|ed)?(?: (?:him|her|them|the patient"
    r"|patient|over))? (?:from|off)|taper(?:ing)? off|wean(?:ing)? off|come off|off of"
    r"|allerg(?:y|ic) to|reaction to|intoleran(?:t of|ce (?:of|to))|do not|don't|does"
    r" not|should not|must not|not|no|never|without)\b"
)
_COUNSEL = re.compile(
    r"\b(?:recommend(?:ed|ing|s)?|favou?r(?:s|ed)?|suggest(?:s|ed)?|start(?:ing)?"
    r"|begin|initiat(?:e|ing|ion of)|order(?:ed|ing)?|obtain|check|recheck|repeat"
    r"|refer(?:ral)?(?: (?:to|for))?|referral"
    r"|send|increase|decrease|reduce|switch(?:ing)?(?: [\w/-]+){0,6} to|chang(?:e"
    r"|ing)(?: [\w/-]+){0,6} to|transition(?:ing)?(?: [\w/-]+){0,6} to|convert(?:"
    r" [\w/-]+){0,6} to|replac(?:e|ing) (?:[\w/-]+ ){1,5}with|prescribe|give|schedule"
    r"|get|draw|advise|treat(?:ment)?(?: with)?"
    r"|add|place|arrange|book|measure|monitor|request|resume|restart|continue|take"
    r"|administer|raise|lower|adjust|uptitrate|proceed with|pursue|perform|evaluate (?:with|by)|admit|consult"
    r"|prefer|need(?:s|ed)?|require[sd]?|follow(?:-up)? with|please|plan:?|titrate"
    r"|should (?:have|receive|get|undergo|be (?:on|started on|given|seen by|evaluated"
    r" by|treated with))|would (?:start|use|order|check|obtain|recommend|favou?r))\b"
)
#: "use" as advice, not as a noun ("NSAID use").
_USE = re.compile(
    r"(?:^|[.;:,\n(]|\b(?:please|would|should|to|and|then|or|can|recommend\w*|plan))\s*(?:[-*\d.)\s]*)\buse\b"
    r"|\b(?:ok|okay|fine|safe|reasonable) to (?:use|take|give|continue|start)\b"
)
_WEIGH = re.compile(
    r"\b(?:consider(?:ing|ed|ation)?(?: of)?|could|may(?: be)?|might|options?"
    r" (?:include|are|would be)|alternatives? (?:include|are|would be)|alternatively"
    r"|discuss|think about|(?:could|can|may) be considered|possibly|perhaps)\b"
)
_TOLD = re.compile(
    r"\b(?:was|were|had been|has been|previously|formerly|prior|history of|takes"
    r"|taking|took|currently(?: on| taking)?|is on|are on|remains on|already on|home"
    r" (?:meds?|medications?)|recently|received|completed|status post|s/p|reports?"
    r"|last|known|given (?:her|his|their|the|that)|because of|due to|despite|on)\b"
)
_AFTER_DENY = re.compile(
    r"^(?:[^.;\n]|\.(?=\d)){0,60}?\b(?:(?:is|are|was|would be|remains?)?\s*(?:contraindicated|not"
    r" (?:recommended|indicated|needed|necessary|required|advised|appropriate|safe"
    r"|warranted|an option)|no longer (?:needed|indicated|recommended)|inappropriate"
    r"|unsafe|unnecessary)"
    r"|(?:should|must|to|can) (?:not be (?:started|used|given|restarted|ordered|taken"
    r"|resumed)|be (?:avoided|stopped|held|discontinued|withheld|deferred)))\b"
)
_AFTER_COUNSEL = re.compile(
    r"^(?:[^.;\n]|\.(?=\d)){0,60}?\b(?:(?:is|are|would be) (?:recommended|indicated|advised"
    r"|preferred|suggested|favou?red|needed|required|warranted|appropriate|first[-"
    r" ]line)|should (?:start|begin|continue)\b|should be (?:started|ordered|obtained|given|checked|done|sent|drawn"
    r"|repeated|performed|arranged|restarted|placed|measured)|to be (?:started|ordered"
    r"|drawn|checked|obtained))\b"
)
_ONLY_IN = re.compile(r"[^.;\n]{0,40}?\bonly (?:in|if|when|for|after|once)\b")
#: "Urgent ophthalmology referral (today).": a referral by its noun.
_NOMINAL = re.compile(
    r"\s*(?:referral|consult(?:ation)?)\b(?!\s*(?:was|were|is pending|has|had|from|in (?:19|20)|note|on \d|dated))"
)
_AFTER_WEIGH = re.compile(
    r"^(?:[^.;\n]|\.(?=\d)){0,40}?\b(?:(?:could|may|might|can) be (?:considered|an option|used)|is an option)\b"
)
_DASH_DENY = re.compile(
    r"^\s*(?:-|:|\()\s*(?:stop|hold|avoid|discontinue|do not (?:start|give|order|use)|not needed|cancel|d/c)\b"
)
#: To enter a drug in the allergy or intolerance list is no order for it.
_ENTERED = re.compile(
    r"\b(?:add|put|list|enter|document|record|flag|label|mark|note|place|include)(?:ed|ing)?\b[^.;\n]{0,60}$"
)
_ENTRY = re.compile(
    r"\b(?:allerg(?:y|ies)|intolerances?|adverse(?: drug)? reactions?|contraindications?)(?: ?/ ?\w+)? "
    r"(?:list|entry|entries|record|section|field|label)s?\b"
    r"|\b(?:as|to|under|in|on)(?: (?:an?|the|his|her|their))?(?: drug)? (?:allerg(?:y|ies)|intolerances?)\b(?! \w*test)"
)
_CHANGED = re.compile(r"\b(?:chang|switch|convert|transition)(?:e|ing)?\s+(?:the |her |his )?$")
#: A question put, not an answer: "whether to restart", "the PCP asked to restart".
_ASKED = re.compile(r"\b(?:whether|asked|asks|asking|questions?|wonder(?:s|ed|ing)?)\b")
#: What would hold for others: "although KDIGO recommends ..., he had ketoacidosis". Its clause ends at a comma.
_CONCEDED = re.compile(r"\b(?:although|though|normally|ordinarily|typically|usually|generally|in general)\b")
_IF = re.compile(
    r"\b(?:if|when|once|unless|should (?:the|her|his|their|k|potassium|symptoms|there)"
    r"|in case|provided(?: that)?|as long as|only if|until|in the event)\b"
)
_NOT_IF = re.compile(
    r"\bonce (?:daily|a |per |weekly|monthly|every|each|nightly|yearly)|\bif (?:you"
    r" agree|agreeable|the patient agrees|not already(?: done)?|available|possible"
    r"|tolerated|needed|able|any questions|acceptable|in agreement|appropriate)"
    r"|\bwhen (?:needed|required|able|possible|available)|\bas needed\b|\buntil"
    r" (?:follow-?up|seen|further|the visit|gone|finished|complete\w*|\d|jan|feb|mar"
    r"|apr|may|jun|jul|aug|sep|oct|nov|dec|off|discontinued)|\bonce only\b|\bx ?1"
    r" once\b|\bonce\s*(?:,|\.|;|$|\(|for|then|now|today|im\b|iv\b|po\b|in\b)"
)
_ADVISES = re.compile(r"\brecommend|\bfavou?r|\bsuggest")
#: Further back than _ENTERED or _OTHER_ACT can begin: a word, and the 60 characters that may follow.
_REACH = 100
_OTHER_ACT = re.compile(
    r"\b(?:hold|stop|discontinue|call|return|recheck|reduce|notify|contact|halve|seek"
    r"|go to|present|increase|escalate|repeat sooner)\b[^.;\n]{0,60}$"
)


@dataclass(frozen=True)
class Sentence:
    """One sentence or bullet of a normalised text, with the heading that it stands under."""

    text: str
    heading: str = ""
    bullet: bool = False
    start: int = 0


_BREAK = re.compile(r"(?<=[a-z0-9%)\]\"])[.!?](?=\s+(?:[a-z0-9(\"-]|$))|;|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:vs|e\.g|i\.e|dr|mr|mrs|approx|no|q\.d|b\.i\.d|t\.i\.d|q\.i\.d|p\.o|wk|hr"
    r"|min|tab|cap|st|a\.m|p\.m|etc|subcut|inj|incl|max|est|s\.c|i\.v|i\.m|resp))$"
)
#: "q. d.": a letter before the full stop, a letter with its own after it.
_ONE_LETTER = re.compile(r"\b[a-z]$")
_NEXT_LETTER = re.compile(r"\.\s*[a-z]\.")
_PLAN = re.compile(
    r"\b(?:plan|recommend\w*|orders?|monitor\w*|follow-?up|treatment|management|do now"
    r"|actions?|next steps?|today|to do|labs?|medications? (?:to start|changes)|start"
    r"|therapy|regimen|answer|advice|before|baseline|pre-?treatment|tests?|workup|work-up|imaging|referrals?)\b"
)
_NO_PLAN = re.compile(
    r"\b(?:current|home|active|past|prior|history|reviewed?|allerg\w*|avoid|do not"
    r"|contraindicat\w*|stop|discontinue|not recommended|if[- ]then|considered"
    r"|alternatives?|declined|data|results?|recent labs?|findings?|background)\b"
)


def sentences(text: str) -> list[Sentence]:
    """A normalised text in sentences; lines that end in a colon, or start with #, are headings of what follows."""
    found: list[Sentence] = []
    heading = ""
    for line_match in re.finditer(r"[^\n]+", text):
        line = line_match[0]
        stripped = line.strip()
        if not stripped:
            continue
        marker = re.match(r"\s*(?:[-*+]|\d+[.)]|\[[ x]?\])\s+", line)
        bare = re.sub(r"[*_`#]", "", stripped).strip()
        is_heading = stripped.startswith("#") or (
            not marker
            and (bare.endswith(":") or (stripped.startswith("**") and stripped.endswith("**")))
            and len(bare) < 90
        )
        if is_heading:
            heading = bare.rstrip(":")
            continue
        label = re.match(r"\s*(?:[-*+]|\d+[.)])?\s*\**([a-z][a-z /&-]{2,40}):\**\s+", line)
        at, body_start = 0, marker.end() if marker else 0
        body = re.sub(r"[*_`]", " ", line)
        pieces: list[tuple[int, str]] = []
        at = body_start
        for cut in _BREAK.finditer(body, body_start):
            if _ABBREVIATION.search(body[at : cut.start()]) or (
                cut[0] == "."
                and _ONE_LETTER.search(body[max(0, cut.start() - 2) : cut.start()])
                and _NEXT_LETTER.match(body, cut.start())
            ):
                continue
            pieces.append((at, body[at : cut.start() + (cut[0] == "?")]))
            at = cut.end()
        pieces.append((at, body[at:]))
        own = label[1] if label else ""
        for offset, piece in pieces:
            if piece.strip():
                found.append(Sentence(piece, f"{heading} {own}".strip(), bool(marker), line_match.start() + offset))
    return found


def harmless_blanked(text: str) -> str:
    """The text without what only looks like a negation."""
    return _blanked(_HARMLESS, text)


@lru_cache(maxsize=64)
def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with every match blanked; kept, because each thing that a sentence names asks for it."""
    return pattern.sub(lambda match: " " * len(match[0]), text)


@lru_cache(maxsize=256)
def _places(pattern: re.Pattern[str], text: str) -> tuple[tuple[int, int], ...]:
    """[start, end) of every match in the text."""
    return tuple(match.span() for match in pattern.finditer(text))


_WORD = re.compile(r"(?<!\S)[a-z]{4,}(?!\S)")
#: More words of four letters than any phrase of a governing pattern spans (the longest: "switching", six words, "to").
_MOST_WORDS = 12


def _seam(text: str, start: int) -> int:
    """The last place before `start` such that no phrase that begins before it depends on what stands from `start` on.

    A comma or quotation mark, which a phrase may begin with but never runs across; else twelve words back.
    """
    words = _places(_WORD, text)
    count = bisect_left(words, (start,))
    far = words[count - _MOST_WORDS][0] if count >= _MOST_WORDS else 0
    return max(far, text.rfind(",", far, start), text.rfind('"', far, start))


def last_before(pattern: re.Pattern[str], text: str, start: int) -> tuple[int, int] | None:
    """The last match in text[:start], None where there is none, without reading all of it again for each thing named.

    Only for patterns whose phrases keep to `_seam` (a test tries those used here).
    """
    seam = _seam(text, start)
    places = _places(pattern, text) if seam else ()
    count = bisect_left(places, (seam,))
    before = places[count - 1] if count else None
    rest = pattern.finditer(text, max(seam, before[1]) if before else seam, start)
    return max((match.span() for match in rest), default=before)


def mood(sentence: Sentence, start: int, end: int, *, stop: int | None = None) -> Mood:
    """What the sentence does to the thing named at [start, end); `stop` = where the next named thing begins."""
    text = harmless_blanked(sentence.text)
    after = text[end : stop if stop is not None else len(text)]
    if _DASH_DENY.match(after) or _AFTER_DENY.match(after):
        return "denied"
    conditional = _is_conditional(sentence.text, start, end)
    last = _governor(text, start)
    if _CHANGED.search(text, _seam(text, start), start):
        # "change baclofen to 5 mg" keeps the drug; "change lisinopril to nifedipine" takes it away.
        last = "recommended" if re.match(r"[^.;\n]{0,30}?\bto\s+\.?\d", text[end:]) else "denied"
    if last == "denied":
        return "denied"
    if _ENTERED.search(text, max(0, start - _REACH), start) and (
        _ENTRY.search(sentence.text) or _ENTRY.search(sentence.heading)
    ):
        return "mentioned"
    if conditional:
        return "conditional"
    if (
        sentence.text.rstrip().endswith("?")
        or _in_clause(_ASKED, ";", text, start)
        or (_in_clause(_CONCEDED, ",;", text, start))
    ):
        return "mentioned"
    if _AFTER_WEIGH.match(after):
        return "considered"
    if last == "considered" or (
        last == "recommended" and last_before(_WEIGH, text, start) and not last_before(_ADVISES, text, start)
    ):
        return "considered"
    if (counsel := _AFTER_COUNSEL.match(after)) is not None:
        return "conditional" if _ONLY_IN.match(text[end + counsel.end() :]) else "recommended"
    if last is None and _NOMINAL.match(after):
        return "recommended"
    if last == "recommended":
        return "recommended"
    heading = sentence.heading
    if heading and _NO_PLAN.search(heading):
        return (
            "denied"
            if re.search(r"\b(?:avoid|do not|contraindicat\w*|stop|discontinue|not recommended)\b", heading)
            else "mentioned"
        )
    if heading and _PLAN.search(heading) and last is None:
        return "recommended"
    return "mentioned"


def _in_clause(pattern: re.Pattern[str], ends: str, text: str, start: int) -> bool:
    """Whether the pattern stands before `start` in the clause that holds it; `ends` = what parts clauses."""
    clause = max(text.rfind(end, 0, start) for end in (*ends, "\n"))
    found = last_before(pattern, text, start)
    return found is not None and found[0] > clause


def _governor(text: str, start: int) -> Mood | None:
    """The mood of the last governing word before the thing."""
    best: tuple[int, int, Mood] | None = None
    for pattern, value in (
        (_TOLD, "mentioned"),
        (_WEIGH, "considered"),
        (_COUNSEL, "recommended"),
        (_USE, "recommended"),
        (_DENY, "denied"),
    ):
        if found := last_before(pattern, text, start):
            # Of two words that end at one place the longer reading rules ("do not start" over "start").
            key = (found[1], -found[0])
            if best is None or key >= best[:2]:
                best = (*key, value)  # type: ignore[assignment]
    return best[2] if best else None


def _is_conditional(text: str, start: int, end: int) -> bool:
    plain_text = _blanked(_NOT_IF, text)
    for condition, _ in _places(_IF, plain_text):
        if condition < start:
            return True
        between = plain_text[end:condition]
        if not _OTHER_ACT.search(between[-_REACH:]):
            return True
    return False


# ---- an order's own text -------------------------------------------------------------------------------------------

_OWN_DENY = re.compile(
    rf"\b(?:do not|don't|should not|must not|never|no need to) (?:{_VERB})\b"
    r"|\b(?:avoid|hold|withhold|discontinue|d/c|dc|stop|cancel|no need for|not needed"
    r"|not indicated|do not|don't|contraindicated)\b"
)
_OWN_OBJECT = re.compile(
    r"^\s*(?:[:,.-]\s*)?(?:$|[.;\n)]|(?:this|it|the (?:medication|drug|order|medicine"
    r"|test|study|referral|scan|imaging)|medication|med|order|drug|test|for now|at"
    r" this time|today|yet|now|due to|because|given|pending|as (?:she|he|the|patient)"
    r"|-|since)\b)"
)
#: "hold apixaban 48 h before the extraction": a timed hold of an active order; "stop the previous order": not this one.
_TIMED_HOLD = re.compile(
    r"\b\d+(?:-\d+)? ?(?:h|hrs?|hours?|d|days?) (?:before|prior|pre)|\bbefore"
    r" (?:surgery|the (?:procedure|surgery|extraction|biopsy))"
    r"|\bmorning of\b|\bday of\b|\bperi-?op\w*|\btoday's dose\b"
)
_FORMER = re.compile(
    r"\s*(?:the |any |her |his )?(?:previous|prior|old|existing|current|other|duplicate|home|lower|higher)\b"
)
_START_WHEN = re.compile(
    r"\b(?:start|begin|initiate|resume|restart|order|perform|obtain|draw|schedule|fill"
    r"|give|administer|to be (?:started|given|done|drawn|filled)"
    r"|commence)\b(?P<mid>[^.;\n]{0,60}?)"
    r"\b(?:when|if|once|only if|as soon as|provided|unless|after|following|upon"
    r"|contingent on|pending)\b\s*(?P<object>[^.;\n]*)"
)
_UNTIL = re.compile(
    r"\b(?:do not|don't|not to be|wait to|hold|defer)\b(?: (?:start|begin|give|fill"
    r"|take|initiate|order|perform)\w*)?[^.;\n]{0,30}?\buntil\b(?! (?:surgery"
    r"|procedure|the day))"
)
_LEADING_IF = re.compile(
    r"(?:^|[.;\n])\s*(?:only )?(?:if|when|once|should)\b(?! (?:daily|a day"
    rf"|weekly))[^.;\n]*?(?:,|\bthen\b)\s*(?:please )?{_VERB}\b(?P<object>[^.;\n]*)"
)
_ONLY_IF = re.compile(
    r"(?:^|[.;\n])\s*only (?:if|when|once)\b|\b(?:conditional|contingent) (?:on|upon)\b"
    r"|\b(?:start(?:ed)?|begin|give|given|take|fill|filled|order|perform|administer"
    r"|initiate|proceed|done|drawn|used?)\b"
    r"[^.;\n]{0,40}?\bonly (?:if|when|once)\b|\bonly (?:start|give|fill|take|order"
    r"|perform|use)\b[^.;\n]{0,40}?\b(?:if|when|once)\b"
)
_AFTER_HARMLESS = re.compile(
    r"^\s*(?:a |each |every |the |your |his |her )?(?:meals?|food|breakfast|lunch"
    r"|dinner|supper|eating|bowel|completing|\d+ doses?|needed)"
)
_TIMED = re.compile(
    r"\b(?:start|begin|initiate|resume|restart|first dose"
    r"|commence)(?:ing)?\b[^.;\n]{0,30}?\b(?:in \d+|on (?:\d|jan|feb|mar|apr|may|jun"
    r"|jul|aug|sep|oct|nov|dec)|next (?:week|month)|\d+ (?:days?|weeks?|hours?|h"
    r"|months?) (?:after|from|before)|at \d+ (?:weeks?|months?))"
)


def denied(text: str, names_own: Callable[[str], bool], names_other: Callable[[str], bool]) -> bool:
    """Whether an order's text takes the order back. The callables say whether words name its thing, or another."""
    text = harmless_blanked(text)
    for match in _OWN_DENY.finditer(text):
        rest = text[match.end() :]
        clause = re.split(r"[.;\n]|,(?! )|\bbut\b|\band (?=start|begin|use|give)", rest, maxsplit=1)[0]
        if _TIMED_HOLD.search(clause) or _FORMER.match(clause):
            continue
        head = clause[:70]
        if names_own(head) and not _names_other_first(head, names_own, names_other):
            return True
        if names_other(head):
            continue
        if _OWN_OBJECT.match(rest):
            return True
    return False


def _names_other_first(text: str, names_own: Callable[[str], bool], names_other: Callable[[str], bool]) -> bool:
    """ "stop lisinopril and start losartan" in a losartan order: what the verb takes first is the other one."""
    words = text.split()
    for n in range(1, len(words) + 1):
        head = " ".join(words[:n])
        if names_own(head):
            return False
        if names_other(head):
            return True
    return False


def conditional_start(text: str, names_other: Callable[[str], bool]) -> bool:
    """Whether an order's text makes its start wait for something ("start when INR < 2")."""
    if _UNTIL.search(text):
        return True
    text = _blanked(_NOT_IF, text)
    if _ONLY_IF.search(text):
        return True
    for match in _START_WHEN.finditer(text):
        if _AFTER_HARMLESS.match(match["object"]) or names_other(match["mid"]):
            continue
        return True
    return any(
        not names_other(match["object"]) and not re.search(r"\bmiss", match[0]) for match in _LEADING_IF.finditer(text)
    )


def timed_start(text: str) -> bool:
    """Whether an order's text puts its start off to a later date or interval."""
    return bool(_TIMED.search(text))
