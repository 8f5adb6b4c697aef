"""Hybrid checkpoints: a value computed from the chart against the value that the agent wrote, in one unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from re import _parser  # type: ignore[attr-defined]  # the one way to look at a pattern without running it
from typing import Any, Literal, NamedTuple

from graders import truths
from graders.evidence import Evidence
from graders.lab_units import convert
from graders.verdicts import AnyCite, Truth
from tasks.declarations import Checkpoint
from tasks.errors import DeclarationError
from tasks.trials import QuoteCite

_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")


class ValueJudgement(NamedTuple):
    """pass, fail, or ungraded where the text gives several values of which only some are right."""

    result: Literal["pass", "fail", "ungraded"]
    reason: str
    cites: tuple[AnyCite, ...] = ()


class Stated(NamedTuple):
    """A value that the agent wrote, in the unit of comparison."""

    value: Decimal
    quote: QuoteCite


class Expected(NamedTuple):
    """What the agent should have written: the truth in the unit of comparison."""

    value: Decimal
    unit: str
    analyte: str
    cites: tuple[AnyCite, ...]


def agent_value(checkpoint: Checkpoint, evidence: Evidence, truth: Truth | None = None) -> Expected:
    """The value that a hybrid checkpoint expects, by `truth` or the built-in one that it names."""
    if checkpoint.truth is None:
        raise DeclarationError("a hybrid checkpoint needs truth", where=checkpoint.id)
    truth = truth or truths.compute(checkpoint.truth, evidence)
    unit = checkpoint.unit or truth.unit
    analyte = truths.analyte_of(checkpoint.truth)
    return Expected(convert(Decimal(str(truth.value)), truth.unit, unit, analyte), unit, analyte, truth.cites)


def judge_value(
    checkpoint: Checkpoint,
    evidence: Evidence,
    truth: Truth | None = None,
    written: Sequence[tuple[str, str, str]] | None = None,
) -> ValueJudgement:
    """Whether the value that was written agrees with `truth` (by default the built-in one that is named).

    The value is found by the pattern: its group `value`, else its first group, else all of it, is the number; a group
    `unit` gives the unit that the agent wrote, otherwise it is read in the checkpoint's unit. `written` are (words,
    number, unit) that a model read instead. `tolerance` is absolute, in the checkpoint's unit.
    """
    if checkpoint.extract is None or (checkpoint.extract.pattern is None and written is None):
        raise DeclarationError("a hybrid checkpoint needs truth and a pattern", where=checkpoint.id)
    text = evidence.text(checkpoint.extract.file)
    if text is None:
        return ValueJudgement("fail", f"{checkpoint.extract.file} was not written.")
    wanted, unit, analyte, sources = agent_value(checkpoint, evidence, truth)
    tolerance = Decimal(str(checkpoint.tolerance or 0))
    found = _found(checkpoint.extract.pattern, text) if written is None else written
    stated = _stated(found, checkpoint.extract.file, unit, analyte)
    right = [one for one in stated if abs(one.value - wanted) <= tolerance]
    cites = (*(one.quote for one in stated), *sources)
    expected = _quantity(wanted, unit)
    if not stated:
        return ValueJudgement("fail", f"No value was found in {checkpoint.extract.file}; expected {expected}.", cites)
    said = ", ".join(dict.fromkeys(_quantity(one.value, unit) for one in stated))
    if len(right) == len(stated):
        return ValueJudgement("pass", f"States {said}; the chart gives {expected}.", cites)
    if not right:
        return ValueJudgement("fail", f"States {said}; the chart gives {expected}.", cites)
    reason = f"ungraded: needs review: the text states {said}, of which not all agree with {expected}"
    return ValueJudgement("ungraded", reason, cites)


def _found(pattern: str | None, text: str) -> Iterator[tuple[str, str, str]]:
    """(words, number, unit) wherever the pattern matches."""
    for match in compiled(pattern or "").finditer(text):
        groups = match.groupdict()
        written = groups.get("value") or (match.group(1) if match.re.groups else match.group(0)) or ""
        yield match.group(0), written, (groups.get("unit") or "").strip()


def _stated(written_values: Iterable[tuple[str, str, str]], file: str, unit: str, analyte: str) -> list[Stated]:
    found = []
    for words, written, given in written_values:
        number = _NUMBER.fullmatch(written.strip())
        if not number or not number.group(0):
            continue
        try:
            value = Decimal(number.group(0).replace(",", ""))
        except InvalidOperation:
            continue
        found.append(Stated(convert(value, given, unit, analyte) if given else value, QuoteCite(file=file, text=words)))
    return found


def _quantity(value: Decimal, unit: str) -> str:
    rounded = value if value == value.to_integral_value() else value.quantize(Decimal("0.01"))
    return f"{rounded.normalize():f} {unit}".strip()


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, case ignored. DeclarationError where it is not one, or could run without end on some text."""
    try:
        tree = _parser.parse(pattern)
        if _nests(tree, inside=False):
            raise DeclarationError(
                "the pattern repeats a repetition and could run without end",
                remedy="Write a repetition with a limit, such as {0,40}, inside another.",
            )
        return re.compile(pattern, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError):
        raise DeclarationError("the pattern is not a regular expression", remedy="Correct extract.pattern.") from None


def _nests(node: Any, *, inside: bool) -> bool:
    """Whether an unlimited repetition stands inside another one."""
    if isinstance(node, _parser.SubPattern):
        return any(_nests(item, inside=inside) for item in node)
    if isinstance(node, tuple) and node and str(node[0]) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        _, limit, body = node[1]
        endless = limit == _parser.MAXREPEAT
        return (endless and inside) or _nests(body, inside=inside or endless)
    if isinstance(node, (tuple, list)):
        return any(_nests(item, inside=inside) for item in node)
    return False
