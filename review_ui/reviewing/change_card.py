"""One change as it is shown: whose finding it answers, what changes, what would follow, what was said before."""

from __future__ import annotations

from collections.abc import Sequence

from authoring.clinical import Raw, Row
from authoring.diffs import words
from authoring.views import ChangeView, change_view
from graders.describe import describe, zone_of
from graders.words import words_in
from review_ui import checkpoints, theme
from review_ui.chartview.words import kind_words
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import bearing_view, changes, effects, forms
from review_ui.reviewing.changes import ProseLine
from review_ui.reviewing.findings_view import finding_chips, titles
from review_ui.reviewing.sitting import Sitting, snapshot
from tasks.errors import WorkbenchError
from tasks.review.events import Decided
from tasks.review.state import ChangeState, FindingState
from tasks.structure import chart_type
from tasks.wording import counted

#: Why a change is shown with others.
READ_WITH = {
    "group": "It cannot be read by itself: what follows is told with the changes that it stands or falls with.",
    "proposal": "It cannot be read by itself: what follows is told with the other changes of its proposal. Decide on "
    "them alike.",
}


#: What a message says why a package cannot be read, and what that means.
_UNREADABLE = {
    "instruction.md does not say the quoted words": "A checkpoint quotes words that the instruction would not say.",
    "checkpoints.py has no function": "A checkpoint names code that would not be there.",
    "is not in examples/": "A checkpoint names an example order that would not be there.",
    "is no [[deliverable]]": "A checkpoint reads a file that nobody would be asked to write.",
}


def why_unreadable(fault: str) -> str:
    """In words, why a task cannot be read with a change."""
    return next((words for said, words in _UNREADABLE.items() if said in fault), fault)


@kept(256)
def _view(place: str, task_id: str, package: str, change: str, standing: str, _at: Sitting) -> ChangeView | str:
    """The change over the task as it stands; why not, where it no longer applies."""
    try:
        with _at.desk.store.at() as view:
            return change_view(snapshot(_at.at, view), change)
    except WorkbenchError as error:
        return str(error)


def view_of(at: Sitting, one: ChangeState) -> ChangeView | str:
    """The same for a change of this task."""
    # What others of its proposal still stand may be needed to read it.
    standing = " ".join(c.ref.change for c in at.state.live_changes if c.proposal == one.proposal)
    return _view(str(at.desk.store.path), at.at.task_id, at.at.package, one.ref.change, standing, at)


def place_of(at: Sitting, unit: str) -> tuple[str, str]:
    """(what it changes, which kind): a resource by what it says, where the chart has it."""
    what, kind = changes.place_words(unit, titles(at.task))
    path, _, inner = unit.partition("#")
    if (type := chart_type(path)) and (found := at.task.chart.get(f"{type}/{inner}")):
        return describe(found, zone_of(at.task)), kind
    return what, kind


def finding_card(at: Sitting, found: Sequence[FindingState]) -> Markup:
    """What was found: one's own first."""
    if not found:
        return tag("div", tag("div", "It answers no finding.", cls="sm mute"), cls="card finding-card")
    parts = []
    for number, one in enumerate(found):
        who = "Your finding" if one.by == at.me else f"Finding of {at.name(one.by)}"
        where, quote = forms.anchor_words(one.finding.anchor, titles(at.task))
        parts.append(
            tag(
                "div",
                tag(
                    "div",
                    tag(
                        "span",
                        tag("span", f"{who}, round {one.round} · {where}", cls="b"),
                        f", on “{quote}”" if quote else None,
                        cls="xs mute",
                    ),
                    finding_chips(one.finding),
                    cls="pair",
                ),
                tag("div", f"“{one.finding.text}”"),
                cls="finding-next" if number else None,
            )
        )
    if found[0].by != at.me and at.me in at.state.reviewers:
        parts.append(tag("div", "You wrote nothing about this.", cls="sm mute finding-next"))
    return tag("div", join(parts), cls="card finding-card")


def last_round(at: Sitting, change: ChangeState) -> Markup | None:
    """What was said before about this place: decisions on bytes that are no longer up, and on earlier changes of it."""
    said: list[Markup] = []
    for old in change.outdated:
        if old.actor == at.me or change.decisions.get(at.me):
            said.append(_earlier(at, old, "on the earlier wording, outdated now"))
    unit = change.ref.unit
    for other in at.state.changes.values():
        ended = other.status in ("rejected", "outdated", "applied")
        if other.ref.unit == unit and other.ref.change != change.ref.change and ended:
            said += [_earlier(at, one, f"on an earlier change of this place, {other.status}")
                     for one in other.decisions.values() if one.reason]  # fmt: skip
    if not said:
        return None
    return tag("div", tag("div", "Said before", cls="xs mute b"), join(said), cls="card")


def _earlier(at: Sitting, one: Decided, what: str) -> Markup:
    words = f"{at.name(one.actor)}, {one.decision}, {what}: "
    return tag("div", tag("span", words, cls="sm mute"), f"“{one.reason}”" if one.reason else "no comment")


def change_card(at: Sitting, change: ChangeState, view: ChangeView, below: Markup | None = None) -> Markup:
    """The change: prose with word marks, or fields in clinical words; `below` stands in the same box."""
    what, kind = place_of(at, change.ref.unit)
    if view.rows or view.raw:
        title = _titled(change, what, view.title)
        n = len(view.rows) + len(view.raw)
        said = f"{n} field{'s' if n != 1 else ''} changed" if kind == "Chart" else "plain words, from the declaration"
        return tag(
            "section",
            tag("div", tag("span", title, cls="b"), tag("span", said, cls="sm mute"), cls="diff-head"),
            sentences(view.rows) if kind == "Grader" else bearing_view.fields(at, change, view),
            raw_rows(view.raw),
            below,
            cls="diff",
        )
    parts = []
    for diff in view.diffs:
        added, removed = diff.counts
        lines = changes.prose_lines(diff)
        parts.append(
            tag(
                "div",
                tag(
                    "div",
                    tag("span", what, cls="b"),
                    tag("span", f"{removed} line{'s' if removed != 1 else ''} out, {added} in", cls="sm mute"),
                    cls="diff-head",
                ),
                tag("div", join(prose_row(line) for line in lines[:200]), cls=None if _is_prose(diff.path) else "mono"),
                tag("div", f"{len(lines) - 200} more lines: see below", cls="sm mute") if len(lines) > 200 else None,
            )
        )
    return tag("section", join(parts), cls="diff")


def _titled(change: ChangeState, what: str, title: str) -> str:
    """A resource by its kind in plain words ("Result: Creatinine …"), a checkpoint by its number and title."""
    if bearing_view.about_chart(change):
        type, colon, said = title.partition(": ")
        return f"{kind_words(type)}: {said}" if colon else title or what
    return what if not title or title in what else f"{what}: {title}"


def _is_prose(path: str) -> bool:
    return path.endswith((".md", ".txt"))


def prose_row(line: ProseLine) -> Markup:
    """One line of a prose diff: number, sign, words."""
    if line.kind == "gap":
        return tag("div", "…", cls="diff-line gap")
    sign = {"same": "", "removed": "−", "added": "+"}[line.kind]
    said = {"same": "", "removed": "removed: ", "added": "added: "}[line.kind]
    return tag(
        "div",
        tag("span", str(line.number), cls="no"),
        tag("span", sign, tag("span", said, cls="sr") if said else None, cls="sign"),
        tag("span", bearing_view.marked(line.pieces)),
        cls=f"diff-line {line.kind}",
    )


def sentences(rows: Sequence[Row]) -> Markup:
    """A checkpoint's sentences, old above new."""
    if not rows:
        return tag("p", "No field in clinical words; see below.", cls="sm mute pad")
    return join(_sentences(row) for row in rows)


def _sentences(row: Row) -> Markup:
    made = row.prose or words("" if row.old == "not there" else row.old, "" if row.new == "not there" else row.new)
    old = bearing_view.marked([p for p in made if p.kind != "added"])
    new = bearing_view.marked([p for p in made if p.kind != "removed"])
    return tag(
        "div",
        tag("div", row.field, cls="xs mute b pad"),
        tag("div", tag("span", ""), tag("span", "−", tag("span", "removed: ", cls="sr"), cls="sign"),
            tag("span", old, cls="lines"), cls="diff-line removed") if row.old != "not there" else None,
        tag("div", tag("span", ""), tag("span", "+", tag("span", "added: ", cls="sr"), cls="sign"),
            tag("span", new, cls="lines"), cls="diff-line added") if row.new != "not there" else None,
    )  # fmt: skip


def raw_rows(raw: Sequence[Raw]) -> Markup | None:
    """What changed beside the rows, as it is written: nothing is hidden."""
    if not raw:
        return None
    rows = [
        tag("tr", tag("th", one.path, scope="row"), tag("td", tag("del", one.old)), tag("td", tag("ins", one.new)))
        for one in raw
    ]
    return tag("div", tag("div", "Also changed, as written", cls="xs mute b pad"),
               tag("table", tag("tbody", join(rows)), cls="grid field-diff mono"))  # fmt: skip


# ---- consequences --------------------------------------------------------------------------------------------------


def consequence_chips(at: Sitting, change: ChangeState, view: ChangeView) -> Markup:
    """Rerun or regrade, group, weakened safety, what rests on it."""
    word = view.consequence.word
    chips = [
        theme.chip("Cannot be read by itself", "red", "error")
        if view.unreadable
        else {
            "RERUN": theme.chip("Changes what the agent reads: stored trials must be rerun", "orange", "replay"),
            "REGRADE": theme.chip("Grading only: stored trials are regraded, none rerun", "plain", "calculate"),
            "REUSE": theme.chip("Neither read nor graded: stored results hold", "green", "check_circle"),
        }[word]
    ]
    if change.ref.weakens_safety:
        chips.append(theme.chip("May weaken a safety checkpoint", "red", "warning"))
    if change.ref.group:
        members = [c for c in at.state.changes.values()
                   if c.proposal == change.proposal and c.ref.group == change.ref.group]  # fmt: skip
        others = counted(len(members) - 1, "other change")
        chips.append(theme.chip(f"Stands or falls with {others}", "plain", "link"))
    path, _, inner = change.ref.unit.partition("#")
    if bearing_view.about_chart(change):
        chips += bearing_view.chips(at, change, view)
        ref = f"{path.removeprefix('chart/').partition('.')[0]}/{inner}"
        resting = [one.id for one in at.task.checkpoints if any(fact.partition("#")[0] == ref for fact in one.rests_on)]
        if resting:
            n = len(resting)
            chips.append(theme.chip(f"{n} checkpoint{'s rest' if n > 1 else ' rests'} on it", "plain", "link"))
    chips += bearing_view.strange(at, change, view)
    return theme.chips(*chips)


def whole_checkpoint(at: Sitting, change: ChangeState, view: ChangeView) -> Markup:
    """The checkpoint that a change is of, in plain words as the change leaves it; as it stands where it is removed."""
    id = change.ref.unit.partition("#")[2]
    before, after = effects.packages(at.at.task_id, view)
    for task, said in ((after, None), (before, tag("p", "It would be removed. As it stands:", cls="b sm"))):
        for number, one in enumerate(task.checkpoints, 1):
            if one.id == id:
                words = words_in(task, one, at.task.chart)
                facts = [tag("span", fact) for fact in words.rests_on]
                return tag("div", said, checkpoints.card(number, one, words, facts))
    return tag("p", "The checkpoint cannot be told apart.", cls="empty")


def decided_card(at: Sitting, decisions: Sequence[Decided]) -> Markup:
    """What each has decided, with the reason."""
    rows = [
        tag("div", theme.icon(*changes.SIGNS[one.decision]), " ", tag("span", f"{at.name(one.actor)}: ", cls="b"),
            changes.TOLD[one.decision], f", “{one.reason}”" if one.reason else None)
        for one in decisions
    ]  # fmt: skip
    return tag("div", tag("div", "Decided so far", cls="xs mute b"), join(rows), cls="card")
