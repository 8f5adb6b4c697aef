"""What every page stands in: the bar, the style block, the header, and what is said when a page fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec
from urllib.parse import urlencode

import streamlit as st

from review_ui import autosave, failure, identity, runs, theme
from review_ui.kept import settle
from review_ui.markup import Markup, join, tag
from tasks.errors import NotAllowed, UsageError, WorkbenchError
from tasks.package import SUITE, FolderSource
from tasks.review.permissions import Action, allowed
from tasks.stored import Batch
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
    Entry("tasks.py", "Tasks", "folder_open", "tasks"),
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
    failure.withhold()
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
    page = st.navigation(pages, position="top" if _safely(identity.admitted) else "hidden")
    st.html(theme.style())

    def draw() -> None:
        # Settings that cannot be read are told on the page, like everything else that stops one.
        identity.keep()
        autosave.memory().here = None
        if identity.admitted():
            _tell_what_failed(page.url_path)
            page.run()
        else:
            identity.gate()

    _guarded(draw)
    settle()


def _tell_what_failed(page: str) -> None:
    """What the last press could not do, above the page on which it was pressed, until another one does something."""
    said = failure.failed()
    if not said.title:
        return
    here = f"{page} {asked('id')}"
    said.page = said.page or here
    if said.page == here:
        show(notice(said.title, said.words))
    else:
        said.title = said.words = said.page = ""


def _in_bar(entry: Entry) -> bool:
    """Whether the entry stands in the bar of whoever is here; with nobody chosen everything is there to look at."""
    if not entry.bar or entry.action is None:
        return entry.bar
    action = entry.action

    def may() -> bool:
        person = identity.current().person
        return person is None or allowed(person, action)

    return _safely(may)


def _safely(ask: Callable[[], bool]) -> bool:
    """What is asked; True where settings cannot be read, which is told on the page itself."""
    try:
        return ask()
    except WorkbenchError:
        return True


def _guarded(draw: Callable[[], None]) -> None:
    """Draw; where that fails, say so with an id. Nothing of the error's text that may quote a chart is shown."""
    try:
        draw()
    except UsageError as error:
        show(stopped("This is not here.", str(error)))
        st.page_link(path("home.py"), label="Back to Home", icon=":material/arrow_back:")
    except NotAllowed as error:
        show(stopped("This is not for you to see or do.", str(error)))
        st.page_link(path("home.py"), label="Back to Home", icon=":material/arrow_back:")
    except WorkbenchError as error:
        show(stopped(f"This page stopped. Error {failure.record(error)}.", str(error)))
    except Exception as error:  # noqa: BLE001 (the last line before a reader: an id, never the message)
        show(
            stopped(
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
        said = failure.failed()
        if said.title and not said.page:
            # Pressed in this part, which is drawn again without its page.
            show(notice(said.title, said.words))
        if every is None and (here := autosave.memory().here) is not None:
            # Not what is drawn again without being asked: nobody need be there for that.
            here.alive()
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


def stopped(title: str, words: str) -> Markup:
    """What stands where a page, or a part of one, could not be drawn."""
    # A message that begins with a place (a file, a line) begins as that is written.
    begins = words[:1].upper() if words.partition(" ")[0].isalpha() else words[:1]
    return tag("div", tag("h1", title, cls="h2"), tag("p", begins + words[1:]), cls="card", role="alert")


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
    """The folder of tasks, for as long as the workspace has no repository of its own."""
    return SUITE


def asked(name: str) -> str:
    """A parameter of the page's address, or ""."""
    return str(st.query_params.get(name, ""))


def link(page: str, **parameters: str) -> str:
    """The address of a page of this app with its parameters: what a deep link points to."""
    query = urlencode(parameters | chosen())
    return f"/{page}?{query}" if query else f"/{page}"


def door(
    file: str, words: str, parameters: Mapping[str, str], *, key: str, width: int, icon: str = "", shut: bool = False
) -> None:
    """A link to another page that looks like a button: the browser itself follows it, so that no newer message takes
    the click, and a middle click opens it in a tab. `shut`: it leads nowhere. `key` names it for a style."""
    with st.container(key=key, width=width):
        st.page_link(
            path(file), label=words, icon=icon, disabled=shut, width="stretch", query_params={**parameters, **chosen()}
        )


def chosen() -> dict[str, str]:
    """Who was chosen in local mode: an address keeps it."""
    chosen = st.session_state.get("person", "")
    return {identity.CHOICE: chosen} if chosen else {}


def facts(*chips: Markup) -> Markup:
    """The facts line of a header."""
    return tag("div", join(chips), cls="chips", style="margin-top:.35rem")


def workspace() -> Workspace:
    """The workspace of this server."""
    return Workspace.find()


def batches() -> list[Batch]:
    """The batches of the workspace, newest first."""
    return runs.known(workspace().runs)


def _turn(page: int, drop: tuple[str, ...]) -> None:
    st.query_params["page"] = str(page)
    for name in drop:
        st.query_params.pop(name, None)


def paged(rows: int, size: int) -> tuple[int, int]:
    """(page that the address asks for, how many pages there are), from 1, for so many rows."""
    pages = max(1, -(-rows // size))
    given = asked("page")
    return min(pages, max(1, int(given) if given.isdecimal() else 1)), pages


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
