"""Models: what workbench.toml configures, whether it works, what it costs, which data it may see. No key is shown."""

from __future__ import annotations

import hashlib
import secrets
from urllib.parse import urlsplit

import streamlit as st

from review_ui import following, frame, theme
from review_ui.markup import Markup, join, tag
from runtime import jobs
from runtime.models import ModelRow, configured

EXAMPLE = """[model."openai/gpt-local"]
endpoint = "http://127.0.0.1:8000/v1"
key_env = "LOCAL_KEY"          # the name of the variable that holds the key, never the key
data_class = "open"
price = {input = 0.0, cache_read = 0.0, cache_write = 0.0, output = 0.0}   # USD per million tokens
"""


def place(endpoint: str) -> str:
    """Where the model is asked, without what may be secret in an address: user, password, query."""
    if not endpoint:
        return "the provider's own endpoint"
    parts = urlsplit(endpoint)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def state_chip(row: ModelRow) -> Markup:
    """Whether trials can be run with it, as far as is known."""
    if row.key_env and not row.has_key:
        return theme.chip("No key", "orange", "key_off")
    if row.checked is None:
        return theme.chip("Not checked", "gray", "help")
    if row.is_stale:
        return theme.chip("Settings changed since its check", "orange", "history")
    return (
        theme.chip("Works", "green", "check_circle")
        if row.checked.works
        else theme.chip("Cannot be used", "red", "cancel")
    )


def card(row: ModelRow) -> Markup:
    """One model."""
    price = (
        f"${row.price.input:g} in, ${row.price.output:g} out, a million tokens"
        if row.price
        else "no price: costs are unknown, and no money limit can be set"
    )
    key = (
        f"key from {row.key_env}" + ("" if row.has_key else ", which is not set here")
        if row.key_env
        else "needs no key"
    )
    facts = [place(row.endpoint), key, price]
    if row.reasoning:
        facts.append(f"reasoning: {row.reasoning}")
    chips = [state_chip(row), theme.chip(f"Cleared for data class {row.data_class}", "plain", "lock_open")]
    chips += [theme.chip(f"Used as {use}", "blue") for use in row.uses]
    found = []
    if row.checked is not None:
        told = f"Checked {row.checked.at.astimezone():%-d %b %Y, %H:%M}, {row.checked.seconds:.1f} s"
        told += f", answered as {row.checked.answered_as}" if row.checked.answered_as else ""
        found.append(tag("p", told, cls="sm mute"))
        for finding in row.checked.findings:
            icon = theme.icon("cancel" if finding.blocks else "info", "bad" if finding.blocks else "warn")
            found.append(tag("div", icon, tag("span", f" {finding.what} {finding.remedy}", cls="sm")))
    return tag(
        "div",
        tag("div", tag("span", row.name, cls="h3"), " ", theme.chips(*chips)),
        tag("p", " · ".join(facts), cls="sm mute"),
        join(found),
    )


def page() -> None:
    """Draw the page."""
    rows = configured(frame.workspace())
    st.page_link(frame.path("run.py"), label="Run agents on tasks", icon=":material/arrow_back:")
    lead = f"{len(rows)} in workbench.toml. A check asks for one tool call and sends no patient's data."
    frame.show(tag("header", tag("div", tag("h1", "Models", cls="h1"), tag("p", lead, cls="lead")), cls="head"))
    if not rows:
        words = (
            "No model is configured. oracle, noop, shotgun and parrot need none. Add one to workbench.toml like this:"
        )
        frame.show(tag("p", words, cls="empty"))
    for row in rows:
        mark = hashlib.sha256(row.name.encode()).hexdigest()[:12]
        with st.container(horizontal=True, vertical_alignment="center", key=f"row-model-{mark}"):
            frame.show(card(row))
            about = {"check": row.name}
            if following.follow(about, "Checking"):
                continue
            key = st.session_state.setdefault(f"check-key-{mark}", secrets.token_hex(8))
            if st.button("Check", icon=":material/network_check:", key=f"check-{key}", width=110):
                command = ["runtime", "models", "check", row.name, "--data-class", row.data_class]
                jobs.start(frame.workspace(), command, about=about, key=key)
                st.session_state[f"check-key-{mark}"] = secrets.token_hex(8)
                st.rerun()
    with st.expander("How a model is configured", expanded=not rows, key="example"):
        st.code(EXAMPLE, language="toml", wrap_lines=True)


page()
