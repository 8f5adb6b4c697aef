"""Models: what is configured, whether it works, what it costs and what it may see. A key is never shown."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, starting, theme
from review_ui.markup import Markup, join, tag
from runtime import jobs
from runtime.models import ModelRow, configured
from tasks.errors import WorkbenchError
from tasks.taxonomy import DataClass

CLEARED: dict[DataClass, str] = {"open": "open data", "dua": "data under an agreement", "phi": "identified data"}


def state_chip(row: ModelRow) -> Markup:
    """What the last check says of it."""
    if row.checked is None:
        return theme.chip("Not checked", "gray", "help")
    if row.is_stale:
        return theme.chip("Settings changed since the check", "gray", "history")
    if not row.checked.works:
        return theme.chip("Cannot be used", "orange", "warning")
    return theme.chip("Works", "green", "check_circle")


def price(row: ModelRow) -> str:
    """USD a million tokens, in and out, or that it is unknown."""
    return f"USD {row.price.input:g} in, {row.price.output:g} out" if row.price else "unknown"


def table(rows: list[ModelRow]) -> Markup:
    """A row a model."""
    heads = ("Model", "State", "Key", "Price of a million tokens", "May see", "Reasoning", "Used for", "Checked")
    made = []
    for row in rows:
        key = f"set in {row.key_env}" if row.has_key else f"not set: {row.key_env}" if row.key_env else "none named"
        at = f"{row.checked.at.astimezone():%-d %b %Y, %H:%M}" if row.checked else "–"
        cells = (key, price(row), CLEARED[row.data_class], row.reasoning or "its own", ", ".join(row.uses) or "–", at)
        made.append(
            tag(
                "tr",
                tag("th", row.name, scope="row"),
                tag("td", state_chip(row)),
                join(tag("td", cell) for cell in cells),
            )
        )
    head = tag("tr", join(tag("th", name, scope="col") for name in heads))
    return tag("table", tag("thead", head), tag("tbody", join(made)), cls="grid")


def findings(row: ModelRow) -> Markup | None:
    """What the last check found, each with what to do; None where there is nothing to say."""
    if row.checked is None or not row.checked.findings:
        return None
    told = join(
        tag("li", tag("b", "Fault: " if finding.blocks else "Note: "), f"{finding.what} {finding.remedy}")
        for finding in row.checked.findings
    )
    return tag("div", tag("h3", row.name, cls="h3"), tag("ul", told))


def checking() -> dict[str, jobs.Status]:
    """The latest check of each model, as a job."""
    found: dict[str, jobs.Status] = {}
    for job in jobs.jobs(frame.workspace()):
        name = job.about.get("check", "")
        if name and name not in found:
            found[name] = jobs.status(frame.workspace(), job)
    return found


def broken_off(rows: list[ModelRow], checks: dict[str, jobs.Status]) -> Markup | None:
    """The checks that ended without a finding, and why; None where there is none."""
    lines = []
    for row in rows:
        status = checks.get(row.name)
        if status is None or status.state not in ("failed", "stopped", "lost"):
            continue
        if row.checked is None or row.checked.at < status.job.started_at:
            said = status.message or ("it was stopped" if status.state == "stopped" else "its process is gone")
            lines.append(tag("p", tag("b", row.name), f": the check did not come to an end: {said}", cls="sm warn"))
    return tag("div", join(lines), role="alert") if lines else None


def _check(name: str, key: str) -> None:
    starting.start(("runtime", "models", "check", name), {"check": name}, key)
    # The whole page, so that it looks again by itself for as long as the check runs.
    st.rerun()


def body() -> None:
    """The table, what was found, and a button that checks."""
    try:
        rows = configured(frame.workspace())
    except WorkbenchError as fault:
        frame.show(frame.notice("workbench.toml cannot be read", str(fault)))
        return
    if not rows:
        frame.show(
            tag("p", "No model is configured. Built-in agents need none; add [model.\"provider/name\"] to "
                     "workbench.toml for others.", cls="empty")
        )  # fmt: skip
        return
    frame.show(table(rows))
    checks = checking()
    running = {name for name, status in checks.items() if status.state == "running"}
    frame.show(theme.section("Check a model", "one tool call, a few hundred tokens, no patient"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Model", [row.name for row in rows], key="model")
        key = starting.key(f"check-{name}")
        st.button("Check", type="primary", disabled=name in running, key=f"check-{key}", on_click=_check,
                  args=(name, key))  # fmt: skip
    for one in sorted(running):
        frame.show(tag("p", f"{one} is being asked …", cls="sm mute", role="status"))
    if (ended := broken_off(rows, checks)) is not None:
        frame.show(ended)
    told = [shown for row in rows if (shown := findings(row)) is not None]
    if told:
        frame.show(theme.section("What the last checks found"))
        frame.show(join(told))


def page() -> None:
    """The whole page."""
    words = "Set in workbench.toml. Keys stay in the environment of this server and are not shown."
    frame.show(tag("header", tag("h1", "Models", cls="h1"), tag("p", words, cls="lead")))
    frame.part(body, every=2.0 if any(s.state == "running" for s in checking().values()) else None)()


page()
