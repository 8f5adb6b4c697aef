"""One change a screen: own finding, what changes, what follows from it, rationale folded, comment, decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from authoring.views import ChangeView
from review_ui import frame, theme
from review_ui.autosave import Notebook, area, clock, settle
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import changes, effect_view, fields, forms
from review_ui.reviewing.change_card import (
    change_card,
    consequence_chips,
    finding_card,
    follows,
    last_round,
    others_card,
    place_of,
    view_of,
)
from review_ui.reviewing.changes import Drafted
from review_ui.reviewing.sitting import Sitting, minted, used
from tasks.errors import WorkbenchError
from tasks.review.events import Decided, Proposed
from tasks.review.state import ChangeState


def slot(at: Sitting, name: str) -> str:
    """The key of something that this sitting remembers: of this person and task, and of no other."""
    return f"decide-{name}-{at.me}-{at.at.task_id}"


def book(at: Sitting) -> Notebook:
    """Drafts of decisions: apart from those of stage 1, which have the same round."""
    return at.book


def since_chip(at: Sitting) -> list[Markup]:
    """What was proposed since this person last submitted something or marked the task as seen."""
    n = len(_new(at))
    return [theme.chip(f"Since you last looked: {n} new", "violet", "update")] if n else []


def _new(at: Sitting) -> frozenset[str]:
    """Changes put up since the person last looked; what is new stays new for as long as this sitting lasts."""
    key = slot(at, "seen")
    if key not in st.session_state:
        seen = at.desk.db.seen(at.me, at.at.task_id)
        st.session_state[key] = seen[1] if seen else None
        at.desk.db.mark_seen(at.me, at.at.task_id, at.at.head)
    before = st.session_state[key]
    return frozenset(
        ref.change
        for one in at.at.events
        if isinstance(one, Proposed) and before is not None and one.at > before
        for ref in one.changes
    )


def draw(at: Sitting) -> None:
    """Draw the change that is shown, or the summary."""
    if at.me not in at.state.reviewers:
        if not (at.who.person and at.who.person.has("adjudicator")):
            frame.show(
                frame.notice(
                    "You do not decide on this task.", "The reviewers assigned to it do. Sign-off has the audit."
                )
            )
        return
    every = changes.mine(at.state, at.me)
    if not every:
        frame.show(frame.notice("Nothing is up for decision.", next_words(at)))
        return
    drafts = {item: draft.value for item, draft in book(at).all().items()}
    if st.session_state.get(slot(at, "summary")):
        summary(at, every, drafts)
        return
    ids = [one.ref.change for one in every]
    chosen = st.session_state.get(slot(at, "at"), "")
    if chosen not in ids:
        chosen = next((one.ref.change for one in every if not _settled(at, one, drafts)), ids[0])
        st.session_state[slot(at, "at")] = chosen
    place = ids.index(chosen)
    rail, main = st.columns([1, 3.1], gap="medium")
    with rail, st.container(key="rail"):
        draw_rail(at, every, drafts, place)
    with main, st.container(key="change"):
        one(at, every[place], drafts)
    bar(at, every, drafts, place)


def next_words(at: Sitting) -> str:
    """What happens next, where nothing is to be decided."""
    said = {
        "proposals": "Open findings wait for a proposal: see Proposals.",
        "apply": "Everything is decided. Accepted changes wait to be applied: see Sign-off.",
        "sign-off": "Nothing is open: see Sign-off.",
        "release": "All have signed: the lead releases.",
        "released": "This version is released.",
    }
    return said.get(at.state.stage, "When something is proposed it stands here.")


def _standing(at: Sitting, one: ChangeState) -> Decided | None:
    return one.decisions.get(at.me)


def _settled(at: Sitting, one: ChangeState, drafts: Mapping[str, str]) -> bool:
    made = changes.drafted(one.ref, drafts)
    return (made is not None and not made.stale and not made.lacks) or _standing(at, one) is not None


# ---- rail -----------------------------------------------------------------------------------------------------------


def draw_rail(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str], place: int) -> None:
    """The list of changes with their state."""
    done = sum(_settled(at, one, drafts) for one in every)
    new = _new(at)
    frame.show(
        tag(
            "div",
            tag(
                "div",
                tag("span", f"Change {place + 1} of {len(every)}", cls="h3"),
                tag("span", f"{done} decided", cls="sm mute"),
                cls="pair",
            ),
            tag("div", tag("div", style=f"width:{100 * done // len(every)}%"), cls="share"),
            tag("p", saved_words(at, every, drafts), cls="xs mute", role="status"),
        )
    )
    first = max(0, min(place - 6, len(every) - 14))
    shown = list(enumerate(every))[first : first + 14]
    if first:
        frame.show(tag("div", f"{first} before", cls="xs mute"))
    for number, one in shown:
        what, kind = place_of(at, one.ref.unit)
        said = _said(at, one, drafts)
        sign = _sign(at, one, drafts)
        mark = theme.icon(*sign) if sign else tag("span", str(number + 1), cls="mute")
        on = number == place
        chips = [theme.chip("new", "violet")] if one.ref.change in new else []
        if changes.is_safety(at.state, one):
            chips.append(theme.chip("safety", "orange", "shield"))
        with st.container(key=f"rail{'-on' if on else ''}-{one.ref.change[:16]}"):
            frame.show(
                tag(
                    "div",
                    tag("span", mark, cls="rail-mark"),
                    tag(
                        "div",
                        tag("div", what, cls="b" if on else None),
                        tag("div", f"{kind} · {'this one' if on and not said else said or 'open'}", cls="xs mute"),
                    ),
                    tag("div", join(chips), cls="chips"),
                    cls="rail-row",
                )
            )
            if not on:
                st.button(
                    f"Go to change {number + 1}", key=f"go-{one.ref.change[:16]}", type="tertiary",
                    on_click=_go, args=(at, one.ref.change),
                )  # fmt: skip
    after = len(every) - first - len(shown)
    if after > 0:
        frame.show(tag("div", f"{after} more", cls="xs mute"))
    frame.show(tag("p", "Safety first, then by the weight of the finding.", cls="xs mute"))


def saved_words(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str]) -> str:
    """ "Saved 14:32 · not submitted"."""
    newest = max((draft.saved_at for draft in book(at).all().values()), default=None)
    waiting = any(changes.drafted(one.ref, drafts) for one in every)
    return " · ".join(part for part in (f"Saved {clock(newest)}" if newest else "",
                                        "not submitted" if waiting else "") if part)  # fmt: skip


def _said(at: Sitting, one: ChangeState, drafts: Mapping[str, str]) -> str:
    made = changes.drafted(one.ref, drafts)
    if made is not None:
        if made.stale:
            return "outdated: it was put up again"
        return changes.DECISIONS[made.decision] + (f", needs {' and '.join(made.lacks)}" if made.lacks else "")
    standing = _standing(at, one)
    if standing is not None:
        return f"{changes.DECISIONS[standing.decision]}, submitted"
    if any(old.actor == at.me for old in one.outdated):
        return "your decision is outdated"
    return ""


def _sign(at: Sitting, one: ChangeState, drafts: Mapping[str, str]) -> tuple[str, str] | None:
    made = changes.drafted(one.ref, drafts)
    standing = _standing(at, one)
    decision = made.decision if made and not made.stale else standing.decision if standing else ""
    return changes.SIGNS.get(decision)


def _go(at: Sitting, change: str) -> None:
    st.session_state[slot(at, "at")] = change
    st.session_state[slot(at, "summary")] = False


# ---- one change -----------------------------------------------------------------------------------------------------


def one(at: Sitting, change: ChangeState, drafts: Mapping[str, str]) -> None:
    """Own finding, the change, its consequences, folded text, comment."""
    found = changes.findings(at.state, change.ref, at.me)
    frame.show(finding_card(at, found))
    last = last_round(at, change)
    if last is not None:
        frame.show(last)
    view = view_of(at, change)
    if isinstance(view, str):
        frame.show(frame.notice("This change no longer applies to the task as it stands.", view))
    else:
        frame.show(change_card(at, change, view))
        if change.ref.unit.startswith(("checkpoints.", "examples/")):
            effect_view.draw(at, change)
        if change.ref.unit.startswith("chart/") and (following := follows(at, change, view)):
            frame.show(following)
        frame.show(consequence_chips(at, change, view))
        folds(at, change, view)
    standing = change.decisions.get(at.me)
    if standing is not None:
        others = [one for person, one in change.decisions.items() if person != at.me]
        frame.show(others_card(at, standing, others))
    made = changes.drafted(change.ref, drafts)
    if made is not None and made.decision == "veto":
        veto_fields(at, change, drafts)
    if made is not None and made.lacks:
        words = f"{changes.DECISIONS[made.decision]}: it still needs {' and '.join(made.lacks)}."
        frame.show(tag("p", words, cls="b warn", role="status"))
    area(
        book(at), f"comment.{change.ref.change}", "Comment", rows=2, quiet=False,
        placeholder="Optional with Approve; the reason with Reject, Discuss and Veto.",
    )  # fmt: skip


def folds(at: Sitting, change: ChangeState, view: ChangeView) -> None:
    """The reasons and the bytes, side by side while they are folded; folded anew at every change."""
    id = change.ref.change[:16]
    with st.container(horizontal=True, key="folds"):
        with st.expander("Why this is proposed (read after the change)", icon=":material/psychology:", key=f"why-{id}"):
            frame.show(
                tag("div", tag("p", f"By {at.name(view.made_by)}", cls="xs mute b"),
                    tag("p", view.rationale or "No reason was given."))
            )  # fmt: skip
        with st.expander("As it is written, old and new", icon=":material/data_object:", key=f"bytes-{id}"):
            frame.show(join(theme.written(diff.text[:60_000]) for diff in view.diffs))


def veto_fields(at: Sitting, change: ChangeState, drafts: Mapping[str, str]) -> None:
    """The harm that a veto names."""
    id = change.ref.change
    kinds = {"commission": "By what is done", "omission": "By what is left out"}
    severities = {one: one.capitalize() for one in forms.SEVERITIES if one != "none"}
    likelihoods = {one: one.capitalize() for one in forms.LIKELIHOODS}
    with st.container(horizontal=True, key="veto-harm"):
        frame.show(tag("p", "A veto names the harm if this were applied.", cls="b sm"))
        fields.choice(book(at), f"harm.{id}.kind", "Kind of harm", kinds, drafts, quiet=False)
        fields.choice(book(at), f"harm.{id}.severity", "Severity", severities, drafts, quiet=False)
        fields.choice(book(at), f"harm.{id}.likelihood", "Likelihood", likelihoods, drafts, quiet=False)


# ---- bar ------------------------------------------------------------------------------------------------------------


def _decide(at: Sitting, change: ChangeState, decision: str, order: tuple[str, ...]) -> None:
    """Keep a decision and go on, unless it still needs something."""
    item = f"decision.{change.ref.change}"
    settle(book(at), f"comment.{change.ref.change}")
    fields.settle(book(at))
    kept = {item: draft.value for item, draft in book(at).all().items()}
    st.session_state.setdefault(slot(at, "undo"), []).append((change.ref.change, kept.get(item, "")))
    kept[item] = changes.kept(change.ref, decision)
    book(at).save(item, kept[item])
    made = changes.drafted(change.ref, kept)
    if made is not None and not made.lacks:
        _step(at, order, change.ref.change, 1)


def _step(at: Sitting, order: tuple[str, ...], here: str, by: int) -> None:
    place = order.index(here) + by
    if place >= len(order):
        st.session_state[slot(at, "summary")] = True
    else:
        st.session_state[slot(at, "at")] = order[max(0, place)]


def _undo(at: Sitting) -> None:
    """Take the last decision of this sitting back and show its change."""
    done = st.session_state.get(slot(at, "undo"), [])
    if done:
        change, before = done.pop()
        book(at).save(f"decision.{change}", before)
        _go(at, change)


def _next_open(at: Sitting, open_: str) -> None:
    if open_:
        _go(at, open_)
    else:
        st.session_state[slot(at, "summary")] = True


def bar(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str], place: int) -> None:
    """Previous, Next, Undo; Approve, Reject, Discuss, Veto; what is saved."""
    change = every[place]
    order = tuple(one.ref.change for one in every)
    settle(book(at), f"comment.{change.ref.change}")
    kept = {item: draft.value for item, draft in book(at).all().items()}
    said = bool(kept.get(f"comment.{change.ref.change}", "").strip())
    with_comment = {True: " with comment", False: ""}[said]
    following = [*every[place + 1 :], *every[:place]]
    open_ = next((one.ref.change for one in following if not _settled(at, one, drafts)), "")
    vetoed = any((veto.change, veto.owner) == (change.ref.change, at.me) for veto in at.state.vetoes)
    broken = isinstance(view_of(at, change), str)
    with (
        st.bottom,
        st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="decidebar"),
    ):
        with st.container(horizontal=True, width="content", gap="small"):
            st.button("Previous", icon=":material/chevron_left:", shortcut="k", type="tertiary", key="previous",
                      on_click=_step, args=(at, order, change.ref.change, -1), disabled=place == 0)  # fmt: skip
            st.button("Next", icon=":material/chevron_right:", shortcut="j", type="tertiary", key="next",
                      on_click=_step, args=(at, order, change.ref.change, 1))  # fmt: skip
            st.button("Next open", icon=":material/skip_next:", shortcut="n", type="tertiary", key="next-open",
                      on_click=_next_open, args=(at, open_))  # fmt: skip
            st.button("Undo", icon=":material/undo:", shortcut="u", type="tertiary", key="undo",
                      on_click=_undo, args=(at,), disabled=not st.session_state.get(slot(at, "undo")))  # fmt: skip
        with st.container(horizontal=True, width="content", gap="small", vertical_alignment="center"):
            for label, key, decision, icon in (
                (f"Approve{with_comment}", "a", "approve", "check"),
                ("Reject", "x", "reject", "close"),
                ("Discuss", "d", "discuss", "forum"),
            ):
                st.button(
                    label, icon=f":material/{icon}:", shortcut=key, key=f"do-{decision}-{change.ref.change[:16]}",
                    type="primary" if decision == "approve" else "secondary", on_click=_decide,
                    args=(at, change, decision, order), disabled=vetoed or broken,
                    help="Your veto stands: lift it first" if vetoed else None,
                )  # fmt: skip
            frame.show(tag("span", "", cls="rule"))
            if vetoed:
                lift(at, change.ref.change)
            else:
                st.button(
                    "Veto, unsafe", icon=":material/front_hand:", shortcut="shift+v", key="veto", disabled=broken,
                    on_click=_decide, args=(at, change, "veto", order),
                )  # fmt: skip
        with st.container(horizontal=True, width="content", vertical_alignment="center"):
            st.button("Summary", icon=":material/list_alt:", key="to-summary", on_click=_summary, args=(at, True))


def _summary(at: Sitting, on: bool) -> None:
    st.session_state[slot(at, "summary")] = on


def lift(at: Sitting, change: str) -> None:
    """Lift one's own veto, with a reason."""
    with st.popover("Lift my veto", icon=":material/front_hand:"):
        area(at.book, f"lift.{change}", "Why the danger is gone", rows=2)
        name = f"lift-{at.me}-{change}"
        if st.button("Lift the veto", key=f"lift-{minted(name)}"):
            settle(at.book, f"lift.{change}")
            reason = at.book.all().get(f"lift.{change}")
            if reason is None or not reason.value.strip():
                frame.show(tag("p", "It needs a reason.", cls="warn"))
                return
            try:
                at.desk.lift_veto(at.at.task_id, change, at.me, "lifted it", reason.value, review_id=minted(name))
            except WorkbenchError as error:
                frame.show(frame.notice("Not lifted. What you wrote is kept.", str(error)))
                return
            used(name)
            at.book.drop(f"lift.{change}")
            st.rerun()


# ---- summary --------------------------------------------------------------------------------------------------------


def summary(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str]) -> None:
    """All decisions, what they still need, one submission."""
    ready: list[tuple[ChangeState, Drafted]] = []
    lacking = 0
    rows = []
    for number, one in enumerate(every, 1):
        made = changes.drafted(one.ref, drafts)
        what, kind = place_of(at, one.ref.unit)
        if made is not None and not made.stale and not made.lacks:
            ready.append((one, made))
        elif made is not None:
            lacking += 1
        said = _said(at, one, drafts) or "not decided"
        comment = made.comment if made else ""
        rows.append(
            tag(
                "tr",
                tag("td", str(number), cls="num"),
                tag("td", what, tag("span", f" {kind}", cls="sm mute")),
                tag("td", said, cls="b" if made else "mute"),
                tag("td", comment or ""),
            )
        )
    frame.show(theme.section("Before you submit", f"{len(ready)} of {len(every)} decided in this sitting"))
    heads = [tag("th", name, scope="col") for name in ("", "Change", "Decision", "Comment")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))
    bulk(at, every, drafts)
    name = f"decide-{at.me}-{at.at.task_id}-{len(at.at.events)}"
    with st.bottom, st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        words = f"{lacking} decisions need a reason or the harm first." if lacking else (
            f"{len(every) - len(ready)} left for later." if len(every) > len(ready) else "All decided.")  # fmt: skip
        frame.show(tag("span", words, cls="b sm", role="status"))
        with st.container(horizontal=True, width="content"):
            st.button("Back to the changes", icon=":material/arrow_back:", key="from-summary", shortcut="k",
                      on_click=_back, args=(at, [one.ref.change for one in every], dict(drafts)))  # fmt: skip
            st.button("Undo", icon=":material/undo:", shortcut="u", key="undo-summary", on_click=_undo, args=(at,),
                      disabled=not st.session_state.get(slot(at, "undo")))  # fmt: skip
            label = f"Submit {len(ready)} decision{'s' if len(ready) != 1 else ''}"
            pressed = st.button(label, type="primary", icon=":material/send:", disabled=not ready or bool(lacking),
                                key=f"submit-{minted(name)}")  # fmt: skip
    if pressed:
        submit(at, ready, name)


def _back(at: Sitting, order: list[str], drafts: dict[str, str]) -> None:
    st.session_state[slot(at, "summary")] = False
    for id in order:
        ref = at.state.changes[id].ref
        made = changes.drafted(ref, drafts)
        if made is None or made.lacks or made.stale:
            st.session_state[slot(at, "at")] = id
            return


def bulk(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str]) -> None:
    """Approve together what is proved to touch white space only; nothing else is ever approved in bulk."""
    found = []
    for one in every:
        if changes.drafted(one.ref, drafts) or one.ref.weakens_safety or at.me in one.decisions:
            continue
        if one.ref.unit.partition("#")[0].startswith("chart/"):
            continue
        view = view_of(at, one)
        if not isinstance(view, str) and changes.white_space_only(
            {d.path: d.old for d in view.diffs}, {d.path: d.new for d in view.diffs}
        ):
            found.append(one)
    if len(found) > 1 and st.button(
        f"Approve {len(found)} changes that touch white space only", icon=":material/format_indent_increase:"
    ):
        for one in found:
            book(at).save(f"decision.{one.ref.change}", changes.kept(one.ref, "approve"))
        st.rerun()


def submit(at: Sitting, ready: Sequence[tuple[ChangeState, Drafted]], name: str) -> None:
    """One submission for all of them; read back by the rail that follows."""
    try:
        at.desk.decide(
            at.at.task_id, [changes.submission(one.ref, made) for one, made in ready], review_id=minted(name)
        )
    except WorkbenchError as error:
        frame.show(frame.notice("Not submitted. Your decisions and comments are kept.", str(error)))
        return
    used(name)
    items = []
    for one, _ in ready:
        id = one.ref.change
        items += [
            f"decision.{id}",
            f"comment.{id}",
            *(f"harm.{id}.{key}" for key in ("kind", "severity", "likelihood")),
        ]
    at.book.drop(*items)
    st.session_state[slot(at, "undo")] = []
    st.session_state[slot(at, "summary")] = False
    st.session_state[slot(at, "at")] = ""
    st.toast(f"{len(ready)} decisions stored.", icon=":material/check:")
    st.rerun()
