"""The 3,200 searches that a real HAPI FHIR 8.8 answered: reading them, and saying where another answer differs.

Not a test itself: `test_hapi_answers.py` asks the engine in process, `tests/ehr` asks a session over HTTP. Other
tests load it through the fixture `hapi_rows` of tests/conftest.py.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

CHARTS = ("edge", "synthea", "clinosim")

#: Paging stopped there when the answers were collected.
MOST_PAGES = 80

#: Answers held to be wrong by R4 though the file does not say so: request -> why.
WRONG_BY_R4: dict[str, str] = {}


class Answer(NamedTuple):
    """What a server said over all pages of a search: HTTP status, total, matches and includes as Type/id."""

    status: int
    total: int | None = None
    ids: tuple[str, ...] = ()
    included: frozenset[str] = frozenset()


Ask = Callable[[str], Answer]


def chart_files(shared: Path, chart: str) -> Mapping[str, bytes]:
    """The files of a chart as HAPI had them, by name."""
    folder = shared / "hapi-answers"
    if chart != "clinosim":
        name = {"edge": "edge.ndjson", "synthea": "synthea.ndjson.gz"}[chart]
        return {name: (folder / name).read_bytes()}
    without = set((folder / "clinosim-without.txt").read_text("utf-8").split())
    files = {}
    for path in sorted((shared / "fhir-clinosim").glob("*.ndjson.gz")):
        kept = []
        for line in gzip.decompress(path.read_bytes()).split(b"\n"):
            if line.strip():
                body = json.loads(line)
                if f"{body['resourceType']}/{body['id']}" not in without:
                    kept.append(line)
        if kept:
            files[path.name.removesuffix(".gz")] = b"\n".join(kept) + b"\n"
    return files


def answers(shared: Path, chart: str) -> list[dict[str, Any]]:
    """The rows of a chart's answer file."""
    text = gzip.decompress((shared / "hapi-answers" / f"{chart}-answers.ndjson.gz").read_bytes()).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def split(asked: str) -> tuple[str, list[tuple[str, str]]]:
    """(type, parameters) of a request `Type?a=b&c=d`."""
    kind, _, query = asked.partition("?")
    return kind, parse_qsl(query, keep_blank_values=True)


def _counts_only(params: list[tuple[str, str]]) -> bool:
    return ("_summary", "count") in params or ("_count", "0") in params


def difference(row: Mapping[str, Any], answer: Answer) -> str:
    """How an answer differs from the one wanted; "" if it does not."""
    params = split(row["q"])[1]
    status = row.get("r4_status", row["status"])
    if answer.status != status:
        return f"status {answer.status}, wanted {status}"
    if status != 200:
        return ""
    if "r4_ids" in row:
        wanted = sorted(row["r4_ids"])
        if answer.total != len(wanted):
            return f"total {answer.total}, wanted {len(wanted)} by R4"
        if not _counts_only(params) and sorted(answer.ids) != wanted:
            return f"rows {sorted(set(answer.ids) ^ set(wanted))} by R4"
        return ""
    if answer.total != row["total"]:
        return f"total {answer.total}, wanted {row['total']}"
    if row["more"]:
        return ""
    ids = list(answer.ids)
    if "ids_more_than" in row:
        if len(ids) != row["ids_more_than"]:
            return f"{len(ids)} rows, wanted {row['ids_more_than']}"
        if row["ordered"] and ids[: len(row["ids"])] != row["ids"]:
            return "order of the first rows"
    elif sorted(ids) != sorted(row["ids"]):
        return f"rows {sorted(set(ids) ^ set(row['ids']))}"
    elif row["ordered"] and ids != row["ids"]:
        return f"order {ids}, wanted {row['ids']}"
    if answer.included != set(row["included"]):
        return f"included {sorted(answer.included ^ set(row['included']))}"
    return ""


def differences(shared: Path, chart: str, ask: Ask) -> list[str]:
    """Every row of a chart that is answered otherwise, a line each; those of WRONG_BY_R4 aside."""
    found = []
    for row in answers(shared, chart):
        if row["q"] not in WRONG_BY_R4 and (told := difference(row, ask(row["q"]))):
            found.append(f"{row['q']}: {told}")
    return found
