"""What a change of the chart means, beside it: fields with both units, what follows from them and whether that decides
anything otherwise, and texts of the record that still say the old value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from authoring.bearing import Bearing, Value, bearing, changed_chart, values_of
from authoring.clinical import Row
from authoring.contradictions import WRITTEN, Contradiction, Text, texts_of
from authoring.diffs import Piece
from authoring.edits import unit_bytes
from authoring.proposals import parse_proposal, path_in_package
from authoring.thresholds import Line, derived, range_words
from authoring.unfounded import Results, Unfounded, brought, results_of, unfounded
from authoring.views import ChangeView
from graders.analytes import unit_words
from review_ui import frame, theme
from review_ui.chartview import ChartView
from review_ui.chartview.facts import CREATININE, DIASTOLIC, HEIGHT, PRESSURE, PULSE, SYSTOLIC, WEIGHT
from review_ui.kept import kept
from review_ui.markup import Markup, highlighted, join, tag
from review_ui.reviewing import effects
from review_ui.reviewing.findings_view import titles
from review_ui.reviewing.sitting import Sitting
from tasks.anchors import INSTRUCTION, texts
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource
from tasks.review.state import ChangeState
from tasks.structure import chart_type

_ABSENT = "not there"
_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})\S*)?")
#: Fields whose time must lie before the task's clock.
_HAPPENED = re.compile(r"/(effective|issued|authoredOn|recordedDate|onset|performed|sent|date$|period/start)")
#: What stands in a resource that a fact at the clock may come from; reading a chart's facts takes a tenth of a second.
_BEHIND_FACTS = tuple(
    f'"{word}"'.encode()
    for word in ("Patient", "AllergyIntolerance", *CREATININE, *WEIGHT, *HEIGHT, *PRESSURE, SYSTOLIC, DIASTOLIC, PULSE)
)
#: Texts that are quoted below the chips; the rest is counted.
_QUOTED = 4


def about_chart(change: ChangeState) -> bool:
    """Whether it changes one resource of the chart."""
    return change.ref.unit.startswith("chart/") and "#" in change.ref.unit


# ---- fields ---------------------------------------------------------------------------------------------------------


@kept(256)
def _lines(task_id: str, package: str, change: str, _unit: str, _view: ChangeView) -> tuple[bytes | None, bytes | None]:
    """The resource's JSON line before and after."""
    path = _unit.partition("#")[0]
    mine = [diff for diff in _view.diffs if diff.path == path]
    sides = (mine[0].old, mine[0].new) if mine else (None, None)
    was, now = (unit_bytes({path: side}, _unit) if side is not None else None for side in sides)
    return was, now


@kept(256)
def _values(task_id: str, package: str, change: str, _unit: str, _view: ChangeView) -> Mapping[str, Value]:
    return values_of(*_lines(task_id, package, change, _unit, _view), [row.path for row in _view.rows])


def fields(at: Sitting, change: ChangeState, view: ChangeView) -> Markup:
    """The changed fields: now and proposed beside each other, a value in both its usual units, its reference range."""
    if not view.rows:
        return tag("p", "No field in clinical words; see below.", cls="sm mute pad")
    chart = about_chart(change)
    values = _values(at.at.task_id, at.at.package, change.ref.change, change.ref.unit, view) if chart else {}
    heads = (
        ["Field", "− Now in the chart", "+ Proposed", "Reference range"] if chart else ["Field", "− Now", "+ Proposed"]
    )
    context = at.task.meta.context
    # The measured value first: it is what the rest is about.
    order = sorted(view.rows, key=lambda row: row.path not in values)
    rows = [_row(row, values.get(row.path), context.now if context else None, ranged=chart) for row in order]
    return tag(
        "table",
        tag("thead", tag("tr", join(tag("th", head, scope="col") for head in heads))),
        tag("tbody", join(rows)),
        cls="grid field-diff",
    )


def _row(row: Row, value: Value | None, clock: datetime | None, *, ranged: bool) -> Markup:
    old, new = spoken(row.old, row.new)
    if row.prose:
        was: Markup = marked([one for one in row.prose if one.kind != "added"])
        now: Markup = marked([one for one in row.prose if one.kind != "removed"])
    else:
        second = value.second if value else ("", "")
        same_unit = value is not None and value.old is not None and value.new is not None and (
            value.old.unit == value.new.unit)  # fmt: skip
        was = _cell(old, "del", second[0], number_only=same_unit)
        now = _cell(new, "ins", second[1], number_only=same_unit)
    beside = None
    if ranged:
        beside = tag("td", _range(value) if value else against_clock(row, clock) or row.range)
    return tag("tr", tag("th", row.field, scope="row", title=row.path), tag("td", was, cls="was"),
               tag("td", now, cls="now"), beside)  # fmt: skip


def marked(every: Sequence[Piece]) -> Markup:
    """Words, the changed ones marked."""
    marks = {"removed": "del", "added": "ins"}
    return join(tag(marks[one.kind], one.text) if one.kind in marks else one.text for one in every)


def _cell(text: str, mark: str, second: str = "", *, number_only: bool = False) -> Markup:
    if text == _ABSENT:
        return tag("span", "none", cls="mute")
    number, space, unit = text.partition(" ")
    shown = join((tag(mark, number), f"{space}{unit_words(unit)}")) if number_only else tag(mark, text)
    return join((shown, tag("span", f" ({second})", cls="mute") if second else None))


def _range(value: Value) -> Markup | None:
    """The range in force and on which side of it the new value lies."""
    known = value.new or value.old
    if known is None or (known.low is None and known.high is None):
        return None
    chip = {
        "high": theme.chip("high", "orange", "arrow_drop_up"),
        "low": theme.chip("low", "orange", "arrow_drop_down"),
        "in": theme.chip("within", "green", "check"),
    }.get(known.side if value.new else "")
    return join((range_words(known), " ", chip))


def spoken(old: str, new: str) -> tuple[str, str]:
    """Times as people write them, where both sides still differ then."""
    found = [_TIME.fullmatch(one) for one in (old, new)]
    if not any(found):
        return old, new
    timed = any(one is not None and one[4] for one in found)
    said = []
    for text, one in zip((old, new), found, strict=True):
        if one is None:
            said.append(text)
            continue
        try:
            day = f"{datetime(int(one[1]), int(one[2]), int(one[3])):%-d %b %Y}"  # noqa: DTZ001
        except ValueError:
            return old, new
        said.append(f"{day}, {one[4]}:{one[5]}" if one[4] else f"date only, {day}" if timed else day)
    return (said[0], said[1]) if said[0] != said[1] else (old, new)


def against_clock(row: Row, clock: datetime | None) -> Markup | None:
    """On which side of the task's clock the proposed time of something that happened lies; None for other fields."""
    found = _TIME.fullmatch(row.new)
    if clock is None or found is None or not _HAPPENED.search(row.path):
        return None
    try:
        at = datetime.fromisoformat(row.new)
    except ValueError:
        return None
    after = at > clock if at.tzinfo else at.date() > clock.date()
    if after:
        return theme.chip("after the clock", "red", "schedule")
    return tag("span", "before the clock", cls="mute")


# ---- what follows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """What the change bears on, and the facts at the clock that it alters."""

    bearing: Bearing
    facts: tuple[Line, ...]


@kept(32)
def _written(task_id: str, package: str, _at: Sitting) -> tuple[Text, ...]:
    return texts_of(_at.task, _at.task.chart)


def _same_task(files: Mapping[str, bytes], others: Mapping[str, bytes]) -> bool:
    """Whether two packages hold the same task, whatever was reviewed on it."""
    sides = ({path: data for path, data in one.items() if not path.startswith("reviews/")} for one in (files, others))
    return next(sides) == next(sides)


@kept(256)
def _known(task_id: str, package: str, change: str, _at: Sitting, _unit: str, _view: ChangeView) -> Known | None:
    called = {id: words.partition(":")[0] for id, words in titles(_at.task).items()}
    try:
        before, after = effects.packages(_at.at.task_id, _view)
        if as_it_stands := _same_task(_at.at.files, before.files):
            before = _at.task  # the same bytes, and its chart is indexed already
        lines = _lines(task_id, package, change, _unit, _view)
        chart = changed_chart(before, after, lines[1])
        written = _written(task_id, package, _at)
        bears = bearing(before, after, chart, lines, [row.path for row in _view.rows], called, written)
        context = after.meta.context
        if context is None or not any(mark in side for side in lines if side for mark in _BEHIND_FACTS):
            return Known(bears, ())
        views = (
            _at.at.chart if as_it_stands else ChartView(before.chart, context.patient, context.now),
            ChartView(chart, context.patient, context.now),
        )
        was, now = ({fact.name: fact.value for fact in view.facts} for view in views)
    except WorkbenchError:
        return None
    facts = [
        derived(name, value, now.get(name, "none"), after.checkpoints, called)
        for name, value in was.items()
        if now.get(name) != value
    ]
    return Known(bears, tuple(facts))


def _of(at: Sitting, change: ChangeState, view: ChangeView) -> Known | None:
    if not about_chart(change):
        return None
    return _known(at.at.task_id, at.at.package, change.ref.change, at, change.ref.unit, view)


def follows(at: Sitting, change: ChangeState, view: ChangeView) -> Markup | None:
    """The lines that decide about the value, and what is computed from it: before, after, "Decision changes?"."""
    known = _of(at, change, view)
    if known is None:
        return None
    # A value that no checkpoint names a threshold for is said to be so, not guessed at.
    unnamed = [
        Line(f"Threshold for {name}", "", "", "no threshold named", crossed=False) for name in known.bearing.unnamed
    ]
    lines = [*known.bearing.lines, *unnamed, *known.facts, *known.bearing.answers]
    if not lines:
        words = "Nothing computed at the clock changes with it: eGFR, clearance, weight, pressure, allergies."
        return tag("p", words, cls="sm mute pad")
    heads = ("Follows from it", "Before", "After", "Decision changes?")
    rows = [
        tag(
            "tr",
            tag("th", one.what, scope="row"),
            tag("td", one.before),
            tag("td", one.after),
            tag("td", theme.chip(one.answer, "orange", "priority_high") if one.crossed else one.answer),
        )
        for one in lines
    ]
    return tag(
        "table",
        tag("thead", tag("tr", join(tag("th", head, scope="col") for head in heads))),
        tag("tbody", join(rows)),
        cls="grid field-diff follows",
    )


# ---- texts that contradict ------------------------------------------------------------------------------------------


def chips(at: Sitting, change: ChangeState, view: ChangeView) -> list[Markup]:
    """Whether the resource is valid R4, and each text that still says the old value, as a door to it."""
    known = _of(at, change, view)
    if known is None:
        return []
    n = len(known.bearing.faults)
    valid = (
        theme.chip(f"{n} fault{'s' if n > 1 else ''} in FHIR R4", "red", "error")
        if n
        else theme.chip("Valid R4", "green", "check_circle")
    )
    units = [
        theme.chip(f"The unit says {unit}, its code {code}: grading reads the code", "red", "error")
        for unit, code in known.bearing.units
    ]
    found = known.bearing.contradictions
    out = [valid, *units, *(_door(at, one, _chip(at, change, one)) for one in found[:_QUOTED])]
    if len(found) > _QUOTED:
        out.append(theme.chip(f"{len(found) - _QUOTED} more texts say so", "red", "error"))
    return out


def _chip(at: Sitting, change: ChangeState, one: Contradiction) -> Markup:
    still = f"{one.what} {'still says' if not one.maybe else 'says'} {one.says}"
    if one.maybe:
        return theme.chip(f"{still}, perhaps {one.maybe}", "plain", "help")
    if _rewords(at, change, one.ref):
        return theme.chip(f"{still}; another change rewords it", "orange", "edit_note")
    return theme.chip(still, "red", "error")


def _rewords(at: Sitting, change: ChangeState, ref: str) -> bool:
    """Whether another change that is up touches the text."""
    units = units_of(ref)
    return any(one.ref.unit in units for one in at.state.live_changes if one.ref.change != change.ref.change)


def units_of(ref: str) -> tuple[str, ...]:
    """The units of edits that reword a text (`Text.ref`)."""
    if ref == INSTRUCTION:
        return ("instruction.md",)
    if ref == "task.toml":  # the title
        return ("task.toml", "task.toml#title")
    if ref.startswith("solution/"):
        return (ref,)
    type, _, id = ref.partition("/")
    return (f"chart/{type}.ndjson#{id}",)


def _door(at: Sitting, one: Contradiction, words: Markup) -> Markup:
    """The words as a link to where the text stands; as they are where no page shows it."""
    view = {INSTRUCTION: "Checkpoints", "task.toml": ""}.get(one.ref, "Every resource")
    if one.ref.startswith("solution/"):
        view = "Reference plans"
    if not view:
        return words
    place = {"at": one.ref, "quote": one.sentence[:200]} if view != "Reference plans" else {}
    return tag("a", words, href=frame.link("task", id=at.at.task_id, view=view, **place), cls="door")


# ---- values that a text brings in -----------------------------------------------------------------------------------


@kept(8)
def _results(task_id: str, package: str, _at: Sitting) -> Results:
    context = _at.task.meta.context
    return results_of(_at.task.chart, context.now.date() if context and context.now else None)


@kept(256)
def _unfounded(
    task_id: str, package: str, change: str, standing: str, _at: Sitting, _unit: str, _view: ChangeView
) -> tuple[Unfounded, ...]:
    try:
        old, new = text_sides(_unit, _lines(task_id, package, change, _unit, _view), _view)
        if not new:
            return ()
        path, _, id = _unit.partition("#")
        itself = f"{chart_type(path)}/{id}"
        notes = [one.words for one in _written(task_id, package, _at) if one.day and one.ref != itself]
        others = {one.proposal: one for one in _at.state.live_changes if one.ref.change != change}
        edits = [
            one.edit
            for proposal in others
            for one in parse_proposal(_at.at.files.get(path_in_package(proposal), b""), where=proposal).edits
        ]
        return tuple(unfounded(old, new, _results(task_id, package, _at), notes, brought(edits)))
    except (WorkbenchError, ValueError):
        return ()


def text_sides(unit: str, lines: tuple[bytes | None, bytes | None], view: ChangeView) -> tuple[str, str]:
    """What a change makes of a text that people read: a note (`lines`: as JSON), the instruction, a plan's text, the
    title; "" for others."""
    path, _, inner = unit.partition("#")
    if chart_type(path) in WRITTEN and inner:
        sides = [Resource.parse(one.decode()).body if one else {} for one in lines]
        return "\n".join(texts(sides[0])), "\n".join(texts(sides[1]))
    if unit == "task.toml#title":
        return view.rows[0].old, view.rows[0].new
    mine = [diff for diff in view.diffs if diff.path == path and path.endswith((".md", ".txt"))]
    return ((mine[0].old or b"").decode(), (mine[0].new or b"").decode()) if mine else ("", "")


def strange(at: Sitting, change: ChangeState, view: ChangeView) -> list[Markup]:
    """Each value that the changed text states and no result of the chart has."""
    standing = " ".join(one.ref.change for one in at.state.live_changes)
    found = _unfounded(at.at.task_id, at.at.package, change.ref.change, standing, at, change.ref.unit, view)
    return [
        theme.chip(f"Says {one.says}: no result of the chart does, the latest is {one.latest}", "orange", "help")
        for one in found[:_QUOTED]
    ]


def quotes(at: Sitting, change: ChangeState, view: ChangeView) -> Markup | None:
    """The sentences that still give the old value, the value marked."""
    known = _of(at, change, view)
    found = known.bearing.contradictions[:_QUOTED] if known else ()
    if not found:
        return None
    rows = [tag("p", tag("span", f"{one.what}: ", cls="mute"), "“", _quoted(one), "”", cls="sm") for one in found]
    return tag("div", join(rows), cls="quotes")


def _quoted(one: Contradiction) -> Markup:
    number = re.escape(one.says.split()[0])
    spans = [match.span() for match in re.finditer(rf"(?<![\w.,]){number}(?!\d|[.,]\d)", one.sentence, re.IGNORECASE)]
    start = max(0, spans[0][0] - 160) if spans else 0
    shown = one.sentence[start : start + 320]
    marks = [(a - start, b - start) for a, b in spans]
    return join(("…" if start else None, highlighted(shown, marks),
                 "…" if start + 320 < len(one.sentence) else None))  # fmt: skip
