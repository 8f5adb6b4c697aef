"""What an order, or a sentence of a message or note, comes to once it is read: a candidate for a row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from graders.orders.drugs import Drug
from graders.orders.durations import Span
from graders.orders.negation import Mood
from graders.orders.regimen import Regimen
from graders.orders.text import normal

State = Literal["active", "draft", "sent", "stated", "dead"]
URGENCIES = ("routine", "urgent", "asap", "stat")


@dataclass(frozen=True)
class Candidate:
    """One thing ordered or recommended, as read. `problems` are contradictions: none of its rows can match."""

    reference: str
    type: str
    state: State
    why_dead: str = ""
    patient: str = ""
    mood: Mood = "recommended"
    timed: bool = False
    drug: Drug | None = None
    drug_class: str = ""
    regimen: Regimen = field(default_factory=Regimen)
    tests: tuple[str, ...] = ()
    modalities: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()
    contrast: str = ""
    laterality: str = ""
    referrals: tuple[str, ...] = ()
    words: str = ""
    codes: frozenset[str] = frozenset()
    urgency: str = "routine"
    spans: tuple[Span, ...] = ()
    reasons: str = ""
    reason_codes: frozenset[str] = frozenset()
    said: str = ""
    prior: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    whole: bool = False

    @property
    def is_order(self) -> bool:
        """A resource that orders, not a sentence of a message or note."""
        return self.type in ("MedicationRequest", "ServiceRequest", "Appointment")

    @property
    def live(self) -> bool:
        """Active or draft, and not taken back in its own words."""
        return self.state in ("active", "draft") and self.mood != "denied"


def bare_reference(text: str) -> str:
    """`Type/id` of a relative or absolute reference, without its version."""
    parts = text.split("/_history/")[0].rstrip("/").split("/")
    return "/".join(parts[-2:]) if len(parts) >= 2 else text


_STAT = re.compile(
    r"\bstat\b(?! status)|\bemergent(?:ly)?\b|\b(?:ed|emergency department|emergency"
    r" room|er) (?:now|immediately|right away)\b|\bimmediately\b|\bcall 911\b"
    r"|\bemergency (?!department|room|medicine|contact|kit|visit|dept)"
)
_ASAP = re.compile(r"\basap\b|\bas soon as possible\b|\ba\.s\.a\.p\b")
_URGENT = re.compile(
    r"(?<!non-)(?<!not )(?<!non )\burgent(?:ly)?\b(?! care)|\bsame[- ]day\b"
    r"|\bexpedit\w+|\bwithin (?:the next )?(?:24|48|24 ?(?:-|to) ?48|1|2|1 ?(?:-|to)"
    r" ?2|12|36|one|two) ?-?(?:h|hrs?|hours?|days?)\b(?! (?:of|after|post))"
    r"|(?<!seen )(?<!drawn )(?<!labs )(?<!from )(?<!reviewed )(?<!visit )(?<!results )\b(?:today|tonight)\b(?!'s)"
)


def urgency_of(priority: str, text: str) -> str:
    """The higher of a resource's priority and what its words say; routine is every tool's silent default."""
    words = normal(text)
    said = (
        "stat"
        if _STAT.search(words)
        else "asap"
        if _ASAP.search(words)
        else "urgent"
        if _URGENT.search(words)
        else "routine"
    )
    own = priority if priority in URGENCIES else "routine"
    return max(said, own, key=URGENCIES.index)
