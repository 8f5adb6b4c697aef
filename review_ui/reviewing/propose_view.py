"""The proposals that are up; and one made by hand: forms left, findings right, what would be put up below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import streamlit as st

from authoring.proposals import Proposal, ProposedEdit, prepare
from authoring.views import ChangeView, edit_view
from review_ui import failure, frame, theme
from review_ui.autosave import Notebook, area
from review_ui.kept import kept
from review_ui.markup import join, tag
from review_ui.reviewing import acting, change_card, fields, forms, hand_forms, handmade
from review_ui.reviewing.change_card import why_unreadable
from review_ui.reviewing.findings_view import finding_chips, titles
from review_ui.reviewing.hand_forms import Form
from review_ui.reviewing.signoff_view import may
from review_ui.reviewing.sitting import Sitting
from tasks.errors import UsageError, WorkbenchError
from tasks.review.events import ChangeRef
from tasks.review.state import ChangeState
from tasks.wording import counted

INSTRUCTION, RESOURCE, CHECKPOINT = "Instruction", "Entry of the chart", "Checkpoint"
FORMS: dict[str, Callable[[Sitting], Form | None]] = {
    INSTRUCTION: hand_forms.instruction,
    RESOURCE: hand_forms.resource,
    CHECKPOINT: hand_forms.checkpoint,
}
STATUS: dict[str, tuple[str, theme.Tone]] = {
    "undecided": ("Undecided", "blue"),
    "accepted": ("Accepted", "green"),
    "rejected": ("Rejected", "gray"),
    "split": ("Split", "violet"),
    "blocked": ("Blocked by a veto", "veto"),
    "applied": ("Applied", "green"),
    "outdated": ("Outdated", "gray"),
}
#: Changes that the table shows; the newest come first.
_MOST = 60


def draw(at: Sitting) -> None:
    """Draw the page's parts."""
    if may(at, "propose"):
        left, right = st.columns([1.5, 1], gap="large")
        with left:
            frame.show(theme.section("Propose by hand", "others decide on it; you do not decide on your own"))
            what = st.segmented_control(
                "What to change", list(FORMS), default=INSTRUCTION, required=True, key="what",
                label_visibility="collapsed",
            )  # fmt: skip
            form = FORMS[what or INSTRUCTION](at)
            if form is not None:
                add(at, form)
        with right:
            findings(at)
        basket(at)
    else:
        frame.show(tag("p", "Authors, reviewers, pharmacists and the lead propose changes.", cls="sm mute"))
    table(at)


def add(at: Sitting, form: Form) -> None:
    """Why, which findings it answers, and into the proposal."""
    why, answers = f"hand.why.{form.what}", f"hand.answers.{form.what}"
    open_ = {id: one.finding.text[:160] for id, one in at.state.findings.items() if one.open}
    if open_:
        fields.several(at.book, answers, "Findings that it answers", open_, at.book.values())
    area(at.book, why, "Why", rows=2, placeholder="What was wrong, and why this is right")

    def does(book: Notebook, id: str) -> str:
        values = book.values()
        try:
            edits = form.makes(values)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not edits:
            raise UsageError("Nothing was changed yet.")
        chosen = [one for one in values.get(answers, "").split("\n") if one in open_]
        entry = handmade.entry(edits, chosen, values.get(why, ""))
        part = (f"basket.{id}", handmade.parsed(entry))
        said = _composed(at, [*_parts(book), part])
        if isinstance(said, str):
            if not isinstance(_composed(at, [part]), str):
                raise UsageError("Your proposal changes this place already: take that out first, below.")
            raise UsageError(said)
        book.save(f"basket.{id}", entry)
        book.drop(why, answers, *form.items)
        return "Added to your proposal."

    count = len(_parts(at.book))
    acting.button(at, "Add to the proposal", f"add-{form.what}#{count}-{len(at.at.events)}", does, key="add",
                  uses=(why, answers, *form.items), icon=":material/add:")  # fmt: skip


# ---- what it holds --------------------------------------------------------------------------------------------------


Part = tuple[str, tuple[ProposedEdit, ...]]


def _parts(book: Notebook) -> list[Part]:
    """What was added, in the order in which it was: drafts come by name, and these are named by chance."""
    kept = sorted(book.all().items(), key=lambda pair: pair[1].saved_at)
    return [(name, handmade.parsed(one.value)) for name, one in kept if name.startswith("basket.") and one.value]


def _proposal(at: Sitting, parts: Sequence[Part], id: str, package: str) -> Proposal:
    return Proposal(
        id=id, task=at.at.task_id, package=package, made_by=at.me, by_hand=True, at=datetime.now(UTC),
        edits=tuple(one for _, edits in parts for one in edits),
    )  # fmt: skip


def _composed(at: Sitting, parts: Sequence[Part]) -> tuple[ChangeRef, ...] | str:
    """The changes that these parts come to together; why they do not go together, or were rejected before."""
    try:
        proposal = _proposal(at, parts, "preview", at.state.package)
        return prepare(at.at.files, proposal, rejected=at.state.rejected).changes
    except WorkbenchError as error:
        return str(error)


@kept(64)
def _views(task: str, package: str, basket: str, _at: Sitting, _parts: Sequence[Part]) -> list[ChangeView] | str:
    """Each change as it will be shown for decision."""
    refs = _composed(_at, _parts)
    if isinstance(refs, str):
        return refs
    edits = [one for _, every in _parts for one in every]
    try:
        views = [edit_view(task, _at.at.files, edits, refs, place, range(len(edits))) for place in range(len(edits))]
    except WorkbenchError as error:
        return str(error)
    return next((why_unreadable(view.unreadable) for view in views if view.unreadable), views)


def basket(at: Sitting) -> None:
    """The parts so far, each as reviewers will see it; put up all at once."""
    parts = _parts(at.book)
    total = sum(len(edits) for _, edits in parts)
    words = f"{total} change{'s' if total != 1 else ''}, not put up yet"
    frame.show(theme.section("Your proposal", words if total else "nothing added yet", anchor="basket"))
    if not parts:
        return
    texts = [at.book.values()[name] for name, _ in parts]
    rejected = ",".join(sorted(at.state.rejected))
    views = _views(at.at.task_id, at.at.package, "\n".join([*texts, rejected]), at, parts)
    if isinstance(views, str):
        frame.show(frame.notice("As it stands this cannot be put up: take a part out.", views))
    place = 0
    for name, edits in parts:
        with st.container(key=f"part-{name.replace('.', '-')}"):
            for one in edits:
                if not isinstance(views, str):
                    view = views[place]
                    change = ChangeState(view.ref, "", at.me, at.state.round, "undecided", {}, (), ())
                    frame.show(change_card.change_card(at, change, view))
                    frame.show(change_card.consequence_chips(at, change, view))
                place += 1
                answers = [at.state.findings[id].finding.text for id in one.findings if id in at.state.findings]
                said = [one.rationale or "No reason is given.", *(f"Answers “{text[:160]}”" for text in answers)]
                frame.show(tag("p", " ".join(said), cls="sm"))
            st.button("Take out", key=f"out-{name}", icon=":material/delete:", on_click=_take_out, args=(at, name))
    event = len(at.at.events)
    with st.bottom, st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        frame.show(tag("span", f"{words}. Reviewers decide on each change by itself.", cls="sm b", role="status"))
        acting.button(
            at, "Put up for decision", f"propose#{event}", _putting_up(at), key="up", uses=(), told=False,
            type="primary", icon=":material/send:", disabled=isinstance(views, str),
        )  # fmt: skip
    acting.refusal(at, f"propose#{event}")


@failure.guarded
def _take_out(at: Sitting, name: str) -> None:
    at.book.again().drop(name)


def _putting_up(at: Sitting) -> acting.Does:
    """One proposal of everything in the basket."""

    def does(book: Notebook, id: str) -> str:
        parts = _parts(book)
        if not parts:
            raise UsageError("Nothing is left to put up.")
        with at.desk.store.at() as view:
            package = at.desk.snapshot(view, at.at.task_id).package
        at.desk.propose(at.at.task_id, _proposal(at, parts, id, package), review_id=id)
        book.drop(*[name for name, _ in parts])
        return "Put up for decision."

    return does


# ---- findings, and what is up ---------------------------------------------------------------------------------------


def findings(at: Sitting) -> None:
    """The open findings: what a proposal is for. Those that nothing addresses stand first."""
    answered = {id for one in at.state.live_changes for id in one.ref.findings}
    found = sorted(((id, one) for id, one in at.state.findings.items() if one.open), key=lambda one: one[0] in answered)
    frame.show(theme.section("Open findings", f"{len(found)}, unaddressed first" if found else ""))
    cards = []
    for id, one in found:
        where, quote = forms.anchor_words(one.finding.anchor, titles(at.task))
        state = theme.chip("addressed", "green") if id in answered else theme.chip("not addressed", "orange")
        cards.append(
            tag("div", finding_chips(one.finding), tag("div", where + (f": “{quote}”" if quote else ""), cls="xs mute"),
                tag("div", one.finding.text), tag("div", state, cls="chips"), cls="anchor")
        )  # fmt: skip
    frame.show(tag("div", join(cards)) if cards else tag("p", "No finding is open.", cls="sm mute"))


def table(at: Sitting) -> None:
    """What was put up: place, by whom, findings addressed, where it stands; the newest first."""
    every = list(at.state.changes.values())
    frame.show(
        theme.section("Proposals", f"{counted(len(every), 'change')} in {counted(len(at.state.proposals), 'proposal')}")
    )
    if not every:
        frame.show(tag("p", "Nothing has been proposed yet.", cls="empty"))
        return
    rows = []
    for one in every[: -_MOST - 1 : -1]:
        what, kind = change_card.place_of(at, one.ref.unit)
        word, tone = STATUS[one.status]
        answers = "; ".join(at.state.findings[id].finding.text[:90] for id in one.ref.findings
                            if id in at.state.findings)  # fmt: skip
        rows.append(
            tag(
                "tr",
                tag("td", what, tag("span", f" {kind}", cls="sm mute") if kind != what else None),
                tag("td", at.name(one.made_by) + (" by hand" if one.ref.made_by_hand else "")),
                tag("td", answers or "no finding"),
                tag("td", theme.chip(word, tone)),
            )
        )
    heads = [tag("th", name, scope="col") for name in ("Change", "Made by", "Answers", "Stands")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))
    if len(every) > _MOST:
        frame.show(tag("p", f"{len(every) - _MOST} earlier ones: see the audit trail on Sign-off.", cls="sm mute"))
