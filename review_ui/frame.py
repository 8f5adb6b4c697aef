"""What every page stands in: the bar, the style block, the header, and what is said when a page fails."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import ParamSpec
from urllib.parse import urlencode

import streamlit as st

from graders.facts import TrialFact
from graders.facts import trial_facts as facts_of
from graders.report import TrialRow
from review_ui import failure, identity, runs, steps, theme
from review_ui.catalog import TaskRow, fingerprint, read
from review_ui.chartview import ChartView
from review_ui.kept import kept, settle
from review_ui.markup import Markup, join, tag
from review_ui.steps import Trajectory
from tasks.errors import UsageError, WorkbenchError
from tasks.fhir.chart import Overlay
from tasks.fhir.resources import Resource
from tasks.package import SUITE, FolderSource, Task
from tasks.review.permissions import Action, allowed
from tasks.stored import Batch, StoredTrial, trial_folder
from tasks.trials import TrialKey
from tasks.workspace import Workspace

P = ParamSpec("P")
PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Entry:
    """One page: its file, the name in the bar, its icon. `bar` is False for a page reached from another one. `action`:
    what a role must be allowed for the entry to stand in the bar; None = everybody."""

    file: str
    title: str
    icon: str
    url: str
    bar: bool = True
    action: Action | None = None


ENTRIES = (
    Entry("home.py", "Home", "inbox", "home"),
    Entry("task.py", "Task", "folder_open", "task", bar=False),
    Entry("run.py", "Run", "play_circle", "run", action="run_trials"),
    Entry("models.py", "Models", "hub", "models", bar=False),
    Entry("trials.py", "Trials", "route", "trials"),
    Entry("trial.py", "Trial", "route", "trial", bar=False),
    Entry("results.py", "Results", "leaderboard", "results"),
    Entry("calibrate.py", "Calibration", "balance", "calibrate", bar=False),
    Entry("review.py", "Review", "rate_review", "review", bar=False),
    Entry("propose.py", "Propose changes", "edit_note", "propose", bar=False),
    Entry("proposals.py", "Model's draft", "auto_fix_high", "proposals", bar=False),
    Entry("decide.py", "Decide", "checklist", "decide", bar=False),
    Entry("signoff.py", "Sign-off", "verified", "signoff", bar=False),
    Entry("guide.py", "Guide", "help", "guide"),
)


def path(file: str) -> str:
    """The page's file as Streamlit wants it in a link."""
    return str(PAGES / file)


def serve() -> None:
    """Draw the page that was asked for. Called by app.py on every run."""
    st.set_page_config(page_title="PhysicianBench Workbench", page_icon=str(theme.ASSETS / "icon.svg"), layout="wide")
    st.logo(str(theme.ASSETS / "logo.svg"), size="large")
    pages = [
        st.Page(
            path(entry.file),
            title=entry.title,
            icon=f":material/{entry.icon}:",
            url_path=entry.url,
            default=index == 0,
            visibility="visible" if _in_bar(entry) else "hidden",
        )
        for index, entry in enumerate(ENTRIES)
    ]
    page = st.navigation(pages, position="top")
    st.html(theme.style())

    def draw() -> None:
        # Settings that cannot be read are told on the page, like everything else that stops one.
        identity.keep()
        page.run()

    _guarded(draw)
    settle()


def _in_bar(entry: Entry) -> bool:
    """Whether the entry stands in the bar of whoever is here; with nobody chosen everything is there to look at."""
    if not entry.bar or entry.action is None:
        return entry.bar
    try:
        person = identity.current().person
    except WorkbenchError:
        return True  # settings that cannot be read are told on the page itself
    return person is None or allowed(person, entry.action)


def _guarded(draw: Callable[[], None]) -> None:
    """Draw; where that fails, say so with an id. Nothing of the error's text that may quote a chart is shown."""
    try:
        draw()
    except UsageError as error:
        show(notice("This is not here.", str(error)))
        st.page_link(path("home.py"), label="Back to the tasks", icon=":material/arrow_back:")
    except WorkbenchError as error:
        show(notice(f"This page stopped. Error {failure.record(error)}.", str(error)))
    except Exception as error:  # noqa: BLE001 (the last line before a reader: an id, never the message)
        show(
            notice(
                f"This page stopped. Error {failure.record(error)}.",
                "Nothing that was saved is lost. Reload the page; if it stops again, give this number to whoever looks "
                "after the workbench: the log has the details under it.",
            )
        )


def part(draw: Callable[P, None], *, every: float | None = None) -> Callable[P, None]:
    """A part of a page that is drawn again by itself, and that fails by itself (Streamlit runs it outside `serve`).

    `every`: seconds after which it is drawn again without being asked; None = never.
    """

    @wraps(draw)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        _guarded(lambda: draw(*args, **kwargs))

    return st.fragment(guarded, run_every=every)


def show(markup: Markup) -> None:
    """Draw markup. The only way to st.html: what is not Markup is not shown as HTML."""
    if not isinstance(markup, Markup):
        raise TypeError("only Markup is drawn as HTML")
    st.html(markup)


def notice(title: str, words: str) -> Markup:
    """Something the reader has to know, in a box."""
    return tag("div", tag("p", title, cls="h3"), tag("p", words), cls="card", role="alert")


def header(title: str, facts: Markup, right: Markup | None = None, crumb: Markup | None = None) -> None:
    """The header of a page about one thing: title and facts left, state right, one hairline below."""
    show(
        tag(
            "header",
            tag("div", crumb, tag("h1", title, cls="h1"), facts),
            tag("div", right) if right else None,
            cls="head lined",
        )
    )


def source() -> FolderSource:
    """Where tasks are read from."""
    return SUITE


@kept(256)
def _task(root: str, task_id: str, state: str) -> Task:
    return FolderSource(Path(root)).load(task_id)


@kept(2000)
def _row(root: str, task_id: str, state: str) -> TaskRow:
    return read(FolderSource(Path(root)), task_id)


def task(task_id: str) -> Task:
    """The task, read once for as long as its files stay the same. UsageError if there is none of that id."""
    place = source()
    if task_id not in place.list():
        raise UsageError("there is no task of that id.", remedy="Choose one on the Home page.")
    return _task(str(place.root), task_id, fingerprint(place.root / task_id))


def tasks(ids: Iterable[str]) -> list[Task]:
    """Several tasks of the source, as `task` gives one; an id that is not there is left out."""
    place = source()
    known = set(place.list())
    return [_task(str(place.root), id, fingerprint(place.root / id)) for id in ids if id in known]


@kept(16)
def _chart_view(root: str, task_id: str, state: str) -> ChartView:
    found = _task(root, task_id, state)
    if found.meta.context is None:
        raise UsageError("this draft names no patient.", where=task_id)
    return ChartView(found.chart, found.meta.context.patient, found.meta.context.now)


def chart_view(task: Task) -> ChartView:
    """The task's chart at its clock, read once for as long as the task's files stay the same."""
    place = source()
    return _chart_view(str(place.root), task.id, fingerprint(place.root / task.id))


def rows() -> list[TaskRow]:
    """A row for every task of the source."""
    place = source()
    return [_row(str(place.root), task_id, fingerprint(place.root / task_id)) for task_id in place.list()]


def asked(name: str) -> str:
    """A parameter of the page's address, or ""."""
    return str(st.query_params.get(name, ""))


def link(page: str, **parameters: str) -> str:
    """The address of a page of this app with its parameters: what a deep link points to."""
    query = urlencode(parameters | chosen())
    return f"/{page}?{query}" if query else f"/{page}"


def go(file: str, parameters: Mapping[str, str]) -> None:
    """Open another page with its parameters."""
    st.switch_page(path(file), query_params={**parameters, **chosen()})


def chosen() -> dict[str, str]:
    """Who was chosen in local mode: an address keeps it."""
    chosen = st.session_state.get("person", "")
    return {identity.CHOICE: chosen} if chosen else {}


def facts(*chips: Markup) -> Markup:
    """The facts line of a header."""
    return tag("div", join(chips), cls="chips", style="margin-top:.35rem")


# ---- stored runs ----------------------------------------------------------------------------------------------------


def workspace() -> Workspace:
    """The workspace of this server."""
    return Workspace.find()


def batches() -> list[Batch]:
    """The batches of the workspace, newest first."""
    return runs.known(workspace().runs)


@kept(100)
def _trial_facts(folder: str, state: Hashable) -> tuple[TrialFact, ...]:
    return tuple(facts_of([Batch(Path(folder))], cache=workspace().cache))


def batch_state(batch: Batch) -> Hashable:
    """Changes whenever a result, a verdict, the plan or a task of the batch does."""
    return (runs.fingerprint(batch), _task_states(batch))


def trial_facts(batch: Batch, state: Hashable | None = None) -> tuple[TrialFact, ...]:
    """What reports count of each trial, read once for as long as results and tasks stay the same. Nobody changes it.

    `state`: the batch's own, for a caller that has asked for it already; to ask walks all its folders.
    """
    return _trial_facts(str(batch.path), batch_state(batch) if state is None else state)


def trial_rows(batch: Batch) -> list[TrialRow]:
    """The batch's trials as reports list them."""
    return [fact.row for fact in trial_facts(batch)]


def _task_states(batch: Batch) -> str:
    folders = {str(line.get("folder")) for line in batch.plan() if line.get("kind") == "planned"}
    states = [fingerprint(Path(folder)) for folder in sorted(folders) if Path(folder).is_dir()]
    return hashlib.blake2b("".join(states).encode("ascii"), digest_size=16).hexdigest()


def trials_of(batch: str, task_id: str, agent: str) -> list[StoredTrial]:
    """The runs of one task and agent in a batch, the last attempt of each. UsageError where there is no such batch."""
    opened = Batch.open(workspace().runs, batch)
    folder = opened.path / trial_folder(TrialKey(task=task_id, agent=agent, run=1)).parent.parent
    found: dict[int, StoredTrial] = {}
    for path in folder.glob("*/attempt-*"):
        run, attempt = path.parts[-2], path.parts[-1].removeprefix("attempt-")
        if run.isdecimal() and attempt.isdecimal() and int(run) > 0 and int(attempt) > 0:
            key = TrialKey(task=task_id, agent=agent, run=int(run), attempt=int(attempt))
            if int(run) not in found or found[int(run)].key.attempt < key.attempt:
                found[int(run)] = StoredTrial(path, key)
    return [found[run] for run in sorted(found)]


@kept(32)
def _trajectory(path: str, size: int, changed: int) -> Trajectory:
    return steps.read(Path(path))


def trajectory(trial: StoredTrial) -> Trajectory:
    """The trial's steps, read once for as long as its file stays the same."""
    path = trial.path / "trajectory.jsonl"
    try:
        state = path.stat()
    except OSError:
        return steps.read(path)
    return _trajectory(str(path), state.st_size, state.st_mtime_ns)


def planned_task(batch: str, task_id: str) -> Task:
    """The task that a batch ran, where its plan found it. Raises UsageError, PackageError."""
    opened = Batch.open(workspace().runs, batch)
    folders = {line["task"]: Path(line["folder"]) for line in opened.plan() if line.get("kind") == "planned"}
    folder = folders.get(task_id)
    if folder is None or not (folder / "task.toml").is_file():
        return task(task_id)
    return _task(str(folder.parent), folder.name, fingerprint(folder))


@kept(8)
def _chart_at(path: str, size: int, digest: str, step: int, _trial: StoredTrial, _task: Task) -> ChartView:
    overlay = Overlay(_task.chart)
    for write in _trial.writes():
        if write.call is not None and write.call <= step:
            overlay.add(Resource.parse(write.resource, where=write.reference))
    context = _task.meta.context
    if context is None:
        raise UsageError("this draft names no patient.", where=_task.id)
    # The tool layer stamps what is written a few seconds after the clock; a day later shows all of it.
    now = context.now + timedelta(days=1) if context.now else None
    return ChartView(overlay, context.patient, now)


def chart_at(trial: StoredTrial, task: Task, step: int) -> ChartView:
    """The chart with what the agent had written after a step."""
    ledger = trial.path / "ehr.ndjson"
    size = ledger.stat().st_size if ledger.exists() else 0
    return _chart_at(str(trial.path), size, task.agent_digest, step, trial, task)


def trial_address(batch: str, task_id: str, agent: str, run: int) -> dict[str, str]:
    """The parameters of a trial's page."""
    return {"batch": batch, "task": task_id, "agent": agent, "run": str(run)}


def _turn(page: int, drop: tuple[str, ...]) -> None:
    st.query_params["page"] = str(page)
    for name in drop:
        st.query_params.pop(name, None)


def pager(at: int, pages: int, drop: tuple[str, ...] = ()) -> None:
    """Previous and next page; the page stands in the address. `drop`: parameters that do not survive a turn."""
    if pages <= 1:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="pager"):
        st.button(
            "Previous",
            icon=":material/chevron_left:",
            disabled=at <= 1,
            on_click=_turn,
            args=(at - 1, drop),
            key="pager-back",
        )
        show(tag("span", f"Page {at:,} of {pages:,}", cls="sm mute nowrap"))
        st.button(
            "Next",
            icon=":material/chevron_right:",
            disabled=at >= pages,
            on_click=_turn,
            args=(at + 1, drop),
            key="pager-on",
        )


def harm_chip(events: int) -> Markup | None:
    """A chip for severe-harm events; None where there is none."""
    return theme.chip(f"{events} severe harm", "red", "dangerous") if events else None
