"""A chart for the server from whatever a user has: a chart folder, an NDJSON file, or bundles of another system."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tasks.fhir.chart import Chart
from tasks.fhir.intake import as_chart_files, read_records


@dataclass(frozen=True)
class OpenedChart:
    """A chart, what of the input could not be read (by reason), and how many references lead nowhere in it."""

    chart: Chart
    dropped: Counter[str]
    dangling: int


def open_chart(path: Path) -> OpenedChart:
    """Everything under `path` that can be read, with references by urn:uuid and fullUrl made relative.

    What is not valid R4 is kept: a server shows a record as it is. Raises UsageError, ChartError.
    """
    intake = read_records(path, only_valid=False)
    return OpenedChart(Chart.open(as_chart_files(intake.resources)), intake.dropped, intake.dangling.total())
