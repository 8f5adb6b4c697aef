"""An order's directions in words ("take 2 tablets (10 mg) by mouth BID x 7 d, then 5 mg daily") as steps.

A step has parts: doses given at their own times of one day (1000 mg AM + 500 mg PM). What is no dose although it is an
amount (a ceiling, a hold parameter, a laboratory value, a quantity) is blanked first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cache

from graders import tables
from graders.orders import doses, drugs, durations, frequencies
from graders.orders.doses import Amount, Dose
from graders.orders.durations import Found
from graders.orders.frequencies import Frequency
from graders.orders.text import NUMBER, blank, normal, number, numerals

_UNIT = doses.unit_pattern()
_NUM = rf"(?:\d+ \d/\d|\d/\d|{NUMBER})"
_FORM = r"(?:tablets?|tabs?|capsules?|caps?|caplets?|pills?)(?:\(s\))?\b"
_BETWEEN = (
    r"(?:(?:oral|er|xr|xl|sr|dr|ec|ir|extended|delayed|immediate|release"
    r"|extended-release|delayed-release|immediate-release"
    r"|24|12|hr|hour|h|film|film-coated|coated|disintegrating|chewable|odt|sublingual|vaginal|ds|-|each)\s+)*"
)


@dataclass(frozen=True)
class Part:
    """One dose and its times: an amount in mass (or units), a count of tablets, the strength of one, as stated."""

    dose: Dose | None = None
    elemental: Amount | None = None
    count: Amount | None = None
    strength: Dose | None = None
    per_day: bool = False
    divided: int = 0
    frequency: tuple[Frequency, ...] = ()
    time_of_day: bool = False
    loose: bool = False
    bracketed: bool = False


@dataclass(frozen=True)
class Step:
    parts: tuple[Part, ...]
    duration: Found | None = None


@dataclass(frozen=True)
class TaperText:
    """A taper in words: step, interval in days, end (0 = off)."""

    step: Amount
    interval: Decimal
    end: Amount | None


@dataclass(frozen=True)
class Cap:
    """A stated ceiling a day: an amount, or a count of doses."""

    amount: Amount | None = None
    doses: Decimal | None = None


@dataclass(frozen=True)
class Sig:
    """What directions in words say. `undosed`: why they have no dose ("the dose is by weight"); "" where they may."""

    steps: tuple[Step, ...] = ()
    ratio: tuple[Amount, Amount] | None = None
    caps: tuple[Cap, ...] = ()
    prn: bool | None = None
    routes: tuple[str, ...] = ()
    form_routes: tuple[str, ...] = ()
    undosed: str = ""
    alternatives: str = ""
    frequency_alternatives: bool = False
    taper: TaperText | None = None
    loading_denied: bool = False

    @property
    def has_times(self) -> bool:
        return any(part.frequency for step in self.steps for part in step.parts)

    @property
    def has_dose(self) -> bool:
        return any(part.dose or part.count or part.elemental for step in self.steps for part in step.parts)


_CAP_LEAD = (
    r"(?:max(?:imum)?\.?(?: daily)?(?: dose)?(?: of)?(?: is)?|mdd|not to exceed|do not"
    r" exceed|don't exceed|no more than|nte"
    r"|daily max(?:imum)?(?: of)?|limit(?:ed)?(?: to| of)?|not exceeding)\s*:?\s*"
)
_PER_DAY = (
    r"(?:\s*(?:/|per|a|in|in a|each|every|within|over)?\s*(?:day|d\b|24 ?-?(?:h|hr|hrs|hours?)\b|daily|24h period))"
)
_CAPS = re.compile(
    rf"\b{_CAP_LEAD}(?P<n>{_NUM})\s*(?P<unit>doses?|{_UNIT}){_PER_DAY}?(?:\s*total)?"
    rf"|\bup to (?P<n2>{_NUM})\s*(?P<unit2>doses?|{_UNIT}){_PER_DAY}"
    r"|\b(?:max(?:imum)?|up to|no more than)\s*(?P<times>\d+)\s*(?:times|x)\s*(?:/|per"
    r"|a|in)?\s*(?:day|daily|24 ?h(?:ours)?)"
)
_MASKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bhold (?:for|if|when|dose if|dose for|parameters?)[^.;\n)]*",
        r"\b(?:stop|discontinue|call|return|notify|reduce|decrease|halve)\b[^.;\n]*?\bif\b[^.;\n]*",
        r"\bif\b [^.;\n]*?(?=,|;|\.\s|\n|$)",
        r"(?<!\d )(?<!\d)\b(?:crcl|cr ?cl|egfr|scr|creatinine|inr|sbp|dbp|hr|heart"
        r" rate|bp|weight|weighs|wt|bmi|a1c|hba1c|ldl|qtc|potassium|k\+?"
        r"|sodium|calcium level|glucose|bg|tsh|lvef|ef|age|uacr|temp)\b\s*(?:of|is|was"
        r"|at|=|:|<=|>=|<|>|~|to|target|goal)*\s*"
        rf"{_NUM}(?:\s*(?:-|to|/)\s*{_NUM})?\s*(?:mg/dl|mmol/l|meq/l|mmhg|bpm"
        r"|ml/min(?:/1\.73 ?m2)?|kg|lbs?|ms|%|iu/l|units/l|mg/g)?",
        rf"\b{_NUM}(?:\s*(?:-|to)\s*{_NUM})?\s*{_UNIT}\s*(?:/ ?day|per day|daily|a"
        r" day)\b[,;]?\s*\(?(?=(?:given as|administered as|as|dosed as"
        rf"|i\.e\.,?)\s*{_NUM}[^.;]{{0,12}}{_UNIT})",
        r"#\s*\d+",
        r"(?<![\d.])(?:1[4-9]|[2-9]\d|\d{3})\s*(?:tabs?|tablets?|caps?|capsules?)\b",
        rf"\b(?:disp(?:ense)?|qty|quantity)\.?:?\s*#?\s*{_NUM}\s*(?:{_UNIT})?",
        rf"\b(?:refills?:?\s*{NUMBER}|{NUMBER}\s*refills?)\b",
        rf"\b{NUMBER}[- ]day supply\b",
        rf"\bover {_NUM}(?:-{_NUM})?\s*(?:min(?:ute)?s?|h(?:ou)?rs?|h)\b",
        rf"\b{_NUM}\s*(?:kg|lb|lbs)\b(?!/)",
        r"\b(?:previously|prior|formerly|currently|current dose|was(?: on| taking)?"
        r"|were on|had been(?: on)?|home dose|old dose"
        r"|from|instead of|rather than|not|replac(?:es|ing)|stopp?(?:ed|ing)?"
        rf"|discontinu(?:e|ed|ing))\b[^.;,\n]{{0,40}}?{_NUM}\s*{_UNIT}"
        rf"(?:\s*(?:daily|bid|tid|qid|qd|weekly|qhs|q\d+h|twice daily|once daily))?",
        r"\bwith (?:a )?full glass of water[^.;\n]*|\bwith \d+ ?(?:-\d+ )?(?:oz|ounces|ml of water)[^.;\n]*",
        rf"\b{_NUM}(?:-{_NUM})? (?:min(?:ute)?s?|hours?|hrs?|h) (?:before|after|prior to)\b",
    )
)
_UNDOSED = (
    (
        re.compile(r"/\s*kg\b|\bper kg\b|\bper kilogram\b|\bweight[- ]based\b|/\s*m2\b|\bper m2\b"),
        "the dose is by weight",
    ),
    (re.compile(r"\bsliding[- ]scale\b|\bssi\b|\bcorrection scale\b|\bper scale\b"), "the dose is a sliding scale"),
    (
        re.compile(
            r"\b(?:per|by|according to|based on|adjust(?:ed)? (?:per|to|by)|dose per"
            r"|dosed (?:per|by|to)|titrate[d]? to) inr\b|\binr[- ](?:guided|based"
            r"|adjusted)\b"
        ),
        "the dose goes by INR",
    ),
    (
        re.compile(
            r"\btitrat(?:e|ed|ing) (?:to|per|as|until|up)\b|\bas titrated\b|\bper"
            r" (?:protocol|pharmacy|nomogram)\b|\bas directed by (?:clinic"
            r"|anticoagulation)\b|\bpharmacy to dose\b|\bdose to be determined\b"
        ),
        "the dose is titrated",
    ),
)
_PRN = re.compile(
    r"\b(?:prn|p\.r\.n\.?|as[- ]needed|as required|if needed|when needed|when required|as necessary)(?![a-z])"
)
_NOT_PRN = re.compile(r"\b(?:not|no|non)[- ]?(?:prn|as needed)\b|\bscheduled\b(?!\s*(?:for|on|visit))")
_SPLIT = re.compile(
    r"\bthen\b(?!\s*stop)|\bfollowed by\b|\bthereafter\b|\bafterwards?\b|\bafter"
    r" that\b|;|\n|(?<=[a-z)])\.\s+|(?<=\d)\.\s+(?=[a-z])"
    r"|(?:\band |\bthen |,\s*)?\b(?:may |can )?(?:increas(?:e|ing)|decreas(?:e|ing)"
    r"|reduc(?:e|ing)|taper(?:ing)?|titrat(?:e|ing)|up-?titrate)(?: dose| the"
    r" dose)?(?: up| down)? to\b"
    r"|(?:,\s*)?\b(?:weeks?|wks?) \d+(?:\s*-\s*\d+)?\s*:|(?:,\s*)?\bdays? \d+(?:\s*-\s*\d+)?\s*:"
)
_DAY_N = re.compile(
    r"\b(?:on )?(?P<unit>days?|weeks?|wks?) (?P<low>\d+)(?:\s*(?:-|to"
    r"|through)\s*(?P<high>\d+))?\b(?!\s*(?:mg|mcg|days|weeks))"
)
_DOSE = re.compile(
    rf"(?P<low>{_NUM})\s*(?:(?P<unit1>{_UNIT})?\s*(?P<join>-|\bto\b|\bor\b"
    rf"|\band\b(?=\s*{NUMBER}\s*{_UNIT}"
    rf" (?:alternat)))\s*(?P<high>{_NUM})\s*)?-?\s*(?P<unit>{_UNIT})"
    rf"(?P<per>\s*(?:/|\bper\b)\s*(?:kg|m2|(?P<denom>{NUMBER})?\s*(?P<denom_unit>ml|l"
    r"|actuat(?:ion)?|puff|spray|inhalation|hr|h|hour|dose|tablet|tab|capsule|cap|day"
    r"|d|drop|patch)(?![a-z])))?"
    r"(?P<elemental>\s*(?:of )?elemental\b)?"
)
_COMBO = re.compile(
    rf"(?P<values>{NUMBER}\s*(?:{_UNIT})?(?:\s*(?:-|/"
    rf"|\+)\s*{NUMBER}\s*(?:{_UNIT})?)+)(?:\s*/\s*(?:actuat(?:ion)?|puff|inhalation"
    r"|dose|tablet|tab))?"
)
_TAPER = re.compile(
    r"\b(?:decreas|reduc|taper|lower)(?:e|ing|ed)?(?: the dose)?(?: dose)?(?: daily"
    rf" dose)? by (?P<n>{_NUM})\s*(?P<unit>{_UNIT})\s*"
    r"(?:/\s*(?P<per>week|day|wk|d)\b|(?:every|each"
    rf"|q)\s*(?P<k>{NUMBER})?\s*-?(?P<every>days?|d|weeks?|wk|months?|mo)\b"
    r"|(?P<weekly>weekly|daily|a week|per week|per day|a day))"
    r"(?:[^.;\n]*?\b(?:to|until|down to)\s*(?P<end>off"
    rf"|(?P<end_n>{_NUM})\s*(?P<end_unit>{_UNIT})|discontinued|stopped|zero|0))?"
)
_DIVIDED = re.compile(
    r"\b(?:in|divided(?: in(?:to)?)?|given in|as)\s*(?P<n>\d)\s*(?:equally"
    r" )?(?:divided )?doses\b|\bdivided (?P<f>bid|tid|qid|q\d+h|twice daily|three"
    r" times daily)"
)
_PATCH_RATE = re.compile(rf"{_NUM}\s*(?:{_UNIT})\s*(?:/|per)\s*(?:day|24 ?h(?:ou)?rs?|24h|hour|hr|h)\b")
#: The strength of a combination's puff stays a strength of two parts: "160-4.5 mcg/actuation".
_PER_PUFF = re.compile(r"(?<=mcg)\s*/\s*(?:actuat(?:ion)?|puff|inhalation|dose|blister)\b")
_FORM_ROUTES = (
    (
        re.compile(
            r"\b(?:tablets?|tabs?|capsules?|caps?|caplets?|pills?|oral solution|oral"
            r" suspension|oral liquid|chewable|odt)\b"
        ),
        "oral",
    ),
    (re.compile(r"\b(?:inhalers?|hfa|mdi|dpi|diskus|ellipta|respimat|turbuhaler|puffs?)\b"), "inhaled"),
    (re.compile(r"\b(?:pens?|flexpen|kwikpen|solostar|flextouch|pen-injector|autoinjector)\b"), "subcutaneous"),
)
_NOT_ORAL_FORM = re.compile(r"\b(?:vaginal|sublingual|rectal|buccal) (?:tablets?|tabs?|capsules?|insert)\b")


@cache
def _routes() -> tuple[tuple[re.Pattern[str], str], ...]:
    found = []
    for row in tables.rows("routes"):
        names = sorted((re.escape(name) for name in row["synonyms"]), key=len, reverse=True)
        found.append((re.compile(rf"(?<![a-z0-9])(?:{'|'.join(names)})(?![a-z0-9])"), row["name"]))
    return tuple(found)


def routes_in(text: str) -> tuple[str, ...]:
    """Every route that a normalised text states; "oral inhalation" is inhaled alone."""
    text = re.sub(r"\boral inhal\w*|\binhal\w* by mouth|\binhale\w*[^.;]*?by mouth", "inhalation", text)
    text = re.sub(
        r"\b(?:oral|rectal|nasal) (?:surgery|intake|challenge|exam\w*|hygiene|hypoglyc\w*|thermometer)", " ", text
    )
    text = re.sub(r"(?:\bnot|\bno|\bfrom|\binstead of|\bavoid)\s+(?:iv|im|po|oral|sc|subq|pr)\b", " ", text)
    found = [name for pattern, name in _routes() if pattern.search(text)]
    if "topical" in found and "transdermal" in found:
        found.remove("topical")
    if "oral" in found and "sublingual" in found:
        found.remove("oral")
    return tuple(found)


@dataclass
class _Token:
    start: int
    end: int
    low: Decimal
    high: Decimal
    dose: Dose | None = None
    count: Amount | None = None
    strength: Dose | None = None
    elemental: Amount | None = None
    per_day: bool = False
    alternative: bool = False
    paren: bool = False
    extra: tuple[Dose, ...] = field(default=())


def read(text: str, now: datetime, *, parts: int = 1) -> Sig:
    """The directions that a text states for a drug of `parts` ingredients; empty where it states none."""
    t = numerals(normal(text))
    t = re.sub(r"(?<=\d)\s+(?=%)", "", t)
    caps, t = _take_caps(t)
    undosed = ""
    for pattern, why in _UNDOSED:
        if pattern.search(t):
            undosed = undosed or why
    taper, t = _take_taper(t)
    loading_denied = bool(re.search(r"\bno loading dose\b|\bwithout (?:a )?load(?:ing dose)?\b", t))
    prn = True if _PRN.search(re.sub(_NOT_PRN, " ", t)) else (False if _NOT_PRN.search(t) else None)
    routes = routes_in(t)
    form_routes: tuple[str, ...] = ()
    if not _NOT_ORAL_FORM.search(t):
        form_routes = tuple(dict.fromkeys(name for pattern, name in _FORM_ROUTES if pattern.search(t)))
    # Names go first: the potassium of losartan potassium is no laboratory value.
    for start, end in drugs.name_spans(t):
        t = blank(t, start, end)
    if "patch" in t or "transdermal" in t:
        t = _PATCH_RATE.sub(lambda m: " " * len(m[0]), t)
    for pattern in _MASKS:
        for match in pattern.finditer(t):
            t = blank(t, match.start(), match.end())
    if parts > 1:
        t = _PER_PUFF.sub(lambda m: " " * len(m[0]), t)
    ratio, t = _take_ratio(t)
    alternatives = ""
    frequency_alternatives = any(one.alternatives for one in frequencies.find(t))
    steps: list[Step] = []
    for separator, segment in _segments(t):
        step, alternative = _segment(segment, now, parts)
        alternatives = alternatives or alternative
        if step is None:
            continue
        dosed = any(part.dose or part.count or part.elemental or part.strength for part in step.parts)
        times = any(part.frequency for part in step.parts)
        if not steps or dosed:
            steps.append(step)
        elif times and separator in ("then", "followed by", "thereafter", "afterward", "afterwards", "after that"):
            last = steps[-1].parts[-1]
            steps.append(Step((replace(last, frequency=step.parts[0].frequency),), step.duration))
        else:
            steps[-1] = _merge(steps[-1], step)
    steps = _joined(steps)
    if undosed == "the dose is by weight" and any(part.dose for step in steps for part in step.parts):
        undosed = ""
    return Sig(
        tuple(steps),
        ratio,
        caps,
        prn,
        routes,
        form_routes,
        undosed,
        alternatives,
        frequency_alternatives,
        taper,
        loading_denied,
    )


def _joined(steps: list[Step]) -> list[Step]:
    """A strength or dose said before directions that say it again is one step: "5 mg tablet; take 1 tablet daily"."""
    made: list[Step] = []
    for step in steps:
        last = made[-1] if made else None
        if last and len(last.parts) == len(step.parts) == 1 and not last.duration:
            a, b = last.parts[0], step.parts[0]
            if not a.frequency and a.strength and not a.count and not b.strength:
                made[-1] = Step((replace(b, strength=a.strength),), step.duration)
                continue
            if not a.frequency and a.dose and (a.dose == b.dose or (b.count and not b.dose)):
                made[-1] = Step(
                    (
                        replace(
                            b, dose=b.dose or None, strength=b.strength or a.strength or (a.dose if b.count else None)
                        ),
                    ),
                    step.duration,
                )
                continue
            if a.dose == b.dose and a.count == b.count and a.dose and a.frequency == b.frequency:
                made[-1] = Step((b,), step.duration)
                continue
        made.append(step)
    return made


def _merge(step: Step, extra: Step) -> Step:
    parts = step.parts
    if extra.parts and extra.parts[0].frequency and not any(part.frequency for part in parts):
        parts = tuple(replace(part, frequency=extra.parts[0].frequency) for part in parts)
    return Step(parts, step.duration or extra.duration)


_HAS_DAYS = re.compile(r"(?:\bfor|\bx) ?\d+ ?-?(?:d|w|m)|\b(?:days?|weeks?) \d")


def _segments(t: str) -> list[tuple[str, str]]:
    """(separator before, segment) in order; a comma parts steps where both sides have a dose and the left its days."""
    pieces: list[tuple[str, str]] = []
    at, separator = 0, ""
    for match in _SPLIT.finditer(t):
        pieces.append((separator, t[at : match.start()]))
        head = match[0].strip(" ,")
        separator = head
        at = match.start() if _DAY_N.match(head) else match.end()
    pieces.append((separator, t[at:]))
    split: list[tuple[str, str]] = []
    for before, piece in pieces:
        commas = piece.split(",")
        current = commas[0]
        for nxt in commas[1:]:
            if _DOSE.search(nxt) and _DOSE.search(current) and _HAS_DAYS.search(current):
                split.append((before, current))
                before, current = "then", nxt
            else:
                current = f"{current},{nxt}"
        split.append((before, current))
    return [(before, piece) for before, piece in split if piece.strip()]


def _take_caps(t: str) -> tuple[tuple[Cap, ...], str]:
    caps: list[Cap] = []
    for match in _CAPS.finditer(t):
        if match["times"]:
            caps.append(Cap(doses=Decimal(match["times"])))
        else:
            value = number(match["n"] or match["n2"])
            name = match["unit"] or match["unit2"]
            if name.startswith("dose"):
                caps.append(Cap(doses=value))
            elif (of := doses.unit(name)) is not None:
                caps.append(Cap(amount=doses.amount(value, value, of)))
    for match in _CAPS.finditer(t):
        t = blank(t, match.start(), match.end())
    return tuple(caps), t


def _take_taper(t: str) -> tuple[TaperText | None, str]:
    match = _TAPER.search(t)
    if match is None:
        return None, t
    of = doses.unit(match["unit"])
    assert of is not None
    step = doses.amount(number(match["n"]), number(match["n"]), of)
    word = match["per"] or match["every"] or match["weekly"] or "day"
    unit = 7 if "w" in word else (30 if word.startswith("mo") else 1)
    interval = Decimal(unit) * (number(match["k"]) if match["k"] else 1)
    end: Amount | None = None
    if match["end_n"]:
        end_of = doses.unit(match["end_unit"])
        assert end_of is not None
        end = doses.amount(number(match["end_n"]), number(match["end_n"]), end_of)
    elif match["end"] or re.search(r"\b(?:until|then|to) (?:off|stop|discontinu)", t):
        end = Amount(Decimal(0), Decimal(0), step.dimension)
    return TaperText(step, interval, end), blank(t, match.start(), match.end())


_DENOMINATORS = {
    "ml": "volume", "l": "volume", "actuat": "puff", "actuation": "puff", "puff": "puff", "inhalation": "puff",
    "spray": "spray", "drop": "drop", "patch": "patch", "dose": "puff",
}  # fmt: skip


def _take_ratio(t: str) -> tuple[tuple[Amount, Amount] | None, str]:
    """A concentration or a strength a puff ("5 mg/5 mL", "90 mcg/actuation"), and the text without it."""
    found: tuple[Amount, Amount] | None = None
    for match in _DOSE.finditer(t):
        name = match["denom_unit"]
        if not match["per"] or name not in _DENOMINATORS:
            continue
        top_unit = doses.unit(match["unit"])
        if top_unit is None:
            continue
        top = doses.amount(number(match["low"]), number(match["low"]), top_unit)
        size = number(match["denom"]) if match["denom"] else Decimal(1)
        if name == "l":
            size *= 1000
        found = found or (top, Amount(size, size, _DENOMINATORS[name]))
        t = blank(t, match.start(), match.end())
    return found, t


def _tokens(segment: str, parts: int) -> tuple[list[_Token], str]:
    tokens: list[_Token] = []
    alternative = ""
    taken = segment
    if parts > 1:
        for match in _COMBO.finditer(segment):
            values = re.findall(rf"({NUMBER})\s*({_UNIT})?", match["values"])
            last = next((name for _, name in reversed(values) if name), None) or _following_unit(segment, match.end())
            if len(values) != parts or last is None:
                continue
            amounts = []
            for value, name in values:
                of = doses.unit(name or last)
                if of is None:
                    break
                amounts.append(doses.amount(number(value), number(value), of))
            if len(amounts) != parts or any(one.dimension == "tablet" for one in amounts):
                continue
            token = _Token(match.start(), match.end(), Decimal(0), Decimal(0), dose=tuple(amounts))
            if re.match(rf"\s*(?:{_UNIT})?\s*{_BETWEEN}{_FORM}", taken[match.end() :]):
                token.dose, token.strength = None, tuple(amounts)
            tokens.append(token)
            taken = blank(taken, match.start(), match.end())
    for match in _DOSE.finditer(taken):
        of = doses.unit(match["unit"])
        if of is None:
            continue
        per = (match["per"] or "").replace("per", "").strip(" /")
        if per in ("kg", "m2", "hr", "h", "hour"):
            continue
        low = number(match["low"])
        high = number(match["high"]) if match["high"] else low
        first = doses.unit(match["unit1"]) if match["unit1"] else None
        if match["join"] == "or":
            alternative = alternative or "the order gives alternatives"
        if low > high and match["join"] in ("-", "to"):
            high = low
        amount = doses.amount(low, high, of)
        if first is not None and first.dimension == of.dimension:
            amount = replace(amount, low=low * first.factor)
        token = _Token(match.start(), match.end(), low, high, per_day=per in ("day", "d"))
        if match["join"] == "or":
            token.alternative = True
        if match["elemental"]:
            token.elemental = replace(amount, elemental=True)
        elif of.dimension == "tablet":
            token.count = amount
        elif of.dimension == "mass" and (
            re.match(rf"\s*{_BETWEEN}{_FORM}", taken[match.end() :])
            or re.match(r"\s*(?:each|apiece|per (?:tablet|tab|capsule|cap))\b", taken[match.end() :])
            or per in ("tablet", "tab", "capsule", "cap")
            or re.search(r"\d\s*(?:tablets?|tabs?|caps(?:ules)?)\s*of\s*(?:the\s*)?$", taken[: match.start()])
        ):
            token.strength = (amount,)
            before = re.search(rf"({_NUM})\s*(?:x\s*)?$", taken[: match.start()])
            if before:
                value = number(before[1])
                token.count = Amount(value, value, "tablet")
        elif of.dimension == "mass" and (before := re.search(r"(?<![\d.])(\d)\s*x\s*$", taken[: match.start()])):
            value = number(before[1])
            token.strength, token.count = (amount,), Amount(value, value, "tablet")
        else:
            token.dose = (amount,)
        depth = taken[: match.start()].count("(") - taken[: match.start()].count(")")
        token.paren = depth > 0 or bool(
            re.search(r"=\s*$|\bi\.e\.,?\s*$|\btotal(?:ing)?(?: of)?\s*$", taken[: match.start()])
        )
        tokens.append(token)
    tokens.sort(key=lambda token: token.start)
    return tokens, alternative


def _following_unit(segment: str, at: int) -> str | None:
    match = re.match(rf"\s*({_UNIT})", segment[at:])
    return match[1] if match else None


def _segment(segment: str, now: datetime, parts: int) -> tuple[Step | None, str]:
    tokens, alternative = _tokens(segment, parts)
    stated = [one for one in frequencies.find(segment) if not one.alternatives]
    spans = durations.durations(segment, now)
    duration = spans[0] if spans else _bare_duration(segment, stated)
    if duration is None and (match := _DAY_N.search(segment)):
        n = Decimal(1) if not match["high"] else number(match["high"]) - number(match["low"]) + 1
        size = n * (7 if match["unit"][0] == "w" else 1)
        duration = Found(match.start(), match.end(), days=durations.Span(size, size))
    if any(one.kind == "once" for entry in stated for one in entry.ends) and duration and duration.days:
        stated = [one for one in stated if one.ends[0].kind != "once"] or stated
    groups: list[list[_Token]] = []
    for token in tokens:
        current = groups[-1] if groups else None
        if current is not None and _joins(current, token, segment):
            current.append(token)
        else:
            groups.append([token])
    made: list[Part] = []
    for place, cluster in enumerate(groups):
        start = cluster[0].start if place else 0
        end = groups[place + 1][0].start if place + 1 < len(groups) else len(segment)
        made.append(_part(cluster, [one for one in stated if start <= one.start < end], segment))
    if len(made) > 1:
        made = _same_day(made)
        doses_said = {(part.dose, part.count) for part in made}
        timed = [bool(part.frequency) for part in made]
        if len(doses_said) == 1:
            made = [replace(made[0], frequency=_first_frequency(made))]
        elif not all(timed):
            alternative = alternative or "the order gives two doses"
    if not made:
        frequency, time_of_day = _frequency(stated)
        if not frequency and duration is None:
            return None, alternative
        made = [Part(frequency=frequency, time_of_day=time_of_day)]
    if (divided := _DIVIDED.search(segment)) and len(made) == 1:
        if divided["n"]:
            n_doses = int(divided["n"])
        else:
            rate = frequencies.find(divided["f"])
            n_doses = int(rate[0].ends[0].per_day or 0) if rate and rate[0].ends else 0
        if n_doses:
            made = [replace(made[0], divided=n_doses)]
    return Step(tuple(made), duration), alternative


def _joins(cluster: list[_Token], token: _Token, segment: str) -> bool:
    """Whether a token says the same dose once more (its count, its strength, in brackets) and not another dose."""
    between = segment[cluster[-1].end : token.start]
    if token.elemental or any(one.elemental for one in cluster):
        return True
    if token.paren:
        return True
    if (
        re.search(r"\band\b|\+|&|,", between)
        and _has_dose(cluster)
        and _has_dose([token])
        and frequencies.find(between)
    ):
        return False
    have_mass = any(one.dose for one in cluster)
    have_count = any(one.count for one in cluster)
    if token.strength and not token.count:
        return True
    if not have_mass and not have_count and not frequencies.find(between):
        return True
    if token.count and not have_count:
        return True
    return bool(token.dose and not have_mass and have_count and not frequencies.find(between))


def _has_dose(cluster: list[_Token]) -> bool:
    return any(one.dose or one.count for one in cluster)


def _part(cluster: list[_Token], stated: list[frequencies.Stated], segment: str) -> Part:
    dose = next((one.dose for one in cluster if one.dose), None)
    count = next((one.count for one in cluster if one.count), None)
    strength = next((one.strength for one in cluster if one.strength), None)
    elemental = next((one.elemental for one in cluster if one.elemental), None)
    frequency, time_of_day = _frequency(stated)
    if dose and dose[0].dimension == "volume":
        dose = next((one.dose for one in cluster if one.dose and one.dose[0].dimension != "volume"), dose)
    loose = _is_loose(cluster) and not strength
    bracketed = any(one.dose and one.paren for one in cluster)
    per_day = any(one.per_day for one in cluster)
    return Part(dose, elemental, count, strength, per_day, 0, frequency, time_of_day, loose, bracketed)


def _is_loose(cluster: list[_Token]) -> bool:
    """A mass before a count, neither in brackets ("2.5 mg: take 2 tablets"): the mass is the strength of one."""
    mass = next((one for one in cluster if one.dose), None)
    count = next((one for one in cluster if one.count), None)
    return bool(mass and count and mass.start < count.start and not mass.paren and not count.paren)


_BARE_DURATION = re.compile(
    r"(?<![\d/.-])(?<!every )(?<!q )(?<!q)(?<!in )(?<!day"
    rf" )({NUMBER})(?:\s*-\s*({NUMBER}))?\s*-?(d|days?|wks?|weeks?)\b(?!\s*(?:before"
    r"|prior|ago|after|supply))"
)


def _bare_duration(segment: str, stated: list[frequencies.Stated]) -> Found | None:
    """A bare "7 d" after the times of a dose."""
    if not stated:
        return None
    for match in _BARE_DURATION.finditer(segment):
        if any(one.start < match.end() and match.start() < one.end for one in stated):
            continue
        if match.start() > stated[0].start:
            low = number(match[1])
            size = durations.span(low, number(match[2]) if match[2] else low, match[3], point=True)
            return Found(match.start(), match.end(), days=size)
    return None


def _frequency(stated: list[frequencies.Stated]) -> tuple[tuple[Frequency, ...], bool]:
    """One frequency of what a part states: a named one rules over meals, equal ones are one, several never match."""
    named = [one for one in stated if not one.by_meals]
    clear = [one for one in named if not one.time_of_day] or named or stated
    if not clear:
        return (), False
    ends = {one.ends for one in clear}
    if len(ends) == 1:
        return clear[0].ends, all(one.time_of_day for one in clear)
    if all(one.time_of_day for one in clear):
        return (Frequency("per_day", Decimal(len(clear))),), False
    once = (Frequency("once"),)
    rest = [one for one in clear if one.ends != once]
    if len({one.ends for one in rest}) == 1:
        return rest[0].ends, False
    return (Frequency("unreadable"),), False


def _first_frequency(parts: list[Part]) -> tuple[Frequency, ...]:
    if all(part.time_of_day for part in parts) and len(parts) > 1:
        return (Frequency("per_day", Decimal(len(parts))),)
    return next((part.frequency for part in parts if part.frequency), ())


def _same_day(parts: list[Part]) -> list[Part]:
    """Strengths carried over the parts of one day: "1 tab qAM and 2 tabs qHS" of one 500 mg tablet."""
    strength = next((part.strength for part in parts if part.strength), None)
    return [replace(part, strength=part.strength or strength) if part.count else part for part in parts]


@cache
def route_codes() -> dict[str, str]:
    """SNOMED CT route code -> route."""
    return {code: row["name"] for row in tables.rows("routes") for code in row["snomed"]}
