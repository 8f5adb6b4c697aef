"""One change a screen: own finding, what changes, what follows from it, rationale folded, comment, decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from authoring.views import ChangeView
from review_ui import failure, frame, theme
from review_ui.autosave import area, clock
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import acting, bearing_view, changes, effect_view, fields, forms
from review_ui.reviewing.change_card import (
    READ_WITH,
    change_card,
    consequence_chips,
    decided_card,
    finding_card,
    last_round,
    place_of,
    view_of,
    whole_checkpoint,
    why_unreadable,
)
from review_ui.reviewing.decide_bar import bar, summary
from review_ui.reviewing.going import go, going, said_of, settled, sign_of
from review_ui.reviewing.sitting import Sitting
from tasks.review.events import Proposed
from tasks.review.state import ChangeState


def since_chip(at: Sitting) -> list[Markup]:
    """What was proposed since this person last submitted something or marked the task as seen."""
    n = len(_new(at))
    return [theme.chip(f"Since you last looked: {n} new", "violet", "update")] if n else []


def _new(at: Sitting) -> frozenset[str]:
    """Changes put up since the person last looked; what is new stays new for as long as this sitting lasts."""
    here = going(at)
    if not here.looked:
        seen = at.desk.db.seen(at.me, at.at.task_id)
        here.before = seen[1] if seen else None
        here.looked = True
        at.desk.db.mark_seen(at.me, at.at.task_id, at.at.head)
    before = here.before
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
    drafts = at.book.values()
    overtaken(at, drafts)
    if not every:
        acting.refusal(at, "decide")
        frame.show(frame.notice("Nothing is up for decision.", next_words(at)))
        return
    here = going(at)
    if here.summary:
        summary(at, every, drafts)
        return
    ids = [one.ref.change for one in every]
    if here.at not in ids:
        here.at = next((one.ref.change for one in every if not settled(at, one, drafts)), ids[0])
    place = ids.index(here.at)
    rail, main = st.columns([1, 3.1], gap="medium")
    with rail, st.container(key="rail"):
        draw_rail(at, every, drafts, place)
    with main, st.container(key="change"):
        one(at, every[place], drafts)
    bar(at, every, drafts, place)


def overtaken(at: Sitting, drafts: Mapping[str, str]) -> None:
    """Own decisions that were never submitted and count for nothing now: other bytes stand where they were made."""
    for one in at.state.changes.values():
        made = changes.drafted(one.ref, drafts)
        if made is None or one.status not in ("outdated", "applied", "rejected"):
            continue
        what, _ = place_of(at, one.ref.unit)
        why = {
            "outdated": "other bytes stand there now: a later change of the same place was applied",
            "applied": "it was applied without it",
            "rejected": "it was rejected by the others",
        }[one.status]
        with st.container(horizontal=True, vertical_alignment="center", key=f"overtaken-{one.ref.change[:16]}"):
            words = f"Outdated: {changes.DECISIONS[made.decision].lower()}, not submitted, on “{what}”. It counts for "
            said = f" Your comment was: “{made.comment}”" if made.comment else ""
            frame.show(tag("div", theme.chip("Outdated", "orange", "history"),
                           tag("span", f" {words}nothing, because {why}.{said}", cls="sm"), role="status"))  # fmt: skip
            st.button("Take note", key=f"note-{one.ref.change[:16]}", on_click=_forget, args=(at, one.ref.change))


@failure.guarded
def _forget(at: Sitting, change: str) -> None:
    harm = (f"harm.{change}.{key}" for key in ("kind", "severity", "likelihood"))
    at.book.again().drop(f"decision.{change}", f"comment.{change}", *harm)


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


# ---- rail -----------------------------------------------------------------------------------------------------------


def draw_rail(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str], place: int) -> None:
    """The list of changes with their state."""
    done = sum(settled(at, one, drafts) for one in every)
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
        said = said_of(at, one, drafts)
        sign = sign_of(at, one, drafts)
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
                    on_click=go, args=(at, one.ref.change),
                )  # fmt: skip
    after = len(every) - first - len(shown)
    if after > 0:
        frame.show(tag("div", f"{after} more", cls="xs mute"))
    frame.show(tag("p", "Safety first, then by the weight of the finding.", cls="xs mute"))


def saved_words(at: Sitting, every: Sequence[ChangeState], drafts: Mapping[str, str]) -> str:
    """ "Saved 14:32 · not submitted"."""
    newest = max((draft.saved_at for draft in at.book.all().values()), default=None)
    waiting = any(changes.drafted(one.ref, drafts) for one in every)
    return " · ".join(part for part in (f"Saved {clock(newest)}" if newest else "",
                                        "not submitted" if waiting else "") if part)  # fmt: skip


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
        shown(at, change, view)
        folds(at, change, view)
    if isinstance(view, str) or view.unreadable:
        frame.show(tag("p", "It can be rejected, discussed or vetoed, not approved.", cls="b sm"))
    standing = change.decisions.get(at.me)
    if standing is not None:
        others = [one for person, one in change.decisions.items() if person != at.me]
        frame.show(decided_card(at, [standing, *others]))
    made = changes.drafted(change.ref, drafts)
    if made is not None and made.decision == "veto":
        veto_fields(at, change, drafts)
    if made is not None and made.lacks:
        words = f"{changes.DECISIONS[made.decision]}: it still needs {' and '.join(made.lacks)}."
        frame.show(tag("p", words, cls="b warn", role="status"))
    area(
        at.book, f"comment.{change.ref.change}", "Comment", rows=2, quiet=False,
        placeholder="Optional with Approve; the reason with Reject, Discuss and Veto.",
    )  # fmt: skip


def shown(at: Sitting, change: ChangeState, view: ChangeView) -> None:
    """The change, what follows from it, what it would do to grading, its consequences."""
    if view.unreadable:
        words = f"{why_unreadable(view.unreadable)} What would follow from it is not known."
        frame.show(frame.notice("This change cannot be read by itself.", words))
    elif view.read_with:
        frame.show(tag("p", theme.icon("link", "mute"), f" {READ_WITH[view.read_with]}", cls="sm"))
    frame.show(change_card(at, change, view, bearing_view.follows(at, change, view)))
    if change.ref.unit.startswith(("checkpoints.", "examples/")) and not view.unreadable:
        effect_view.draw(at, change)
    frame.show(join((consequence_chips(at, change, view), bearing_view.quotes(at, change, view))))


def folds(at: Sitting, change: ChangeState, view: ChangeView) -> None:
    """The reasons, the whole checkpoint and the bytes, side by side while they are folded; folded anew at every
    change."""
    id = change.ref.change[:16]
    with st.container(horizontal=True, key=f"folds-{id}"):
        with st.expander("Why this is proposed (read after the change)", icon=":material/psychology:", key=f"why-{id}"):
            frame.show(
                tag("div", tag("p", f"By {at.name(view.made_by)}", cls="xs mute b"),
                    tag("p", view.rationale or "No reason was given."))
            )  # fmt: skip
        if change.ref.unit.startswith("checkpoints.toml#") and not view.unreadable:
            with st.expander("The whole checkpoint", icon=":material/fact_check:", key=f"whole-{id}",
                             on_change="rerun") as whole:  # fmt: skip
                # Only once it is asked for: no decision key waits for it.
                if whole.open:
                    frame.show(whole_checkpoint(at, change, view))
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
        fields.choice(at.book, f"harm.{id}.kind", "Kind of harm", kinds, drafts, quiet=False)
        fields.choice(at.book, f"harm.{id}.severity", "Severity", severities, drafts, quiet=False)
        fields.choice(at.book, f"harm.{id}.likelihood", "Likelihood", likelihoods, drafts, quiet=False)
