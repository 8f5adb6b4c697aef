"""Where a finding's quoted words stand now: an anchor survives edits around it, and says so when its words are gone."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.review.events import TextAnchor

#: Characters of context on each side that an anchor keeps.
CONTEXT = 40


@dataclass(frozen=True)
class Place:
    """A span of a text, in characters."""

    start: int
    end: int


def anchor(path: str, text: str, start: int, end: int) -> TextAnchor:
    """An anchor for a span of a text. Raises ValueError for an empty span or one outside the text."""
    if not 0 <= start < end <= len(text):
        raise ValueError("select some text")
    return TextAnchor(
        path=path,
        quote=text[start:end],
        before=text[max(0, start - CONTEXT) : start],
        after=text[end : end + CONTEXT],
    )


def locate(anchor: TextAnchor, text: str) -> Place | None:
    """Where the anchor's words stand in the text now, or None where they are gone.

    Among several places the one whose surroundings agree longest with those that the anchor kept is taken; the quoted
    words themselves are never guessed at.
    """
    best: tuple[int, Place] | None = None
    start = text.find(anchor.quote)
    while start >= 0:
        end = start + len(anchor.quote)
        agreed = _common_end(text[:start], anchor.before) + _common_start(text[end:], anchor.after)
        if best is None or agreed > best[0]:
            best = (agreed, Place(start, end))
        start = text.find(anchor.quote, start + 1)
    return best[1] if best else None


def _common_start(text: str, wanted: str) -> int:
    count = 0
    for one, other in zip(text, wanted, strict=False):
        if one != other:
            break
        count += 1
    return count


def _common_end(text: str, wanted: str) -> int:
    return _common_start(text[-len(wanted) :][::-1] if wanted else "", wanted[::-1])
