"""The agents that need no key, through the same loop as any model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from providers.base import ModelConfigError
from runtime import ehr
from runtime.agent import run_agent
from runtime.agents import Oracle, Parrot, Shotgun, built_in, oracles
from runtime.tools import Toolbox
from tasks.errors import UsageError
from tasks.package import Task, load
from tasks.trials import Outcome
from tests.runtime.conftest import NOW, chart_of
from tests.tasks.packages import NOTE_TEXT, TINY_ID, TINY_NOTE, tiny_files
from tests.tasks.packages import chart as tiny_chart


def play(model: Any, box: Toolbox, instruction: str) -> tuple[Any, list[dict[str, Any]]]:
    tools: list[dict[str, Any]] = []

    def record(type: str, data: dict[str, Any]) -> None:
        if type == "tool":
            tools.append(data)

    return run_agent(model, box, instruction=instruction, record=record), tools


def two_plans() -> Task:
    files = tiny_files()
    other = {path.replace("/apixaban/", "/warfarin/"): data for path, data in files.items() if "solution/" in path}
    return load(files | other, where=TINY_ID)


def test_the_oracle_replays_its_plan_and_fills_in_what_it_created(
    tiny_task: Task, box: Toolbox, session: ehr.Session, output: Path
) -> None:
    run, tools = play(built_in("oracle", tiny_task), box, tiny_task.instruction)
    plan = tiny_task.plans["apixaban"]
    assert run.outcome is Outcome.finished
    assert [data["tool"] for data in tools] == [action.tool for action in plan.actions]
    assert not any(data["error"] for data in tools)
    laboratory = session.ledger[1].reference
    message = json.loads(session.ledger[2].resource)
    assert message["basedOn"] == [{"reference": laboratory}]
    assert (output / Path(TINY_NOTE).name).read_bytes() == plan.files["reply.md"]


def test_each_plan_has_its_oracle() -> None:
    task = two_plans()
    assert oracles(task) == ("oracle", "oracle:warfarin")
    first, second = (built_in(name, task) for name in oracles(task))
    assert isinstance(first, Oracle)
    assert isinstance(second, Oracle)
    assert (first.plan.name, second.plan.name) == ("apixaban", "warfarin")


def test_an_agent_or_plan_that_is_not_there_is_said_so(tiny_task: Task) -> None:
    for name in ("oracle:none", "noop:x", "nope"):
        with pytest.raises(UsageError):
            built_in(name, tiny_task)
    files = {path: data for path, data in tiny_files().items() if "solution/" not in path}
    with pytest.raises(ModelConfigError):
        built_in("oracle", load(files, where=TINY_ID))


def test_noop_does_nothing(tiny_task: Task, box: Toolbox, session: ehr.Session) -> None:
    run, tools = play(built_in("noop", tiny_task), box, tiny_task.instruction)
    assert (run.outcome, run.turns, tools, session.ledger) == (Outcome.finished, 1, [], ())
    assert run.flags == ("no tool calls",)


def test_shotgun_orders_everything_and_all_of_it_is_stored(
    tiny_task: Task, box: Toolbox, session: ehr.Session, output: Path
) -> None:
    run, tools = play(Shotgun(), box, tiny_task.instruction)
    assert run.outcome is Outcome.finished
    assert [data["result"] for data in tools if data["error"]] == []
    kinds = {write.reference.partition("/")[0] for write in session.ledger}
    assert kinds == {"MedicationRequest", "ServiceRequest", "Appointment", "Communication"}
    drugs = [json.loads(write.resource) for write in session.ledger if write.reference.startswith("Medication")]
    assert len(drugs) > 60
    assert all(drug["subject"] == {"reference": "Patient/p-7001"} for drug in drugs)
    assert (output / Path(TINY_NOTE).name).read_text().count("Start ") == len(drugs)


def test_parrot_copies_the_chart_into_the_deliverable_and_orders_nothing(
    tiny_task: Task, box: Toolbox, session: ehr.Session, output: Path
) -> None:
    run, _ = play(Parrot(), box, tiny_task.instruction)
    assert run.outcome is Outcome.finished
    assert session.ledger == ()
    note = (output / Path(TINY_NOTE).name).read_text()
    for row in tiny_chart():
        if row["resourceType"] not in ("Practitioner", "Encounter"):
            assert f'"id":"{row["id"]}"' in note
    assert json.dumps(NOTE_TEXT, ensure_ascii=False)[1:-1] in note


def test_parrot_narrows_what_was_cut_until_it_has_read_it_all(tiny_task: Task, tmp_path: Path) -> None:
    weight = next(row for row in tiny_chart() if row["id"] == "o-weight")
    rows = [
        weight | {"id": f"w-{year}-{month:02}", "effectiveDateTime": f"{year}-{month:02}-10"}
        for year in range(2015, 2026)
        for month in range(1, 13)
    ]
    chart = chart_of([*(row for row in tiny_chart() if row["id"] != "o-weight"), *rows])
    with ehr.open(chart, now=NOW) as session:
        run, _ = play(Parrot(), Toolbox(session, tmp_path / "out", now=NOW), tiny_task.instruction)
    assert run.outcome is Outcome.finished
    note = (tmp_path / "out" / Path(TINY_NOTE).name).read_text()
    assert [row["id"] for row in rows if f'"id":"{row["id"]}"' not in note] == []
