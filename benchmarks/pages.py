"""How long a reader waits: every page with 100 tasks, a chart of 30,720 resources, 3,600 stored trials, 10,000 steps.

    python -m benchmarks.pages [--rounds N] [--folder DIR]

A page is ready when Chromium has drawn everything of it and the server's script has ended. `load` = a fresh tab on the
page's address with a warm server; `open` = the same by a click inside the app; `act` = a filter, a fold, a switch.
The targets are p95 under 1 s for a page (load and open), under 0.4 s for an act. The first line, an empty page of the
same app, says what of it is the machine's. `cpu` is what the server computed for one round: seconds of its process,
which a busy machine does not stretch.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SUITE_TASK = "nephrology-finerenone-011"
AGENTS = [f"provider/model-{n}" for n in range(1, 13)]
SETTLED = (
    "() => document.querySelectorAll('[data-stale=true]').length === 0"
    " && document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
)
APP = """
import os
from pathlib import Path
from review_ui import frame
from tasks.package import FolderSource

SOURCE = FolderSource(Path(os.environ["BENCH_TASKS"]))
frame.source = lambda: SOURCE
frame.serve()
"""


def write_tasks(folder: Path, count: int, resources: int) -> list[str]:
    """`count` copies of a bundled task; the first has a chart of `resources` resources."""
    ids = []
    for number in range(count):
        id = f"bench-task-{number:03d}"
        shutil.copytree(ROOT / "tasks" / "suite" / SUITE_TASK, folder / id)
        toml = (folder / id / "task.toml").read_text("utf-8")
        (folder / id / "task.toml").write_text(toml.replace(SUITE_TASK, id), "utf-8")
        ids.append(id)
    chart = folder / ids[0] / "chart"
    have = sum(len(path.read_bytes().splitlines()) for path in chart.glob("*.ndjson"))
    lines = (chart / "Observation.ndjson").read_text("utf-8").splitlines()
    more, year = [], 2000
    for number in range(resources - have):
        body = json.loads(lines[number % len(lines)])
        body["id"] = f"z-{number:06d}"
        day = number % 9000
        body["effectiveDateTime"] = f"{year + day // 365:04d}-{day % 12 + 1:02d}-{day % 28 + 1:02d}T08:00:00-05:00"
        more.append(json.dumps(body, separators=(",", ":")))
    (chart / "Observation.ndjson").write_text("\n".join(sorted([*lines, *more], key=_id)) + "\n", "utf-8")
    return ids


def _id(line: str) -> str:
    return str(json.loads(line)["id"])


def write_trials(workspace: Path, tasks: Path, ids: list[str], runs: int, steps: int) -> int:
    """Trials of 12 agents by copying the files of one real trial of each kind; the first has `steps` steps."""
    for name in ("oracle", "noop"):
        command = [
            sys.executable,
            "-m",
            "runtime",
            "run",
            str(tasks / ids[1]),
            "--agent",
            name,
            "--batch",
            f"seed-{name}",
        ]
        subprocess.run(
            command, check=True, cwd=ROOT, env=os.environ | {"WORKBENCH_WORKSPACE": str(workspace)}, capture_output=True
        )
    seeds = [
        next((workspace / "runs" / f"seed-{name}").glob(f"trials/*/{name}/1/attempt-1")) for name in ("oracle", "noop")
    ]
    plan = json.loads((workspace / "runs" / "seed-noop" / "plan.jsonl").read_text("utf-8").splitlines()[0])
    batch = workspace / "runs" / "bench"
    batch.mkdir(parents=True)
    written = 0
    lines = []
    for place, id in enumerate(ids):
        for rank, agent in enumerate(AGENTS):
            lines.append(json.dumps(plan | {"task": id, "agent": agent, "folder": str(tasks / id), "runs": runs}))
            for run in range(1, runs + 1):
                seed = seeds[(place * 7 + rank * 3 + run) % 2]
                target = batch / "trials" / id / agent.replace("/", "__") / str(run) / "attempt-1"
                target.mkdir(parents=True)
                outcome = json.loads((seed / "outcome.json").read_text("utf-8"))
                outcome["key"] = {"task": id, "agent": agent, "run": run, "attempt": 1}
                for name in ("verdicts.jsonl", "trajectory.jsonl", "ehr.ndjson"):
                    if (seed / name).exists() and (name == "verdicts.jsonl" or run == 1):
                        shutil.copyfile(seed / name, target / name)
                (target / "outcome.json").write_text(json.dumps(outcome), "utf-8")
                written += 1
    (batch / "plan.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    long = batch / "trials" / ids[1] / AGENTS[0].replace("/", "__") / "1" / "attempt-1" / "trajectory.jsonl"
    tools = [
        line for line in (seeds[0] / "trajectory.jsonl").read_text("utf-8").splitlines() if '"type":"tool"' in line
    ]
    with long.open("w", encoding="utf-8") as out:
        for number in range(1, steps + 1):
            event = json.loads(tools[number % len(tools)])
            event["n"] = event["data"]["n"] = number
            event["data"]["writes"] = []
            out.write(json.dumps(event) + "\n")
    return written


def serve(folder: Path, workspace: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The app over the benchmark's tasks, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = folder / "app.py"
    script.write_text(APP, "utf-8")
    environment = {"BENCH_TASKS": str(folder / "tasks"), "WORKBENCH_WORKSPACE": str(workspace), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)],
        cwd=ROOT, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                return process, address
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the app did not start")


def settle(page: Page, seen: str) -> None:
    """Wait until `seen` is drawn and nothing more is being drawn."""
    # In each frame that the browser draws: waiting for a selector looks every 500 ms after the first tries, which is
    # half a second of Playwright's and not of the page.
    drawn = "(seen) => document.querySelector(seen)?.getClientRects().length > 0"
    page.wait_for_function(drawn, arg=seen, timeout=120_000)
    page.wait_for_function(SETTLED, timeout=120_000)


@dataclass(frozen=True)
class Round:
    """One round: seconds that a reader waits, and seconds that the server computed."""

    seconds: float
    cpu: float


class Watch:
    """Times rounds against the server of this process id."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")

    def _cpu(self) -> float:
        """Seconds that the server's process has computed so far, in user and system code."""
        fields = self._stat.read_text("ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def once(self, act: Callable[[], None]) -> Round:
        """One round."""
        cpu, began = self._cpu(), time.perf_counter()
        act()
        return Round(time.perf_counter() - began, self._cpu() - cpu)

    def times(self, act: Callable[[], None], rounds: int) -> list[Round]:
        """So many rounds and one before them, which fills the caches."""
        return [self.once(act) for _ in range(rounds + 1)]


def told(name: str, times: list[Round], target: float) -> dict[str, Any]:
    """One line of the table; the first round is told apart."""
    warm = sorted(one.seconds for one in times[1:])
    p95 = warm[min(len(warm) - 1, round(0.95 * (len(warm) - 1)))]
    median, cpu = statistics.median(warm), statistics.median(one.cpu for one in times[1:])
    verdict = "ok" if p95 <= target else "OVER"
    figures = f"first {times[0].seconds:6.2f}  median {median:6.2f}  p95 {p95:6.2f}  target {target:.1f}"
    print(f"{name:<40} {figures}  cpu {cpu:5.2f}  {verdict}", flush=True)
    return {"name": name, "first": times[0].seconds, "median": median, "p95": p95, "cpu": cpu, "target": target}


def measure(address: str, watch: Watch, ids: list[str], rounds: int) -> list[dict[str, Any]]:
    """All pages and acts."""
    trial = f"/trial?batch=bench&task={ids[1]}&agent={AGENTS[0].replace('/', '%2F')}&run=1"
    pages = [
        ("an empty page, for comparison", "/trial", "[role=alert]"),
        ("Tasks, 100", "/tasks", ".st-key-rowhead-tasks"),
        ("Task, chart of 30,720", f"/task?id={ids[0]}", ".facts-strip"),
        ("Task, checkpoints", f"/task?id={ids[0]}&view=Checkpoints", "article"),
        ("Task, every resource of 30,720", f"/task?id={ids[0]}&view=Every+resource", ".res-row"),
        ("Run", "/run", ".plan-card"),
        ("Trials, 3,600", "/trials", ".trial-row"),
        ("Trial, 10,000 steps", trial, ".verdict-row"),
        ("Results, 3,600 trials", "/results?batch=bench", ".heat-map"),
        ("Results, two compared", "/results?batch=bench&view=Compare+two", ".figures"),
        ("Results, by group", "/results?batch=bench&view=By+group+and+workflow", ".figures"),
        ("Calibration, 3,600 trials", "/calibrate?batch=bench", "h1"),
        ("Models", "/models", "h1"),
    ]
    rows = []
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        for name, path, seen in pages:
            page = context.new_page()

            def load(page: Page = page, path: str = path, seen: str = seen) -> None:
                page.goto(address + path)
                settle(page, seen)

            rows.append(told(f"load  {name}", watch.times(load, rounds), 1.0))
            page.close()
        rows += acts(context.new_page(), address, watch, ids, trial, rounds)
        browser.close()
    return rows


def acts(page: Page, address: str, watch: Watch, ids: list[str], trial: str, rounds: int) -> list[dict[str, Any]]:
    """Filters, folds and switches inside a page, and moving between pages."""
    rows = []

    def choose(name: str) -> None:
        """Choose it, and wait until what the page says is another thing and nothing more is being drawn: right after a
        click the page still counts as settled."""
        said = "document.querySelector('[data-testid=stMain]').innerText"
        before = page.evaluate(said)
        page.get_by_role("radio", name=name).click()
        page.wait_for_function(f"(before) => {said} !== before", arg=before, timeout=60_000)
        page.wait_for_function(SETTLED, timeout=60_000)

    def nav(text: str, shown: str) -> None:
        page.get_by_role("link", name=text, exact=True).first.click()
        settle(page, shown)

    page.goto(address + "/tasks")
    settle(page, ".st-key-rowhead-tasks")
    for name, shown in [
        ("Run", ".plan-card"),
        ("Trials", ".trial-row"),
        ("Results", ".heat-map"),
        ("Tasks", ".st-key-rowhead-tasks"),
    ]:
        times = []
        for _ in range(rounds + 1):
            nav("Tasks" if name != "Tasks" else "Trials", ".st-key-rowhead-tasks" if name != "Tasks" else ".trial-row")
            times.append(watch.once(lambda name=name, shown=shown: nav(name, shown)))  # type: ignore[misc]
        rows.append(told(f"open  {name}", times, 1.0))
    nav("Tasks", ".st-key-rowhead-tasks")

    def search(words: str, count: str) -> None:
        page.get_by_placeholder("Search title, specialty or task id").fill(words)
        page.wait_for_function(f"() => document.body.innerText.includes({json.dumps(count)})", timeout=60_000)

    turn = iter(range(10_000))

    def there_and_back() -> None:
        search(f"task-{next(turn) % 10:03d}", "Task · 1 of 100")
        search("", "Task · 100 of 100")

    rows.append(told("act   filter 100 tasks, there and back", watch.times(there_and_back, rounds), 0.8))
    page.goto(address + f"/task?id={ids[0]}")
    settle(page, ".facts-strip")
    flips = iter(range(10_000))

    def units() -> None:
        choose(["µmol/L, SI", "mg/dL"][next(flips) % 2])

    rows.append(told("act   switch units", watch.times(units, rounds), 0.4))
    page.goto(address + trial)
    settle(page, ".verdict-row")
    opens = iter(range(2, 10_000))

    def unfold() -> None:
        number = next(opens)
        page.locator(f".st-key-row-step-{number} button").click()
        page.wait_for_selector(f".st-key-open-step :text('step {number}')", timeout=60_000)
        page.wait_for_function(SETTLED, timeout=60_000)

    rows.append(told("act   open a step of 10,000", watch.times(unfold, rounds), 0.4))
    page.goto(address + "/results?batch=bench")
    settle(page, ".heat-map")
    choices = iter(range(10_000))

    def passes() -> None:
        # Both say the same of these trials, so that no word of the page tells when it is done.
        page.get_by_role("radio", name=["Critical pass", "All required pass"][next(choices) % 2]).click()
        page.wait_for_function(SETTLED, timeout=60_000)

    rows.append(told("act   what passes, of 3,600 trials", watch.times(passes, rounds), 0.4))
    return rows


def over(rows: list[dict[str, Any]]) -> int:
    """1 where something was slower than its target, as a command's exit code."""
    return int(any(row["p95"] > row["target"] for row in rows))


def main() -> int:
    """Build the data, measure, print the table; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="keep the data here, and use it again where it is there")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given, _ = parser.parse_known_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="bench-pages-"))
    workspace = folder / "workspace"
    if not (workspace / "runs" / "bench").is_dir():
        ids = write_tasks(folder / "tasks", 100, 30_720)
        count = write_trials(workspace, folder / "tasks", ids, 3, 10_000)
        print(f"{len(ids)} tasks, {count:,} trials in {folder}")
    ids = sorted(path.name for path in (folder / "tasks").iterdir())
    process, address = serve(folder, workspace)
    try:
        rows = measure(address, Watch(process.pid), ids, given.rounds)
    finally:
        process.terminate()
        process.wait(timeout=30)
        if given.folder is None:
            shutil.rmtree(folder)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), "utf-8")
    return over(rows)


if __name__ == "__main__":
    sys.exit(main())
