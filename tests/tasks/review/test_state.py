"""What events add up to: stages, decisions, sticky vetoes, outdated bytes, ends of findings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.review import events as ev
from tasks.review.checklist import DIMENSIONS
from tasks.review.signoff import may_sign, requirements, turns
from tasks.review.state import ReviewState, fold

PACKAGE, NEXT = "a" * 64, "b" * 64
BASE, RESULT, OTHER = "1" * 64, "2" * 64, "3" * 64
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
HARM = ev.HarmRating(kind="commission", severity="severe", likelihood="likely")
PLAN = ev.OwnPlan(
    answer="Start finerenone 10 mg.", do_now="Order it.", if_then="K > 5.5: hold.", must_not="No SGLT2i.",
    follow_up="K in 4 weeks, primary care.", confidence="sure",
)  # fmt: skip


class Story:
    """Events in order, with the dull parts filled in."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.round = 0

    def add(self, kind: type[ev.Base], actor: str = "lead", role: str = "lead", **values: Any) -> Any:
        event = kind(
            submission=ev.new_id(), task="demo-task", actor=actor, role=role, round=values.pop("round", self.round),
            at=START + timedelta(minutes=len(self.events)), **values,
        )  # fmt: skip
        self.events.append(event)  # type: ignore[arg-type]
        return event

    def opened(self, *reviewers: str) -> Story:
        self.add(ev.Imported, "workbench", "workbench", package=PACKAGE, version="0.1.0", makers=("author",))
        for person in reviewers:
            self.add(ev.Assigned, person=person, as_role="reviewer")
        self.round = 1
        self.add(ev.RoundOpened, package=PACKAGE, reviewers=reviewers)
        return self

    def review(self, person: str, verdict: str = "acceptable", *findings: ev.Finding) -> None:
        why = "missing context" if verdict == "cannot judge" else ""
        verdicts = [ev.DimensionVerdict(dimension=d, verdict="acceptable") for d in DIMENSIONS[:-1]]
        verdicts.append(ev.DimensionVerdict(dimension=DIMENSIONS[-1], verdict=verdict, why_not=why))
        self.add(
            ev.ReviewSubmitted, person, "reviewer", package=PACKAGE, checklist="2026.1", verdicts=tuple(verdicts),
            findings=findings, confidence="sure",
        )  # fmt: skip

    def propose(self, *refs: ev.ChangeRef, by: str = "some/model") -> None:
        self.add(
            ev.Proposed, "author", "author", proposal=ev.new_id(), file=OTHER, package=PACKAGE, made_by=by, changes=refs
        )

    def decide(self, person: str, decision: str, change: ev.ChangeRef, **values: Any) -> None:
        reason = "" if decision == "approve" else "because"
        harm = HARM if decision == "veto" else None
        self.add(
            ev.Decided, person, "reviewer", change=change.change, base=values.get("base", change.base),
            result=change.result, decision=decision, reason=reason, harm=harm,
        )  # fmt: skip

    def apply(self, *refs: ev.ChangeRef, resolved: tuple[str, ...] = ()) -> None:
        self.add(
            ev.Applied, "author", "author", changes=tuple(r.change for r in refs), before=PACKAGE, package=NEXT,
            version="0.2.0", units={r.unit: r.result for r in refs}, resolved=resolved,
        )  # fmt: skip

    @property
    def state(self) -> ReviewState:
        return fold("demo-task", self.events)


def change(n: int = 1, **values: Any) -> ev.ChangeRef:
    unit = values.pop("unit", f"file-{n}.md")
    return ev.ChangeRef(change=f"{n:064x}", unit=unit, base=BASE, result=RESULT, **values)


def finding(weight: str = "should") -> ev.Finding:
    return ev.Finding(dimension=DIMENSIONS[0], anchor=ev.TaskAnchor(), weight=weight, text="Unclear.")


def decided(*decisions: str) -> tuple[Story, ev.ChangeRef]:
    story, one = Story().opened("ann", "bob"), change()
    story.review("ann")
    story.review("bob")
    story.propose(one)
    for person, decision in zip(("ann", "bob"), decisions, strict=False):
        story.decide(person, decision, one)
    return story, one


DECISIONS = {
    (): "undecided",
    ("approve",): "undecided",
    ("approve", "approve"): "accepted",
    ("reject", "reject"): "rejected",
    ("approve", "reject"): "split",
    ("approve", "discuss"): "undecided",
    ("veto",): "blocked",
    ("veto", "approve"): "blocked",
    ("reject", "veto"): "rejected",
    ("veto", "veto"): "rejected",
}


@pytest.mark.parametrize("decisions", DECISIONS)
def test_what_decisions_come_to(decisions: tuple[str, ...]) -> None:
    story, one = decided(*decisions)
    assert story.state.changes[one.change].status == DECISIONS[decisions]


def test_the_last_decision_of_a_person_counts() -> None:
    story, one = decided("reject", "approve")
    story.decide("ann", "approve", one)
    assert story.state.changes[one.change].status == "accepted"


def test_a_veto_survives_a_new_round_and_a_change_of_mind_until_it_is_lifted() -> None:
    story, one = decided("veto", "approve")
    story.round = 2
    story.add(ev.RoundOpened, package=PACKAGE, reviewers=("ann", "bob"))
    story.decide("ann", "approve", one)
    assert story.state.changes[one.change].status == "blocked"
    story.add(
        ev.VetoLifted, "ann", "reviewer", change=one.change, owner="ann", owner_says="lifted it", reason="Dose fixed."
    )
    assert story.state.changes[one.change].status == "accepted"
    assert story.state.vetoes == ()


def test_an_owner_who_lifts_a_veto_decides_anew() -> None:
    story, one = decided("veto", "approve")
    story.add(ev.VetoLifted, "ann", "reviewer", change=one.change, owner="ann", owner_says="lifted it", reason="ok")
    state = story.state.changes[one.change]
    assert (state.status, state.waiting_for) == ("undecided", ("ann",))


def test_a_veto_lifted_over_its_owner_leaves_their_rejection() -> None:
    story, one = decided("veto", "approve")
    story.add(
        ev.VetoLifted, "judy", "adjudicator", change=one.change, owner="ann", owner_says="could not be reached",
        reason="On leave.",
    )  # fmt: skip
    assert story.state.changes[one.change].status == "split"
    story.add(
        ev.Adjudicated, "judy", "adjudicator", change=one.change, base=BASE, result=RESULT, decision="approve",
        reason="Label agrees.",
    )  # fmt: skip
    assert story.state.changes[one.change].status == "accepted"


def adjudicate(story: Story, one: ev.ChangeRef, decision: str) -> None:
    story.add(
        ev.Adjudicated, "judy", "adjudicator", change=one.change, base=BASE, result=RESULT, decision=decision,
        reason="Label agrees.",
    )  # fmt: skip


def test_a_ruling_is_on_what_had_been_said_and_not_on_a_later_veto() -> None:
    story, one = decided("approve", "reject")
    adjudicate(story, one, "approve")
    assert story.state.changes[one.change].status == "accepted"
    story.decide("bob", "veto", one)
    assert story.state.changes[one.change].status == "blocked"
    story.add(
        ev.VetoLifted,
        "judy",
        "adjudicator",
        change=one.change,
        owner="bob",
        owner_says="does not agree",
        reason="Kept to.",
    )
    assert story.state.changes[one.change].status == "split", "the older ruling does not answer the veto"


def test_the_rejection_of_somebody_assigned_after_a_ruling_reaches_the_adjudicator() -> None:
    story, one = decided("approve", "reject")
    adjudicate(story, one, "approve")
    story.add(ev.Assigned, person="cleo", as_role="reviewer")
    assert story.state.changes[one.change].waiting_for == ("cleo",)
    story.decide("cleo", "reject", one)
    assert story.state.changes[one.change].status == "split"


def test_a_ruling_against_a_change_outlasts_the_assignment_of_who_was_against_it() -> None:
    story, one = decided("approve", "reject")
    adjudicate(story, one, "reject")
    story.add(ev.Unassigned, person="bob", reason="On leave.")
    assert story.state.changes[one.change].status == "rejected"


def test_what_all_had_approved_falls_with_its_group_and_may_come_again() -> None:
    story = Story().opened("ann", "bob")
    one, two = change(1, group="g"), change(2, group="g")
    story.propose(one, two)
    story.decide("ann", "approve", one)
    story.decide("bob", "reject", one)
    for person in ("ann", "bob"):
        story.decide(person, "approve", two)
    for ref in (one, two):
        adjudicate(story, ref, "reject")
    assert {c.status for c in story.state.changes.values()} == {"rejected"}
    assert story.state.rejected == {one.change}


def test_what_nobody_wants_is_closed_although_its_veto_was_never_lifted() -> None:
    story, one = decided("veto", "reject")
    state = story.state
    assert (state.changes[one.change].status, state.vetoes, state.live_changes) == ("rejected", (), ())
    assert state.changes[one.change].decisions["ann"].decision == "veto", "it stays in the record"
    assert state.rejected == {one.change}
    # Somebody who is asked later may want it, and then the veto stands against them.
    story.add(ev.Assigned, person="cleo", as_role="reviewer")
    story.decide("cleo", "approve", one)
    assert story.state.changes[one.change].status == "blocked"
    assert [veto.owner for veto in story.state.vetoes] == ["ann"]


def test_nobody_decides_on_a_change_made_by_hand_by_themselves() -> None:
    story, one = Story().opened("ann", "bob"), change(made_by_hand=True)
    story.propose(one, by="ann")
    story.decide("ann", "approve", one)
    assert story.state.changes[one.change].waiting_for == ("bob",)
    story.decide("bob", "reject", one)
    assert story.state.changes[one.change].status == "rejected"


def test_changed_bytes_outdate_what_was_decided_on_the_old_ones() -> None:
    story, one = decided("approve")
    two = change(2, unit=one.unit)
    story.propose(two)
    for person in ("ann", "bob"):
        story.decide(person, "approve", two)
    story.apply(two)
    states = story.state.changes
    assert (states[one.change].status, states[two.change].status) == ("outdated", "applied")


def test_a_decision_bound_to_other_bytes_does_not_count_and_is_shown() -> None:
    story, one = decided("approve")
    story.decide("bob", "approve", one, base=OTHER)
    state = story.state.changes[one.change]
    assert state.status == "undecided"
    assert [decision.actor for decision in state.outdated] == ["bob"]


def test_a_newer_bundled_version_outdates_open_changes() -> None:
    story, one = decided("approve")
    story.add(ev.Imported, "workbench", "workbench", package=NEXT, version="0.2.0")
    assert story.state.changes[one.change].status == "outdated"


def test_a_rejected_change_stays_rejected_whatever_happens_to_the_bytes() -> None:
    story, one = decided("reject", "reject")
    story.add(ev.Imported, "workbench", "workbench", package=NEXT, version="0.2.0")
    assert story.state.changes[one.change].status == "rejected"
    assert story.state.rejected == {one.change}


def test_a_group_is_as_far_as_its_least_decided_member() -> None:
    story = Story().opened("ann", "bob")
    one, two = change(1, group="g"), change(2, group="g")
    story.propose(one, two)
    for person in ("ann", "bob"):
        story.decide(person, "approve", one)
    story.decide("ann", "approve", two)
    assert {c.status for c in story.state.changes.values()} == {"undecided"}
    story.decide("bob", "reject", two)
    assert {c.status for c in story.state.changes.values()} == {"split"}


def test_what_is_left_of_a_group_is_outdated_with_the_member_that_was_overtaken() -> None:
    story = Story().opened("ann", "bob")
    one, two, other = change(1, group="g"), change(2, group="g"), change(3, unit="file-1.md")
    story.propose(one, two)
    story.decide("ann", "veto", one)
    story.decide("bob", "approve", one)
    for person in ("ann", "bob"):
        story.decide(person, "approve", two)
    assert {c.status for c in story.state.changes.values()} == {"blocked"}
    story.propose(other)
    for person in ("ann", "bob"):
        story.decide(person, "approve", other)
    story.apply(other)
    states = story.state.changes
    assert [states[c.change].status for c in (one, two, other)] == ["outdated", "outdated", "applied"]
    # Put up again it is decided anew, and the veto that was never lifted stands.
    again = change(1, unit="file-1.md").model_copy(update={"base": RESULT, "result": OTHER})
    story.propose(again)
    assert story.state.changes[one.change].status == "blocked"


def test_an_unsafe_dimension_is_a_veto_on_the_task() -> None:
    story = Story().opened("ann", "bob")
    story.review("ann", "unsafe")
    story.review("bob")
    assert [(veto.owner, veto.change) for veto in story.state.vetoes] == [("ann", "")]
    assert "task-veto" in {one.key for one in may_sign(story.state)}
    story.add(ev.VetoLifted, "ann", "reviewer", change="", owner="ann", owner_says="lifted it", reason="Mended.")
    assert story.state.vetoes == ()


def test_findings_end_once_and_stay_ended() -> None:
    story, one, two = Story().opened("ann"), finding(), finding()
    story.review("ann", "needs change", one, two)
    story.add(ev.FindingWithdrawn, "ann", "reviewer", finding=one.id, reason="My mistake.")
    story.add(ev.FindingDismissed, finding=one.id, reason="No.")
    story.apply(change(), resolved=(two.id,))
    ends = {id: (state.end, state.why) for id, state in story.state.findings.items()}
    assert ends == {one.id: ("withdrawn", "My mistake."), two.id: ("resolved", "applied")}


def test_a_signature_is_for_the_bytes_that_were_signed() -> None:
    story = Story().opened("ann", "bob")
    story.review("ann")
    story.review("bob")
    for person in ("ann", "bob"):
        story.add(ev.Signed, person, "reviewer", package=PACKAGE, statement="Sound.")
    assert story.state.stage == "release"
    story.add(ev.Imported, "workbench", "workbench", package=NEXT, version="0.2.0")
    assert story.state.stage == "sign-off"
    assert story.state.signatures == {}


def test_the_stages_of_one_task() -> None:
    story, one, found = Story(), change(), finding()
    assert story.state.stage == "unassigned"
    story.opened("ann", "bob")
    assert story.state.stage == "review"
    story.review("ann", "needs change", found)
    assert [turn.person for turn in turns(story.state)] == ["bob"]
    story.review("bob")
    assert story.state.stage == "proposals"
    story.propose(one)
    assert story.state.stage == "decide"
    story.decide("ann", "approve", one)
    assert [(turn.person, turn.what) for turn in turns(story.state)] == [("bob", "decide")]
    story.decide("bob", "approve", one)
    assert story.state.stage == "apply"
    story.apply(one, resolved=(found.id,))
    assert story.state.stage == "sign-off"
    assert [one.key for one in may_sign(story.state)] == ["gate"]
    story.add(ev.GateRan, package=NEXT, gate="1", passed=True)
    assert may_sign(story.state) == ()
    for person in ("ann", "bob"):
        story.add(ev.Signed, person, "reviewer", package=NEXT, statement="Sound.")
    assert [turn.what for turn in turns(story.state)] == ["release"]
    story.add(ev.Released, package=NEXT, version="1.0.0", tag="release/demo-task/1.0.0", manifest=OTHER)
    assert story.state.stage == "released"


def test_what_a_later_round_finds_in_a_released_task_is_somebodys_turn() -> None:
    story, found = Story().opened("ann", "bob"), finding("blocking")
    story.review("ann")
    story.review("bob")
    for person in ("ann", "bob"):
        story.add(ev.Signed, person, "reviewer", package=PACKAGE, statement="Sound.")
    story.add(ev.Released, package=PACKAGE, version="1", tag="release/demo-task/1", manifest=OTHER)
    story.round = 2
    story.add(ev.RoundOpened, package=PACKAGE, reviewers=("ann", "bob"))
    story.review("ann", "unsafe", found)
    story.review("bob")
    assert story.state.stage == "proposals"
    assert {turn.what for turn in turns(story.state)} == {"veto", "propose"}
    story.add(ev.VetoLifted, "ann", "reviewer", change="", owner="ann", owner_says="lifted it", reason="Mine.")
    assert story.state.stage == "proposals"
    story.add(ev.FindingWithdrawn, "ann", "reviewer", finding=found.id, reason="My mistake.")
    assert story.state.stage == "released"


def test_where_nobody_is_left_who_decides_it_is_the_leads_turn() -> None:
    story = Story().opened("ann")
    story.add(ev.Unassigned, person="ann", reason="On leave.")
    assert [(turn.role, turn.what) for turn in turns(story.state)] == [("lead", "assign")]


def test_what_is_missing_is_told_by_name_and_a_sealed_review_is_in() -> None:
    story = Story().opened("ed", "bob")
    called = {"ed": "Edith Jones", "bob": "Bob"}
    found = {one.key: one.todo for one in requirements(story.state, name=called.__getitem__, to_come=("ed",))}
    assert found["reviews"] == "Waiting for: Edith Jones."
    assert found["vetoes"].startswith("0 blocked:"), "a short id is not looked for in words"
    story.add(ev.Unassigned, person="ed", reason="On leave.")
    story.add(ev.Assigned, person="cleo", as_role="reviewer")
    found = {one.key: one.todo for one in requirements(story.state, name=str.upper, to_come=())}
    assert found["reviews"] == "Waiting for: BOB.", "all are in, and are being opened"


def test_a_gate_that_passed_on_other_bytes_is_no_gate() -> None:
    story = Story().opened("ann", "bob")
    story.add(ev.GateRan, package=NEXT, gate="1", passed=True)
    assert story.state.gate is None
    assert not {r.key: r.met for r in requirements(story.state)}["gate"]


def test_events_come_back_from_their_lines_as_they_were() -> None:
    story = Story().opened("ann", "bob")
    nasty = 'CR\r LS\u2028 NEL\x85 VT\x0b quote" tab\t é \U0001f48a'
    story.add(ev.PlanAmended, "ann", "reviewer", text=nasty)
    data = ev.dump_events(story.events)
    assert ev.parse_events(data) == tuple(story.events)
    assert data.count(b"\n") == len(story.events)


@pytest.mark.parametrize("line", [b"{", b'{"type": "vanished"}', b'{"type":"waived"}', b"\xff\xfe"])
def test_a_line_that_cannot_be_read_is_named_and_never_skipped(line: bytes) -> None:
    data = ev.dump_events(Story().opened("ann").events)
    with pytest.raises(Exception, match=r"events\.ndjson:4"):
        ev.parse_events(data + line + b"\n")


@pytest.mark.parametrize("decision", ["reject", "veto", "discuss"])
def test_no_decision_against_a_change_without_a_reason(decision: str) -> None:
    with pytest.raises(ValidationError, match="needs a reason"):
        Story().add(ev.Decided, change=BASE, base=BASE, result=RESULT, decision=decision, harm=HARM, reason=" ")


def test_cannot_judge_needs_a_reason_and_every_dimension_a_verdict() -> None:
    with pytest.raises(ValidationError, match="needs a reason"):
        ev.DimensionVerdict(dimension=DIMENSIONS[0], verdict="cannot judge")
    with pytest.raises(ValidationError, match="missing: ehr_consistency"):
        Story().add(
            ev.ReviewSubmitted, package=PACKAGE, checklist="2026.1", confidence="sure",
            verdicts=[{"dimension": d, "verdict": "acceptable"} for d in DIMENSIONS[:-1]],
        )  # fmt: skip


@given(
    st.permutations(["ann", "bob", "cleo"]), st.lists(st.sampled_from(["approve", "reject"]), min_size=3, max_size=3)
)
def test_the_order_of_independent_decisions_does_not_matter(order: list[str], words: list[str]) -> None:
    story, one = Story().opened("ann", "bob", "cleo"), change()
    story.propose(one)
    said = dict(zip(("ann", "bob", "cleo"), words, strict=True))
    for person in order:
        story.decide(person, said[person], one)
    expected = {"approve": "accepted", "reject": "rejected"}[words[0]] if len(set(words)) == 1 else "split"
    assert story.state.changes[one.change].status == expected
