"""The clinical tables that graders read: names, classes, units, tests, sites, specialties and safety pairs, as data.

Each table is `data/<name>.json`, one row a line. Every row carries `source` (a key of the table `sources`), `section`
(where in it), `date` (when the row was written or last checked) and `verified`: false where the source could not be
read when the row was written, so that the value comes from knowledge and derivation and waits for a check.
A row is added by adding a line; nothing else in the project lists the rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tasks.errors import UsageError

_DATA = Path(__file__).resolve().parent / "data"

Row = dict[str, Any]


@cache
def names() -> tuple[str, ...]:
    """Every table there is, in alphabetical order."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.json")))


@cache
def rows(name: str) -> tuple[Row, ...]:
    """The rows of one table, in file order. UsageError where there is no such table."""
    path = _DATA / f"{name}.json"
    if not path.is_file():
        raise UsageError(f"there is no clinical table {name!r}", remedy=f"The tables are: {', '.join(names())}.")
    loaded: list[Row] = json.loads(path.read_text("utf-8"))
    return tuple(loaded)


def source_of(row: Row) -> str:
    """Where the row comes from, as one line for people."""
    found = next((s for s in rows("sources") if s["key"] == row["source"]), None)
    origin = f"{found['org']}, {found['title']} ({found['edition']})" if found else str(row["source"])
    checked = "" if row["verified"] else ", not verified"
    return f"{origin}; {row['section']}; {row['date']}{checked}"


def render(name: str | None = None) -> str:
    """A table as readable text, a row a line with its source; without a name, the list of tables with their sizes."""
    if name is None:
        lines = []
        for table in names():
            found = rows(table)
            unverified = sum(not row["verified"] for row in found)
            lines.append(f"{table:<16} {len(found):>4} rows  {unverified:>4} not verified")
        return "\n".join(lines)
    lines = []
    for row in rows(name):
        told = [f"{key}: {_shown(value)}" for key, value in row.items() if key not in _PROVENANCE and value]
        lines.append("; ".join(told) + f"  [{source_of(row)}]")
    return "\n".join(lines)


_PROVENANCE = ("source", "section", "date", "verified")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(inner)}" for key, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_shown(inner) for inner in value)
    return str(value)
