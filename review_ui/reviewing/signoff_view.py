"""What sign-off still needs, each with the person whose turn it is; the steps of lead and author; the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import streamlit as st

from authoring.audit import Audit, audit, event_words, timeline_csv
from authoring.missing import by_place
from review_ui import frame, theme
from review_ui.autosave import Notebook, area, held, memory
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import acting, applying_view, change_card, fields
from review_ui.reviewing.decide_view import next_words
from review_ui.reviewing.findings_view import finding_chips
from review_ui.reviewing.sitting import Sitting
from tasks.errors import UsageError
from tasks.people import Person
from tasks.review import events as ev
from tasks.review.events import dump_events
from tasks.review.permissions import Action, allowed, conflict, covers
from tasks.review.signoff import Requirement, requirements
from tasks.review.state import Veto

STATEMENT = "I have reviewed this task as it stands and hold it to be clinically right and safe to use."
#: Requirements that a shell words by files and bytes, for those who read neither.
_TEXTS = {
    "gate": "The automatic check (the gate) has passed on the task exactly as it stands",
    "complete": "The task has every part that a release needs",
}
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


def draw(at: Sitting) -> None:
    """Draw the page's parts."""
    left, right = st.columns([1.25, 1], gap="large")
    with left:
        needed = requirements(
            at.state,
            release_faults=_release_faults(at.at.task_id, at.at.package, at),
            reviewers=at.desk.workspace.settings.review.reviewers,
            name=at.name,
            to_come=at.to_come,
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
    hidden = (at.blind and at.asked) or at.fresh
    met = sum(one.met for one in needed)
    frame.show(theme.section("What sign-off needs", f"{met} of {len(needed)}"))
    rows = []
    for one in needed:
        mark = theme.icon("check_circle", "ok") if one.met else theme.icon("radio_button_unchecked", "mute")
        todo = "" if one.met else one.todo
        if hidden and one.key in ("findings", "task-veto"):
            todo = "" if one.met else f"Shown when {'your own plan is locked' if at.fresh else 'all reviews are in'}."
        if not at.may_read and one.key in ("gate", "complete"):
            # What the gate says names checkpoints and plans.
            todo = "" if one.met else "Shown when your own plan is locked."
        more: Markup | str = todo
        if one.key == "complete" and not one.met and at.may_read:
            more = _missing(_release_faults(at.at.task_id, at.at.package, at))
        rows.append(
            tag(
                "div",
                mark,
                tag(
                    "div",
                    tag("div", _TEXTS.get(one.key, one.text), cls=None if one.met else "b"),
                    tag("div", more, cls="sm mute"),
                ),
                tag("span", "met" if one.met else "open", cls="sm mute"),
                cls="need-row",
            )
        )
    frame.show(tag("div", join(rows), cls="rows"))


def _missing(sentences: tuple[str, ...]) -> Markup:
    """The parts of the task that are missing, under where each is added."""
    return join(
        join((tag("div", where), tag("ul", *[tag("li", part, cls="sm") for part in parts], cls="list")))
        for where, parts in by_place(sentences).items()
    )


def steps(at: Sitting, needed: tuple[Requirement, ...]) -> None:
    """What this person can do now: signing and releasing first once nothing is open, last until then."""
    open_keys = {one.key for one in needed if not one.met}
    frame.show(theme.section("Next"))
    busy = applying_view.draw(at, lambda what: may(at, "apply" if what == "apply" else "run_gate"))
    closed = False if open_keys else _close(at, ready=True)
    worked = _work(at, open_keys, busy=busy)
    if open_keys:
        closed = _close(at, ready=False)
    if not (busy or worked or closed):
        frame.show(tag("p", next_words(at), cls="sm mute"))


def _work(at: Sitting, open_keys: set[str], *, busy: bool) -> bool:
    """Own vetoes, accepted changes, the gate, the next round. Whether anything was drawn."""
    state, drawn = at.state, False
    for veto in state.vetoes:
        # That on a change is lifted where one decides on it; who was taken off the task decides no more.
        here = not veto.change or at.me not in state.reviewers
        if here and veto.owner == at.me and not (at.blind and at.asked):
            drawn = True
            lift_own_veto(at, veto)
    if busy:
        return drawn
    accepted = [one for one in state.changes.values() if one.status == "accepted"]
    if accepted and may(at, "apply"):
        drawn = True
        n = len(accepted)
        ready = "decided" not in open_keys and "split" not in open_keys
        applying_view.button(
            at, "apply", f"Apply {n} accepted change{'s' if n != 1 else ''}", icon="commit", primary=True,
            why="" if ready else "Every change has to be decided first.",
        )  # fmt: skip
    if may(at, "run_gate") and state.round and not state.round_is_open:
        drawn = True
        applying_view.button(at, "gate", "Run the gate", icon="checklist")
    if may(at, "open_round") and not state.round_is_open and state.reviewers and not state.live_changes:
        drawn = True
        due = f"due-{at.at.task_id}-{state.round + 1}"
        with st.container(horizontal=True, vertical_alignment="bottom", key="open-round"):
            st.date_input("Reviews asked for by (optional)", value=None, min_value="today", key=due, width=240)
            acting.button(
                at, f"Open round {state.round + 1}", f"round#{state.round + 1}-{len(at.at.events)}", _rounding(at, due),
                key="round", uses=(), icon=":material/flag:",
            )  # fmt: skip
    return drawn


def _close(at: Sitting, *, ready: bool) -> bool:
    """The signature and the release. Whether anything was drawn."""
    signs = at.me in at.state.reviewers and may(at, "sign")
    if signs:
        sign(at, ready=ready)
    if may(at, "release"):
        release(at)
    return signs or may(at, "release")


def _rounding(at: Sitting, due: str) -> acting.Does:
    def does(book: Notebook, id: str) -> str:
        day = st.session_state.get(due)
        at.desk.open_round(at.at.task_id, due=day if isinstance(day, date) else None, review_id=id)
        return "The round is open."

    return does


def lift_own_veto(at: Sitting, veto: Veto) -> None:
    """One's own veto on the task as a whole, or on a change of a task that one does not decide on any more."""
    item = f"lift.{veto.change or 'task'}.{at.me}"
    what = change_card.place_of(at, at.state.changes[veto.change].ref.unit)[0] if veto.change else "the task"

    def does(book: Notebook, id: str) -> str:
        at.desk.lift_veto(at.at.task_id, veto.change, at.me, "lifted it", acting.reason(book, item), review_id=id)
        book.drop(item)
        return "The veto is lifted."

    with st.container(border=True, key=f"taskveto-{veto.change[:16]}" if veto.change else "taskveto"):
        frame.show(
            tag("div", theme.chip(f"Your veto on {what} stands", "veto", "front_hand"), tag("p", f"“{veto.reason}”"))
        )
        area(at.book, item, "Why the danger is gone", rows=2)
        name = f"lift{veto.change or 'task'}#{len(at.at.events)}"
        acting.button(at, "Lift my veto", name, does, key="lift", uses=(item,))


def sign(at: Sitting, *, ready: bool) -> None:
    """The signature line."""
    signed = at.state.signatures.get(at.me)
    if signed is not None:
        frame.show(
            tag("div", theme.chip("You have signed", "green", "draw"),
                tag("div", f"“{signed.statement}” {signed.at.astimezone():%-d %b %Y, %H:%M}", cls="sm"), cls="card")
        )  # fmt: skip
        return
    package = at.state.package
    item = f"sign.{package[:16]}"

    def does(book: Notebook, id: str) -> str:
        words = book.values().get(item, STATEMENT).strip()
        if not words:
            raise UsageError("The statement is empty. Write what you sign; nothing is signed in your place.")
        at.desk.sign(at.at.task_id, words, package=package, review_id=id)
        return "Signed."

    with st.container(border=True, key="signature"):
        frame.show(
            tag(
                "div",
                tag("h3", f"Sign version {at.at.meta.version}", cls="h3"),
                tag("p", "You sign the task exactly as it stands now. Any later change takes the signature off. "
                    f"Its fingerprint: {package[:16]}.", cls="sm mute"),
            )
        )  # fmt: skip
        area(at.book, item, "Statement", rows=2, start=STATEMENT)
        with st.container(horizontal=True, vertical_alignment="center"):
            acting.button(
                at, "Sign", f"sign#{package}-{len(at.at.events)}", does, key="sign", uses=(item,),
                type="primary", icon=":material/draw:", disabled=not ready,
            )  # fmt: skip
            if not ready:
                frame.show(tag("span", "What is open above comes first.", cls="sm mute"))


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
                tag(
                    "div",
                    f"{last.at.astimezone():%-d %b %Y, %H:%M}, by {at.name(last.actor)}. It is kept for good.",
                    cls="sm mute",
                ),
                cls="card",
            )
        )
        return

    def does(book: Notebook, id: str) -> str:
        at.desk.release(at.at.task_id, package=at.state.package, review_id=id)
        return "Released."

    with st.container(horizontal=True, vertical_alignment="center", key="release-row"):
        acting.button(
            at, "Release", f"release#{at.state.package}-{len(at.at.events)}", does, key="release", uses=(),
            type="primary", icon=":material/verified:", disabled=not ready,
        )  # fmt: skip
        if not ready:
            why = f"Not signed by {', '.join(missing)}." if missing else "What is open above comes first."
            frame.show(tag("span", why, cls="sm mute"))


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
    with st.container(horizontal=True):
        _choices(at)


def _choices(at: Sitting) -> None:
    """The lead's: who else, and for whom the group rule is waived."""
    state, specialty, n = at.state, at.at.meta.specialty, len(at.at.events)
    with st.popover("Assign somebody", icon=":material/person_add:", key=f"assign-{n}"):
        for one in at.desk.people:
            for role in ("reviewer", "pharmacist", "adjudicator"):
                if role not in one.roles or state.assigned.get(one.id) == role:
                    continue
                fits = role != "reviewer" or covers(one, specialty)
                label = f"{one.name} as {role}" + ("" if fits else " (other group: needs a waiver)")
                acting.button(at, label, f"assign-{one.id}-{role}#{n}", _assigning(at, one, role), key="as",
                              uses=(), type="tertiary")  # fmt: skip
    if state.assigned:
        with st.popover("Take somebody off", icon=":material/person_remove:", key=f"unassign-{n}"):
            said = {id: f"{at.name(id)}, {role}" for id, role in state.assigned.items()}
            fields.pick(at.book, "unassign.who", "Who", said, at.book.values())
            area(at.book, "unassign.reason", "Reason, read by everybody", rows=2)
            frame.show(tag("p", "What they have submitted stays, and so does a veto of theirs.", cls="sm mute"))
            acting.button(at, "Take off", f"unassign#{n}", _unassigning(at), key="unassign", uses=("unassign.",))
    with st.popover("Waive the group rule", icon=":material/gavel:", key=f"waive-{n}"):
        others = {one.id: one.name for one in at.desk.people if one.has("reviewer") and not covers(one, specialty)}
        if not others:
            frame.show(tag("p", "Every reviewer covers this task's group.", cls="sm mute"))
            return
        fields.pick(at.book, "waive.for", "For", others, at.book.values())
        area(at.book, "waive.reason", "Reason, printed in the release", rows=2)
        acting.button(at, "Waive", f"waive#{n}", _waiving(at, others), key="waive", uses=("waive.",))


def _assigning(at: Sitting, one: Person, role: str) -> acting.Does:
    def does(book: Notebook, id: str) -> str:
        at.desk.assign(at.at.task_id, one.id, role, review_id=id)
        return f"{one.name} is assigned."

    return does


def _unassigning(at: Sitting) -> acting.Does:
    def does(book: Notebook, id: str) -> str:
        needs = "It needs a person and a reason."
        person, why = acting.reason(book, "unassign.who", needs), acting.reason(book, "unassign.reason", needs)
        at.desk.unassign(at.at.task_id, person, why, review_id=id)
        book.drop("unassign.who", "unassign.reason")
        return f"{at.name(person)} is no longer assigned."

    return does


def _waiving(at: Sitting, others: Mapping[str, str]) -> acting.Does:
    def does(book: Notebook, id: str) -> str:
        needs = "It needs a person and a reason."
        person, why = acting.reason(book, "waive.for", needs), acting.reason(book, "waive.reason", needs)
        at.desk.waive(at.at.task_id, person, why, review_id=id)
        book.drop("waive.for", "waive.reason")
        return f"Waived for {others[person]}."

    return does


def open_findings(at: Sitting) -> None:
    """Findings that nothing has answered yet; the author of one withdraws it, the lead dismisses it, with a reason."""
    if (at.blind and at.asked) or at.fresh:
        return
    found = [(id, one) for id, one in at.state.findings.items() if one.open]
    frame.show(theme.section("Open findings", f"{len(found)}"))
    if not found:
        frame.show(tag("p", "No finding is open.", cls="sm mute"))
    for id, one in found:
        with st.container(horizontal=True, vertical_alignment="top", key=f"row-open-{id[:16]}"):
            frame.show(
                tag("div", finding_chips(one.finding), tag("div", one.finding.text),
                    tag("div", f"{at.name(one.by)}, round {one.round}", cls="xs mute"))
            )  # fmt: skip
            mine = one.by == at.me
            if not (may(at, "withdraw_finding") if mine else may(at, "dismiss_finding") and _impartial(at)):
                continue
            verb = "Withdraw" if mine else "Dismiss"
            with st.popover(verb, key=f"end-{id[:16]}"):
                area(at.book, f"end.{id}", "Reason", rows=2)
                acting.button(at, f"{verb} this finding", f"end-{id}", _ending(at, id, mine=mine), key="end",
                              uses=(f"end.{id}",))  # fmt: skip


def _impartial(at: Sitting) -> bool:
    """Whether the person neither made the task nor declared a conflict."""
    person = at.who.person
    return person is not None and conflict(person, at.at.task_id, makers=at.state.makers) is None


def _ending(at: Sitting, finding: str, *, mine: bool) -> acting.Does:
    item = f"end.{finding}"

    def does(book: Notebook, id: str) -> str:
        end = at.desk.withdraw if mine else at.desk.dismiss
        end(at.at.task_id, finding, acting.reason(book, item), review_id=id)
        book.drop(item)
        return "The finding is withdrawn." if mine else "The finding is dismissed."

    return does


# ---- audit ----------------------------------------------------------------------------------------------------------


def trail(at: Sitting) -> None:
    """The events as a timeline, newest first, with export and Verify."""
    events = at.at.events
    frame.show(theme.section("Audit trail", f"{len(events)} event{'s' if len(events) != 1 else ''}", anchor="audit"))
    # The gate's words name checkpoints and plans: not before the own plan is locked.
    shut = not at.may_read
    with st.container(horizontal=True):
        st.button("Verify against the repository", icon=":material/fact_check:", key="verify", on_click=_verify,
                  args=(at.at.task_id,))  # fmt: skip
        st.download_button(
            "Export in full, for a program", b"" if shut else dump_events(events),
            file_name=f"{at.at.task_id}-events.ndjson",
            mime="application/x-ndjson", icon=":material/download:", on_click="ignore", key="export-ndjson",
            disabled=shut,
        )  # fmt: skip
        st.download_button(
            "Export as a table", lambda: timeline_csv(_audit(at)), file_name=f"{at.at.task_id}-audit.csv",
            mime="text/csv", icon=":material/table:", on_click="ignore", key="export-csv", disabled=shut,
        )  # fmt: skip
    asked = _asked(at.at.task_id)
    if asked in memory().said:
        with st.spinner("Reading the whole history of this task …"):
            found = _audit(at)
        frame.show(verified(found))
        # Once it stands on the page: a run that a newer click cut off before would have forgotten it.
        memory().said.pop(asked, None)
    if at.fresh:
        frame.show(tag("p", "What others did and wrote opens to you when your own plan is locked.", cls="sm mute"))
        return
    total = len(events)
    most = 40 if not st.session_state.get("whole-trail") else total
    frame.show(tag("div", *[event_row(at, one) for one in reversed(events[-most:])], cls="rows"))
    if total > most:
        st.button(f"Show all {total}", key="show-trail", on_click=_whole)


def _asked(task: str) -> str:
    return f"verify {task}"


def _verify(task: str) -> None:
    held()[0].said[_asked(task)] = ("", "")


def _whole() -> None:
    st.session_state["whole-trail"] = True


def _audit(at: Sitting) -> Audit:
    return audit(at.desk.store, at.at.task_id, {one.id: one for one in at.desk.people})


def verified(found: Audit) -> Markup:
    """What Verify came to."""
    if not found.faults:
        n = len(found.entries)
        words = f"{n} event{'s' if n != 1 else ''}: who did each, in which order, and on what, is as it was recorded."
        return tag("div", theme.chip("Verified", "green", "verified"), tag("div", words), cls="card", role="status")
    n = len(found.faults)
    return tag(
        "div",
        theme.chip(f"{n} fault{'s' if n != 1 else ''}", "red", "error"),
        tag("ul", *[tag("li", one.words) for one in found.faults[:20]], cls="list"),
        cls="card",
        role="alert",
    )


def _place(at: Sitting, change: str) -> str:
    """Where a change stands, as Decide names it."""
    if not at.may_read:
        return "a change"
    found = at.state.changes.get(change)
    return change_card.place_of(at, found.ref.unit)[0] if found else change[:10]


def event_row(at: Sitting, one: ev.Event) -> Markup:
    """Time, who, what."""
    who = "Workbench" if one.actor == "workbench" else at.name(one.actor)
    words = event_words(one, at.name, lambda id: _place(at, id))
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
