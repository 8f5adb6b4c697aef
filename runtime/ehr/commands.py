"""`python -m runtime ehr ...`: a chart as a FHIR server on this machine."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from tasks.errors import WorkbenchError

ehr_app = typer.Typer(
    help="Serve a chart as a FHIR R4 server on this machine.", no_args_is_help=True, rich_markup_mode=None
)


@ehr_app.callback()
def _group() -> None:
    """EHR servers."""


@ehr_app.command()
def serve(
    chart: Annotated[Path, typer.Argument(help="A chart folder, an NDJSON file or a bundle; .gz too.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 lets the system choose a free one.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line instead of text.")] = False,
) -> None:
    """Serve CHART on 127.0.0.1 until stopped (Ctrl-C or SIGTERM). What clients write is gone afterwards."""
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    try:
        _serve(chart, port, as_json, stop)
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None


def _serve(path: Path, port: int, as_json: bool, stop: threading.Event) -> None:
    from runtime.ehr.server import LoopbackServer
    from runtime.ehr.session import open
    from tasks.fhir.chart import Chart
    from tasks.fhir.intake import as_chart_files, read_records

    # What is not valid R4 stays: a server shows a record as it is. Only what cannot be read is left out.
    intake = read_records(path, only_valid=False)
    chart = Chart.open(as_chart_files(intake.resources))
    server = LoopbackServer.of_this_process(port)
    with open(chart) as session:
        if as_json:
            said = {
                "base_url": session.base_url,
                "resources": len(chart),
                "types": dict(chart.types),
                "left_out": dict(intake.dropped),
                "references_that_lead_nowhere": intake.dangling.total(),
            }
            typer.echo(json.dumps(said))
        else:
            typer.echo(session.base_url)
            typer.echo(f"{len(chart)} resources; stop with Ctrl-C.", err=True)
            for reason, count in intake.dropped.most_common():
                typer.echo(f"left out: {count} x {reason}", err=True)
            if intake.dangling:
                typer.echo(f"{intake.dangling.total()} references lead nowhere in this chart.", err=True)
        sys.stdout.flush()
        stop.wait()
    server.stop()
