"""The checklist beside the task: five dimensions, checkpoints with example orders, findings; submit says what lacks."""

from __future__ import annotations

import streamlit as st

from authoring.gate import GateResult, run_gate
from graders.words import PlainWords, plain_words
from review_ui import checkpoints, frame, prose, theme
from review_ui.autosave import area, settle
from review_ui.kept import kept
from review_ui.markup import join, tag
from review_ui.reviewing import fields, forms, solve_view
from review_ui.reviewing.examples import Example, declaration_text, examples
from review_ui.reviewing.findings_view import composer, composing
from review_ui.reviewing.forms import ReviewForm
from review_ui.reviewing.sitting import Sitting, minted, used
from tasks.declarations import Checkpoint
from tasks.errors import UsageError, WorkbenchError
from tasks.package import Task
from tasks.plans import Plan
from tasks.review.checklist import Dimension, checklist
from tasks.review.events import CheckpointAnchor, PlanAmended

CHECKLIST, CHART, PLANS, GATE = "Checklist", "Chart", "Reference plans", "Gate"


@kept(32)
def _examples(task_id: str, package: str, _task: Task) -> dict[str, tuple[Example, ...]]:
    return {checkpoint.id: examples(_task, checkpoint) for checkpoint in _task.checkpoints}


@kept(32)
def _words(task_id: str, package: str, _task: Task) -> dict[str, PlainWords]:
    authority = _task.meta.context.authority if _task.meta.context else None
    return {
        one.id: plain_words(one, authority=authority, code=_task.code, records=_task.chart) for one in _task.checkpoints
    }


def form_of(at: Sitting) -> tuple[ReviewForm, dict[str, tuple[Example, ...]]]:
    """The form with its drafts, and the example orders."""
    ex = _examples(at.at.task_id, at.at.package, at.task)
    drafts = {item: draft.value for item, draft in at.book.all().items()}
    ids = tuple(one.id for one in at.task.checkpoints)
    return ReviewForm(checklist(), ids, {id: tuple(one.key for one in found) for id, found in ex.items()}, drafts), ex


def draw(at: Sitting) -> None:
    """Draw the step."""
    plan_line(at)
    chosen = st.segmented_control(
        "What to show", [CHECKLIST, CHART, PLANS, GATE], default=CHECKLIST, required=True, key="door",
        bind="query-params", label_visibility="collapsed",
    )  # fmt: skip
    form, ex = form_of(at)
    left, right = st.columns([1.9, 1], gap="medium")
    with left:
        if chosen == CHART:
            solve_view.chart(at)
        elif chosen == PLANS:
            plans(at.task)
        elif chosen == GATE:
            gate(at)
        else:
            with st.expander("What the agent is asked", icon=":material/description:", key="asked"):
                frame.show(tag("div", prose.formatted(at.task.instruction), cls="question"))
            dimensions(at, form)
            rate_checkpoints(at, form, ex)
            overall(at, form)
    with right, st.container(border=True, key="finding"):
        composer(at)
    bar(at)


def plan_line(at: Sitting) -> None:
    """The locked plan as one line, with what may be added to it."""
    locked = at.plan
    assert locked is not None
    plan = locked.plan
    line = " · ".join(part.rstrip(" .") for part in (plan.answer, f"must not: {plan.must_not}", plan.follow_up) if part)
    with st.expander(f"Your plan, locked {locked.at.astimezone():%H:%M}", icon=":material/lock:", key="myplan"):
        for key, label, _ in forms.PLAN:
            frame.show(tag("p", tag("span", f"{label}: ", cls="b"), str(getattr(plan, key))))
        frame.show(tag("p", tag("span", "How sure: ", cls="b"), plan.confidence))
        added = [one for one in at.mine if isinstance(one, PlanAmended)]
        for one in added:
            frame.show(tag("p", tag("span", f"Correction, {one.at.astimezone():%H:%M}: ", cls="b"), one.text))
        area(at.book, f"amend.{len(added)}", "Add a correction; both stay visible", rows=1)
        name = f"amend-{at.at.task_id}-{at.state.round}-{len(added)}"
        if st.button("Add correction", key=f"amend-{minted(name)}"):
            settle(at.book, f"amend.{len(added)}")
            draft = at.book.all().get(f"amend.{len(added)}")
            if draft and draft.value.strip():
                at.desk.amend_plan(at.at.task_id, draft.value, review_id=minted(name))
                used(name)
                st.rerun()
    frame.show(tag("p", line[:220], cls="sm mute one-line"))


# ---- dimensions -----------------------------------------------------------------------------------------------------


def dimensions(at: Sitting, form: ReviewForm) -> None:
    """Five cards, verdict at the right edge; one is open."""
    judged = sum(bool(form.verdict(one.id)) for one in form.checklist.dimensions)
    total = len(form.checklist.dimensions)
    frame.show(theme.section("Checklist", f"{judged} of {total} dimensions judged", anchor="checklist"))
    first_open = next((one.id for one in form.checklist.dimensions if not form.verdict(one.id)), "")
    chosen = st.session_state.get("open-dimension", first_open)
    for one in form.checklist.dimensions:
        dimension(at, form, one, opened=one.id == chosen)


def _toggle(key: str, value: str, opened: bool) -> None:
    st.session_state[key] = "" if opened else value


def dimension(at: Sitting, form: ReviewForm, one: Dimension, *, opened: bool) -> None:
    """One card."""
    state = "dimon" if opened else "dim"
    with st.container(border=True, key=f"{state}-{one.id}"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            with st.container(horizontal=True, width="content", vertical_alignment="center"):
                st.button(
                    f"{one.title}", icon=":material/expand_less:" if opened else ":material/expand_more:",
                    key=f"opendim-{one.id}", type="tertiary", on_click=_toggle,
                    args=("open-dimension", one.id, opened), help=one.asks,
                )  # fmt: skip
                frame.show(tag("span", f"{form.answered(one)} of {len(one.questions)} answered", cls="sm mute nowrap"))
            with st.container(width="content"):
                fields.choice(at.book, f"verdict.{one.id}", f"Verdict: {one.title}", forms.VERDICTS, form.drafts)
        if form.verdict(one.id) == "cannot judge":
            reasons = {why: why.capitalize() for why in forms.WHY_NOT}
            fields.pick(at.book, f"why_not.{one.id}", "Why it cannot be judged", reasons, form.drafts)
        if not opened:
            return
        frame.show(tag("p", one.asks, cls="sm mute"))
        for question in one.questions:
            with st.container(
                horizontal=True, horizontal_alignment="distribute", vertical_alignment="center",
                key=f"row-q-{one.id}-{question.id}",
            ):  # fmt: skip
                frame.show(tag("span", question.text))
                with st.container(width="content"):
                    item = f"q.{one.id}.{question.id}"
                    fields.choice(at.book, item, question.text, forms.ANSWERS, form.drafts)
        area(at.book, f"comment.{one.id}", f"Comment on {one.title.lower()}", rows=1, placeholder="Optional")


# ---- checkpoints ----------------------------------------------------------------------------------------------------


def rate_checkpoints(at: Sitting, form: ReviewForm, ex: dict[str, tuple[Example, ...]]) -> None:
    """One line each with the rating; the open one in plain words with its example orders."""
    rated = sum(bool(form.rating(id)) for id in form.checkpoints)
    total = len(form.checkpoints)
    frame.show(theme.section("Checkpoints", f"{rated} of {total} rated · all {total} needed", anchor="checkpoints"))
    words = _words(at.at.task_id, at.at.package, at.task)
    chosen = st.session_state.get("open-checkpoint", "")
    for number, checkpoint in enumerate(at.task.checkpoints, 1):
        opened = checkpoint.id == chosen
        with st.container(key=f"{'cpon' if opened else 'cp'}-{checkpoint.id}"):
            with st.container(
                horizontal=True, horizontal_alignment="distribute", vertical_alignment="center",
                key=f"row-cp-{checkpoint.id}",
            ):  # fmt: skip
                said = f"{checkpoints.CAPABILITIES[checkpoint.capability]} · {checkpoint.criticality}"
                left = len(form.examples.get(checkpoint.id, ())) - form.ticked(checkpoint.id)
                more = f" · {left} orders to tick" if left else ""
                with st.container(horizontal=True, wrap=False, vertical_alignment="center"):
                    # Titles are data: the button carries the number, the title stands beside it as text.
                    st.button(
                        f"Checkpoint {number}", icon=":material/expand_less:" if opened else ":material/expand_more:",
                        key=f"opencp-{checkpoint.id}", type="tertiary", on_click=_toggle,
                        args=("open-checkpoint", checkpoint.id, opened),
                    )  # fmt: skip
                    frame.show(
                        tag(
                            "div",
                            tag("span", checkpoint.title, cls="b"),
                            tag("span", f" {said}{more}", cls="sm mute"),
                        )
                    )
                with st.container(width="content"):
                    fields.choice(
                        at.book, f"rating.{checkpoint.id}", f"Rating of checkpoint {number}", forms.RATINGS,
                        form.drafts,
                    )  # fmt: skip
            if form.rating(checkpoint.id) in ("wrong", "not gradable"):
                area(at.book, f"why.{checkpoint.id}", f"Why checkpoint {number} is {form.rating(checkpoint.id)}",
                     rows=1)  # fmt: skip
            if opened:
                open_checkpoint(at, form, number, checkpoint, words[checkpoint.id], ex[checkpoint.id])


def open_checkpoint(
    at: Sitting, form: ReviewForm, number: int, checkpoint: Checkpoint, words: PlainWords, orders: tuple[Example, ...]
) -> None:
    """Plain words, ten orders to tick, the declaration folded."""
    frame.show(checkpoints.card(number, checkpoint, words, [tag("span", fact) for fact in words.rests_on]))
    if orders:
        wrong = sum(form.tick(checkpoint.id, one.key) == "wrong" for one in orders)
        said = f"{form.ticked(checkpoint.id)} of {len(orders)} ticked"
        said += f" · {wrong} disagreement{'s' if wrong != 1 else ''}" if wrong else ""
        frame.show(
            tag(
                "div",
                tag("span", f"{len(orders)} example orders: is the grader right about each?", cls="sm b"),
                tag("span", said, cls="sm mute"),
                cls="pair",
            )
        )
    for place, one in enumerate(orders, 1):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center",
            key=f"row-ex-{checkpoint.id}-{one.key}",
        ):  # fmt: skip
            frame.show(
                tag(
                    "div",
                    tag("span", one.words, tag("span", f" {one.detail}", cls="sm mute")),
                    theme.verdict_chip(one.result),
                    cls="example-row",
                    title=one.reason,
                )
            )
            with st.container(width="content"):
                item = f"tick.{checkpoint.id}.{one.key}"
                before = form.drafts.get(item, "")
                now = fields.choice(
                    at.book, item, f"Order {place} of checkpoint {number}", {"right": "Right", "wrong": "Wrong"},
                    form.drafts, icons={"right": "check", "wrong": "close"},
                )  # fmt: skip
                if now == "wrong" and before == "wrong" and st.session_state.get("anchored") != item:
                    st.session_state["anchored"] = item
                    prefill(at, checkpoint, number, one)
    with st.expander("How it is written (declaration and code)", key=f"written-{checkpoint.id}", type="compact"):
        toml = at.task.files["checkpoints.toml"].decode("utf-8")
        frame.show(theme.written(checkpoints.declaration(toml, checkpoint.id)))
        for one in orders[:3]:
            frame.show(theme.written(declaration_text(one)))


def prefill(at: Sitting, checkpoint: Checkpoint, number: int, one: Example) -> None:
    """An order that was judged wrong starts a finding at its checkpoint, unless one is being written."""
    id = composing(at)
    drafts = at.book.all()
    text = drafts.get(f"new.{id}.text")
    if text and text.value.strip():
        return
    at.book.save(f"new.{id}.text", f"“{one.words}” is graded {one.result}, but should not be: ")
    at.book.save(f"new.{id}.anchor", CheckpointAnchor(checkpoint=checkpoint.id).model_dump_json())
    at.book.save(f"new.{id}.dimension", "clinical_reasoning")
    st.session_state[at.book.key(f"new.{id}.dimension")] = "clinical_reasoning"


def overall(at: Sitting, form: ReviewForm) -> None:
    """One's own certainty."""
    frame.show(theme.section("Overall"))
    fields.choice(at.book, "confidence", "How sure are you of this review?", forms.CONFIDENCE, form.drafts, quiet=False)


# ---- reference plans and gate ---------------------------------------------------------------------------------------


def plans(task: Task) -> None:
    """What the reference plans do and write."""
    for plan in task.plans.values():
        reference(plan)
    if not task.plans:
        frame.show(tag("p", "This draft has no reference plan yet.", cls="empty"))


def reference(plan: Plan) -> None:
    """One reference plan."""
    frame.show(theme.section(f"Plan: {plan.name}", f"{len(plan.actions)} tool calls"))
    rows = [
        tag(
            "div",
            tag("span", f"{number}", cls="no"),
            tag("span", action.tool.removeprefix("fhir_").replace("_", " "), cls="b"),
            tag("span", ", ".join(f"{key}: {value}" for key, value in action.arguments.items()), cls="sm mute"),
            cls="step-row",
        )
        for number, action in enumerate(plan.actions, start=1)
    ]
    frame.show(tag("div", *rows, cls="rows"))
    for name, data in plan.files.items():
        frame.show(tag("div", tag("p", name, cls="b sm"), prose.formatted(data.decode("utf-8", "replace")), cls="card"))


def gate(at: Sitting) -> None:
    """What the last gate over these bytes found."""
    frame.show(theme.section("Gate", "what is checked without a physician"))
    found = at.state.gate
    if st.toggle("Run every check now and show what each found", key=f"gate-{at.at.package[:12]}"):
        checks(at)
        return
    if found is None:
        frame.show(tag("p", "The gate has not been recorded on these bytes yet.", cls="empty"))
        return
    chip = theme.chip("Passed", "green", "check_circle") if found.passed else theme.chip("Failed", "red", "cancel")
    frame.show(tag("div", chip, tag("p", f"Version {found.gate}, {found.at.astimezone():%-d %b %Y, %H:%M}", cls="sm")))
    frame.show(tag("ul", join(tag("li", one) for one in found.failures), cls="list"))


@kept(16, "Every check, without a model: about ten seconds …")
def _gate(task_id: str, package: str, _at: Sitting) -> GateResult:
    return run_gate(_at.at.files, task=task_id)


def checks(at: Sitting) -> None:
    """Each check with what it looked at: plans, mutants caught, harmless variants, survivors."""
    found = _gate(at.at.task_id, at.at.package, at)
    chips = {
        "passed": theme.chip("Passed", "green", "check_circle"),
        "failed": theme.chip("Failed", "red", "cancel"),
        "skipped": theme.chip("Skipped", "gray", "hourglass_empty"),
    }
    rows = [
        tag("tr", tag("td", one.name, cls="b"), tag("td", one.detail), tag("td", chips[one.state]))
        for one in found.checks
    ]
    heads = [tag("th", name, scope="col") for name in ("Check", "What it found", "State")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))


# ---- submit ---------------------------------------------------------------------------------------------------------


def bar(at: Sitting) -> None:
    """What is missing, the next open item, submit."""
    form, _ = form_of(at)
    missing = form.missing
    name = f"review-{at.me}-{at.at.task_id}-{at.state.round}"
    with st.bottom, st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        needed = f"Before you can submit: {form.summary()}" if missing else "Complete. Nothing can be changed after."
        if missing and not form.summary():
            needed = "Before you can submit: " + missing[0].words
        minutes = at.at.meta.estimated_minutes
        about = f" of about {minutes}" if minutes else ""
        frame.show(
            tag(
                "div",
                tag("span", needed, cls="b sm", role="status"),
                tag("span", f" {solve_view.saved_words(at.book)}{about}", cls="sm mute"),
            )
        )
        with st.container(horizontal=True, width="content"):
            st.button(
                "Next open item", icon=":material/arrow_downward:", shortcut="n", disabled=not missing,
                key="next-open", on_click=_open_next, args=(missing[0].place if missing else "",),
                help=missing[0].words if missing else None,
            )  # fmt: skip
            pressed = st.button(
                "Submit review", type="primary", icon=":material/send:", disabled=bool(missing),
                key=f"submit-{minted(name)}",
            )  # fmt: skip
    if pressed:
        submit(at, form, name)


def _open_next(place: str) -> None:
    kind, _, id = place.partition(".")
    st.session_state["door"] = CHECKLIST
    if kind == "dimension":
        st.session_state["open-dimension"] = id
    elif kind == "checkpoint":
        st.session_state["open-checkpoint"] = id


def submit(at: Sitting, form: ReviewForm, name: str) -> None:
    """Submit; what is stored is read back by the page that follows. Unfinished words in the composer are not lost."""
    id = composing(at)
    unfinished = form.drafts.get(f"new.{id}.text", "").strip()
    if unfinished and not st.session_state.get(f"leave-{id}"):
        st.session_state[f"leave-{id}"] = True
        frame.show(
            frame.notice(
                "There is a finding that you have not added.",
                "Add it first. To submit without it, press Submit review again; it stays in your drafts.",
            )
        )
        return
    try:
        at.desk.submit_review(at.at.task_id, form.submission(), review_id=minted(name))
    except (UsageError, WorkbenchError) as error:
        frame.show(frame.notice("Not submitted. Everything that you wrote is kept.", str(error)))
        return
    used(name)
    keep = forms.composer_items(id) if unfinished else ()
    at.book.drop(*[item for item in form.drafts if item not in keep])
    st.rerun()
