"""What sign-off still needs, each with the person whose turn it is; the steps of lead and author; the audit trail."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from authoring.audit import Audit, audit, event_words, timeline_csv
from review_ui import frame, theme
from review_ui.autosave import area, settle
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import applying_view
from review_ui.reviewing.decide_view import next_words
from review_ui.reviewing.findings_view import finding_chips
from review_ui.reviewing.sitting import Sitting, minted, used
from tasks.errors import WorkbenchError
from tasks.review import events as ev
from tasks.review.events import dump_events
from tasks.review.permissions import Action, allowed, covers
from tasks.review.signoff import Requirement, requirements

STATEMENT = "I have reviewed this task as it stands and hold it to be clinically right and safe to use."
ICONS = {
    "imported": "input", "assigned": "person_add", "unassigned": "person_remove", "waived": "gavel",
    "round_opened": "flag", "plan_locked": "lock", "plan_amended": "edit_note", "review_submitted": "rate_review",
    "finding_withdrawn": "undo", "finding_dismissed": "block", "proposed": "edit_document", "gate_ran": "checklist",
    "decided": "how_to_vote", "veto_lifted": "front_hand", "adjudicated": "gavel", "applied": "commit",
    "signed": "draw", "released": "verified", "defect_reported": "bug_report",
}  # fmt: skip


def may(at: Sitting, action: Action) -> bool:
    """Whether this person's roles cover the action."""
    return at.who.person is not None and allowed(at.who.person, action)


def act(at: Sitting, name: str, does: Callable[[str], object], done: str) -> None:
    """One submission, once; what went wrong is said and nothing typed is lost."""
    try:
        does(minted(name))
    except WorkbenchError as error:
        frame.show(frame.notice("This was not done.", str(error)))
        return
    used(name)
    st.toast(done, icon=":material/check:")
    st.rerun()


def draw(at: Sitting) -> None:
    """Draw the page's parts."""
    left, right = st.columns([1.25, 1], gap="large")
    with left:
        needed = requirements(
            at.state,
            release_faults=_release_faults(at.at.task_id, at.at.package, at),
            reviewers=at.desk.workspace.settings.review.reviewers,
        )
        requirement_list(at, needed)
        steps(at, needed)
    with right:
        people(at)
        open_findings(at)
    trail(at)


@kept(64)
def _release_faults(task_id: str, package: str, _at: Sitting) -> tuple[str, ...]:
    return tuple(_at.task.missing_for_release())


def requirement_list(at: Sitting, needed: tuple[Requirement, ...]) -> None:
    """Met and unmet, in the order that one would work through them."""
    hidden = at.blind and at.asked
    met = sum(one.met for one in needed)
    frame.show(theme.section("What sign-off needs", f"{met} of {len(needed)}"))
    rows = []
    for one in needed:
        mark = theme.icon("check_circle", "ok") if one.met else theme.icon("radio_button_unchecked", "mute")
        todo = "" if one.met else one.todo
        if hidden and one.key in ("findings", "task-veto"):
            todo = "" if one.met else "Shown when all reviews are in."
        if not at.may_read and one.key in ("gate", "complete"):
            # What the gate says names checkpoints and plans.
            todo = "" if one.met else "Shown when your own plan is locked."
        for id in at.state.assigned:
            todo = todo.replace(id, at.name(id))
        rows.append(
            tag(
                "div",
                mark,
                tag("div", tag("div", one.text, cls=None if one.met else "b"), tag("div", todo, cls="sm mute")),
                tag("span", "met" if one.met else "open", cls="sm mute"),
                cls="need-row",
            )
        )
    frame.show(tag("div", join(rows), cls="rows"))


def steps(at: Sitting, needed: tuple[Requirement, ...]) -> None:
    """What this person can do now."""
    state = at.state
    open_keys = {one.key for one in needed if not one.met}
    frame.show(theme.section("Next"))
    busy = drawn = applying_view.draw(at, lambda what: may(at, "apply" if what == "apply" else "run_gate"))
    if not busy and may(at, "open_round") and not state.round_is_open and state.reviewers and not state.live_changes:
        drawn = True
        name = f"round-{at.at.task_id}-{state.round + 1}"
        if st.button(f"Open round {state.round + 1}", icon=":material/flag:", key=f"round-{minted(name)}"):
            act(at, name, lambda id: at.desk.open_round(at.at.task_id, review_id=id), "The round is open.")
    accepted = [one for one in state.changes.values() if one.status == "accepted"]
    if accepted and may(at, "apply") and not busy:
        drawn = True
        n = len(accepted)
        ready = "decided" not in open_keys and "split" not in open_keys
        applying_view.button(
            at, "apply", f"Apply {n} accepted change{'s' if n != 1 else ''}", icon="commit", primary=True,
            why="" if ready else "Every change has to be decided first.",
        )  # fmt: skip
    if may(at, "run_gate") and state.round and not state.round_is_open and not busy:
        drawn = True
        applying_view.button(at, "gate", "Run the gate", icon="checklist")
    for veto in state.vetoes:
        if not veto.change and veto.owner == at.me and not (at.blind and at.asked):
            drawn = True
            lift_task_veto(at, veto.reason)
    if at.me in state.reviewers and may(at, "sign"):
        drawn = True
        sign(at, ready=not open_keys)
    if may(at, "release"):
        drawn = True
        release(at)
    if not drawn:
        frame.show(tag("p", next_words(at), cls="sm mute"))


def lift_task_veto(at: Sitting, reason: str) -> None:
    """One's own veto on the task as a whole."""
    with st.container(border=True, key="taskveto"):
        frame.show(
            tag("div", theme.chip("Your veto on the task stands", "veto", "front_hand"), tag("p", f"“{reason}”"))
        )
        item = f"lift.task.{at.me}"
        area(at.book, item, "Why the danger is gone", rows=2)
        name = f"lifttask-{at.me}-{at.at.task_id}"
        if st.button("Lift my veto", key=f"lift-{minted(name)}"):
            settle(at.book, item)
            draft = at.book.all().get(item)
            if draft is None or not draft.value.strip():
                frame.show(tag("p", "It needs a reason.", cls="warn b", role="status"))
                return
            act(at, name, lambda id: at.desk.lift_veto(at.at.task_id, "", at.me, "lifted it", draft.value,
                                                       review_id=id), "The veto is lifted.")  # fmt: skip


def sign(at: Sitting, *, ready: bool) -> None:
    """The signature line."""
    signed = at.state.signatures.get(at.me)
    if signed is not None:
        frame.show(
            tag("div", theme.chip("You have signed", "green", "draw"),
                tag("p", f"“{signed.statement}” {signed.at.astimezone():%-d %b %Y, %H:%M}", cls="sm"), cls="card")
        )  # fmt: skip
        return
    with st.container(border=True, key="signature"):
        version = at.at.meta.version
        frame.show(
            tag(
                "div",
                tag("h3", f"Sign version {version}", cls="h3"),
                tag("p", f"You sign exactly these bytes: package {at.state.package[:16]}. Any later change takes the "
                    "signature off.", cls="sm mute"),
            )
        )  # fmt: skip
        item = f"sign.{at.state.package[:16]}"
        area(at.book, item, "Statement", rows=2, start=STATEMENT)
        name = f"sign-{at.me}-{at.state.package}"
        if st.button("Sign", type="primary", icon=":material/draw:", key=f"sign-{minted(name)}", disabled=not ready,
                     help=None if ready else "What is open above comes first."):  # fmt: skip
            settle(at.book, item)
            draft = at.book.all().get(item)
            words = (draft.value if draft else STATEMENT).strip() or STATEMENT
            act(at, name, lambda id: at.desk.sign(at.at.task_id, words, review_id=id), "Signed.")


def release(at: Sitting) -> None:
    """The lead's last step."""
    missing = [at.name(one) for one in at.state.reviewers if one not in at.state.signatures]
    ready = at.state.stage == "release"
    if at.state.stage == "released":
        last = at.state.releases[-1]
        frame.show(
            tag(
                "div",
                theme.chip(f"Version {last.version} is released", "green", "verified"),
                tag("p", f"{last.tag}, {last.at.astimezone():%-d %b %Y, %H:%M}", cls="sm mute"),
                cls="card",
            )
        )
        return
    name = f"release-{at.at.task_id}-{at.state.package}"
    if st.button("Release", icon=":material/verified:", type="primary", key=f"release-{minted(name)}",
                 disabled=not ready, help=None if ready else f"Not signed by: {', '.join(missing)}"):  # fmt: skip
        act(at, name, lambda id: at.desk.release(at.at.task_id, review_id=id), "Released.")


# ---- people ---------------------------------------------------------------------------------------------------------


def people(at: Sitting) -> None:
    """Who is assigned, how far they are, and the lead's choices."""
    state = at.state
    frame.show(theme.section("People", f"{len(state.reviewers)} who decide"))
    rows = []
    for id, role in state.assigned.items():
        said = []
        if id in state.round_reviewers:
            said.append("to come" if id in at.to_come else "review in")
        if id in state.signatures:
            said.append("signed")
        if any(one.person == id for one in state.waivers):
            said.append("adjacent specialty, waived")
        rows.append(
            tag("div", tag("span", at.name(id), tag("span", f" {role}", cls="sm mute")),
                tag("span", " · ".join(said), cls="sm mute"), cls="pair")
        )  # fmt: skip
    frame.show(tag("div", join(rows), cls="rows") if rows else tag("p", "Nobody is assigned yet.", cls="empty"))
    if not may(at, "assign"):
        return
    specialty = at.at.meta.specialty
    with st.popover("Assign somebody", icon=":material/person_add:", key=f"assign-{len(at.at.events)}"):
        for one in at.desk.people:
            for role in ("reviewer", "pharmacist", "adjudicator"):
                if role not in one.roles or state.assigned.get(one.id) == role:
                    continue
                fits = role != "reviewer" or covers(one, specialty)
                label = f"{one.name} as {role}" + ("" if fits else " (other group: needs a waiver)")
                name = f"assign-{at.at.task_id}-{one.id}-{role}-{len(at.at.events)}"
                if st.button(label, key=f"as-{minted(name)}", type="tertiary"):
                    act(at, name, _assigning(at, one.id, role), f"{one.name} is assigned.")
    with st.popover("Waive the group rule", icon=":material/gavel:", key=f"waive-{len(at.at.events)}"):
        others = {one.id: one.name for one in at.desk.people if one.has("reviewer") and not covers(one, specialty)}
        if not others:
            frame.show(tag("p", "Every reviewer covers this task's group.", cls="sm mute"))
            return
        chosen = st.selectbox("For", list(others), format_func=lambda id: others[id], key="waive-for")
        area(at.book, "waive.reason", "Reason, printed in the release", rows=2)
        name = f"waive-{at.at.task_id}-{chosen}-{len(at.at.events)}"
        if st.button("Waive", key=f"waive-{minted(name)}"):
            settle(at.book, "waive.reason")
            draft = at.book.all().get("waive.reason")
            if draft and draft.value.strip() and chosen:
                act(at, name, lambda id: at.desk.waive(at.at.task_id, chosen, draft.value, review_id=id), "Waived.")
            else:
                frame.show(tag("p", "It needs a reason.", cls="warn b", role="status"))


def _assigning(at: Sitting, person: str, role: str) -> Callable[[str], object]:
    return lambda id: at.desk.assign(at.at.task_id, person, role, review_id=id)


def open_findings(at: Sitting) -> None:
    """Findings that nothing has answered yet; the author of one withdraws it, the lead dismisses it, with a reason."""
    if at.blind and at.asked:
        return
    found = [(id, one) for id, one in at.state.findings.items() if one.open]
    frame.show(theme.section("Open findings", f"{len(found)}"))
    if not found:
        frame.show(tag("p", "No finding is open.", cls="sm mute"))
    for id, one in found:
        with st.container(key=f"row-open-{id[:16]}"):
            frame.show(
                tag("div", finding_chips(one.finding), tag("div", one.finding.text),
                    tag("div", f"{at.name(one.by)}, round {one.round}", cls="xs mute"))
            )  # fmt: skip
            mine = one.by == at.me
            if not (mine and may(at, "withdraw_finding")) and not may(at, "dismiss_finding"):
                continue
            verb = "Withdraw" if mine else "Dismiss"
            with st.popover(verb, key=f"end-{id[:16]}"):
                item = f"end.{id}"
                area(at.book, item, "Reason", rows=2)
                name = f"end-{id}"
                if st.button(f"{verb} this finding", key=f"end-{minted(name)}"):
                    settle(at.book, item)
                    draft = at.book.all().get(item)
                    if draft is None or not draft.value.strip():
                        frame.show(tag("p", "It needs a reason.", cls="warn b", role="status"))
                        continue
                    does = at.desk.withdraw if mine else at.desk.dismiss
                    act(at, name, _ending(at, does, id, draft.value), "Done.")


def _ending(at: Sitting, does: Callable[..., object], finding: str, reason: str) -> Callable[[str], object]:
    return lambda id: does(at.at.task_id, finding, reason, review_id=id)


# ---- audit ----------------------------------------------------------------------------------------------------------


def trail(at: Sitting) -> None:
    """The events as a timeline, newest first, with export and Verify."""
    events = at.at.events
    frame.show(theme.section("Audit trail", f"{len(events)} events", anchor="audit"))
    # The gate's words name checkpoints and plans: not before the own plan is locked.
    shut = not at.may_read
    with st.container(horizontal=True):
        verify = st.button("Verify against the repository", icon=":material/fact_check:", key="verify")
        st.download_button(
            "Export as NDJSON", b"" if shut else dump_events(events), file_name=f"{at.at.task_id}-events.ndjson",
            mime="application/x-ndjson", icon=":material/download:", on_click="ignore", key="export-ndjson",
            disabled=shut,
        )  # fmt: skip
        st.download_button(
            "Export as a table", lambda: timeline_csv(_audit(at)), file_name=f"{at.at.task_id}-audit.csv",
            mime="text/csv", icon=":material/table:", on_click="ignore", key="export-csv", disabled=shut,
        )  # fmt: skip
    if verify:
        with st.spinner("Replaying every commit of this task …"):
            found = _audit(at)
        frame.show(verified(found))
    total = len(events)
    most = 40 if not st.session_state.get("whole-trail") else total
    frame.show(tag("div", *[event_row(at, one) for one in reversed(events[-most:])], cls="rows"))
    if total > most:
        st.button(f"Show all {total}", key="show-trail", on_click=_whole)


def _whole() -> None:
    st.session_state["whole-trail"] = True


def _audit(at: Sitting) -> Audit:
    return audit(at.desk.store, at.at.task_id, {one.id: one for one in at.desk.people})


def verified(found: Audit) -> Markup:
    """What Verify came to."""
    if not found.faults:
        words = f"{len(found.entries)} events in {found.commits} commits: authors, order and hashes hold."
        return tag("div", theme.chip("Verified", "green", "verified"), tag("p", words), cls="card", role="status")
    return tag(
        "div",
        theme.chip(f"{len(found.faults)} faults", "red", "error"),
        tag("ul", *[tag("li", one) for one in found.faults[:20]], cls="list"),
        cls="card",
        role="alert",
    )


def event_row(at: Sitting, one: ev.Event) -> Markup:
    """Time, who, what."""
    who = "Workbench" if one.actor == "workbench" else at.name(one.actor)
    words = event_words(one)
    if isinstance(one, ev.GateRan) and not at.may_read:
        words = "Gate passed" if one.passed else "Gate failed"
    return tag(
        "div",
        theme.icon(ICONS.get(one.type, "circle"), "mute"),
        tag("span", f"{one.at.astimezone():%-d %b %Y, %H:%M}", cls="sm mute nowrap"),
        tag("span", who, cls="b"),
        tag("span", words if len(words) < 400 else words[:400] + "…"),
        cls="event-row",
    )
