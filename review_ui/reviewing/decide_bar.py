"""The bar of Decide: previous, next, undo; approve, reject, discuss, veto; and the summary with its one submission.

A decision button carries the id of its change: a key that is pressed before the next change stands on the screen is for
nobody, and never decides on a change that was not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from review_ui import failure, frame, keyboard, theme
from review_ui.autosave import Notebook, area, held
from review_ui.markup import join, tag
from review_ui.reviewing import acting, changes
from review_ui.reviewing.change_card import place_of, view_of
from review_ui.reviewing.going import (
    decide,
    decide_all,
    go,
    going,
    next_open,
    said_of,
    settled,
    step,
    submitted,
    summarize,
    undo,
)
from review_ui.reviewing.sitting import Sitting
from tasks.errors import UsageError
from tasks.review.state import ChangeState
from tasks.wording import counted


def bar(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str], place: int) -> None:
    """Previous, Next, Undo; Approve, Reject, Discuss, Veto; the summary."""
    change = every[place]
    order = tuple(one.ref.change for one in every)
    said = bool(drafts.get(f"comment.{change.ref.change}", "").strip())
    with_comment = {True: " with comment", False: ""}[said]
    following = [*every[place + 1 :], *every[:place]]
    open_ = next((one.ref.change for one in following if not settled(at, one, drafts)), "")
    vetoed = any((veto.change, veto.owner) == (change.ref.change, at.me) for veto in at.state.vetoes)
    view = view_of(at, change)
    # What cannot be read is not approved; refusing it, talking about it and stopping it stay open.
    broken = isinstance(view, str) or bool(view.unreadable)
    with (
        st.bottom,
        st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="decidebar"),
    ):
        with st.container(horizontal=True, width="content", gap="small"):
            st.button("Previous", icon=":material/chevron_left:", shortcut="k", type="tertiary", key="previous",
                      on_click=step, args=(at, order, -1), disabled=place == 0)  # fmt: skip
            st.button("Next", icon=":material/chevron_right:", shortcut="j", type="tertiary", key="next",
                      on_click=step, args=(at, order, 1))  # fmt: skip
            st.button("Next open", icon=":material/skip_next:", shortcut="n", type="tertiary", key="next-open",
                      on_click=next_open, args=(at, open_))  # fmt: skip
            st.button("Undo", icon=":material/undo:", shortcut="u", type="tertiary", key="undo",
                      on_click=undo, args=(at,), disabled=not going(at).undo)  # fmt: skip
        with st.container(horizontal=True, width="content", gap="small", vertical_alignment="center"):
            for label, key, decision, icon in (
                (f"Approve{with_comment}", "a", "approve", "check"),
                ("Reject", "x", "reject", "close"),
                ("Discuss", "d", "discuss", "forum"),
            ):
                st.button(
                    label, icon=f":material/{icon}:", shortcut=key, key=f"do-{decision}-{change.ref.change[:16]}",
                    type="primary" if decision == "approve" else "secondary", on_click=decide,
                    args=(at, change, decision, order), disabled=vetoed or (broken and decision == "approve"),
                    help="Your veto stands: lift it first" if vetoed else None,
                )  # fmt: skip
            frame.show(tag("span", "", cls="rule"))
            if vetoed:
                lift(at, change.ref.change)
            else:
                st.button(
                    "Veto, unsafe", icon=":material/front_hand:", shortcut="shift+v",
                    key=f"do-veto-{change.ref.change[:16]}", on_click=decide, args=(at, change, "veto", order),
                )  # fmt: skip
        with st.container(horizontal=True, width="content", vertical_alignment="center"):
            st.button("Summary", icon=":material/list_alt:", key="to-summary", on_click=summarize, args=(at,))
    keyboard.steady("do-approve", "do-reject", "do-discuss", "do-veto", "go")


def lift(at: Sitting, change: str) -> None:
    """Lift one's own veto, with a reason."""
    item = f"lift.{change}"

    def does(book: Notebook, id: str) -> str:
        why = acting.reason(book, item)
        at.desk.lift_veto(at.at.task_id, change, at.me, "lifted it", why, review_id=id)
        book.drop(item)
        return "The veto is lifted."

    with st.popover("Lift my veto", icon=":material/front_hand:", key=f"lifting-{change[:16]}"):
        area(at.book, item, "Why the danger is gone", rows=2)
        acting.button(at, "Lift the veto", f"lift-{change}#{len(at.at.events)}", does, key="lift", uses=(item,))


# ---- summary --------------------------------------------------------------------------------------------------------


def summary(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str]) -> None:
    """All decisions, what they still need, one submission."""
    ready = [one for one in every if _ready(one, drafts)]
    lacking = stale = 0
    rows = []
    for number, one in enumerate(every, 1):
        made = changes.drafted(one.ref, drafts)
        what, kind = place_of(at, one.ref.unit)
        stale += made is not None and made.stale
        lacking += made is not None and not made.stale and bool(made.lacks)
        rows.append(
            tag(
                "tr",
                tag("td", str(number), cls="num"),
                tag("td", what, tag("span", f" {kind}", cls="sm mute") if kind != what else None),
                tag("td", said_of(at, one, drafts) or "not decided", cls="b" if made else "mute"),
                tag("td", made.comment if made else ""),
            )
        )
    name = f"decide#{len(at.at.events)}"
    frame.show(theme.section("Before you submit", f"{len(ready)} of {len(every)} decided in this sitting"))
    acting.refusal(at, name)
    heads = [tag("th", head, scope="col") for head in ("", "Change", "Decision", "Comment")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))
    bulk(at, every, drafts)
    with st.bottom, st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        words = summary_words(len(every), len(ready), lacking, stale)
        frame.show(tag("span", words, cls="b sm", role="status"))
        back = next((one.ref.change for one in every if not settled(at, one, drafts)), going(at).at)
        with st.container(horizontal=True, width="content"):
            st.button("Back to the changes", icon=":material/arrow_back:", key="from-summary", shortcut="k",
                      on_click=go, args=(at, back))  # fmt: skip
            st.button("Undo", icon=":material/undo:", shortcut="u", key="undo-summary", on_click=undo, args=(at,),
                      disabled=not going(at).undo)  # fmt: skip
            acting.button(
                at, f"Submit {len(ready)} decision{'s' if len(ready) != 1 else ''}", name, _submitting(at, every),
                key="submit", uses=(), told=False, type="primary", icon=":material/send:",
                disabled=not ready or bool(lacking),
            )  # fmt: skip


def summary_words(every: int, ready: int, lacking: int, stale: int) -> str:
    """What stands between the decisions and their submission, or what is left after it."""
    if lacking:
        return f"{counted(lacking, 'decision needs', 'decisions need')} a reason or the harm first."
    if stale:
        were = counted(stale, "decision was", "decisions were")
        return f"{were} made on other words than stand there now and will not be submitted: decide anew."
    return f"{every - ready} left for later." if every > ready else "All decided."


def _ready(one: ChangeState, drafts: Mapping[str, str]) -> bool:
    made = changes.drafted(one.ref, drafts)
    return made is not None and not made.stale and not made.lacks


def _submitting(at: Sitting, every: Sequence[ChangeState]) -> acting.Does:
    """One submission for all that stands in the drafts; read back by the rail that follows."""

    def does(book: Notebook, id: str) -> str:
        drafts, found = book.values(), held()[0]
        for number, one in enumerate(every, 1):
            change = one.ref.change
            if changes.drafted(one.ref, drafts) and found.unsettled(book, f"comment.{change}", f"harm.{change}."):
                raise UsageError(
                    f"Not submitted: the comment on change {number} is not saved as it stands in its field. Go back to "
                    "that change and settle it; nothing that you wrote is lost."
                )
        made = [(one, made) for one in every if (made := changes.drafted(one.ref, drafts)) and not made.stale]
        if any(not _ready(one, drafts) for one, _ in made) or not made:
            raise UsageError("Not submitted: something still needs a reason or the harm.")
        at.desk.decide(at.at.task_id, [changes.submission(one.ref, said) for one, said in made], review_id=id)
        items = []
        for one, _ in made:
            change = one.ref.change
            items += [f"decision.{change}", f"comment.{change}"]
            items += [f"harm.{change}.{key}" for key in ("kind", "severity", "likelihood")]
        book.drop(*items)
        submitted(at)
        return f"{len(made)} decision{'s' if len(made) != 1 else ''} stored."

    return does


def bulk(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str]) -> None:
    """Approve together what is proved to touch white space only; nothing else is ever approved in bulk."""
    found = []
    for one in every:
        if changes.drafted(one.ref, drafts) or one.ref.weakens_safety or at.me in one.decisions:
            continue
        if one.ref.unit.partition("#")[0].startswith("chart/"):
            continue
        view = view_of(at, one)
        if isinstance(view, str) or view.unreadable:
            continue
        if changes.white_space_only({d.path: d.old for d in view.diffs}, {d.path: d.new for d in view.diffs}):
            found.append(one)
    if len(found) > 1:
        st.button(
            f"Approve {len(found)} changes that touch white space only", icon=":material/format_indent_increase:",
            on_click=_approve, args=(at, found), key="white-space",
        )  # fmt: skip


@failure.guarded
def _approve(at: Sitting, found: Sequence[ChangeState]) -> None:
    decide_all(at, [one.ref for one in found], "approve")
