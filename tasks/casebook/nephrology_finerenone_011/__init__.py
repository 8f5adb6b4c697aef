"""Task nephrology-finerenone-011: what to add for the kidneys of a man whose empagliflozin "was stopped for a UTI".

The chart is made here; what a person wrote (instruction, checkpoints, plans, examples) stands in `written/` and goes
into the package as it is. Clinical rationale: docs/bundled-tasks.md.
"""

from __future__ import annotations

from datetime import datetime

from tasks.casebook.charting import Record
from tasks.casebook.nephrology_finerenone_011.labs import add_labs
from tasks.casebook.nephrology_finerenone_011.lists import (
    add_allergies,
    add_medicines,
    add_orders,
    add_problems,
    add_procedures,
    add_vaccines,
)
from tasks.casebook.nephrology_finerenone_011.people import PATIENT, add_people
from tasks.casebook.nephrology_finerenone_011.visits import add_notes, add_visits

TASK = "nephrology-finerenone-011"
NOW = datetime.fromisoformat("2026-03-12T09:30:00-05:00")


def record() -> Record:
    """The whole record, at the task's clock."""
    made = Record(TASK, PATIENT, NOW)
    for add in (
        add_people, add_visits, add_notes, add_labs, add_problems, add_medicines, add_allergies, add_vaccines,
        add_procedures, add_orders,
    ):  # fmt: skip
        add(made)
    return made


def chart() -> dict[str, bytes]:
    """`chart/<Type>.ndjson` -> bytes."""
    return record().bundle()
