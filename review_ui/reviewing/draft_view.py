"""The draft that a model made: what it leaves open first, then its edits one by one, then sending it to decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten

import streamlit as st

from authoring.commands import revise
from authoring.edits import unit_of
from authoring.reviser import Draft, compose, find, store, weakening
from authoring.revising.by_hand import changed, pieces
from authoring.revising.drafts import DraftEdit
from authoring.views import ChangeView, edit_view
from review_ui import failure, following, frame, theme
from review_ui.autosave import Notebook, area
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import acting, change_card, changes
from review_ui.reviewing.findings_view import finding_chips, place_of, titles
from review_ui.reviewing.sitting import Sitting
from runtime import jobs
from tasks.errors import UsageError, WorkbenchError
from tasks.review.checklist import checklist
from tasks.review.events import ResourceAnchor, package_hash
from tasks.review.state import ChangeState
from tasks.structure import chart_type

ASK, SEND = "ask", "send"
_CHECKS: dict[str, tuple[str, theme.Tone, str]] = {
    "passed": ("Passes", "green", "check_circle"),
    "failed": ("Fails", "red", "cancel"),
    "skipped": ("Skipped", "gray", "hourglass_empty"),
}


def about(at: Sitting, what: str) -> dict[str, str]:
    """What a job of asking or sending works on."""
    return {"revise": at.at.task_id, "what": what}


def started(at: Sitting) -> int:
    """How many jobs of asking and sending there have been on this task."""
    return len(jobs.jobs(frame.workspace(), about={"revise": at.at.task_id}))


def busy(at: Sitting, id: str) -> bool:
    """Whether one of them runs now, this one aside: a second click on it is no other."""
    status = following.latest({"revise": at.at.task_id})
    return status is not None and status.state == "running" and status.job.id != id


def draft(at: Sitting, every: Sequence[Draft], *, waits: bool) -> None:
    """One draft: what it leaves open first, then its edits, then everything about it. `waits`: a job is at work."""
    ids = [one.id for one in every]
    by_id = {one.id: one for one in every}
    chosen = ids[0]
    if len(ids) > 1:
        chosen = st.selectbox("Draft", ids, format_func=lambda id: _name(by_id[id]), key=f"draft-{len(ids)}") or ids[0]
    one = by_id[chosen]
    frame.show(
        theme.section("The draft", f"{len(one.kept)} of {len(one.edits)} edits kept; nothing in the task changes here")
    )
    frame.show(_facts(at, one))
    here = package_hash(at.at.files) == one.package
    if not here and not one.put_up:
        frame.show(
            frame.notice("The task changed since this draft was made.", "Ask the model again, on the task as it is.")
        )
    left_open(at, one)
    wrong, weak = _composes(at, one) if here else ("", {})
    views = _views(at, one) if here else {}
    table(at, one, weak, wrong)
    editable = here and not one.put_up and not waits
    for number, edit in enumerate(one.edits, 1):
        _edit(at, one, number, edit, views.get(number), weak.get(number, ()), editable=editable)
    left_out(at, one)
    gate(one)
    with st.expander("What was sent for this draft"):
        frame.show(theme.written("\n".join([*one.sent.files, *one.sent.resources])))
    send_bar(at, one, wrong, editable=editable)


def count(n: int, noun: str) -> str:
    """ "1 edit", "2 edits"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _name(one: Draft) -> str:
    state = "sent to decision" if one.put_up else "draft"
    return f"{one.at.astimezone():%-d %b %H:%M} · {len(one.edits)} edits · {state}"


def _facts(at: Sitting, one: Draft) -> Markup:
    cost = "Cost unknown" if one.usage.cost is None else f"Cost ${one.usage.cost:.4f}"
    tokens = one.usage.uncached_input + one.usage.cache_read + one.usage.cache_write
    chips = [
        theme.chip(f"Model {one.asked}", "plain", "smart_toy"),
        theme.chip(cost, "plain", "payments"),
        theme.chip(f"Asked by {at.name(one.person)}, {one.at.astimezone():%-d %b %Y, %H:%M}"),
    ]
    if one.put_up:
        chips.append(theme.chip("Sent to decision", "green", "send"))
    if one.gate:
        said = ("Gate passes", "green", "verified") if one.gate.passed else ("Gate fails", "orange", "warning")
        chips.append(theme.chip(said[0], "green" if one.gate.passed else "orange", said[2]))
    details = (
        ("The model that answered", one.answered),
        ("Read and written by it", f"{tokens:,} tokens in, {one.usage.output:,} out"),
        ("Asked again because an edit could not be used", count(one.repairs, "time")),
        ("Wording of the request", f"{one.sent.prompt}, {one.sent.prompt_hash[:8]}"),
    )
    rows = [tag("div", tag("span", f"{name}: ", cls="mute"), said) for name, said in details]
    folded = tag("details", tag("summary", "Details", cls="sm mute"), tag("div", *rows, cls="sm"))
    return tag("div", theme.chips(*chips), folded)


def left_open(at: Sitting, one: Draft) -> None:
    """Findings that no kept edit resolves, with the reason: they stand before the edits."""
    found = one.left_open
    frame.show(theme.section("Left open", f"{count(len(found), 'finding')} that no edit answers"))
    cards = []
    for left in found:
        state = at.state.findings.get(left.finding)
        if state is None:
            continue
        where, quote = place_of(at, state.finding.anchor)
        cards.append(
            tag("div", finding_chips(state.finding),
                tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                tag("div", state.finding.text), tag("div", f"Why it stays open: {left.reason}", cls="sm"), cls="anchor")
        )  # fmt: skip
    # One element, however many there are: what is unfolded below stays so when one joins them.
    frame.show(tag("div", join(cards) if cards else tag("p", "Every finding is answered by an edit.", cls="sm mute")))


@kept(64)
def _composed(place: str, task: str, draft_text: str, person: str, rejected: tuple[str, ...], _at: Sitting, _draft: Draft) -> tuple[str, dict[int, tuple[str, ...]]]:  # fmt: skip  # noqa: E501
    try:
        compose(_draft, _at.at.files, person=person, rejected=frozenset(rejected))
    except WorkbenchError as error:
        return str(error), {}
    return "", weakening(_at.desk, _draft)


def _composes(at: Sitting, one: Draft) -> tuple[str, dict[int, tuple[str, ...]]]:
    """(why the kept edits do not go together, {number: what of a safety checkpoint gets weaker})."""
    if not one.kept:
        return "", {}
    # What was rejected since does not apply any more: it belongs to the key.
    rejected = tuple(sorted(at.state.rejected))
    return _composed(str(at.desk.store.path), at.at.task_id, one.model_dump_json(), at.me, rejected, at, one)


@kept(64)
def _viewed(place: str, task: str, draft_text: str, _at: Sitting, _draft: Draft) -> dict[int, ChangeView | str]:
    """Every edit as it would be shown for decision, over the package as it is."""
    found: dict[int, ChangeView | str] = {}
    everything = _draft.with_dropped([n for n, _ in enumerate(_draft.edits, 1)], dropped=False)
    plain = everything.model_copy(update={"edits": tuple(e.model_copy(update={"given": e.edit, "changed": None}) for e in everything.edits)})  # fmt: skip  # noqa: E501
    try:
        prepared = compose(plain, _at.at.files, person="").by_model
    except WorkbenchError as error:
        return {number: str(error) for number, _ in enumerate(_draft.edits, 1)}
    if prepared is None:
        return {}
    for place_, _ in enumerate(prepared.changes):
        try:
            view = edit_view(task, _at.at.files, prepared.proposal.edits, prepared.changes, place_)
            found[place_ + 1] = view.unreadable or view
        except WorkbenchError as error:
            found[place_ + 1] = str(error)
    return found


def _views(at: Sitting, one: Draft) -> Mapping[int, ChangeView | str]:
    return _viewed(str(at.desk.store.path), at.at.task_id, one.model_dump_json(), at, one) if one.edits else {}


def table(at: Sitting, one: Draft, weak: Mapping[int, tuple[str, ...]], wrong: str) -> None:
    """File, dimension, findings, applies, checks."""
    frame.show(theme.section("Edits", "as they would be decided on"))
    if not one.edits:
        frame.show(tag("p", "No edit of the answer holds. What was left out stands below.", cls="empty"))
        return
    names = {dimension.id: dimension.title for dimension in checklist().dimensions}
    rows = []
    for number, edit in enumerate(one.edits, 1):
        unit = unit_of(edit.edit.edit)
        what, (_, kind) = spoken(at, unit), changes.place_words(unit, titles(at.task))
        answers = [
            shorten(at.state.findings[id].finding.text, 110, placeholder=" …")
            for id in edit.edit.findings
            if id in at.state.findings
        ]
        rows.append(
            tag(
                "tr",
                tag("td", str(number), cls="num"),
                tag("td", what, tag("span", f" {kind}", cls="sm mute") if kind != what else None),
                tag("td", names.get(edit.edit.dimension, "")),
                tag("td", "; ".join(answers) or "no finding"),
                tag("td", _applies(edit, wrong), cls="nowrap"),
                tag("td", _checks(one, number, edit, weak)),
            )
        )
    heads = [tag("th", name, scope="col") for name in ("#", "Place", "Dimension", "Findings", "Applies", "Checks")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))
    if wrong:
        frame.show(frame.notice("These edits do not go together as they stand.", wrong))


def _applies(edit: DraftEdit, wrong: str) -> Markup:
    if edit.dropped:
        return theme.chip("Dropped", "gray", "delete")
    if wrong:
        return theme.chip("See below", "orange", "warning")
    return (
        theme.chip("Applies, your wording", "violet", "edit")
        if edit.changed
        else theme.chip("Applies", "green", "check")
    )


def _checks(one: Draft, number: int, edit: DraftEdit, weak: Mapping[int, tuple[str, ...]]) -> Markup:
    chips = []
    if number in weak:
        chips.append(theme.chip("May weaken a safety checkpoint", "red", "dangerous"))
    if not edit.dropped and one.gate and one.gate.new:
        chips.append(theme.chip("Gate fails with these edits", "orange", "warning"))
    elif not edit.dropped and one.gate:
        chips.append(theme.chip("Gate finds nothing new", "green", "verified"))
    return theme.chips(*chips)


def _edit(
    at: Sitting, one: Draft, number: int, edit: DraftEdit, view: ChangeView | str | None, weak: Sequence[str], *,
    editable: bool,
) -> None:  # fmt: skip
    """One edit unfolded: the finding, the change, why, and what one may do with it."""
    _, kind = changes.place_words(unit_of(edit.edit.edit), titles(at.task))
    # The label never changes and the key is the edit's, so that it stays unfolded whatever is done to others.
    with st.expander(f"Edit {number} · {kind}", expanded=len(one.edits) == 1, key=f"edit-{one.id}-{number}"):
        found = [at.state.findings[id] for id in edit.edit.findings if id in at.state.findings]
        frame.show(change_card.finding_card(at, found))
        if weak:
            frame.show(frame.notice("It may weaken a safety checkpoint.", "; ".join(weak)))
        if isinstance(view, ChangeView):
            change = ChangeState(view.ref, one.proposal, one.asked, at.state.round, "undecided", {}, (), ())
            frame.show(change_card.change_card(at, change, view))
        elif view:
            frame.show(tag("p", view, cls="sm warn"))
        facts = [("Why, in the model's words", edit.edit.rationale), ("What could go wrong", edit.edit.risk)]
        facts += [("Rests on", _evidence(at, text)) for text in edit.edit.evidence]
        frame.show(
            tag(
                "div",
                join(tag("div", tag("span", f"{name}: ", cls="mute sm"), value) for name, value in facts if value),
            )
        )
        if editable:
            _do(at, one, number, edit)


def _evidence(at: Sitting, text: str) -> str:
    state = at.state.findings.get(text.removeprefix("finding:").strip()) if text.startswith("finding:") else None
    return f"the finding “{state.finding.text[:120]}”" if state else text


@failure.guarded
def _keep(at: Sitting, id: str, number: int, dropped: bool) -> None:
    place = frame.workspace()
    store(place, find(place, id).with_dropped([number], dropped=dropped))


def _do(at: Sitting, one: Draft, number: int, edit: DraftEdit) -> None:
    with st.container(horizontal=True, key=f"row-do-{one.id}-{number}"):
        word, symbol = ("Take back in", "undo") if edit.dropped else ("Drop this edit", "delete")
        st.button(
            word, key=f"drop-{one.id}-{number}-{edit.dropped}", icon=f":material/{symbol}:", on_click=_keep,
            args=(at, one.id, number, not edit.dropped),
        )  # fmt: skip
    if edit.dropped:
        return
    try:
        parts = pieces(edit.given.edit, at.at.files)
        now = {part.name: part.text for part in pieces(edit.edit.edit, at.at.files)}
    except WorkbenchError:
        parts, now = (), {}
    if not parts:
        frame.show(tag("p", "It can be dropped, and proposed otherwise by hand on the page Proposals.", cls="sm mute"))
        return
    if not st.toggle("Word it otherwise", key=f"word-{one.id}-{number}", value=edit.changed is not None):
        return
    frame.show(
        tag("p", "What you change goes up as your own proposal: others decide on it, you do not.", cls="sm mute")
    )
    items = {part.name: f"revise.{one.id}.{number}.{part.name}" for part in parts}
    for part in parts:
        area(at.book, items[part.name], f"Edit {number}: {part.label}", rows=4 if part.long else 1,
             start=now.get(part.name, part.text))  # fmt: skip

    def does(book: Notebook, id: str) -> str:
        values = book.values()
        typed = {name: values[item] for name, item in items.items() if item in values}
        place = frame.workspace()
        try:
            other = changed(edit.given.edit, {**now, **typed}, at.at.files)
            store(place, find(place, one.id).with_changed(number, other))
        except WorkbenchError as error:
            raise UsageError(f"Not kept. What you typed is still here. {error}") from None
        return "Your wording is kept."

    acting.button(at, "Keep this wording", f"keep-{one.id}-{number}#{at.at.head}", does, key=f"keep-{number}",
                  uses=tuple(items.values()), icon=":material/check:")  # fmt: skip


def spoken(at: Sitting, unit: str) -> str:
    """What an edit changes, in words: an entry of the chart in its own, everything else as the change's place."""
    path, _, id = unit.partition("#")
    if (kind := chart_type(path)) and id:
        where, _ = place_of(at, ResourceAnchor(ref=f"{kind}/{id}"))
        if where != f"{kind}/{id}":
            return where
    return changes.place_words(unit, titles(at.task))[0]


def left_out(at: Sitting, one: Draft) -> None:
    """Edits of the answer that are not in the draft, and how many were rejected before."""
    if not one.left_out:
        return
    again = one.rejected_before
    frame.show(theme.section("Not taken from the answer", f"{len(one.left_out)}, of them {again} rejected before"))
    rows = [
        tag("tr", tag("td", spoken(at, out.unit)), tag("td", out.why), tag("td", out.message, cls="sm"))
        for out in one.left_out
    ]
    heads = [tag("th", name, scope="col") for name in ("Place", "Why", "What was wrong")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))


def gate(one: Draft) -> None:
    """The gate on the package with the edits: what is new first, everything folded."""
    if one.gate is None:
        return
    failed = sum(check.state == "failed" for check in one.gate.checks)
    if one.gate.new:
        frame.show(frame.notice("The gate fails with these edits on what it did not fail on before.", "; ".join(one.gate.new[:8])))  # fmt: skip  # noqa: E501
    with st.expander(f"Gate on the result: {len(one.gate.checks)} checks, {failed} fail"):
        rows = []
        for check in one.gate.checks:
            word, tone, symbol = _CHECKS.get(check.state, (check.state, "gray", "help"))
            rows.append(
                tag(
                    "tr",
                    tag("td", theme.chip(word, tone, symbol)),
                    tag("td", check.name),
                    tag("td", check.detail, cls="sm"),
                )
            )
        frame.show(tag("table", tag("tbody", join(rows)), cls="grid"))


def send_bar(at: Sitting, one: Draft, wrong: str, *, editable: bool) -> None:
    """What is missing, and the button that sends it to decision."""
    if one.put_up:
        frame.show(tag("p", "This draft was sent to decision. Decide has its changes.", cls="sm mute"))
        return
    touched = any(edit.dropped or edit.changed for edit in one.edits)
    why = ""
    if not editable:
        why = "Not now: a job is at work, or the task changed since."
    elif not one.kept:
        why = "No edit is left."
    elif wrong:
        why = "The edits that are left do not go together."
    elif one.gate and one.gate.new and not touched:
        why = "The gate fails with these edits. Drop or change those that it is due to."
    name = f"send#{one.id}-{at.at.head}-{started(at)}"
    with st.bottom, st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        said = why or (
            "The gate runs again on what you kept, then it goes up." if touched else "Reviewers decide on each edit."
        )
        frame.show(tag("span", said, cls="sm mute"))
        acting.button(
            at, f"Send {count(len(one.kept), 'edit')} to decision", name, _sending(at, one), key="send", uses=(),
            told=False, type="primary", icon=":material/send:", disabled=bool(why),
        )  # fmt: skip
    acting.refusal(at, name)


def _sending(at: Sitting, shown: Draft) -> acting.Does:
    """Start the job that sends the draft as it stood on the page."""

    def does(book: Notebook, id: str) -> str:
        place = frame.workspace()
        if busy(at, id):
            return "A job is at work on this task already."
        if find(place, shown.id) != shown:
            raise UsageError("The draft has changed since this page was drawn. Look at it, then press again.")
        jobs.start(
            place, ["authoring", "revise", at.at.task_id, "--draft", shown.id, "--propose", "--as", at.me],
            about=about(at, SEND), person=at.me, key=id, environment=acting.voucher(at, revise.SEND, "", id),
        )  # fmt: skip
        return ""

    return does
