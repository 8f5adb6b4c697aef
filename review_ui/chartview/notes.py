"""The notes of a chart as text, newest first, and a search through them."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from html.parser import HTMLParser
from typing import Any

from review_ui.chartview.elements import When, concept, each, element, reference_display, time_of
from tasks.fhir.resources import Resource

#: The types that hold notes.
SHOWN = ("DocumentReference", "Composition")


@dataclass(frozen=True)
class Note:
    """One note. `replaces` names the notes that it corrects, addends or replaces."""

    ref: str
    title: str
    when: When | None
    author: str
    text: str
    status: str
    replaces: tuple[str, ...] = ()

    @property
    def superseded(self) -> bool:
        """Whether the record itself says that this note no longer stands."""
        return self.status in {"superseded", "entered-in-error"}


@dataclass(frozen=True)
class Found:
    """A note that holds the words: where in its text (and title) they stand, and a line around the first place."""

    note: Note
    spans: tuple[tuple[int, int], ...]
    in_title: bool
    snippet: str
    snippet_spans: tuple[tuple[int, int], ...]


class _Text(HTMLParser):
    """The text of an XHTML narrative, blocks on lines of their own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4"}:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def narrative(div: str) -> str:
    """The text of a Narrative's div."""
    reader = _Text()
    reader.feed(div)
    reader.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(reader.parts)).strip()


def attachment_text(attachment: object) -> str:
    """The text of an Attachment that holds text inline; "" for any other."""
    data = element(attachment, "data") if isinstance(attachment, dict) else None
    if not isinstance(data, str) or not isinstance(attachment, dict):
        return ""
    kind = str(attachment.get("contentType") or "text/plain").split(";")[0].strip().casefold()
    if not kind.startswith("text/") and kind not in {"application/xhtml+xml"}:
        return ""
    try:
        text = base64.b64decode(data, validate=False).decode("utf-8", errors="replace")
    except (binascii.Error, ValueError):
        return ""
    return narrative(text) if kind in {"text/html", "application/xhtml+xml"} else text


def note_title(body: Mapping[str, Any]) -> str:
    """What a note calls itself: its type, and its own description where it has one."""
    attached = next((str(t) for c in each(body.get("content")) if (t := element(c, "attachment.title"))), "")
    described = str(body.get("description") or body.get("title") or "") or attached
    return ": ".join(dict.fromkeys(filter(None, [concept(body.get("type")), described]))) or "Note"


def note(resource: Resource, zone: tzinfo) -> Note:
    """A DocumentReference or Composition as a note."""
    body = resource.body
    if resource.type == "Composition":
        text = "\n\n".join(_sections(body.get("section")))
    else:
        parts = [attachment_text(content.get("attachment")) for content in each(body.get("content"))]
        text = "\n\n".join(part for part in parts if part)
    title = note_title(body)
    authors = ", ".join(filter(None, (reference_display(author) for author in each(body.get("author")))))
    links = tuple(
        str(target)
        for relation in each(body.get("relatesTo"))
        if (target := element(relation, "target.reference")) and relation.get("code") != "signs"
    )
    status = str(body.get("status") or "")
    return Note(resource.ref, title, time_of(body, zone), authors, text, status, links)


def _sections(sections: object) -> list[str]:
    parts = []
    for section in each(sections):
        title = str(section.get("title") or concept(section.get("code")) or "")
        div = element(section, "text.div")
        words = narrative(div) if isinstance(div, str) else ""
        if title or words:
            parts.append("\n".join(filter(None, [title, html.unescape(words)])))
        parts += _sections(section.get("section"))
    return parts


def notes(resources: Iterable[Resource], *, zone: tzinfo) -> list[Note]:
    """Every note, newest first; those without a date last."""
    made = [note(resource, zone) for resource in resources]
    return sorted(made, key=lambda one: (-(one.when.start.timestamp()) if one.when else float("inf"), one.ref))


def search(every: Iterable[Note], words: str, *, around: int = 44) -> list[Found]:
    """The notes that hold `words` (one phrase; case and white space aside) in title or text, in their order.

    Empty words find every note, without spans.
    """
    parts = words.split()
    if not parts:
        return [Found(one, (), False, _line(one.text), ()) for one in every]
    pattern = re.compile(r"\s+".join(re.escape(part) for part in parts), re.IGNORECASE)
    found = []
    for one in every:
        spans = tuple(match.span() for match in pattern.finditer(one.text))
        in_title = pattern.search(one.title) is not None
        if not spans and not in_title:
            continue
        if spans:
            start = max(0, spans[0][0] - around)
            end = min(len(one.text), spans[0][1] + around)
            piece = re.sub(r"\s", " ", one.text[start:end])
            lead, tail = "…" if start else "", "…" if end < len(one.text) else ""
            at = (spans[0][0] - start + len(lead), spans[0][1] - start + len(lead))
            found.append(Found(one, spans, in_title, f"{lead}{piece}{tail}", (at,)))
        else:
            found.append(Found(one, (), True, _line(one.text), ()))
    return found


def _line(text: str, length: int = 90) -> str:
    flat = " ".join(text[: length * 3].split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
