"""docs/review.md is held to the code."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from authoring.commands import changes, gate, judgement, rounds, standing
from tasks.review.permissions import TABLE, Action
from tasks.review.state import Stage

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "review.md").read_text("utf-8")
#: Command -> the action that it needs, for every command that writes.
NEEDS: dict[str, Action] = {
    "assign": "assign", "unassign": "assign", "waive": "waive", "open": "open_round", "dismiss": "dismiss_finding",
    "release": "release", "lock": "review", "amend": "review", "review": "review", "withdraw": "withdraw_finding",
    "decide": "decide", "signoff": "sign", "propose": "propose", "lift": "lift_veto", "adjudicate": "adjudicate",
    "apply": "apply", "gate": "run_gate",
}  # fmt: skip


def commands() -> set[str]:
    app = typer.Typer()
    for module in (rounds, judgement, changes, gate, standing):
        module.register(app)
    return {str(one.name) for one in app.registered_commands}


def test_every_command_is_on_the_page_with_who_may() -> None:
    assert commands() == set(NEEDS) | {"status", "show"}
    for name in commands():
        row = next(line for line in PAGE.splitlines() if line.startswith("| `") and f"`{name}`" in line)
        if name in ("status", "show", "lift", "gate"):
            continue
        roles = {role for role, actions in TABLE.items() if NEEDS[name] in actions}
        assert {one.strip() for one in row.split("|")[2].split(",")} == roles


@pytest.mark.parametrize("stage", Stage.__args__)
def test_every_stage_is_on_the_page(stage: str) -> None:
    assert stage in PAGE
