"""What people may do to a task, what it comes to, and that nothing is lost, doubled or half done."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from authoring.applying import ConflictError
from authoring.desk import Desk
from authoring.diffs import apply_diff, diff
from authoring.edits import CheckpointEdit, Edit, ManifestEdit, TextEdit
from authoring.gate import Check, GateResult
from authoring.views import agreement_by_checkpoint, agreement_by_dimension
from tasks.errors import EnvironmentFault, NotAllowed, StoreError, UsageError
from tasks.review import events as ev
from tasks.workspace import Workspace
from tests.authoring.rooms import (
    ANN,
    AUTHOR,
    BOB,
    CLEO,
    JUDY,
    LEAD,
    PLAN,
    Room,
    decision,
    finding,
    passing,
    review,
)
from tests.tasks.packages import TINY_ID

ROOT = Path(__file__).resolve().parents[2]
LAB = TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine in 3 months")
TITLE = ManifestEdit(key="title", value="Anticoagulant, decided anew", was="Anticoagulant after warfarin was given up")
OPTIONAL = CheckpointEdit(checkpoint="cp1", set={"criticality": "optional"}, was={"criticality": "required"})


@pytest.fixture
def room(workspace: Workspace) -> Room:
    return Room(workspace)


def outside_reviews(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if not path.startswith("reviews/")}


def status_of(room: Room) -> dict[str, str]:
    return {one.ref.unit: one.status for one in room.desk(LEAD).state(TINY_ID).changes.values()}


# Who may


def test_a_reviewer_of_another_group_needs_a_waiver(room: Room) -> None:
    lead = room.desk(LEAD)
    with pytest.raises(NotAllowed, match="does not cover"):
        lead.assign(TINY_ID, "cleo", "reviewer")
    lead.waive(TINY_ID, "cleo", "Knows anticoagulation.")
    lead.assign(TINY_ID, "cleo", "reviewer")
    assert lead.state(TINY_ID).reviewers == ("cleo",)


def test_nobody_judges_their_own_task_or_one_they_declared_a_conflict_with(room: Room) -> None:
    text = room.workspace.settings_file.read_text()
    text = text.replace('roles = ["author"]', 'roles = ["author", "reviewer"]\nconflicts = []')
    text = text.replace("specialties = []", 'specialties = ["Cardiology"]').replace(
        'id = "bob"', 'id = "bob"\nconflicts = ["author"]'
    )
    room.workspace.settings_file.write_text(text)
    with pytest.raises(NotAllowed, match="wrote this task"):
        room.desk(LEAD).assign(TINY_ID, "author", "reviewer")
    with pytest.raises(NotAllowed, match="declared a conflict"):
        room.desk(LEAD).assign(TINY_ID, "bob", "reviewer")


def test_a_proposal_by_hand_is_put_up_by_its_maker_only(room: Room) -> None:
    room.judged()
    with pytest.raises(NotAllowed, match="by nobody else"):
        room.desk(BOB).propose(TINY_ID, room.proposal(LAB, by="ann"))
    prepared = room.desk(ANN).propose(TINY_ID, room.proposal(LAB, by="ann"))[1]
    with pytest.raises(NotAllowed, match="made by hand"):
        room.decided(prepared, "approve", ANN)
    room.decided(prepared, "approve", BOB)
    assert status_of(room) == {"instruction.md": "accepted"}


def test_a_proposal_that_is_put_up_again_under_its_review_id_is_put_up_once(room: Room) -> None:
    room.judged()
    made = room.proposal(LAB, by="ann")
    first, prepared = room.desk(ANN).propose(TINY_ID, made, review_id="propose-1")
    head = room.store.head()
    again, same = room.desk(ANN).propose(TINY_ID, made, review_id="propose-1")
    assert (first.again, again.again) == (False, True)
    assert room.store.head() == head
    assert (same.proposal, same.changes) == (prepared.proposal, prepared.changes)


def test_a_task_that_is_not_open_data_needs_verified_people(workspace: Workspace) -> None:
    from tests.tasks.packages import tiny_files

    files = tiny_files()
    files["task.toml"] = files["task.toml"].replace(b'data_class = "open"', b'data_class = "phi"')
    room = Room(workspace, files)
    with pytest.raises(NotAllowed, match="not verified"):
        room.desk(LEAD).assign(TINY_ID, "ann", "reviewer")
    Desk(workspace, room.store, LEAD, verified=True).assign(TINY_ID, "ann", "reviewer")


# Stage 1


def test_nothing_sealed_is_seen_by_clone_or_listing_before_all_are_in(room: Room, tmp_path: Path) -> None:
    room.opened()
    room.desk(ANN).lock_plan(TINY_ID, PLAN | {"answer": "SECRET-PLAN"})
    room.desk(ANN).submit_review(TINY_ID, review([finding("SECRET-FINDING")]))
    git = str(room.store.path)
    for name, source in (("path", git), ("url", room.store.path.as_uri())):
        subprocess.run(["git", "clone", "-q", "--mirror", source, str(tmp_path / name)], check=True)
        objects = subprocess.run(
            ["git", "-C", str(tmp_path / name), "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True, check=True,
        ).stdout  # fmt: skip
        assert b"SECRET" not in objects
        refs = subprocess.run(["git", "ls-remote", source], capture_output=True, text=True, check=True).stdout
        assert {line.split("\t")[1] for line in refs.splitlines()} == {"HEAD", "refs/heads/main"}
    assert room.desk(BOB).state(TINY_ID).findings == {}
    assert room.desk(BOB).my_review(TINY_ID) == ()
    assert [type(one) for one in room.desk(ANN).my_review(TINY_ID)] == [ev.PlanLocked, ev.ReviewSubmitted]
    room.desk(BOB).lock_plan(TINY_ID, PLAN)
    room.desk(BOB).submit_review(TINY_ID, review())
    log = [(one.author.name, one.subject.partition(": ")[2]) for one in room.store.history(limit=4)]
    assert sorted(log) == [
        ("Ann", "Lock own plan, round 1"), ("Ann", "Submit review, round 1"),
        ("Bob", "Lock own plan, round 1"), ("Bob", "Submit review, round 1"),
    ]  # fmt: skip
    sealed = {one.submission: one.sealed_at.replace(microsecond=0) for one in room.desk(ANN).db.sealed(TINY_ID)}
    assert {one.trailers["Review-Id"]: one.at for one in room.store.history(limit=4)} == sealed


def test_a_review_says_everything_that_is_missing_at_once(room: Room) -> None:
    room.opened()
    ann = room.desk(ANN)
    with pytest.raises(UsageError, match="plan is not locked"):
        ann.submit_review(TINY_ID, review())
    ann.lock_plan(TINY_ID, PLAN)
    wrong = review(ratings=[{"checkpoint": "cp1", "rating": "wrong"}, {"checkpoint": "cp9", "rating": "optional"}])
    wrong["verdicts"][0]["verdict"] = "unsafe"
    wrong["findings"] = [
        finding(dimension="patient_safety", anchor={"kind": "resource", "ref": "Observation/none"}),
        finding(dimension="patient_safety", anchor={"kind": "text", "path": "instruction.md", "quote": "not there"}),
    ]
    with pytest.raises(UsageError) as refused:
        ann.submit_review(TINY_ID, wrong)
    for words in ("not rated yet: cp2, cp3", "no checkpoint of this task: cp9", "without saying why: cp1",
                  "without a finding", "Observation/none, which is not", "quotes words that do not stand"):  # fmt: skip
        assert words in str(refused.value)
    assert room.desk(ANN).waiting_for(TINY_ID) == ("ann", "bob")


def test_the_same_submission_twice_is_one(room: Room) -> None:
    room.opened()
    for _ in range(2):
        room.desk(ANN).lock_plan(TINY_ID, PLAN, review_id="plan-1")
    with pytest.raises(UsageError, match="in already"):
        room.desk(ANN).lock_plan(TINY_ID, PLAN)
    with pytest.raises(UsageError, match="another submission"):
        room.desk(ANN).submit_review(TINY_ID, review(), review_id="plan-1")
    room.desk(ANN).submit_review(TINY_ID, review([finding()]))
    room.desk(BOB).lock_plan(TINY_ID, PLAN)
    first = room.desk(BOB).submit_review(TINY_ID, review(), review_id="review-1")
    again = room.desk(BOB).submit_review(TINY_ID, review(), review_id="review-1")
    assert (first.again, again.again) == (False, True)
    head = room.store.head()
    id = next(iter(room.desk(ANN).state(TINY_ID).findings))
    for _ in range(2):
        room.desk(LEAD).dismiss(TINY_ID, id, "Out of scope.", review_id="dismiss-1")
    assert len([one for one in room.store.history() if one.trailers.get("Review-Id") == "dismiss-1"]) == 1
    assert room.store.head() != head


def test_what_a_crash_left_sealed_comes_out_with_the_next_submission(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.opened()
    for one in (ANN, BOB):
        room.desk(one).lock_plan(TINY_ID, PLAN)
    room.desk(ANN).submit_review(TINY_ID, review())
    with monkeypatch.context() as patch:
        patch.setattr(Desk, "finish_round", lambda self, task: "")
        room.desk(BOB).submit_review(TINY_ID, review())
    assert room.desk(LEAD).state(TINY_ID).submitted == ()
    room.proposed(LAB)
    assert room.desk(LEAD).state(TINY_ID).submitted == ("ann", "bob")


OPENER = """
import sys
from authoring.desk import Desk
from tasks.people import person
from tasks.store import Store
from tasks.workspace import Workspace
workspace = Workspace.find()
who = person(workspace.settings.people, "bob")
print("ready", flush=True)
Desk(workspace, Store(workspace.tasks_git), who).finish_round(sys.argv[1])
"""


def test_a_kill_while_a_round_is_opened_loses_no_sealed_submission(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.opened()
    with monkeypatch.context() as patch:
        patch.setattr(Desk, "finish_round", lambda self, task: "")
        for one in (ANN, BOB):
            room.desk(one).lock_plan(TINY_ID, PLAN)
            room.desk(one).submit_review(TINY_ID, review())
    for moment in range(8):
        opener = subprocess.Popen(
            [sys.executable, "-c", OPENER, TINY_ID], env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert opener.stdout
        opener.stdout.readline()
        threading.Event().wait(0.03 * moment)
        opener.kill()
        opener.wait()
        opener.stdout.close()
        assert room.store.check() == []
        state = room.desk(LEAD).state(TINY_ID)
        assert set(state.submitted) in (set(), {"ann", "bob"}), "all or nothing"
    room.desk(LEAD).finish_round(TINY_ID)
    state = room.desk(LEAD).state(TINY_ID)
    assert set(state.submitted) == {"ann", "bob"}
    assert all(state.reviews[1, one].plan for one in ("ann", "bob"))
    ids = [one.trailers["Review-Id"] for one in room.store.history(TINY_ID) if "round 1" in one.subject]
    assert len(ids) == len(set(ids)) == 4


def test_agreement_is_told_by_dimension_and_by_checkpoint(room: Room) -> None:
    room.judged(finding())
    states = [room.desk(LEAD).state(TINY_ID)]
    by_dimension = agreement_by_dimension(states, "raw")
    assert (by_dimension["instruction_clarity"].n, by_dimension["instruction_clarity"].value) == (1, 0.0)
    assert by_dimension["patient_safety"].value == 1.0
    by_checkpoint = agreement_by_checkpoint(states, "raw")
    assert (by_checkpoint["all"].n, by_checkpoint[TINY_ID].value, by_checkpoint["all"].few) == (3, 1.0, True)
    assert agreement_by_checkpoint(states, "alpha")["all"].value is None, "nobody ever varied"
    with pytest.raises(UsageError, match="no measure"):
        agreement_by_dimension(states, "gamma")


def test_unassigning_the_one_who_was_missing_opens_the_round(room: Room) -> None:
    room.opened()
    room.desk(ANN).lock_plan(TINY_ID, PLAN)
    room.desk(ANN).submit_review(TINY_ID, review())
    room.desk(BOB).lock_plan(TINY_ID, PLAN)
    room.desk(LEAD).unassign(TINY_ID, "bob", "On leave.")
    state = room.desk(LEAD).state(TINY_ID)
    assert state.submitted == ("ann",)
    assert state.reviews[1, "bob"].plan, "what was locked is not lost"


# Stages 2 and 3


def test_a_decision_on_overtaken_bytes_is_refused_and_says_what_changed(room: Room) -> None:
    room.judged()
    one = room.proposed(LAB)
    two = room.proposed(TextEdit(path="instruction.md", find="Please decide", replace="Decide"))
    room.decided(two)
    room.desk(AUTHOR).apply(TINY_ID, [two.changes[0].change], gate=passing)
    with pytest.raises(UsageError) as refused:
        room.decided(one, "approve", ANN)
    assert "version 2, applied by author on" in str(refused.value)
    assert "changed instruction.md" in str(refused.value)
    stale = decision(one.changes[0], "approve") | {"base": "0" * 64}
    with pytest.raises(UsageError):
        room.desk(ANN).decide(TINY_ID, [stale])


def test_two_proposals_on_one_line_cannot_both_be_applied_and_both_are_named(room: Room) -> None:
    room.judged()
    one = room.proposed(LAB)
    two = room.proposed(TextEdit(path="instruction.md", find="follow-up laboratory", replace="blood tests"))
    for prepared in (one, two):
        room.decided(prepared)
    head = room.store.head()
    with pytest.raises(ConflictError) as refused:
        room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    assert set(refused.value.changes) == {one.changes[0].change, two.changes[0].change}
    assert room.store.head() == head
    room.decided(two, "reject")
    room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    assert status_of(room) == {"instruction.md": "rejected"} or "applied" in status_of(room).values()


def test_apply_commits_what_was_shown_the_version_and_the_changelog_and_resolves_findings(room: Room) -> None:
    room.judged(finding())
    (id,) = room.desk(LEAD).state(TINY_ID).findings
    prepared = room.proposed(LAB, TITLE, OPTIONAL, findings=(id,))
    with pytest.raises(UsageError, match="waiting for ann, bob"):
        room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    room.decided(prepared)
    before = room.store.head()
    with room.store.at() as view:
        old = view.files(TINY_ID)
    shown = diff(outside_reviews(old), outside_reviews(prepared.after))
    done = room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    with room.store.at(done.commit) as view:
        new = view.files(TINY_ID)
    for one in shown:
        committed = new[one.path]
        if one.path == "task.toml":
            committed = committed.replace(b"version = 2", b"version = 1")
        assert apply_diff(one.text, old.get(one.path, b"")) == committed
    changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    assert {p for p in changed if not p.startswith("reviews/") and p != "CHANGELOG.md"} == {one.path for one in shown}
    entry = new["CHANGELOG.md"].decode()
    assert entry.index("## 2") < entry.index("## 1")
    assert "Changes what the agent sees and how it is graded" in entry
    state = room.desk(LEAD).state(TINY_ID)
    assert state.findings[id].end == "resolved"
    assert state.gate
    assert state.gate.passed
    assert state.package == ev.package_hash(new)
    assert room.store.head() != before


def test_a_failing_gate_applies_nothing_and_names_the_changes_it_is_due_to(room: Room) -> None:
    room.judged()
    prepared = room.proposed(LAB, TITLE)
    room.decided(prepared)

    def gate(files: Mapping[str, bytes], task: str) -> GateResult:
        bad = b"creatinine in 3 months" in files["instruction.md"]
        return GateResult(task, "0" * 64, (Check("Reference plan passes", "failed" if bad else "passed", "cp2 fail"),))

    head = room.store.head()
    with pytest.raises(ConflictError, match="Reference plan passes: cp2 fail") as refused:
        room.desk(AUTHOR).apply(TINY_ID, gate=gate)
    assert refused.value.changes == (prepared.changes[0].change,)
    assert room.store.head() == head
    room.desk(AUTHOR).apply(TINY_ID, [prepared.changes[1].change], gate=gate)
    assert status_of(room)["task.toml#title"] == "applied"


def test_a_change_that_was_taken_back_can_come_again_and_is_decided_anew(room: Room) -> None:
    room.judged()
    back = TextEdit(path="instruction.md", find=LAB.replace, replace=LAB.find)
    for edit in (LAB, back):
        room.decided(room.proposed(edit))
        room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    again = room.proposed(LAB)
    state = room.desk(LEAD).state(TINY_ID).changes[again.changes[0].change]
    assert (state.status, state.waiting_for) == ("undecided", ("ann", "bob"))


def test_a_change_up_for_decision_is_not_proposed_twice(room: Room) -> None:
    room.judged()
    room.proposed(LAB)
    with pytest.raises(UsageError, match="up for decision already"):
        room.proposed(LAB)


def test_an_edit_of_the_whole_file_overtakes_one_of_a_checkpoint_in_it(room: Room) -> None:
    room.judged()
    room.proposed(OPTIONAL)
    whole = room.proposed(TextEdit(path="checkpoints.toml", find='id = "cp1"\n', replace='id = "cp1"\nkind = ""\n'))
    room.decided(whole)
    room.desk(AUTHOR).apply(TINY_ID, [whole.changes[0].change], gate=passing)
    assert status_of(room)["checkpoints.toml#cp1"] == "outdated"


# Sign-off and release


def test_release_needs_every_signature_and_survives_a_crash_before_its_tag(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.judged()
    with pytest.raises(UsageError, match="gate has passed"):
        room.desk(ANN).sign(TINY_ID, "Sound.")
    with room.store.at() as view:
        files = view.files(TINY_ID)
    room.desk(LEAD).record_gate(TINY_ID, passing(files, TINY_ID))
    room.desk(ANN).sign(TINY_ID, "Sound.")
    with pytest.raises(UsageError, match="not signed by: bob"):
        room.desk(LEAD).release(TINY_ID)
    room.desk(BOB).sign(TINY_ID, "Sound.")

    def crash(*arguments: object, **values: object) -> None:
        raise StoreError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(type(room.store), "tag", crash)
        with pytest.raises(StoreError, match="power"):
            room.desk(LEAD).release(TINY_ID)
    assert room.store.tags() == {}
    made = room.desk(LEAD).release(TINY_ID)
    assert room.store.tags() == {f"release/{TINY_ID}/1": made.commit}
    assert "Signed by ann (reviewer)" in made.text
    assert room.desk(LEAD).state(TINY_ID).stage == "released"
    room.desk(JUDY).report_defect(TINY_ID, "1", "The range of creatinine is wrong.")
    with pytest.raises(UsageError, match="never released"):
        room.desk(JUDY).report_defect(TINY_ID, "7", "x")


def test_who_never_judged_the_task_cannot_be_signed_over(room: Room) -> None:
    room.judged()
    room.desk(LEAD).waive(TINY_ID, "cleo", "Short of people.")
    room.desk(LEAD).assign(TINY_ID, "cleo", "reviewer")
    unmet = {one.key: one.todo for one in room.desk(CLEO).requirements(TINY_ID) if not one.met}
    assert "cleo" in unmet["reviews"]


# Faults of the machine


def test_a_repository_moved_away_is_one_message(room: Room, tmp_path: Path) -> None:
    room.opened()
    room.store.path.rename(tmp_path / "moved.git")
    for act in (lambda: room.desk(ANN).lock_plan(TINY_ID, PLAN), lambda: room.desk(LEAD).state(TINY_ID)):
        with pytest.raises(StoreError, match="not there"):
            act()
    (tmp_path / "moved.git").rename(room.store.path)
    room.desk(ANN).lock_plan(TINY_ID, PLAN)


FULL = """
import resource, signal, sys
from authoring.desk import Desk
from tasks.errors import WorkbenchError
from tasks.people import person
from tasks.store import Store
from tasks.workspace import Workspace
workspace = Workspace.find()
who = person(workspace.settings.people, "lead")
desk = Desk(workspace, Store(workspace.tasks_git), who)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
try:
    desk.unassign(sys.argv[1], "ann", "x" * 5000)
except WorkbenchError as fault:
    print(fault)
    sys.exit(7)
"""


def test_a_full_disk_is_one_message_and_nothing_half_written(room: Room) -> None:
    room.opened()
    head = room.store.head()
    done = subprocess.run(
        [sys.executable, "-c", FULL, TINY_ID], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert room.store.head() == head
    assert room.store.check() == []
    room.desk(LEAD).unassign(TINY_ID, "ann", "On leave.")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount of its own")
def test_a_read_only_workspace_is_one_message(room: Room) -> None:
    room.opened()
    path = str(room.workspace.path)
    code = (
        "import subprocess, sys\n"
        f"subprocess.run(['mount', '--bind', '-o', 'ro', {path!r}, {path!r}], check=True)\n"
        f"subprocess.run(['mount', '-o', 'remount,ro,bind', {path!r}], check=True)\n"
        f"sys.exit(subprocess.run([sys.executable, '-m', 'authoring', 'unassign', {TINY_ID!r}, 'ann',"
        " '--reason', 'x', '--as', 'lead']).returncode)\n"
    )
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine allows no mounts")
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_state_db_that_is_gone_bad_stops_before_anything_is_committed(room: Room) -> None:
    room.opened()
    head = room.store.head()
    for path in room.workspace.path.glob("state.db*"):
        path.unlink()
    room.workspace.state_db.write_bytes(b"no database " * 500)
    with pytest.raises(EnvironmentFault, match=r"state\.db"):
        room.desk(ANN).lock_plan(TINY_ID, PLAN)
    assert room.store.head() == head


# Many at once


def by_threads(room: Room, threads: int, each: int) -> list[Exception]:
    failures: list[Exception] = []

    def work(worker: int) -> None:
        try:
            for n in range(each):
                for _ in range(2 if n % 5 == 0 else 1):
                    room.desk(LEAD).waive(TINY_ID, "cleo", f"reason {worker}-{n}", review_id=f"w{worker}-{n}")
        except Exception as failure:  # noqa: BLE001 (whatever it is, the test must show it)
            failures.append(failure)

    running = [threading.Thread(target=work, args=(worker,)) for worker in range(threads)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return failures


def landed(room: Room, prefix: str) -> list[str]:
    events = [one for one in room.desk(LEAD).state(TINY_ID).waivers if one.submission.startswith(prefix)]
    commits = [one.trailers["Review-Id"] for one in room.store.history(TINY_ID) if "Review-Id" in one.trailers]
    assert sorted(one.submission for one in events) == sorted(c for c in commits if c.startswith(prefix))
    return [one.submission for one in events]


def test_eight_threads_of_fifteen_submissions_all_land_once(room: Room) -> None:
    assert by_threads(room, 8, 15) == []
    assert sorted(landed(room, "w")) == sorted(f"w{worker}-{n}" for worker in range(8) for n in range(15))
    assert room.store.check() == []


WORKER = """
import sys
from authoring.desk import Desk
from tasks.people import person
from tasks.store import Store
from tasks.workspace import Workspace
workspace = Workspace.find()
lead = person(workspace.settings.people, "lead")
for n in range(int(sys.argv[3])):
    desk = Desk(workspace, Store(workspace.tasks_git), lead)
    desk.waive(sys.argv[1], "cleo", f"reason {n}", review_id=f"{sys.argv[2]}-{n}")
"""


def by_processes(room: Room, processes: int, each: int) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, TINY_ID, f"p{n}", str(each)], env=os.environ | {"PYTHONPATH": str(ROOT)}
        )
        for n in range(processes)
    ]
    assert [one.wait(timeout=280) for one in running] == [0] * processes


def test_four_processes_of_fifteen_submissions_all_land_once(room: Room) -> None:
    by_processes(room, 4, 15)
    assert sorted(landed(room, "p")) == sorted(f"p{worker}-{n}" for worker in range(4) for n in range(15))
    assert room.store.check() == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("time", range(10))
def test_ten_times_over_everything_lands(room: Room, time: int) -> None:
    assert by_threads(room, 8, 15) == []
    assert len(set(landed(room, "w"))) == 120
    by_processes(room, 4, 15)
    assert len(set(landed(room, "p"))) == 60
    assert room.store.check() == []


def test_a_round_may_have_a_day_by_which_reviews_are_asked_for(room: Room) -> None:
    lead = room.desk(LEAD)
    for one in (ANN, BOB):
        lead.assign(TINY_ID, one.id, "reviewer")
    today = datetime.now(UTC).date()
    with pytest.raises(UsageError, match="is over"):
        lead.open_round(TINY_ID, due=today - timedelta(days=2))
    lead.open_round(TINY_ID, due=today + timedelta(days=5))
    assert lead.state(TINY_ID).due == today + timedelta(days=5)
    for one in (ANN, BOB):
        room.desk(one).lock_plan(TINY_ID, PLAN)
        room.desk(one).submit_review(TINY_ID, review(()))
    # The next round has a day of its own, or none.
    lead.open_round(TINY_ID)
    assert lead.state(TINY_ID).due is None


# Big and nasty


def test_a_thousand_findings_and_a_long_one_are_kept(room: Room) -> None:
    many = [finding(f"Number {n}.", weight="note") for n in range(1000)] + [finding("word " * 199_999)]
    room.judged(*many)
    state = room.desk(LEAD).state(TINY_ID)
    assert len(state.open_findings) == 1001
    assert max(len(one.finding.text) for one in state.open_findings) == 999_995
    room.desk(LEAD).open_round(TINY_ID)
    room.desk(ANN).lock_plan(TINY_ID, PLAN)
    too_long = review([finding("x" * 1_000_001)])
    with pytest.raises(UsageError, match="text"):
        room.desk(ANN).submit_review(TINY_ID, too_long)


def edits_of(kind: str) -> Edit:
    return {"lab": LAB, "title": TITLE, "optional": OPTIONAL}[kind]


@pytest.mark.parametrize("order", [("lab", "title", "optional"), ("optional", "lab", "title")])
def test_the_order_of_approvals_does_not_change_the_bytes(room: Room, order: tuple[str, ...]) -> None:
    room.judged()
    prepared = room.proposed(LAB, TITLE, OPTIONAL)
    refs: dict[str, Any] = dict(zip(("lab", "title", "optional"), prepared.changes, strict=True))
    for kind in order:
        for one in (ANN, BOB):
            room.desk(one).decide(TINY_ID, [decision(refs[kind], "approve")])
    composed = outside_reviews(room.desk(AUTHOR).composed(TINY_ID).after)
    wanted = outside_reviews(prepared.after)
    apart = ("task.toml", "CHANGELOG.md")
    assert {k: v for k, v in composed.items() if k not in apart} == {k: v for k, v in wanted.items() if k not in apart}
