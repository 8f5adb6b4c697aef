"""Trial, Trials, Run and Models: what they say of trials whose task has changed, that stopped, or that broke off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from graders.report import trial_row
from review_ui import by_hand, frame, planning, runs, stored_trials
from review_ui.markup import Markup
from review_ui.steps import order_lines
from review_ui.trials import outcome_view
from review_ui.trials.standing import Standing, standing
from runtime import jobs
from runtime.batch import Item, run_batch
from runtime.executors import LocalExecutor
from runtime.trial import Settings
from tasks.manifest import Limits
from tasks.package import FolderSource, Task
from tasks.stored import Batch, StoredTrial, TrialWriter
from tasks.trials import Outcome, QuoteCite, ResourceCite, TrialKey, TrialOutcome, Verdict, Write
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
ID = "nephrology-small"
Open = Callable[..., AppTest]
MORE = """
[[checkpoint]]
id = "cp9"
title = "Losartan named"
capability = "data_retrieval"
criticality = "required"
reachable = ["paper"]
rests_on = ["MedicationRequest/m-2"]
grader = "code"
seen = ["MedicationRequest/m-2"]
"""


@pytest.fixture
def folder(packages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made: Path = packages.write(tmp_path / "tasks")
    source = FolderSource(tmp_path / "tasks")
    monkeypatch.setattr(frame, "source", lambda: source)
    return made


@pytest.fixture
def batch(folder: Path, workspace: Path) -> Batch:
    made = Batch.create(workspace / "runs", "b-1")
    with LocalExecutor(1) as executor:
        run_batch(made, [Item(task(folder), "noop", 1, folder)], Settings(), executor)
    return made


@pytest.fixture
def opened(folder: Path) -> Open:
    def app(page: str, **parameters: str) -> AppTest:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        test.run()
        test.switch_page(f"review_ui/pages/{page}")
        test.query_params.update(parameters)
        test.run()
        assert not test.exception
        return test

    return app


def task(folder: Path) -> Task:
    return FolderSource(folder.parent).load(folder.name)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text("utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new), "utf-8")


def ended(batch: Batch, key: TrialKey, outcome: Outcome, task: Task) -> StoredTrial:
    now = datetime.now(UTC)
    with TrialWriter(batch.path, key) as writer:
        writer.finish(
            TrialOutcome(
                key=key, outcome=outcome, started=now, ended=now, data_class="open", agent_digest=task.agent_digest,
                grade_digest=task.grade_digest,
            )
        )  # fmt: skip
    return StoredTrial.of(batch.path, key)


def buttons(test: AppTest) -> list[str]:
    return [button.label for button in test.button]


TRIAL = {"batch": "b-1", "task": ID, "agent": "noop", "run": "1"}

# ---- a trial of an earlier version of its task -----------------------------------------------------------------------


def test_a_new_checkpoint_asks_for_a_regrade_and_no_physician(
    opened: Open, batch: Batch, folder: Path, said: Callable[[AppTest], str]
) -> None:
    with (folder / "checkpoints.toml").open("a", encoding="utf-8") as file:
        file.write(MORE)
    page = opened("trial.py", **TRIAL)
    assert "Run 1: to regrade" in said(page)
    assert "needs a physician" not in said(page)
    assert "Checkpoints, as graded on an earlier version" in said(page)
    assert "Severe harm" not in said(page)
    assert "Not done: " not in said(page)
    assert "Regrade" in buttons(page)
    assert "To regrade" in said(opened("trials.py"))


def test_an_old_fail_is_no_pass_once_its_checkpoint_is_optional(
    opened: Open, batch: Batch, folder: Path, said: Callable[[AppTest], str]
) -> None:
    assert "Run 1: failed, 2 of 2 checkpoints missed" in said(opened("trial.py", **TRIAL))
    edit(folder, "checkpoints.toml", 'criticality = "critical"', 'criticality = "optional"')
    edit(folder, "checkpoints.toml", 'criticality = "required"', 'criticality = "optional"')
    page = said(opened("trial.py", **TRIAL))
    assert "Run 1: to regrade" in page
    assert "passed" not in page


def test_what_only_another_run_can_answer_offers_no_regrade(
    opened: Open, batch: Batch, folder: Path, said: Callable[[AppTest], str]
) -> None:
    edit(folder, "checkpoints.toml", "Potassium found", "Potassium was found")
    edit(folder, "instruction.md", "Please advise", "Please advise today")
    page = opened("trial.py", **TRIAL)
    assert "Run 1: to run again" in said(page)
    assert "Run again: the task has changed" in said(page)
    assert "Regrade" not in buttons(page)
    assert not page.toggle
    assert "Run again" in said(opened("trials.py"))


def test_trial_page_and_reports_go_by_one_rule(batch: Batch, folder: Path) -> None:
    (trial,) = batch.trials()
    now = task(folder)
    outcome, given = trial.outcome, trial.verdicts()
    assert outcome is not None
    later = replace(now, checkpoints=now.checkpoints[:1], files={**now.files, "checkpoints.toml": b"# other"})
    other = outcome.model_copy(update={"agent_digest": "0" * 64})
    for one, of, verdicts, due, regrades in [
        (outcome, now, given, "", False),
        (outcome, now, given[:1], "", True),
        (outcome, now, [given[0].model_copy(update={"result": "pass"})], "regrade", True),
        (outcome, later, given, "regrade", True),
        (outcome, now, [], "regrade", True),
        (other, later, given, "run again", False),
        (other, now, [], "run again", False),
        (outcome.model_copy(update={"outcome": Outcome.cancelled}), now, [], "", False),
        (None, now, [], "", False),
    ]:
        found = standing(one, of, verdicts)
        assert (found.due, found.regrades) == (due, regrades)
        row = trial_row(batch, trial, of, "", one, verdicts)
        assert (found.result.result if found.result else "") == ("" if due or not row.result else row.result)
        assert (stored_trials.due_chip(row) is not None) == bool(due)


# ---- what was stopped, runs, or is gone ------------------------------------------------------------------------------


@pytest.fixture
def four(batch: Batch, folder: Path) -> Iterator[Batch]:
    """Besides the graded run 1: 2 was stopped, 3 has lost its process, 4 runs, 5 ended with a provider error."""
    now = task(folder)

    def key(run: int) -> TrialKey:
        return TrialKey(task=ID, agent="noop", run=run)

    ended(batch, key(2), Outcome.cancelled, now)
    TrialWriter(batch.path, key(3)).close()
    ended(batch, key(5), Outcome.provider_error, now)
    with ExitStack() as held:
        held.enter_context(TrialWriter(batch.path, key(4)))
        yield batch


def test_a_stopped_trial_is_not_invalid_and_one_that_is_gone_does_not_run(
    opened: Open, four: Batch, said: Callable[[AppTest], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chips = {
        trial.key.run: stored_trials.open_chip(trial, trial.state) for trial in four.trials()
    }  # fmt: skip
    for run, words in {1: None, 2: "Stopped", 3: "Its process is gone", 4: "Running", 5: None}.items():
        assert (chips[run] is None) if words is None else words in str(chips[run])
    listed = said(opened("trials.py"))
    assert listed.count("Running") == 1
    assert listed.count("Its process is gone") == 1
    assert listed.count("Stopped") == 1
    place = Workspace(four.path.parents[1])
    monkeypatch.setattr(jobs, "_spawn", lambda *_: 1)
    jobs.start(place, ("runtime", "run"), about={"batch": "b-1"}, key="j1")
    page = said(opened("run.py", batch="b-1"))
    assert "5" in page.split("Done</div>")[1].split(" of ")[1][:3]
    assert page.count("Stopped") == 1
    assert page.count("Its process is gone") == 2  # the trial's, and the job's, which has none here
    assert page.count(">Invalid<") == 2  # its figure, and the one provider error


def test_a_batch_is_as_long_as_all_its_starts_asked_for(batch: Batch, folder: Path) -> None:
    rows = [trial_row(batch, one, task(folder), "", one.outcome, one.verdicts()) for one in batch.trials()]
    assert planning.total_of(batch, rows, (), 1) == 1
    line = batch.planned()[0]
    batch.add_plan({**line, "runs": 13})
    batch.add_plan({**line, "runs": 1})
    batch.add_plan({**line, "task": "other-task", "runs": 4})
    assert planning.total_of(batch, rows, (), 1) == 17
    assert planning.total_of(batch, rows, {"other-task"}, 1) == 13


# ---- what a run will do ----------------------------------------------------------------------------------------------


def test_an_older_batch_keeps_its_limits_and_an_empty_field_says_which_they_are(
    opened: Open, folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Batch.create(workspace / "runs", "b-7")
    with LocalExecutor(1) as executor:
        settings = Settings(limits=Limits(turns=7, cost=1.5))
        run_batch(made, [Item(task(folder), "noop", 1, folder)], settings, executor)
    commands: list[list[str]] = []
    monkeypatch.setattr(jobs, "start", lambda place, command, **_: commands.append(list(command)))
    page = opened("run.py")
    assert page.number_input(key="turns").placeholder == "100"
    assert page.number_input(key="cost").placeholder == "no limit"
    page.number_input(key="turns").set_value(55).run()
    page.selectbox(key="into").select("b-7").run()
    field = page.number_input(key="turns-b-7")
    assert (field.placeholder, field.disabled, field.value) == ("7", True, None)
    assert page.number_input(key="cost-b-7").placeholder == "1.50"
    next(button for button in page.button if button.label.startswith("Start")).click().run()
    (command,) = commands
    assert "b-7" in command
    assert not {"--turns", "--cost"} & set(command)


def test_what_ended_in_an_error_is_counted_and_can_be_run_again(
    opened: Open, batch: Batch, folder: Path, said: Callable[[AppTest], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch.add_plan({**batch.planned()[0], "runs": 2})
    ended(batch, TrialKey(task=ID, agent="noop", run=2), Outcome.config_error, task(folder))
    commands: list[list[str]] = []
    monkeypatch.setattr(jobs, "start", lambda place, command, **_: commands.append(list(command)))
    page = opened("run.py")
    page.selectbox(key="into").select("b-1").run()
    page.number_input(key="runs-of-each").set_value(2).run()
    agents = next(one for one in page.get("button_group") if one.key == "agents")
    agents.set_value(["noop"]).run()
    text = said(page)
    assert "Ended in an error, left so" in text
    assert "Everything of this is stored already" not in text
    assert next(button for button in page.button if button.label.startswith("Start")).disabled
    page.toggle(key="again-b-1").set_value(True).run()
    start = next(button for button in page.button if button.label.startswith("Start"))
    assert start.label == "Start 1 trial"
    start.click().run()
    assert "--retry-broken" in commands[0]


# ---- whose words are quoted ------------------------------------------------------------------------------------------


def test_quoted_words_say_whose_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "link", lambda page, **given: f"/{page}?{given.get('view', '')}")
    now = task(folder)
    body = (
        '{"resourceType": "Communication", "id": "w-1", "status": "completed",'
        ' "payload": [{"contentString": "Recheck potassium."}]}'
    )
    (written,) = order_lines([Write(sequence=1, call=1, reference="Communication/w-1", version=1, resource=body)])
    by_ref = {"Communication/w-1": written}

    def link(file: str) -> str:
        return outcome_view.quote_link(now, QuoteCite(file=file, text="potassium"), by_ref)

    assert link("/workspace/output/note.md") == '<a href="#note">note, “potassium”</a>'
    assert link("Communication/w-1") == '<a href="#orders">message, “potassium”</a>'
    assert link("instruction.md") == '<a href="/task?Checkpoints">the instruction, “potassium”</a>'
    assert link("record") == '<a href="/task?Chart">the record, “potassium”</a>'
    assert "note, " not in link("DocumentReference/n-1")
    assert 'href="/task?Every resource"' in link("DocumentReference/n-1")


def test_no_order_is_lost_from_a_long_list_and_each_keeps_its_checkpoints(
    batch: Batch, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Markup] = []
    monkeypatch.setattr(frame, "show", drawn.append)
    (trial,) = batch.trials()
    writes = [
        Write(
            sequence=n, call=n, reference=f"ServiceRequest/w-{n}", version=1,
            resource=f'{{"resourceType": "ServiceRequest", "id": "w-{n}", "code": {{"text": "Test {n}"}}}}',
        )
        for n in range(1, 501)
    ]  # fmt: skip
    cited = trial.verdicts()[0].model_copy(update={"cites": (ResourceCite(ref="ServiceRequest/w-20"),)})
    verdicts: dict[str, Verdict] = {cited.checkpoint: cited}
    outcome_view.orders(trial, None, order_lines(writes), Standing(verdicts=verdicts))
    text = "".join(drawn)
    assert 'id="orders"' in text
    row = text.split("Test 20<")[1].split("order-row")[0]
    assert cited.checkpoint in row
    assert "The first 412 of 500 are listed" in text
    assert "Test 412<" in text


# ---- a check that broke off -----------------------------------------------------------------------------------------


def test_a_check_that_broke_off_is_told_until_a_later_one_answers(
    workspace: Path, said: Callable[[AppTest], str], opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime.models import Checked, _place
    from tasks.stored import write_whole

    workspace.mkdir(parents=True)
    (workspace / "workbench.toml").write_text('[model."local/two"]\n')
    place = Workspace(workspace)
    monkeypatch.setattr(jobs, "_spawn", lambda *_: 1)
    job = jobs.start(place, ("runtime", "models", "check", "local/two"), about={"check": "local/two"}, key="j1")
    assert "the check did not come to an end: its process is gone" in said(opened("models.py"))
    answered = Checked(model="local/two", at=job.started_at + timedelta(seconds=1), settings="old")
    _place(place, "local/two").parent.mkdir(parents=True)
    write_whole(_place(place, "local/two"), answered.model_dump_json())
    page = said(opened("models.py"))
    assert "did not come to an end" not in page
    assert f"{answered.at.astimezone():%-d %b %Y, %H:%M}" in page


# ---- classes and plans -----------------------------------------------------------------------------------------------


def test_of_two_plannings_the_strictest_class_counts_and_a_line_cut_by_hand_stops_nobody(tmp_path: Path) -> None:
    def classes(name: str, *given: Any) -> str:
        batch = Batch.create(tmp_path / "runs", name)
        batch.add_plan({"kind": "planned"})
        for one in given:
            batch.add_plan({"kind": "planned", "task": "a-task", "data_class": one})
        return stored_trials.data_class(batch, "a-task")

    assert classes("b1", "open", "dua") == "dua"
    assert classes("b2", "dua", "phi") == "phi"
    assert classes("b3", "phi", "open", "dua") == "phi"
    assert classes("b4", "dua", "secret") == "secret"
    assert classes("b5") == ""


# ---- calibration -----------------------------------------------------------------------------------------------------

JUDGED = """
[[checkpoint]]
id = "cp3"
title = "The note says what to do"
capability = "documentation"
criticality = "required"
reachable = ["paper"]
rests_on = ['instruction#"potassium"']
grader = "judge"
file = "/workspace/output/note.md"
rubric = {pass = "Says what to do and when.", fail = "Says neither."}
"""


def test_a_queue_walks_the_batch_as_often_for_many_cases_as_for_one(
    opened: Open, folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, said: Callable[[AppTest], str]
) -> None:
    with (folder / "checkpoints.toml").open("a", encoding="utf-8") as file:
        file.write(JUDGED)
    walks: list[str] = []
    walk = runs.fingerprint

    def counted(batch: Batch) -> runs.Print:
        walks.append(batch.name)
        return walk(batch)

    monkeypatch.setattr(runs, "fingerprint", counted)
    needed = []
    for name, count in (("c-1", 1), ("c-9", 9)):
        made = Batch.create(workspace / "runs", name)
        with LocalExecutor(2) as executor:
            run_batch(made, [Item(task(folder), "noop", count, folder)], Settings(), executor)
        walks.clear()
        page = opened("calibrate.py", batch=name, **{"as": "demo-reviewer-1"})
        assert f"{count} left for you" in said(page)
        needed.append(walks.count(name))
    assert needed[0] == needed[1]


# ---- results ---------------------------------------------------------------------------------------------------------


def test_results_name_the_model_that_answered_where_it_is_not_the_one_asked_for(
    opened: Open, batch: Batch, folder: Path, said: Callable[[AppTest], str]
) -> None:
    now = task(folder)
    for agent, names in (("openai/m", ["m"]), ("openai/n", ["n-0601", "n-0701"])):
        trial = ended(batch, TrialKey(task=ID, agent=agent, run=1), Outcome.finished, now)
        verdicts = [one.model_copy(update={"result": "pass"}) for one in batch.trials()[0].verdicts()]
        trial.add_verdicts(verdicts)
        batch.add_plan({"kind": "answered", "task": ID, "agent": agent, "run": 1, "models": names})
    page = said(opened("results.py", batch="b-1"))
    assert "openai/n answered as n-0601, n-0701." in page
    assert "openai/m answered" not in page


def test_the_table_of_every_row_follows_the_choices_above_it(opened: Open, batch: Batch, packages: ModuleType) -> None:
    made = packages.write(batch.path.parents[2] / "tasks", "cardiology-small", specialty="Cardiology")
    with LocalExecutor(1) as executor:
        run_batch(batch, [Item(task(made), "noop", 1, made)], Settings(), executor)
    page = opened("results.py", batch="b-1", view="Every task and agent")
    assert sorted(page.dataframe[0].value["Task"]) == ["cardiology-small (draft)", f"{ID} (draft)"]
    page.selectbox(key="in").select("Cardiology").run()
    assert list(page.dataframe[0].value["Task"]) == ["cardiology-small (draft)"]
    page.selectbox(key="capability").select("data_retrieval").run()
    assert list(page.dataframe[0].value["Passed"]) == [0]


def test_a_stored_verdict_is_read_back_over_a_second_drawing_and_not_for_ever(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Markup] = []
    clock = [100.0]
    monkeypatch.setattr(frame, "show", drawn.append)
    monkeypatch.setattr(by_hand, "monotonic", lambda: clock[0])
    said = by_hand.Saved(verdict=batch.trials()[0].verdicts()[0])
    by_hand.read_back(said)
    by_hand.read_back(said)
    assert len(drawn) == 2
    clock[0] += by_hand.STANDS + 1
    by_hand.read_back(said)
    assert (len(drawn), said.verdict) == (2, None)
