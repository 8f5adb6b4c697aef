"""What a task still lacks for a release, in words of those who read tasks and not their files.

`tasks.checking.missing_for_release` names files and keys, as a shell needs it; here each of its sentences becomes the
part of the task that is missing and where it is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class MissingPart:
    """A part of the task that is missing, and where, or by whom, it is added."""

    part: str
    where: str


_BY_HAND = "Propose it by hand: page Proposals, under “Instruction”."
_AUTHOR = "The author adds it; no page changes it."
_CONTEXT = {
    "practitioner": "Which clinician the agent acts for is not stated",
    "now": "The date and time at which the case plays are not stated",
    "authority": "Whether the agent orders, prepares orders or only recommends is not stated",
}
_ABOUT = {"Patient": "which patient the case is about", "Practitioner": "which clinician asks"}

#: (what a sentence looks like, what it means): in the order in which a release's needs are listed.
_SAID: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], MissingPart]], ...] = tuple(
    (re.compile(pattern), means)
    for pattern, means in (
        (r"task\.toml lacks \[context\]", lambda _: MissingPart(
            "Patient, clinician, date and authority of the case are not stated", _AUTHOR)),
        (r"task\.toml lacks (practitioner|now|authority) in ", lambda found: MissingPart(_CONTEXT[found[1]], _AUTHOR)),
        (r"task\.toml lacks a \[\[deliverable", lambda _: MissingPart(
            "What the agent has to hand in (a note, a reply) is not stated", _AUTHOR)),
        (r"task\.toml lacks estimated_minutes", lambda _: MissingPart(
            "How long a review takes is not estimated", _AUTHOR)),
        (r"task\.toml lacks contamination_guid", lambda _: MissingPart(
            "The mark that tells whether a model was trained on this task is missing", _AUTHOR)),
        (r"chart/ is missing", lambda _: MissingPart("The patient's chart is missing", _AUTHOR)),
        (r"checkpoints\.toml lacks a checkpoint", lambda _: MissingPart(
            "No checkpoint is critical or required, so no answer could fail",
            "Page Proposals, under “Checkpoint”: say how critical one is. A new one is the author's to add.")),
        (r"solution/ lacks a plan", lambda _: MissingPart(
            "There is no reference plan, so nothing shows that the task can be passed", _AUTHOR)),
        (r"solution/(?P<plan>[^/]+)/actions\.jsonl lacks a write_file to (?P<file>\S+)", lambda found: MissingPart(
            f"The reference plan “{found['plan']}” does not hand in {_file(found['file'])}", _AUTHOR)),
        (r"instruction\.md lacks (?P<ref>(?P<type>Patient|Practitioner)/[^\s,]+)", lambda found: MissingPart(
            f"The instruction does not tell the agent {_ABOUT[found['type']]}: write “{found['ref']}”", _BY_HAND)),
        (r"instruction\.md lacks (?P<file>\S+?),", lambda found: MissingPart(
            f"The instruction does not tell the agent what to hand in: write “{found['file']}”", _BY_HAND)),
        (r"CHANGELOG\.md lacks an entry '## (?P<version>[^']+)'", lambda found: MissingPart(
            f"What is new in version {found['version']} is not written down",
            "It is written when accepted changes are applied; for a first version the author adds it.")),
    )
)  # fmt: skip


def _file(path: str) -> str:
    """ "/workspace/output/reply.md" -> "the file reply.md"."""
    return f"the file {path.rsplit('/', 1)[-1]}"


def by_place(sentences: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Where, or by whom, to add it -> the parts that are missing there."""
    found: dict[str, tuple[str, ...]] = {}
    for one in in_words(sentences):
        found[one.where] = (*found.get(one.where, ()), one.part)
    return found


def in_words(sentences: Iterable[str]) -> tuple[MissingPart, ...]:
    """Each sentence of `missing_for_release` in plain words; one that is not known here stays as it is."""
    return tuple(_said(one) for one in sentences)


def _said(sentence: str) -> MissingPart:
    for pattern, means in _SAID:
        if found := pattern.match(sentence):
            return means(found)
    return MissingPart(sentence, _AUTHOR)
