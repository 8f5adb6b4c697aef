"""What a change looks like: unified diffs that are checked to give the committed bytes, and word marks for prose.

The diff is ours (difflib's opcodes, our text), split at \\n only; unidiff reads it back and must count the same lines,
and our own strict application of it must give the new bytes. A chart is compared resource by resource: difflib takes
seconds on thousands of alike lines.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from authoring.edits import resource_lines
from tasks.errors import WorkbenchError
from tasks.structure import chart_type

_CONTEXT = 3
#: Up to how many pairs of lines or words difflib is asked to match.
_MOST_PAIRS = 4_000_000
_NO_END = "\\ No newline at end of file"
_WORDS = re.compile(r"\s+|[\w.,%/+-]+|.", re.DOTALL)

Opcode = tuple[str, int, int, int, int]


class DiffError(WorkbenchError):
    """A diff that does not say what it should. It is never shown."""


@dataclass(frozen=True)
class FileDiff:
    """One file's difference. `old` or `new` None = the file is added or removed."""

    path: str
    old: bytes | None
    new: bytes | None
    text: str

    @property
    def counts(self) -> tuple[int, int]:
        """(lines added, lines removed)."""
        lines = self.text.split("\n")[2:]
        return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


@dataclass(frozen=True)
class Piece:
    """A run of prose in a diff."""

    kind: Literal["same", "removed", "added"]
    text: str


def diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[FileDiff, ...]:
    """The difference of two packages, a file each, in path order. Every one has been checked."""
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return tuple(file_diff(path, before.get(path), after.get(path)) for path in paths)


def file_diff(path: str, old: bytes | None, new: bytes | None) -> FileDiff:
    """The checked unified diff of one file. Raises DiffError for bytes that are not UTF-8 text."""
    try:
        a, b = _lines((old or b"").decode()), _lines((new or b"").decode())
    except UnicodeDecodeError:
        raise DiffError("only text can be compared", where=path) from None
    opcodes = _by_resource(old, new) if chart_type(path) and old and new else _opcodes(a, b)
    head = f"--- {'/dev/null' if old is None else 'a/' + path}\n+++ {'/dev/null' if new is None else 'b/' + path}\n"
    made = FileDiff(path, old, new, head + "".join(_hunk(group, a, b) for group in _grouped(opcodes)))
    check(made)
    return made


def check(made: FileDiff) -> None:
    """Raise DiffError unless the diff, applied to its base, gives exactly the new bytes, and unidiff counts alike."""
    if apply_diff(made.text, made.old or b"") != (made.new or b""):
        raise DiffError("the diff does not give the new text", where=made.path)
    if "\n@@" not in made.text:
        return
    try:
        patched = PatchSet.from_string(made.text)
    except UnidiffParseError as fault:
        raise DiffError(f"the diff cannot be read back: {fault}", where=made.path) from None
    counted = (sum(file.added for file in patched), sum(file.removed for file in patched))
    if counted != made.counts or len(patched) != 1:
        raise DiffError(f"the diff reads back as {counted}, not {made.counts}", where=made.path)


def apply_diff(text: str, old: bytes) -> bytes:
    """A unified diff applied strictly: every context and removed line must stand exactly where the hunk says.

    Raises DiffError where one does not.
    """
    source = _lines(old.decode())
    out: list[str] = []
    at = 0
    lines = text.split("\n")[2:]
    for number, line in enumerate(lines):
        if line.startswith("@@"):
            start = _hunk_start(line)
            out += source[at:start]
            at = start
        elif line[:1] in (" ", "-", "+"):
            ended = number + 1 < len(lines) and lines[number + 1] == _NO_END
            content = line[1:] + ("" if ended else "\n")
            if line[0] != "+":
                if at >= len(source) or source[at] != content:
                    raise DiffError(f"line {at + 1} is not what the diff says")
                at += 1
            if line[0] != "-":
                out.append(content)
    return "".join(out + source[at:]).encode()


def words(old: str, new: str) -> tuple[Piece, ...]:
    """The difference of two passages word by word, for reading. Long ones are matched line by line first."""
    pieces: list[Piece] = []
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    if len(a) * len(b) > _MOST_PAIRS:
        for tag, i1, i2, j1, j2 in _opcodes(lines_a := _lines(old), lines_b := _lines(new)):
            was, now = "".join(lines_a[i1:i2]), "".join(lines_b[j1:j2])
            pieces += [Piece("same", was)] if tag == "equal" else _pieces(_WORDS.findall(was), _WORDS.findall(now))
    else:
        pieces += _pieces(a, b)
    joined: list[Piece] = []
    for one in pieces:
        if joined and joined[-1].kind == one.kind:
            joined[-1] = Piece(one.kind, joined[-1].text + one.text)
        else:
            joined.append(one)
    return tuple(joined)


def _pieces(a: Sequence[str], b: Sequence[str]) -> list[Piece]:
    pieces: list[Piece] = []
    for tag, i1, i2, j1, j2 in _opcodes(a, b):
        if tag == "equal":
            pieces.append(Piece("same", "".join(a[i1:i2])))
            continue
        if i1 < i2:
            pieces.append(Piece("removed", "".join(a[i1:i2])))
        if j1 < j2:
            pieces.append(Piece("added", "".join(b[j1:j2])))
    return pieces


def only_white_space(old: bytes | None, new: bytes | None) -> bool:
    """Whether a change touches nothing but white space outside JSON text; only such changes may be approved in bulk."""
    if old is None or new is None:
        return False
    return old != new and old.split() == new.split() and b'"' not in old + new


def _lines(text: str) -> list[str]:
    """Lines with their ends, cut at \\n only: U+2028, \\x0b and their kind are text."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _opcodes(a: Sequence[str], b: Sequence[str]) -> list[Opcode]:
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(inner_a) * len(inner_b) > _MOST_PAIRS:
        # difflib takes seconds to minutes on this.
        found = _anchored(inner_a, inner_b)
    else:
        found = list(difflib.SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_opcodes())
    moved = [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in found]
    first = [("equal", 0, start, 0, start)] if start else []
    last = [("equal", len(a) - end, len(a), len(b) - end, len(b))] if end else []
    return _merged([*first, *moved, *last])


def _anchored(a: Sequence[str], b: Sequence[str]) -> list[Opcode]:
    """Opcodes between lines that stand once on either side, in the longest order that both share (patience diff).

    Where there is none, one whole replacement: as true, only longer to read.
    """
    count_a, count_b = Counter(a), Counter(b)
    place_b = {line: place for place, line in enumerate(b) if count_b[line] == 1}
    pairs = [(i, place_b[line]) for i, line in enumerate(a) if count_a[line] == 1 and line in place_b]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(place)
            last.append(number)
        else:
            ends[at], last[at] = place, number
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    if not chain:
        return [("replace", 0, len(a), 0, len(b))]
    out: list[Opcode] = []
    i = j = 0
    for next_i, next_j in [*reversed(chain), (len(a), len(b))]:
        if i < next_i or j < next_j:
            inner = _opcodes(a[i:next_i], b[j:next_j])
            out += [(tag, i1 + i, i2 + i, j1 + j, j2 + j) for tag, i1, i2, j1, j2 in inner]
        if next_i < len(a) or next_j < len(b):
            out.append(("equal", next_i, next_i + 1, next_j, next_j + 1))
        i, j = next_i + 1, next_j + 1
    return _merged(out)


def _by_resource(old: bytes, new: bytes) -> list[Opcode]:
    """Opcodes of two chart files: resources are matched by id, which both files are sorted by."""
    a, b = list(resource_lines(old).items()), list(resource_lines(new).items())
    if [id for id, _ in a] != sorted(id for id, _ in a) or [id for id, _ in b] != sorted(id for id, _ in b):
        return _opcodes(_lines(old.decode()), _lines(new.decode()))
    out: list[Opcode] = []
    i = j = 0
    while i < len(a) or j < len(b):
        if j == len(b) or (i < len(a) and a[i][0] < b[j][0]):
            out.append(("delete", i, i + 1, j, j))
            i += 1
        elif i == len(a) or b[j][0] < a[i][0]:
            out.append(("insert", i, i, j, j + 1))
            j += 1
        else:
            same = a[i][1] == b[j][1]
            out.append(("equal" if same else "replace", i, i + 1, j, j + 1))
            i, j = i + 1, j + 1
    return _merged(out)


def _merged(opcodes: Iterable[Opcode]) -> list[Opcode]:
    out: list[Opcode] = []
    for tag, i1, i2, j1, j2 in opcodes:
        if out and out[-1][0] == tag:
            out[-1] = (tag, out[-1][1], i2, out[-1][3], j2)
        else:
            out.append((tag, i1, i2, j1, j2))
    return out


def _grouped(opcodes: list[Opcode]) -> list[list[Opcode]]:
    """Opcodes in hunks: runs of equal lines longer than twice the context part them."""
    groups: list[list[Opcode]] = []
    group: list[Opcode] = []
    for place, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        first, last = place == 0, place == len(opcodes) - 1
        if group and i2 - i1 > 2 * _CONTEXT and not last:
            group.append(("equal", i1, i1 + _CONTEXT, j1, j1 + _CONTEXT))
            groups.append(group)
            group = [("equal", i2 - _CONTEXT, i2, j2 - _CONTEXT, j2)]
            continue
        low = max(i1, i2 - _CONTEXT) if first else i1
        high = min(i2, i1 + _CONTEXT) if last and not first else i2
        group.append(("equal", low, high, j1 + low - i1, j1 + high - i1))
    groups.append(group)
    return [one for one in groups if any(tag != "equal" for tag, *_ in one)]


def _hunk(group: list[Opcode], a: Sequence[str], b: Sequence[str]) -> str:
    i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
    out = [f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@\n"]
    for tag, a1, a2, b1, b2 in group:
        if tag == "equal":
            out += [_marked(" ", line) for line in a[a1:a2]]
        else:
            out += [_marked("-", line) for line in a[a1:a2]]
            out += [_marked("+", line) for line in b[b1:b2]]
    return "".join(out)


def _marked(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{_NO_END}\n"


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}"


def _hunk_start(line: str) -> int:
    found = re.match(r"@@ -(\d+),(\d+) \+\d+,\d+ @@$", line)
    if not found:
        raise DiffError("a hunk has no header")
    start, count = int(found[1]), int(found[2])
    return start - 1 if count else start
