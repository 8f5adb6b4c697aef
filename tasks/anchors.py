"""Anchors: what a checkpoint rests on, as a place that can be looked up (`rests_on`, `seen`; design 4).

Observation/k-0312                          the resource
DocumentReference/n-7#"stopped warfarin"    these words in one text of the resource, an attached note included
instruction#"anticoagulation"               these words in instruction.md
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.errors import DeclarationError

if TYPE_CHECKING:
    from tasks.fhir.resources import Resource
    from tasks.package import Task

INSTRUCTION = "instruction"
_GRAMMAR = re.compile(
    r"^(?P<ref>instruction|[A-Z][A-Za-z]{1,63}/[A-Za-z0-9.-]{1,64})(?:#\"(?P<quote>.+)\")?\Z", re.DOTALL | re.ASCII
)
_TYPOGRAPHY = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " ", "\u2011": "-"})


def plain(text: str) -> str:
    """Text for comparison: white space collapsed, typographic quotes, dashes and spaces made plain."""
    return " ".join(text.translate(_TYPOGRAPHY).split())


def holds(quote: str, text: str) -> bool:
    """Whether the quoted words stand in the text: case, white space and typography aside, never inside a longer word
    or number ("5 mg" is not in "15 mg", nor "1.2" in "1.25"). An empty quotation stands nowhere."""
    wanted = plain(quote).casefold()
    if not wanted:
        return False
    before = r"(?<!\w)(?<![0-9][.,])" if wanted[0].isalnum() else ""
    after = r"(?!\w)(?![.,][0-9])" if wanted[-1].isalnum() else ""
    return re.search(before + re.escape(wanted) + after, plain(text).casefold()) is not None


@dataclass(frozen=True)
class Anchor:
    """One place. `ref` is "instruction" or Type/id; `quote` None = the whole resource."""

    ref: str
    quote: str | None = None

    @classmethod
    def parse(cls, text: str) -> Anchor:
        """Raises DeclarationError for what is not of the grammar. The text is not repeated: it can quote a chart."""
        found = _GRAMMAR.match(text)
        if not found or (found["quote"] is not None and not plain(found["quote"])):
            raise DeclarationError(
                "not something to rest on.",
                remedy='Write Type/id, Type/id#"quoted text" or instruction#"quoted text".',
            )
        if found["ref"] == INSTRUCTION and found["quote"] is None:
            raise DeclarationError("the instruction needs a quotation.", remedy='Write instruction#"quoted text".')
        return cls(found["ref"], found["quote"])

    def __str__(self) -> str:
        return self.ref if self.quote is None else f'{self.ref}#"{self.quote}"'

    @property
    def is_instruction(self) -> bool:
        """Whether it lies in instruction.md."""
        return self.ref == INSTRUCTION

    def holds(self, task: Task) -> str | None:
        """None where it can be found in the task, else why not. Opens the chart."""
        return self.missing_from(task.instruction, lambda ref: task.chart.get(ref))

    def missing_from(self, instruction: str, get: Callable[[str], Resource | None]) -> str | None:
        """None where it can be found, else why not; `get` gives the chart's resource by Type/id."""
        if self.is_instruction:
            return None if holds(self.quote or "", instruction) else "instruction.md does not say the quoted words"
        resource = get(self.ref)
        if resource is None:
            return f"{self.ref} is not in the chart"
        if self.quote is None or any(holds(self.quote, text) for text in texts(resource.body)):
            return None
        return f"{self.ref} does not say the quoted words"


def texts(body: Any) -> Iterator[str]:
    """Every text and number of a resource as a reader meets it; text attachments decoded from base64."""
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            note = attached_text(node)
            if note is not None:
                yield note
            stack.extend(value for key, value in node.items() if not (key == "data" and note is not None))
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, str):
            yield node
        elif node is not None and not isinstance(node, bool):
            yield str(node)


def attached_text(attachment: dict[str, Any]) -> str | None:
    """The text of a FHIR Attachment that holds text, decoded; None for anything else."""
    kind, data = attachment.get("contentType"), attachment.get("data")
    if not (isinstance(kind, str) and kind.startswith("text/") and isinstance(data, str)):
        return None
    try:
        return base64.b64decode(data, validate=False).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
