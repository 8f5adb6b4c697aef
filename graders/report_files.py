"""A report of stored batches in the form that is asked for: text, JSON, CSV, Parquet or a static page."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from graders import report
from graders.facts import Set, comparable, trial_facts
from graders.planned import PlannedSource
from tasks.errors import EnvironmentFault, UsageError
from tasks.package import TaskSource
from tasks.stored import Batch

if TYPE_CHECKING:
    import pandas as pd


def made(
    batches: Sequence[Batch],
    source: TaskSource | None,
    *,
    view: str = "cells",
    form: str = "table",
    k: int = 3,
    cache: Path | None = None,
) -> str | bytes:
    """The report. `view`: cells or a frame of graders/frames.py; `form`: table, json, csv, parquet (bytes), html.

    Raises UsageError for a view or form that is not there.
    """
    if view == "cells" and form in ("table", "json"):
        found = report.cells(report.trial_rows(batches, source))
        if form == "table":
            return report.table(found)
        return json.dumps([asdict(cell) for cell in found], ensure_ascii=False, indent=1)
    if form == "html":
        from graders import report_page

        facts = comparable(trial_facts(batches, source, cache=cache))
        title = f"Results of {', '.join(batch.name for batch in batches)}"
        return report_page.page(title, facts, k=k, gaps=_gaps(batches, source))
    frame = _frame(view, batches, source, k, cache)
    if form == "table":
        return str(frame.to_string(index=False, na_rep="-")) if len(frame) else "Nothing to show."
    if form == "json":
        return json.dumps(json.loads(frame.to_json(orient="records")), ensure_ascii=False, indent=1)
    if form == "csv":
        return str(frame.to_csv(index=False))
    if form == "parquet":
        buffer = BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    raise UsageError(f"there is no form {form!r}.", remedy="Forms: table, json, csv, parquet, html.")


def _frame(view: str, batches: Sequence[Batch], source: TaskSource | None, k: int, cache: Path | None) -> pd.DataFrame:
    from graders import frames

    if view == "cells":
        return report.report(batches, source)
    if view == "gaps":
        return _gaps(batches, source)
    found: Set = comparable(trial_facts(batches, source, cache=cache))
    by_view = {
        "agents": lambda: frames.agents(found),
        "figures": lambda: frames.figures(found, k),
        "comparisons": lambda: frames.comparisons(found),
        "groups": lambda: frames.by_part(found, "group"),
        "workflows": lambda: frames.by_part(found, "workflow"),
        "heat": lambda: frames.heat(found),
        "failures": lambda: frames.failure_shares(found),
        "first-failures": lambda: frames.first_failures(found),
        "judges": lambda: frames.judges(found),
        "causes": lambda: frames.causes(found),
        "trials": lambda: frames.trials(found),
        "verdicts": lambda: frames.verdicts(found),
    }
    if view not in by_view:
        raise UsageError(f"there is no view {view!r}.", remedy=f"Views: cells, gaps, {', '.join(by_view)}.")
    return by_view[view]()


def _gaps(batches: Sequence[Batch], source: TaskSource | None) -> pd.DataFrame:
    import pandas as pd

    from graders.gap import gap_frame

    parts = [gap_frame(batch.trials(), report.task_loader(source or PlannedSource(batch))) for batch in batches]
    return pd.concat(parts, ignore_index=True) if parts else gap_frame((), lambda id: "")


def written(path: Path, content: str | bytes) -> None:
    """Write a report so that the file is there whole or not at all. Raises EnvironmentFault where it cannot be."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise EnvironmentFault(f"the report cannot be written: {error.strerror}.", where=str(path)) from None
