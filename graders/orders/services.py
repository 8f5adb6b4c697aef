"""Tests, imaging, referrals and procedures: which of them a text or a code names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from graders import tables
from graders.orders.text import normal, squeeze

LOINC = "http://loinc.org"
_WORDS = re.compile(r"[a-z0-9+]+")

#: Short names that are other words in prose.
_PROSE_STOP = frozenset(
    {"na", "cl", "us", "pt", "ot", "id", "mr", "hb", "tg", "er", "ob", "le", "iron",
     "films", "urea", "hiv", "renal", "surgery", "dental", "vascular", "gi", "co2", "ep clinic", "acl", "lipids"}
)  # fmt: skip


@dataclass(frozen=True)
class Named:
    """A thing named at [start, end) of a normalised text."""

    start: int
    end: int
    name: str


Index = dict[str, list[tuple[tuple[str, ...], str]]]


def _build(table: str, *, kind: str = "") -> Index:
    index: Index = {}
    seen: set[tuple[str, ...]] = set()
    for row in tables.rows(table):
        if kind and row["kind"] != kind:
            continue
        for text in (row["name"], *row["synonyms"]):
            words = tuple(_WORDS.findall(normal(text)))
            if words and words not in seen:
                seen.add(words)
                index.setdefault(words[0], []).append((words, row["name"]))
    for entries in index.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return index


@cache
def _index(table: str, kind: str = "") -> Index:
    return _build(table, kind=kind)


def find(table: str, text: str, *, kind: str = "", prose: bool = False) -> list[Named]:
    """Every row of a table named in a normalised text, longest names first at each place, not overlapping."""
    words, places = _words(text)
    index = _index(table, kind)
    if index.keys().isdisjoint(words):
        return []
    found: list[Named] = []
    free = 0
    for at, first in enumerate(words):
        if at < free or first not in index:
            continue
        for entry, name in index[first]:
            if words[at : at + len(entry)] != entry:
                continue
            if prose and " ".join(entry) in _PROSE_STOP:
                continue
            free = at + len(entry)
            found.append(Named(places[at][0], places[free - 1][1], name))
            break
    return found


@lru_cache(maxsize=8)
def _words(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """The words of a text and where each stands; kept for the next table that the same text is searched for."""
    matches = tuple(_WORDS.finditer(text))
    return tuple(match[0] for match in matches), tuple(match.span() for match in matches)


@cache
def canonical(table: str, text: str, *, kind: str = "") -> str | None:
    """The row that a declaration names, None where the tables do not have it."""
    wanted = normal(text)
    for named in find(table, wanted, kind=kind):
        if squeeze(wanted) == squeeze(wanted[named.start : named.end]):
            return named.name
    return None


# ---- tests ---------------------------------------------------------------------------------------------------------


@cache
def _tests() -> dict[str, tables.Row]:
    return {row["name"]: row for row in tables.rows("tests")}


@cache
def _loinc() -> dict[str, str]:
    return {code: row["name"] for row in tables.rows("tests") for code in row["loinc"]}


def coded_test(code: str) -> str | None:
    """The test with this LOINC code, None where the tables do not know it."""
    return _loinc().get(code)


@cache
def contains(name: str) -> frozenset[str]:
    """The test itself and everything inside it, panels in panels too (CMP: BMP, potassium, ...)."""
    members = _tests()[name]["members"] if name in _tests() else ()
    return frozenset({name}).union(*(contains(member) for member in members))


@cache
def atoms(name: str) -> frozenset[str]:
    """The single tests of a panel; of a single test, itself."""
    members = _tests()[name]["members"] if name in _tests() else ()
    return frozenset().union(*(atoms(member) for member in members)) if members else frozenset({name})


def covers(given: Iterable[str], wanted: str) -> bool:
    """Whether tests ordered together satisfy the wanted one: by name, by a panel, or as all of its parts."""
    names = tuple(given)
    if any(wanted in contains(name) for name in names):
        return True
    parts = atoms(wanted)
    return parts != {wanted} and parts <= frozenset().union(*(atoms(name) for name in names))


_SPECIMENS = (
    (re.compile(r"\b(?:urine|urinary|24-?h(?:our)? urine)\b"), "urine"),
    (re.compile(r"\b(?:csf|cerebrospinal|cerebral spinal fluid)\b"), "csf"),
    (re.compile(r"\b(?:stool|fecal|faecal)\b"), "stool"),
    (re.compile(r"\b(?:saliva|salivary)\b"), "saliva"),
    (re.compile(r"\b(?:pleural|ascitic|peritoneal|synovial)(?: fluid)?\b"), "fluid"),
)


def specimen_in(text: str) -> str:
    """The specimen that a normalised text names, "" for blood, serum, plasma and where none is named."""
    return next((name for pattern, name in _SPECIMENS if pattern.search(text)), "")


def specimen_of(test: str) -> str:
    """The specimen of a test in the tables; "" for blood, serum and plasma."""
    own = _tests()[test]["specimen"] if test in _tests() else ""
    return "" if own in ("serum", "blood") else own


_REFLEX = re.compile(r"\b(?:with |w/ ?)?reflex(?:ive|es)?(?: to)?\b[^,;.\n]*")
#: Within the last 8 characters: the longest word, and the one before it that must not be a letter.
_SPECIMEN_BEFORE = re.compile(r"\b(?:urine|urinary|csf|stool)$")
_LOINC_TAIL = re.compile(r"/hemoglobin\.total|\[[^\]]*\]|\bby [a-z ,()-]+$|\.total\b")


def named_tests(text: str, *, prose: bool = False) -> list[Named]:
    """Every test named in a normalised text whose specimen agrees; what a reflex may add is not ordered."""
    cleaned = _REFLEX.sub(lambda m: " " * len(m[0]), text)
    cleaned = _LOINC_TAIL.sub(lambda m: " " * len(m[0]), cleaned)
    all_named = find("tests", cleaned, prose=prose)
    if not all_named:
        return []
    said = specimen_in(cleaned)
    found = []
    for named in all_named:
        own = specimen_of(named.name)
        if said and own != said and not prose:
            other = _tests().get(f"{said} {named.name.lower()}")
            if other is not None:
                found.append(Named(named.start, named.end, other["name"]))
            continue
        if prose and own == "" and _SPECIMEN_BEFORE.search(cleaned[: named.start].rstrip()[-8:]):
            continue
        found.append(named)
    return found


# ---- imaging -------------------------------------------------------------------------------------------------------

_BOTH = re.compile(
    r"\b(?:with(?:out)? (?:and|&) with(?:out)?|w/? ?(?:and|&|\+|/)? ?w/?o|w/?o ?(?:and"
    r"|&|\+|/) ?w/?|w/ and w/o|w wo|wwo|with/without|without/with|pre and post|pre-"
    r" and post)(?:[- ](?:iv )?(?:contrast|gadolinium|gad))?\b"
)
_UNSTATED = re.compile(
    r"\bwith or without(?: iv)? contrast|\bcontrast (?:per|as per|at discretion of|if"
    r" needed|as needed|at the discretion)[^.;\n]*|\bw/? or w/?o(?: iv)? contrast"
    r"|\b(?:\+/-|with/-) ?contrast|\bcontrast allerg\w*|\bno contrast allerg\w*"
)
_WITHOUT = re.compile(
    r"\b(?:without|w/o|wo|no|non|minus|w/out)[- ]*(?:the use of )?(?:any )?(?:iv "
    r"|intravenous |oral |gadolinium )*-?contrast|\bnon-?contrast(?:ed)?\b"
    r"|\bunenhanced\b|\bnon-?enhanced\b|\bwithout (?:gadolinium|gad)\b|\bcontrast:?"
    r" (?:none|no|without)\b|\bno (?:gadolinium|gad)\b"
)
_WITH = re.compile(
    r"\b(?:with|w/|w|plus)\s*(?:the use of )?(?:iv |intravenous |gadolinium |oral |po"
    r" )*(?:and (?:iv |oral ))*contrast|\bcontrast[- ]enhanced\b|\bpost-?contrast\b"
    r"|\bwith (?:gadolinium|gad)\b|\bcontrast:? (?:with|yes|iv)\b|\bw/?"
    r" ?gad(?:olinium)?\b|\bcect\b"
)


def contrast_in(text: str) -> str:
    """`with`, `without`, `both` as a text states it; "" where it does not; "contradicts" where it says two."""
    text = _UNSTATED.sub(" ", text)
    if _BOTH.search(text):
        return "both"
    without = bool(_WITHOUT.search(text))
    with_ = bool(_WITH.search(_WITHOUT.sub(" ", text)))
    if without and with_:
        return "contradicts"
    return "without" if without else "with" if with_ else ""


_LEFT = re.compile(r"\b(?:left|lt|left-sided|l)\b(?! ?-?spine|\d|/s)")
_RIGHT = re.compile(r"\b(?:right|rt|right-sided|r)\b(?!/o| ?upper quadrant| away|/s)")
_BILATERAL = re.compile(r"\b(?:bilateral|bilaterally|both|bilat|b/l)\b(?! with)")


def laterality_in(text: str) -> str:
    """`left`, `right` or `bilateral` as a normalised text states it, "" where it does not."""
    text = re.sub(r"\b(?:right|left) (?:upper|lower) quadrant\b|\br/o\b|\bl-?spine\b|\bl/s\b", " ", text)
    left, right = bool(_LEFT.search(text)), bool(_RIGHT.search(text))
    if _BILATERAL.search(text) or (left and right):
        return "bilateral"
    return "left" if left else "right" if right else ""


#: One name for two sites that are ordered together.
_JOINT_SITES = {"thoracolumbar spine": ("thoracic spine", "lumbar spine"), "axial skeleton": ("hip", "spine")}


def sites_in(text: str, *, prose: bool = False) -> frozenset[str]:
    """Every body site named in a normalised text."""
    text = re.sub(r"\b(thoracic|cervical)( and | ?& ?|, ?|/)(lumbar|thoracic)( spine)", r"\1 spine and \3\4", text)
    found: set[str] = set()
    for named in find("imaging", text, kind="site", prose=prose):
        found.update(_JOINT_SITES.get(named.name, (named.name,)))
    return frozenset(found)


def modalities_in(text: str, *, prose: bool = False) -> frozenset[str]:
    """Every imaging modality named in a normalised text; Doppler ultrasound is duplex alone."""
    found = {named.name for named in find("imaging", text, kind="modality", prose=prose)}
    if "duplex" in found:
        found.discard("ultrasound")
    if "PET" in found:
        found.discard("CT")
    return frozenset(found)


@cache
def site_names(text: str) -> frozenset[str]:
    """The sites that a declaration names; the words themselves where the tables do not have them."""
    wanted = normal(text)
    return sites_in(wanted) or frozenset({squeeze(wanted)})


# ---- referrals and procedures --------------------------------------------------------------------------------------


@cache
def _parents() -> dict[str, str]:
    return {row["name"]: row["parent"] for row in tables.rows("referrals") if row["parent"]}


def is_specialty(given: str, wanted: str) -> bool:
    """Whether a referral to `given` satisfies one to `wanted`: the same, or a subspecialty of it."""
    while given != wanted and given in _parents():
        given = _parents()[given]
    return given == wanted


_REFERRAL_WORDS = re.compile(
    r"\b(?:refer(?:ral|red|ring|s)?|consult(?:ation|s|ed)?|evaluation|eval|clinic"
    r"|appointment|appt|visit|see|seen|specialist|follow-?up|admit|admission|send"
    r"|transfer|outpatient|ambulatory|service|urgent care|seen by|go to|present to)\b"
)
E_CONSULT = "e-consult"


def referrals_in(text: str, *, prose: bool = False) -> list[Named]:
    """Every specialty that a normalised text refers to; a specialty's word inside a test or scan is not one."""
    all_named = find("referrals", text, prose=prose)
    if not all_named:
        return []
    taken = [(one.start, one.end) for one in find("tests", text) if " " in text[one.start : one.end]]
    found = []
    said = bool(_REFERRAL_WORDS.search(text))
    for named in all_named:
        if any(start <= named.start < end for start, end in taken):
            continue
        alone = squeeze(text) == squeeze(text[named.start : named.end])
        if said or alone or named.name in ("emergency department", "hospital admission"):
            found.append(named)
    return found


def holds_phrase(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand together in a normalised text."""
    return bool(re.search(rf"(?<![a-z0-9]){re.escape(squeeze(normal(phrase)))}(?![a-z0-9])", squeeze(text)))
