"""The checklist beside the task: five dimensions, checkpoints with example orders, findings; submit says what lacks."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

import streamlit as st

from graders.words import PlainWords, words_in
from review_ui import chart_sections, checkpoints, failure, frame, prose, reference_plans, theme
from review_ui.autosave import BESIDE, UNSETTLED, Area, Memory, Notebook, area, held, memory, settle_all
from review_ui.autosave.choices import Fold, Piece, Row, reading, sheet, text
from review_ui.kept import kept
from review_ui.markup import Markup, tag
from review_ui.reviewing import fields, forms, gate_view, quoting, solve_view
from review_ui.reviewing.examples import Example, declaration_text, examples
from review_ui.reviewing.findings_view import composer, composing, resume, started
from review_ui.reviewing.forms import Left, Missing, ReviewForm, fold
from review_ui.reviewing.sitting import Sitting, minted
from tasks.anchors import INSTRUCTION, Anchor
from tasks.declarations import Checkpoint
from tasks.errors import UsageError, WorkbenchError
from tasks.package import Task
from tasks.review import events
from tasks.review.checklist import Dimension, checklist
from tasks.review.events import CheckpointAnchor, OwnPlan, PlanAmended, ResourceAnchor

CHECKLIST, CHART, PLANS, GATE = "Checklist", "Chart", "Reference plans", "Gate"
#: The key of what opens one's own plan.
PLAN = "myplan"
#: What is to be done about words that would not be submitted, by what they are.
_WAYS = {
    "new": "Add the finding, or empty its fields.",
    "amend": "Add the correction there, or empty the field.",
    "finding": "Copy what you need of it and write it anew.",
    "why": "Rate the checkpoint so again where the reason is to be sent.",
    "plan": "Take it into a correction there, and add that.",
    "beside": "Settle it in that window. Where that is shut, copy what you need of it into the field here.",
}
#: Which fields an action waits for: how their items begin, and where they stand.
_FIELDS = {"comment.": "a comment on a dimension", "why.": "the reason of a rating", "amend.": "the correction behind "
           "Your plan"}  # fmt: skip


@kept(32)
def _examples(task_id: str, package: str, _task: Task) -> dict[str, tuple[Example, ...]]:
    return {checkpoint.id: examples(_task, checkpoint) for checkpoint in _task.checkpoints}


@kept(500)
def _words(task_id: str, package: str, checkpoint: str, _task: Task) -> PlainWords:
    return words_in(_task, next(one for one in _task.checkpoints if one.id == checkpoint))


def examples_of(at: Sitting) -> dict[str, tuple[Example, ...]]:
    """checkpoint id -> its example orders, judged once for as long as the package stays the same."""
    return _examples(at.at.task_id, at.at.package, at.task)


def form_of(at: Sitting, ex: dict[str, tuple[Example, ...]], drafts: dict[str, str]) -> ReviewForm:
    """The form with these drafts."""
    ids = tuple(one.id for one in at.task.checkpoints)
    keys = {id: tuple(one.key for one in found) for id, found in ex.items()}
    return ReviewForm(checklist(), ids, keys, drafts, at.plan.plan if at.plan else None)


def draw(at: Sitting) -> None:
    """Draw the step."""
    found, ex = memory(), examples_of(at)
    if found.view:
        st.session_state["door"] = found.view
        found.view = ""
    with st.container(horizontal=True, vertical_alignment="center", key="planline"):
        plan_line(at)
        chosen = st.segmented_control(
            "What to show", [CHECKLIST, CHART, PLANS, GATE], default=CHECKLIST, required=True, key="door",
            bind="query-params", label_visibility="collapsed", width="content",
        )  # fmt: skip
    _judged_wrong(at, ex)
    form = form_of(at, ex, at.book.values())
    left, right = st.columns([1.9, 1], gap="medium")
    with left:
        if chosen == CHART:
            solve_view.chart(at, pointing=True)
        elif chosen == PLANS:
            reference_plans.draw(at.task)
        elif chosen == GATE:
            gate_view.draw(at)
        else:
            with st.expander("What the agent is asked", icon=":material/description:", key="asked"):
                frame.show(tag("div", prose.formatted(at.task.instruction), cls="question", data_source=quoting.PATH))
            dimensions(at, form)
            rate_checkpoints(at, form, ex)
    with right, st.container(border=True, key="finding"):
        composer(at, lambda ref: pointed_at(at, ex, ref))
    bar(at, ex)


def plan_line(at: Sitting) -> None:
    """The locked plan as one line; whole, with what may be added to it, behind its button."""
    locked = at.plan
    assert locked is not None
    plan = locked.plan
    with st.popover(
        f"Your plan, locked {locked.at.astimezone():%H:%M}", icon=":material/lock:", key=PLAN, on_change="rerun"
    ) as up:
        if up.open:
            whole_plan(at, plan)
    line = " · ".join(part.rstrip(" .") for part in (plan.answer, f"must not: {plan.must_not}", plan.follow_up) if part)
    frame.show(tag("p", line[:300], cls="sm mute one-line", title=line))


def whole_plan(at: Sitting, plan: OwnPlan) -> None:
    """Every field of the plan, the corrections, what came too late for it, and a field for another correction."""
    lines = [tag("p", tag("span", f"{label}: ", cls="b"), str(getattr(plan, key))) for key, label, _ in forms.PLAN]
    lines.append(tag("p", tag("span", "How sure: ", cls="b"), plan.confidence))
    added = [one for one in at.mine if isinstance(one, PlanAmended)]
    lines += [tag("p", tag("span", f"Correction, {one.at.astimezone():%H:%M}: ", cls="b"), one.text) for one in added]
    frame.show(tag("div", *lines, cls="lines"))
    item = f"amend.{len(added)}"
    for one in forms.late(at.book.values(), plan):
        with st.container(key=f"row-late-{one.items[0]}"):
            frame.show(tag("div", tag("div", one.what, cls="b sm"), tag("div", one.words, cls="lines"), cls="anchor"))
            st.button("Take it into the correction", key=f"late-{one.items[0]}", type="tertiary",
                      icon=":material/south:", on_click=_take_late, args=(at, one.items[0], item))  # fmt: skip
    area(at.book, item, "Add a correction; both stay visible", rows=2)
    id = minted(f"amend-{at.me}-{at.at.task_id}-{at.state.round}-{len(added)}")
    st.button("Add correction", key=f"amend-{id}", on_click=_amend, args=(at, item, id))


def _settled(at: Sitting, item: str) -> tuple[Notebook, Memory] | None:
    """What is kept, all that was sent included; None, and the page says so, where the item is not kept as it stands."""
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    if found.unsettled(book, item):
        found.say(book, *UNSETTLED)
        return None
    return book, found


@failure.guarded
def _take_late(at: Sitting, late: str, item: str) -> None:
    """Move words that came too late for the plan behind those of the correction that is being written."""
    if (settled := _settled(at, item)) is None:
        return
    book, _ = settled
    kept = book.values()
    if words := kept.get(late, "").strip():
        book.save(item, "\n".join(filter(None, [kept.get(item, "").strip(), words])))
        book.drop(late)


@failure.guarded
def _amend(at: Sitting, item: str, id: str) -> None:
    if (settled := _settled(at, item)) is None:
        return
    book, found = settled
    words = book.values().get(item, "").strip()
    if not words:
        return
    try:
        at.desk.amend_plan(at.at.task_id, words, review_id=id)
    except WorkbenchError as error:
        found.say(book, "The correction is not added. What you wrote is kept.", str(error))
        return
    # What is added is no draft any more; left there it would count as not added.
    book.drop(item)


# ---- dimensions -----------------------------------------------------------------------------------------------------


def dimensions(at: Sitting, form: ReviewForm) -> None:
    """Five cards, verdict at the right edge."""
    judged = sum(bool(form.verdict(one.id)) for one in form.checklist.dimensions)
    total = len(form.checklist.dimensions)
    frame.show(theme.section("Checklist", f"{judged} of {total} dimensions judged", anchor="checklist"))
    each = form.checklist.dimensions
    sheet(at.book, "dimensions", [row for one in each for row in dimension(one, first=one is each[0])])


def dimension(one: Dimension, *, first: bool) -> Iterator[Row]:
    """One card: the verdict; unfolded, the sub-questions and a comment. They are sent with it, so that unfolding waits
    for nothing and moves nothing under the pointer later."""
    card = f"dimension.{one.id}"
    opened = (fold(card), ("open",))
    verdict = f"verdict.{one.id}"
    questions = {f"q.{one.id}.{question.id}": question.text for question in one.questions}
    yield Row(
        verdict,
        f"Verdict: {one.title}",
        fields.options(forms.VERDICTS),
        label=(Piece("answered", "sm mute nowrap", tuple(questions)),),
        fold=Fold(fold(card), one.title, one.title, one.asks, "open" if first else "shut"),
        card=card,
    )
    why = "Why it cannot be judged"
    reasons = fields.options({why: why.capitalize() for why in forms.WHY_NOT})
    yield Row(f"why_not.{one.id}", why, reasons, label=(Piece(why, "b"),), when=(verdict, ("cannot judge",)), card=card)
    yield Row(f"asks.{one.id}", "", kind="words", label=(Piece(one.asks, "sm mute"),), when=opened, card=card)
    for item, asked in questions.items():
        answers = fields.options(forms.ANSWERS)
        yield Row(item, asked, answers, label=(Piece(asked),), when=opened, clear=True, card=card)
    comment = Area(f"comment.{one.id}", f"Comment on {forms.within(one.title)}", 1, "Optional")
    yield text(comment, when=opened, card=card)


# ---- checkpoints ----------------------------------------------------------------------------------------------------


def rate_checkpoints(at: Sitting, form: ReviewForm, ex: dict[str, tuple[Example, ...]]) -> None:
    """One line each with the rating; an open one in plain words with its example orders; one's own certainty."""
    rated = sum(bool(form.rating(id)) for id in form.checkpoints)
    total = len(form.checkpoints)
    frame.show(theme.section("Checkpoints", f"{rated} of {total} rated · all {total} needed", anchor="checkpoints"))
    rows: list[Row] = []
    for number, checkpoint in enumerate(at.task.checkpoints, 1):
        left = len(form.examples.get(checkpoint.id, ())) - form.ticked(checkpoint.id)
        rows += rating_rows(number, checkpoint, left)
        if form.drafts.get(fold(f"checkpoint.{checkpoint.id}")) == "open":
            rows += open_rows(at, number, checkpoint, ex[checkpoint.id])
    asked = "How sure are you of this review?"
    sure = Row("confidence", asked, fields.options(forms.CONFIDENCE), label=(Piece(asked, "b"),), card="overall")
    sheet(at.book, "checkpoints", [*rows, sure])


def rating_rows(number: int, checkpoint: Checkpoint, left: int) -> Iterator[Row]:
    """A checkpoint's line. `left`: example orders that nobody has looked at."""
    card = f"checkpoint.{checkpoint.id}"
    rating = f"rating.{checkpoint.id}"
    yield Row(
        rating,
        f"Rating of checkpoint {number}",
        fields.options(forms.RATINGS),
        label=(
            Piece(checkpoint.title, "b"),
            Piece(checkpoint.criticality + (f" · {left} orders to tick" if left else ""), "sm mute nowrap"),
        ),
        fold=Fold(fold(card), str(number), f"Checkpoint {number}", checkpoints.capability_words(checkpoint)),
        card=card,
        about=f"{forms.CHECKPOINT}{checkpoint.id}",
    )
    why = Area(f"why.{checkpoint.id}", f"Why checkpoint {number} is wrong or not gradable", 1)
    yield text(why, when=(rating, ("wrong", "not gradable")), card=card)


def open_rows(at: Sitting, number: int, checkpoint: Checkpoint, orders: tuple[Example, ...]) -> Iterator[Row]:
    """Plain words, ten orders to tick, the declaration folded. Computed only for a checkpoint that is open."""
    card = f"checkpoint.{checkpoint.id}"
    opened = (fold(card), ("open",))
    words = _words(at.at.task_id, at.at.package, checkpoint.id, at.task)
    links = [_fact(rests, said) for rests, said in zip(checkpoint.rests_on, words.rests_on, strict=True)]
    shown = checkpoints.card(number, checkpoint, words, links, headed=False)
    yield reading(f"words.{checkpoint.id}", shown, when=opened, card=card)
    if orders:
        items = {one.key: f"tick.{checkpoint.id}.{one.key}" for one in orders}
        asked = f"{len(orders)} example orders: is the grader right about each?"
        judged = fields.options({"right": "Right", "wrong": "Wrong"}, {"right": "check", "wrong": "close"})
        ticked = Piece("ticked", "sm mute nowrap", tuple(items.values()))
        yield Row(
            f"head.{checkpoint.id}", "", kind="words", label=(Piece(asked, "sm b"), ticked), when=opened, card=card
        )
        for place, one in enumerate(orders, 1):
            said = (Piece(one.words), Piece(" · ".join(filter(None, (one.detail, one.why))), "sm mute"))
            name = f"Order {place} of checkpoint {number}"
            yield Row(items[one.key], name, judged, label=said, chip=_chip(one.result), when=opened,
                      card=card, about=f"{forms.ORDER}{checkpoint.id}.{one.key}")  # fmt: skip
    toml = at.task.files["checkpoints.toml"].decode("utf-8")
    written = [checkpoints.declaration(toml, checkpoint.id), *(declaration_text(one) for one in orders[:3])]
    folded = tag(
        "details",
        tag("summary", "How it is written (declaration and code)", cls="sm mute"),
        *(theme.written(one) for one in written),
        cls="as-written",
    )
    yield reading(f"written.{checkpoint.id}", folded, when=opened, card=card)


def _fact(rests: str, said: str) -> Markup:
    """Something that a checkpoint rests on, in words; a finding can be about it."""
    ref = Anchor.parse(rests).ref
    words = said.replace(f" ({ref})", "")
    return tag("span", words, " ", chart_sections.about(ref, words) if ref != INSTRUCTION else None)


def _chip(result: str) -> tuple[str, str, str]:
    symbol, word, tone = theme.VERDICTS[result]
    return tone, symbol, word


def order_anchor(checkpoint: str, one: Example) -> CheckpointAnchor:
    """The anchor of a finding about an example order."""
    return CheckpointAnchor(checkpoint=checkpoint, example=f"{one.words}: {one.result}")


def pointed_at(at: Sitting, ex: dict[str, tuple[Example, ...]], about: str) -> events.Anchor | None:
    """The anchor of a row that was pointed at: an example order, a checkpoint, an entry of the chart; None for none."""
    if about.startswith(forms.ORDER):
        checkpoint, _, key = about.removeprefix(forms.ORDER).rpartition(".")
        one = next((one for one in ex.get(checkpoint, ()) if one.key == key), None)
        return order_anchor(checkpoint, one) if one else None
    if about.startswith(forms.CHECKPOINT):
        id = about.removeprefix(forms.CHECKPOINT)
        return CheckpointAnchor(checkpoint=id) if id in ex else None
    return ResourceAnchor(ref=about) if at.task.chart.get(about) is not None else None


def _judged_wrong(at: Sitting, ex: dict[str, tuple[Example, ...]]) -> None:
    """An order that was just judged wrong starts a finding at it, unless one is being written."""
    found = memory()
    numbers = {one.id: number for number, one in enumerate(at.task.checkpoints, 1)}
    while found.changed:
        item, value = found.changed[0]
        kind, _, rest = item.partition(".")
        checkpoint, _, key = rest.rpartition(".")
        one = next((one for one in ex.get(checkpoint, ()) if one.key == key), None)
        if kind == "tick" and value == "wrong" and one is not None and checkpoint in numbers:
            words = f"“{one.words}” is graded {one.result}, but should not be: "
            started(at.book, order_anchor(checkpoint, one), words, "clinical_reasoning")
        found.changed.pop(0)


# ---- submit ---------------------------------------------------------------------------------------------------------


def bar(at: Sitting, ex: dict[str, tuple[Example, ...]]) -> None:
    """What is missing with a door to each place, the next open item, submit."""
    form = form_of(at, ex, at.book.values())
    lacks = form.open
    id = minted(f"review-{at.me}-{at.at.task_id}-{at.state.round}")
    if said := memory().said.get(at.book.key("")):
        with st.bottom:
            frame.show(frame.notice(*said))
    with (
        st.bottom,
        st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False, key="endbar"
        ),
    ):
        needed = f"Before you can submit: {form.summary()}" if lacks else "Complete. Nothing can be changed after."
        minutes = at.at.meta.estimated_minutes
        about = f" of about {minutes}" if minutes else ""
        frame.show(
            tag(
                "div",
                tag("a", "To the finding", href="#new-finding", cls="sm narrow-only"),
                " ",
                tag("span", needed, cls="b sm", role="status"),
                tag("span", f" {solve_view.saved_words(at.book)}{about}", cls="sm mute"),
            )
        )
        with st.container(horizontal=True, width="content", key="submitbar"):
            if lacks:
                doors(at, ex, form, id)
            st.button(
                "Next open item", icon=":material/arrow_downward:", shortcut="n", disabled=not lacks,
                key="next-open", on_click=_next, args=(at, ex), help=lacks[0].words if lacks else None,
            )  # fmt: skip
            st.button(
                "Submit review", type="primary", icon=":material/send:", disabled=bool(lacks),
                key=f"submit-{id}", on_click=_submit, args=(at, ex, id),
            )  # fmt: skip


def doors(at: Sitting, ex: dict[str, tuple[Example, ...]], form: ReviewForm, id: str) -> None:
    """All that is missing, each with a door to its place; where only words are left over, submitting without them."""
    # The list shuts when it has led somewhere: another place led to is another list.
    with st.popover(
        "What is missing", icon=":material/list:", key=f"missing-{memory().leads}", on_change="rerun"
    ) as up:
        if not up.open:
            return
        with st.container(gap=None, key="missing"):
            for one in form.open:
                st.button(
                    one.words, key=f"door-{one.place}-{one.item}", type="tertiary", on_click=_lead, args=(at, ex, one)
                )
        if form.left and not form.missing:
            shown = [tag("div", tag("div", one.what, cls="b"), tag("div", one.words, cls="lines"), cls="anchor sm")
                     for one in form.left]  # fmt: skip
            it = "it" if len(form.left) == 1 else "them"
            said = f"Nobody else sees {it}; on this page you find {it} afterwards, until you discard {it}."
            frame.show(tag("div", *shown, tag("p", said, cls="sm mute")))
            # A button of its own: no second click on Submit review is a click on this one.
            st.button(
                f"Submit without {it}", icon=":material/send:", key=f"without-{id}", on_click=_submit,
                args=(at, ex, id, form.left),
            )  # fmt: skip


@failure.guarded
def _lead(at: Sitting, ex: dict[str, tuple[Example, ...]], one: Missing) -> None:
    """Open the place of something that is missing, and lead to it."""
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    if one.opens:
        book.save(one.opens, "open")
    if one.place.startswith("left."):
        _lead_to_words(at, ex, book, found, one.item)
    elif one.item == "finding":
        started(book, None, "", one.place.partition(".")[2])
        found.go(f"new.{composing(book)}.text")
    else:
        found.go(one.item, CHECKLIST)


def _lead_to_words(at: Sitting, ex: dict[str, tuple[Example, ...]], book: Notebook, found: Memory, item: str) -> None:
    """Lead to words that would not be submitted, and say what can be done about them."""
    one = next((left for left in form_of(at, ex, book.values()).left if left.items[0] == item), None)
    if one is None:
        return
    kind, inner = one.kind, item.removeprefix(BESIDE)
    rest = inner.partition(".")[2]
    quote = shorten(one.words, 200, placeholder=" …")
    found.say(book, f"{one.what}.", f"It stands {one.where}: “{quote}” {_WAYS[kind]}")
    if kind == "new":
        if resume(book, found, rest.rpartition(".")[0]):
            found.go(item)
    elif kind == "why":
        found.go(f"rating.{rest}", CHECKLIST)
    else:
        added = sum(isinstance(said, PlanAmended) for said in at.mine)
        found.go(f"amend.{added}" if kind == "plan" else inner)
        if kind in ("amend", "plan"):
            st.session_state[PLAN] = True


@failure.guarded
def _next(at: Sitting, ex: dict[str, tuple[Example, ...]]) -> None:
    """Lead to what is open now, which need not be what was open when the page was drawn."""
    book = at.book.again()
    settle_all(book)
    lacks = form_of(at, ex, book.values()).open
    if lacks:
        _lead(at, ex, lacks[0])


@failure.guarded
def _submit(at: Sitting, ex: dict[str, tuple[Example, ...]], id: str, without: tuple[Left, ...] = ()) -> None:
    """Submit; what is stored is read back by the page that follows. Words that are not part of it stop it, unless they
    are just those that were shown as left behind (`without`); these are kept."""
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    form = form_of(at, ex, book.values())
    if waiting := unsettled(book, found, form):
        found.say(book, UNSETTLED[0], f"It is {waiting}. {UNSETTLED[1]}")
        return
    if form.missing:
        return
    if form.left != without:
        if form.left:
            each = "; ".join(
                f"{one.what} ({one.where}): “{shorten(one.words, 120, placeholder=' …')}”" for one in form.left
            )
            way = "What is missing leads there; to submit without, choose so in that list."
            found.say(book, "Not submitted: what you wrote here would not go with it.", f"{each}. {way}")
        else:
            found.say(book, "Not submitted.", "What was left behind is added or gone by now: look, then submit.")
        return
    try:
        at.desk.submit_review(at.at.task_id, form.submission(), review_id=id)
    except (UsageError, WorkbenchError) as error:
        found.say(book, "Not submitted. Everything that you wrote is kept.", str(error))
        return
    kept = {item for one in form.left for item in one.items}
    book.drop(*[item for item in form.drafts if forms.of_stage_1(item) and item not in kept])


def unsettled(book: Notebook, found: Memory, form: ReviewForm) -> str:
    """Which field is not kept as it stands, or ""."""
    each = [where for start, where in _FIELDS.items() if found.unsettled(book, start)]
    writing = {form.drafts.get("composer", ""), *forms.begun(form.drafts)}
    if any(found.unsettled(book, f"new.{id}.") for id in writing if id):
        each.append("a finding that is not added")
    return ", ".join(each)
