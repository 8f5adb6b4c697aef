"""Which drug a text names: ingredients, brands, salts, fixed combinations, classes; look-alikes never.

Names are compared as whole words against the tables; nothing is matched by resemblance, so a look-alike cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from graders import tables
from graders.orders.text import normal, squeeze

Release = Literal["immediate", "extended", "delayed"]
RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm"

_RELEASES: tuple[tuple[Release, re.Pattern[str]], ...] = (
    (
        "extended",
        re.compile(
            r"\b(?:er|xr|xl|sr|cr|la|cd|cc|xt|xr24h|er24h|(?:extended|sustained|controlled)[- ]?rel(?:ease)?"
            r"|long[- ]acting|modified[- ]release|24 ?h(?:ou)?r (?:tablet|tab|capsule|cap|er))\b"
        ),
    ),
    ("delayed", re.compile(r"\b(?:dr|ec|delayed[- ]?rel(?:ease)?|enteric[- ]coated|gastro-resistant)\b")),
    ("immediate", re.compile(r"\b(?:ir|(?:immediate|regular|rapid)[- ]?release)\b")),
)
_SPELLED_RELEASES: tuple[tuple[Release, re.Pattern[str]], ...] = (
    (
        "extended",
        re.compile(
            r"\b(?:extended|sustained|controlled)[- ]?release\b|\b(?:er|xr|xl|sr|cr)"
            r" (?=tab|cap|\d)|(?<=mg )(?:er|xr|xl|sr)\b"
        ),
    ),
    ("delayed", re.compile(r"\b(?:delayed[- ]?release|enteric[- ]coated)\b")),
    ("immediate", re.compile(r"\bimmediate[- ]?release\b")),
)


@dataclass(frozen=True)
class Drug:
    """One named drug: its ingredients as the table names them (several = a fixed combination), and its release."""

    components: tuple[str, ...]
    release: Release | None = None

    @property
    def name(self) -> str:
        return " + ".join(self.components)

    @property
    def is_combination(self) -> bool:
        return len(self.components) > 1


@dataclass(frozen=True)
class Mention:
    """A drug named at [start, end) of a normalised text."""

    start: int
    end: int
    drug: Drug


@cache
def _ingredients() -> dict[str, tables.Row]:
    return {row["name"]: row for row in tables.rows("ingredients")}


@cache
def _combinations() -> dict[frozenset[str], tables.Row]:
    return {frozenset(row["components"]): row for row in tables.rows("combinations")}


@cache
def _children() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in tables.rows("ingredients"):
        if base := row.get("base"):
            found.setdefault(base, []).append(row["name"])
    return {base: tuple(names) for base, names in found.items()}


@cache
def _index() -> dict[str, list[tuple[tuple[str, ...], Drug]]]:
    """First word -> (all words, drug), longest first."""
    named: dict[tuple[str, ...], Drug] = {}

    def add(text: str, drug: Drug) -> None:
        if words := tuple(_WORDS.findall(normal(text))):
            named.setdefault(words, drug)

    for row in tables.rows("ingredients"):
        drug = Drug((row["name"],))
        for text in (row["name"], *row["synonyms"]):
            add(text, drug)
        for text in row["brands"]:
            add(text, replace(drug, release=row.get("brand_release", {}).get(text)))
    for row in tables.rows("combinations"):
        drug = Drug(tuple(row["components"]))
        for text in (row["name"], *row["synonyms"], *row["brands"]):
            add(text, drug)
        if len(row["components"]) == 2:
            first, second = row["components"]
            add(f"{second} {first}", drug)
    index: dict[str, list[tuple[tuple[str, ...], Drug]]] = {}
    for words, drug in named.items():
        index.setdefault(words[0], []).append((words, drug))
    for entries in index.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return index


_WORDS = re.compile(r"[a-z0-9]+|#\d")
#: What may stand between the parts of one fixed combination: a strength and a joint.
_STRENGTH = r"[\s(]*(?:[\d.,]+\s*(?:mg|mcg|g|meq|units?|iu|unt|%)?(?:/[\w.]+)?)?[\s)]*"
_JOINT_IN_NAME = re.compile(rf"{_STRENGTH}(?:/|-|\+|&|\band\b|\bwith\b|\bplus\b){_STRENGTH}")
_JOINT_IN_PROSE = re.compile(r"\s?(?:/|-|\+)\s?")


def mentions(text: str, *, prose: bool = False) -> list[Mention]:
    """Every drug named in a normalised text, in order; parts of one combination joined. `prose` joins only a/b, a-b."""
    words = list(_WORDS.finditer(text))
    index = _index()
    found: list[Mention] = []
    at = 0
    while at < len(words):
        for entry, drug in index.get(words[at][0], ()):
            if tuple(word[0] for word in words[at : at + len(entry)]) == entry:
                end = words[at + len(entry) - 1].end()
                if not _not_a_drug(text, words[at].start(), end, drug):
                    found.append(Mention(words[at].start(), end, drug))
                at += len(entry) - 1
                break
        at += 1
    joint = _JOINT_IN_PROSE if prose else _JOINT_IN_NAME
    joined: list[Mention] = []
    for mention in found:
        last = joined[-1] if joined else None
        if last and last.drug.components != mention.drug.components and joint.fullmatch(text[last.end : mention.start]):
            parts = tuple(dict.fromkeys(last.drug.components + mention.drug.components))
            joined[-1] = Mention(last.start, mention.end, combination(parts))
        else:
            joined.append(mention)
    return joined


def name_spans(text: str) -> list[tuple[int, int]]:
    """[start, end) of every drug name alone, without the strengths between parts of a combination."""
    words = list(_WORDS.finditer(text))
    index = _index()
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(words):
        for entry, _ in index.get(words[at][0], ()):
            if tuple(word[0] for word in words[at : at + len(entry)]) == entry:
                first = at + 1 if entry[0] == "elemental" else at
                found.append((words[first].start(), words[at + len(entry) - 1].end()))
                at += len(entry) - 1
                break
        at += 1
    return found


#: Words that are a drug in an order and a laboratory value, device or complaint in a note.
_OTHER_SENSE = re.compile(
    r"\s*(?:level|deficien|studies|panel|allerg|antibod|resist|trough|concentration|/?-?creatinine|saturation|score"
    r"|channel|lab\b|overload)"
)


def _not_a_drug(text: str, start: int, end: int, drug: Drug) -> bool:
    return bool(_OTHER_SENSE.match(text, end))


def combination(components: Sequence[str]) -> Drug:
    """The fixed combination of these ingredients, in the order in which its label names them where the table has it."""
    known = _combinations().get(frozenset(components))
    return Drug(tuple(known["components"]) if known else tuple(components))


def of_code(system: str, code: str) -> Drug | None:
    """The ingredient with this RxNorm code; None where the tables do not know the code (product codes mostly)."""
    if system.rstrip("/") not in (RXNORM, "urn:oid:2.16.840.1.113883.6.88", "RxNorm", "rxnorm"):
        return None
    return _codes().get(code)


@cache
def _codes() -> dict[str, Drug]:
    found = {row["rxnorm"]: Drug((row["name"],)) for row in tables.rows("ingredients") if row.get("rxnorm")}
    for row in tables.rows("combinations"):
        if row.get("rxnorm"):
            found[row["rxnorm"]] = Drug(tuple(row["components"]))
    return found


def release_in(text: str, *, name: bool) -> Release | None:
    """The release that a normalised text states; abbreviations (ER, XL, DR) count only in a drug's name."""
    if name:
        for mention in reversed(mentions(text)):
            text = text[: mention.start] + " " * (mention.end - mention.start) + text[mention.end :]
    for release, pattern in _RELEASES if name else _SPELLED_RELEASES:
        if pattern.search(text):
            return release
    return None


def own_release(ingredient: str) -> Release | None:
    """The release that the ingredient itself fixes (Toprol XL, PPIs), None where it comes in several."""
    row = _ingredients().get(ingredient, {})
    release: Release | None = row.get("release")
    return release


def forms(ingredient: str) -> dict[str, list[str]]:
    """release -> strengths that exist, as texts; empty where the tables list none."""
    found: dict[str, list[str]] = _ingredients().get(ingredient, {}).get("forms", {})
    return found


def group(ingredient: str) -> Literal["apart", "unspecific", ""]:
    """`apart`: salts under this base are doses apart. `unspecific`: a name that no specific row accepts."""
    kind: Literal["apart", "unspecific", ""] = _ingredients().get(ingredient, {}).get("group", "")
    return kind


def base_of(ingredient: str) -> str | None:
    """The base or group above an ingredient ("metoprolol succinate" -> "metoprolol")."""
    base: str | None = _ingredients().get(ingredient, {}).get("base")
    return base


def elemental_fraction(ingredient: str) -> str | None:
    """Elemental part of the salt's mass, as decimal text; None where it has none."""
    found: str | None = _ingredients().get(ingredient, {}).get("elemental")
    return found


def settle(drug: Drug) -> Drug:
    """A base with a stated release resolved to the one salt that comes so ("metoprolol ER" = metoprolol succinate)."""
    if drug.is_combination or drug.release is None or group(drug.components[0]) != "apart":
        return drug
    fits = [
        child
        for child in _children().get(drug.components[0], ())
        if own_release(child) == drug.release or drug.release in forms(child)
    ]
    return Drug((fits[0],), drug.release) if len(fits) == 1 else drug


@cache
def read_name(text: str) -> Drug | None:
    """The drug that a declaration names ("apixaban", "a + b"), None where the tables do not have it."""
    wanted = normal(text)
    parts = [part for part in re.split(r"\s\+\s", wanted) if part.strip()]
    components: list[str] = []
    for part in parts:
        found = mentions(part)
        if len(found) != 1 or squeeze(part) != squeeze(part[found[0].start : found[0].end]):
            return None
        components += found[0].drug.components
    if not components:
        return None
    return combination(components) if len(components) > 1 else Drug((components[0],))


@cache
def _classes() -> dict[str, str]:
    """Every spelling of a class -> its name."""
    named: dict[str, str] = {}
    for row in tables.rows("classes"):
        for text in (row["name"], *row["synonyms"]):
            named.setdefault(squeeze(normal(text)), row["name"])
    return named


@cache
def read_class(text: str) -> str | None:
    """The class that a declaration names, None where the tables do not have it; plurals allowed."""
    wanted = squeeze(normal(text))
    return _classes().get(wanted) or _classes().get(wanted.removesuffix("s"))


@cache
def _class_closure(name: str) -> frozenset[str]:
    parents = next((row["parents"] for row in tables.rows("classes") if row["name"] == name), ())
    return frozenset({name}).union(*(_class_closure(parent) for parent in parents))


@cache
def classes_of(ingredient: str) -> frozenset[str]:
    """Every class of an ingredient, with the classes above."""
    row = _ingredients().get(ingredient)
    if row is None:
        return frozenset()
    return frozenset().union(*(_class_closure(name) for name in row["classes"]))


@cache
def combination_classes(components: tuple[str, ...]) -> frozenset[str]:
    """Classes of a fixed combination as a whole (ARNI)."""
    row = _combinations().get(frozenset(components))
    return frozenset(row.get("classes", ())) if row else frozenset()


def combination_strengths(components: tuple[str, ...]) -> tuple[str, ...]:
    """Strengths in which a fixed combination comes ("875 mg + 125 mg"), as the table has them."""
    row = _combinations().get(frozenset(components))
    return tuple(row["strengths"]) if row else ()


def named_strength(components: tuple[str, ...], name: str) -> str | None:
    """The strength that a word in a combination's normalised name stands for (DS), None where none does."""
    row = _combinations().get(frozenset(components))
    named: dict[str, str] = row.get("named_strengths", {}) if row else {}
    return next((dose for word, dose in named.items() if re.search(rf"\b{word}\b", name)), None)


_LETTERS_AND_DIGITS = re.compile(r"[a-z0-9]+")


def class_mentions(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, class) for every drug class named in a normalised text."""
    by_word = _classes_by_first_word()
    # A class has one pattern of its own; of the hundred, only those whose first word stands in the text can match.
    candidates = {number for word in set(_LETTERS_AND_DIGITS.findall(text)) for number in by_word.get(word, ())}
    for number in sorted(candidates):
        pattern, name = _class_patterns()[number]
        for match in pattern.finditer(text):
            yield match.start(), match.end(), name


@cache
def _class_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    found = []
    for row in tables.rows("classes"):
        spellings = [re.escape(spelling) for spelling in _spellings(row)]
        found.append((re.compile(rf"(?<![a-z0-9-])(?:{'|'.join(spellings)})s?(?![a-z0-9])"), row["name"]))
    return tuple(found)


def _spellings(row: tables.Row) -> list[str]:
    return [normal(text) for text in (row["name"], *row["synonyms"])]


@cache
def _classes_by_first_word() -> dict[str, tuple[int, ...]]:
    """The word that a class's mention begins with -> the places of such classes in the table."""
    found: dict[str, set[int]] = {}
    for number, row in enumerate(tables.rows("classes")):
        for spelling in _spellings(row):
            first = _LETTERS_AND_DIGITS.findall(spelling)[0]
            # A class of one word may stand in the plural.
            for word in (first, f"{first}s") if first == spelling else (first,):
                found.setdefault(word, set()).add(number)
    return {word: tuple(sorted(numbers)) for word, numbers in found.items()}


def names_same(one: Drug, other: Drug) -> bool:
    """Whether two readings of one order name the same drug, a base and its salt counted as the same."""
    if len(one.components) != len(other.components):
        return False
    ours, theirs = set(one.components), set(other.components)
    return all(a in theirs or base_of(a) in theirs or any(base_of(b) == a for b in theirs) for a in ours)
