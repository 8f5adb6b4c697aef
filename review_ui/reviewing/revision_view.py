"""Stage 2 with a model: what would be sent and what it costs, its progress, the draft that comes back.

Nothing is committed here. The draft is a person's to drop from, to change, and to send to decision; asking and sending
are commands in the background, so that no click doubles or kills them.
"""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from authoring.commands import revise
from authoring.reviser import Preview, drafts, preview
from review_ui import failure, following, frame, theme
from review_ui.autosave import Notebook, clock, held
from review_ui.kept import kept
from review_ui.markup import join, tag
from review_ui.reviewing import acting, applying_view
from review_ui.reviewing.draft_view import ASK, about, busy, count, draft, started
from review_ui.reviewing.signoff_view import may
from review_ui.reviewing.sitting import Sitting
from runtime import jobs
from runtime.jobs import Status
from tasks import progress
from tasks.errors import UsageError, WorkbenchError
from tasks.review.events import package_hash

_STATES: dict[str, tuple[str, theme.Tone, str]] = {
    "running": ("Running", "blue", "progress_activity"),
    "ended": ("Done", "green", "check_circle"),
    "failed": ("Not done", "orange", "warning"),
    "stopped": ("Canceled", "gray", "stop_circle"),
    "lost": ("Its process is gone", "orange", "error"),
}
#: How a job ended that did not do it.
_NOTHING = {
    "failed": "It ended before it was done; press again to try once more.",
    "lost": "Its process is gone, with the machine perhaps; press again.",
}


def draw(at: Sitting) -> None:
    """Draw the page's parts."""
    if not may(at, "propose"):
        frame.show(tag("p", "Authors, reviewers, pharmacists and the lead let a model draft changes.", cls="sm mute"))
        return
    last = _last(at)
    running = last is not None and last.state == "running"
    every = drafts(frame.workspace(), at.at.task_id)
    # A draft that waits for a person stands first; asking again is folded then.
    waits = any(not one.put_up and one.package == package_hash(at.at.files) for one in every)
    if not waits:
        ask(at, last)
    watch(at, last)
    if every:
        draft(at, every, waits=running)
    elif last is None:
        frame.show(tag("p", "No model has drafted anything for this task yet.", cls="empty"))
    if waits:
        with st.expander("Ask again, or another model"):
            ask(at, last, again=True)


# ---- asking ---------------------------------------------------------------------------------------------------------


@kept(64, "Looking at what would be sent …")
def _preview(
    place: str, task: str, package: str, events: int, model: str, settings: str, _at: Sitting
) -> Preview | str:
    try:
        return preview(_at.desk, task, model)
    except WorkbenchError as error:
        return str(error)


def ask(at: Sitting, last: Status | None, *, again: bool = False) -> None:
    """Which model, what it would be sent, what that costs; and the button."""
    settings = frame.workspace().settings
    found = [one for one in at.state.findings.values() if one.open]
    frame.show(theme.section("Let a model draft the changes", count(len(found), "open finding")))
    if not settings.models:
        words = "No model is set up in workbench.toml. Changes can be proposed by hand on the page Proposals."
        frame.show(tag("p", words, cls="sm mute"))
        return
    left, right = st.columns([1.7, 1], gap="large")
    names = list(settings.models)
    with left:
        start = names.index(settings.use.reviser) if settings.use.reviser in names else 0
        model = st.selectbox("Model", names, index=start, key="reviser")
        shown = _preview(
            str(at.desk.store.path), at.at.task_id, at.at.package, len(at.at.events), model,
            settings.models[model].model_dump_json(), at,
        )  # fmt: skip
        if isinstance(shown, Preview):
            sent(shown, again=again)
    with right:
        _button(at, model, shown, last, again=again)


def sent(shown: Preview, *, again: bool = False) -> None:
    """What goes out, in figures; the whole list folded."""
    told = shown.sent
    cost = "unknown: no price is set" if shown.cost is None else f"about ${shown.cost:.2f}, and the answer"
    rows = (
        ("Findings", f"{told.findings:,}, with ratings of this round; people by number, not by name"),
        ("Files", f"{len(told.files):,}: instruction, settings, checkpoints, plans, examples"),
        ("Chart", f"{len(told.resources):,} resources whole, {told.listed:,} in a line, {told.left_out:,} not at all"),
        ("Rejected before", f"{told.rejected:,}, so that they are not proposed again"),
        ("Length", f"about {told.tokens:,} tokens"),
        ("To read it once", cost),
    )
    lines = [tag("div", tag("span", name, cls="mute"), tag("span", value), cls="pair") for name, value in rows]
    frame.show(tag("div", tag("p", "What would be sent", cls="h3"), join(lines), cls="soft plan-card"))
    if not again and told.resources:
        with st.expander("Every file and resource that would be sent whole"):
            frame.show(theme.written("\n".join([*told.files, *told.resources])))


def _button(at: Sitting, model: str, shown: Preview | str, last: Status | None, *, again: bool) -> None:
    why = ""
    if isinstance(shown, str):
        why = shown
    elif last is not None and last.state == "running":
        why = "It is at work now."
    elif at.at.meta.data_class != "open":
        why = "Open data only: nothing of other data is sent to a model from this page."
    facts = (
        "It may give edits and nothing else. Each has to apply exactly; what does not goes back to it twice at most.",
        "The gate runs on the result. You see the draft first; nothing is committed here.",
    )
    frame.show(tag("div", join(tag("p", line, cls="sm") for line in facts), cls="card"))
    acting.button(
        at, "Ask the model", f"ask#{at.at.head}-{started(at)}", _asking(at, model), key="ask", uses=(),
        type="secondary" if again else "primary", icon=":material/auto_fix_high:", disabled=bool(why), width="stretch",
    )  # fmt: skip
    if why:
        frame.show(tag("p", why, cls="sm mute"))


def _asking(at: Sitting, shown: str) -> acting.Does:
    """Start the job that asks; `shown`: the model whose request and cost stood on the page."""

    def does(book: Notebook, id: str) -> str:
        if held()[1].get("reviser", shown) != shown:
            raise UsageError("Another model was chosen just now. Look at what it would be sent, then press again.")
        if busy(at, id):
            return "A job is at work on this task already."
        jobs.start(
            frame.workspace(), ["authoring", "revise", at.at.task_id, "--model", shown, "--as", at.me],
            about=about(at, ASK), person=at.me, key=id, environment=acting.voucher(at, revise.ASK, "", id),
        )  # fmt: skip
        return ""

    return does


# ---- watching -------------------------------------------------------------------------------------------------------


def _last(at: Sitting) -> Status | None:
    """The newest job on this task, asking or sending."""
    return following.latest({"revise": at.at.task_id})


def watch(at: Sitting, last: Status | None) -> None:
    """How far the newest job is; where it fails, its message."""
    if last is None:
        return
    if last.state == "running":
        frame.part(_live, every=1.0)(at, True)
    else:
        _live(at, False)


@failure.guarded
def _cancel(id: str) -> None:
    jobs.stop(frame.workspace(), id)


def _live(at: Sitting, was_running: bool) -> None:
    status = _last(at)
    if status is None:
        return
    if was_running and status.state != "running":
        st.rerun()
    if status.state == "ended":
        return
    word, tone, symbol = _STATES[status.state]
    doing = "Asking the model" if status.job.about.get("what") == ASK else "Sending to decision"
    seconds = int((datetime.now(UTC) - status.job.started_at).total_seconds())
    with st.container(horizontal=True, vertical_alignment="center", key="row-revising"):
        since = f" · {seconds // 60}:{seconds % 60:02d}" if status.state == "running" else ""
        frame.show(
            theme.chips(theme.chip(word, tone, symbol), theme.chip(f"{doing}{since}"),
                        theme.chip(f"started {clock(status.job.started_at)} by {at.name(status.job.person)}"))
        )  # fmt: skip
        if status.state == "running":
            st.button(
                "Cancel", key=f"cancel-{status.job.id}", icon=":material/stop:", on_click=_cancel,
                args=(status.job.id,), disabled=status.job.stop_asked is not None,
            )  # fmt: skip
    lines = [line.what for line in progress.read(frame.workspace().jobs / status.job.id) if line.kind == "note"]
    if lines:
        items = join(tag("li", line, cls="sm") for line in lines)
        frame.show(tag("ol", items, role="log", aria_label="What the job has done"))
    if status.state in _NOTHING:
        what, why = status.job.about.get("what"), _NOTHING[status.state]
        title = "The model gave no draft." if what == ASK else "The draft was not sent to decision."
        words = f"{why} Nothing was put up; what you dropped or worded otherwise is kept."
        if status.message:
            words = f"{words} What to pass on to whoever looks after the workbench: {status.message}"
        frame.show(frame.notice(title, applying_view.in_words(at, words)))
