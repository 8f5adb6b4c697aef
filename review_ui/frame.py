"""What every page stands in: the bar, the style block, the header, and what is said when a page fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec
from urllib.parse import urlencode

import streamlit as st

from review_ui import failure, theme
from review_ui.catalog import TaskRow, fingerprint, read
from review_ui.chartview import ChartView
from review_ui.markup import Markup, join, tag
from tasks.errors import UsageError, WorkbenchError
from tasks.package import SUITE, FolderSource, Task

P = ParamSpec("P")
PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Entry:
    """One page: its file, the name in the bar, its icon. `bar` is False for a page reached from another one."""

    file: str
    title: str
    icon: str
    url: str
    bar: bool = True


ENTRIES = (
    Entry("home.py", "Home", "inbox", "home"),
    Entry("task.py", "Task", "folder_open", "task", bar=False),
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
            visibility="visible" if entry.bar else "hidden",
        )
        for index, entry in enumerate(ENTRIES)
    ]
    page = st.navigation(pages, position="top")
    st.html(theme.style())
    _guarded(page.run)


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


def part(draw: Callable[P, None]) -> Callable[P, None]:
    """A part of a page that is drawn again by itself, and that fails by itself (Streamlit runs it outside `serve`)."""

    @wraps(draw)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        _guarded(lambda: draw(*args, **kwargs))

    return st.fragment(guarded)


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


@st.cache_resource(show_spinner=False, max_entries=64)
def _task(root: str, task_id: str, state: object) -> Task:
    return FolderSource(Path(root)).load(task_id)


@st.cache_data(show_spinner=False, max_entries=2000)
def _row(root: str, task_id: str, state: object) -> TaskRow:
    return read(FolderSource(Path(root)), task_id)


def task(task_id: str) -> Task:
    """The task, read once for as long as its files stay the same. UsageError if there is none of that id."""
    place = source()
    if task_id not in place.list():
        raise UsageError("there is no task of that id.", remedy="Choose one on the Home page.")
    return _task(str(place.root), task_id, fingerprint(place.root / task_id))


@st.cache_resource(show_spinner=False, max_entries=16)
def _chart_view(root: str, task_id: str, state: object) -> ChartView:
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
    query = urlencode(parameters)
    return f"/{page}?{query}" if query else f"/{page}"


def go(file: str, parameters: Mapping[str, str]) -> None:
    """Open another page with its parameters."""
    st.switch_page(path(file), query_params=dict(parameters))


def facts(*chips: Markup) -> Markup:
    """The facts line of a header."""
    return tag("div", join(chips), cls="chips", style="margin-top:.35rem")
