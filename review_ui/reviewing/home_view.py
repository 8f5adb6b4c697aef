"""Home of a person: what needs them, where they left off, how far they are."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from review_ui import frame, identity, theme
from review_ui.autosave import clock
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import worklist
from review_ui.reviewing.changes import place_of
from review_ui.reviewing.forms import item_words
from review_ui.reviewing.sitting import every, store
from review_ui.reviewing.worklist import Work
from review_ui.sight import sight
from tasks.people import Person
from tasks.review import events as ev
from tasks.review.agreement import Agreement, agreement
from tasks.statedb import StateDb
from tasks.wording import counted

ANY = "All specialties"
SORTS = ("Safety first, then oldest", "Newest first", "By title")
#: Rows on one page: a browser draws a hundred in most of a second.
PAGE = 25


def draw(who: Person) -> list[Work]:
    """Greeting, continue, progress, tabs and rows; the rows of "All" are returned where that tab is chosen."""
    db = StateDb(frame.workspace().state_db)
    store()
    drafts = {(task, round): at for task, round, at in db.tasks_with_drafts(who.id)}
    seen = sight()
    rows = [worklist.work(one, who, db, drafts) for one in every() if seen.reads(one.data_class)]
    now = datetime.now(UTC)
    needs = worklist.tab("Needs me", rows)
    greeting(who, needs, now)
    left, right = st.columns([1.75, 1], gap="small")
    with left:
        carry_on(rows, drafts, db, who)
    with right, st.container(border=True, height="stretch", key="progress"):
        frame.show(progress(rows, who))
    counts = {name: len(worklist.tab(name, rows)) for name in worklist.TABS}
    chosen = st.segmented_control(
        "Which tasks", worklist.TABS, format_func=lambda name: f"{name} · {counts[name]}",
        default="Needs me" if counts["Needs me"] else "All", required=True, key="tab",
        label_visibility="collapsed",
    )  # fmt: skip
    shown = filtered(worklist.tab(chosen or "All", rows))
    table(shown, now)
    soon = due(needs, now)
    if soon is None:
        since(rows, db, who)
    else:
        left, right = st.columns([1.62, 1], gap="medium")
        with left:
            since(rows, db, who)
        with right:
            frame.show(soon)
    return shown


def greeting(who: Person, needs: list[Work], now: datetime) -> None:
    """The count and the worst wait."""
    hour = datetime.now().astimezone().hour
    part = "Good morning" if hour < 12 else "Good afternoon" if hour < 18 else "Good evening"
    n = len(needs)
    words = (
        f"{part}. {n} task{'s' if n != 1 else ''} need{'s' if n == 1 else ''} you."
        if n
        else f"{part}. Nothing waits for you."
    )
    oldest = max((one.days(now) for one in needs), default=0)
    vetoed = sum(bool(one.vetoes) for one in needs)
    said = []
    if vetoed:
        said.append(f"{vetoed} held by a veto")
    if oldest:
        said.append(f"the oldest has waited {oldest} day{'s' if oldest != 1 else ''}")
    late = sum(one.state.due is not None and one.state.due < now.date() and one.state.round_is_open for one in needs)
    if late:
        said.append(f"{late} past {'its' if late == 1 else 'their'} day")
    lead = "; ".join(said)
    with st.container(horizontal=True, vertical_alignment="center", key="greeting"):
        frame.show(
            tag(
                "header",
                tag("div", tag("h1", words, cls="h1"),
                    tag("p", f"{lead[0].upper()}{lead[1:]}.", cls="lead") if lead else None),
                identity.identity_chips(identity.current()),
                cls="head",
            )
        )  # fmt: skip
        with st.container(width="content"):
            identity.chooser()


def stage_chip(one: Work) -> Markup:
    """Where the task stands; where it is this person's turn, what exactly waits for them."""
    words, tone, icon = worklist.STAGES[one.state.stage]
    turn = one.mine[0].what if one.mine else ""
    if turn == "review":
        return theme.chip(
            "1 · Checklist" if one.solved else "1 · Solve first", tone, "checklist" if one.solved else icon
        )
    if turn == "adjudicate":
        split = sum(change.status == "split" for change in one.state.changes.values())
        return theme.chip(f"3 · Adjudicate {split}", "violet", "gavel")
    if turn == "decide":
        return theme.chip(f"{words} {one.to_decide}", tone, icon)
    return theme.chip(words, tone, icon)


def carry_on(rows: list[Work], drafts: dict[tuple[str, int], datetime], db: StateDb, who: Person) -> None:
    """Continue where I left off."""
    begun = [one for one in rows if one.drafted and one.mine]
    if not begun:
        first_in_line(worklist.tab("Needs me", rows))
        return
    one = max(begun, key=lambda work: drafts[work.task_id, work.state.round])
    saved = drafts[one.task_id, one.state.round]
    kept = db.drafts(who.id, one.task_id, one.state.round)
    minutes = db.active_minutes(who.id, one.task_id, one.state.round)
    last = max(kept.values(), key=lambda draft: draft.saved_at, default=None)
    at = saved.astimezone()
    day = "today" if at.date() == datetime.now().astimezone().date() else f"{at:%-d %b}"
    about = f" of about {one.listed.minutes}" if one.listed.minutes else ""
    spent = counted(minutes, "active minute")
    where = f"You were at “{item_words(last.item)}”. " if last else ""
    with st.container(
        border=True, horizontal=True, wrap=False, vertical_alignment="center", height="stretch", key="carry-on"
    ):
        frame.show(
            tag(
                "div",
                tag("div", "Continue where I left off", cls="xs mute b"),
                tag("div", one.listed.title, cls="h2"),
                theme.chips(
                    stage_chip(one), theme.chip(one.listed.specialty), theme.chip(f"Round {one.state.round}"),
                    *([theme.chip("Blind until all are in", "gray", "visibility_off")] if one.blind else []),
                ),
                tag("p", f"{where}Saved {day} {clock(saved)} · {spent}{about}.",
                    cls="sm mute"),
            )
        )  # fmt: skip
        first_door("Resume", one)


def first_in_line(needs: list[Work]) -> None:
    """Where nothing is begun: what to begin with."""
    with st.container(
        border=True, horizontal=True, wrap=False, vertical_alignment="center", height="stretch", key="carry-on"
    ):
        if not needs:
            words = tag("p", "Nothing is begun. What you leave half done stands here.", cls="mute")
            frame.show(tag("div", tag("div", "Continue where I left off", cls="xs mute b"), words))
            return
        one = needs[0]
        about = f"About {one.listed.minutes} min; stop whenever you like." if one.listed.minutes else ""
        frame.show(
            tag(
                "div",
                tag("div", "Nothing is begun. First in line", cls="xs mute b"),
                tag("div", one.listed.title, cls="h2"),
                theme.chips(
                    stage_chip(one), theme.chip(one.listed.specialty),
                    *([theme.chip("Blind until all are in", "gray", "visibility_off")] if one.blind else []),
                ),
                tag("p", about, cls="sm mute"),
            )
        )  # fmt: skip
        first_door(one.verb, one)


def first_door(words: str, one: Work) -> None:
    """The one thing to press on this page."""
    frame.door(one.page, words, {"id": one.task_id}, key="resume", width=150, icon=":material/arrow_forward:")


@st.cache_data(show_spinner=False, max_entries=64)
def _agreed(items: tuple[tuple[tuple[str, str], ...], ...]) -> Agreement:
    return agreement("alpha", [dict(item) for item in items])


def agreed_words(rows: list[Work], who: Person) -> str:
    """ "Agreement with co-reviewers: α 0.71 (0.58–0.82), n = 41"; few items are said to be few."""
    items = worklist.verdict_items(rows, who.id)
    if not items:
        return "No review that a co-reviewer has judged too."
    found = _agreed(tuple(tuple(sorted(item.items())) for item in items))
    if found.value is None or found.low is None or found.high is None:
        # Without any difference there is no chance agreement to compare with, and no α.
        return f"Agreement with co-reviewers: one and the same verdict on all {found.n}"
    few = "; too few to lean on" if found.few else ""
    return f"Agreement with co-reviewers: α {found.value:.2f} ({found.low:.2f}–{found.high:.2f}), n = {found.n}{few}"


def progress(rows: list[Work], who: Person) -> Markup:
    """Against what is assigned; for somebody to whom nothing is, how far all tasks are."""
    mine = any(one.assigned for one in rows)
    counted = worklist.progress(rows) if mine else worklist.overall(rows)
    total = sum(counted.values())
    done = next(iter(counted))
    colors = dict(zip(counted, ("primary", "blue-mark", "orange", "hair"), strict=True))
    bar = [
        tag("div", style=f"flex:{n};background:var(--{colors[name]})") for name, n in counted.items() if n
    ] or [tag("div", style="flex:1")]  # fmt: skip
    cells = [
        tag(
            "div",
            tag("i", cls="swatch", style=f"background:var(--{colors[name]})"),
            tag("span", f"{n} ", cls="b"),
            name,
        )
        for name, n in counted.items()
    ]
    below = agreed_words(rows, who) if mine else "No task is assigned to you for review."
    return tag(
        "div",
        tag("div", tag("span", "Assigned to me" if mine else "All tasks", cls="xs mute b"),
            tag("span", tag("span", str(counted[done]), cls="b"), f" of {total} {done}"), cls="pair"),
        tag("div", *bar, cls="segments"),
        tag("div", *cells, cls="progress-cells sm"),
        tag("p", below, cls="sm mute"),
    )  # fmt: skip


def filtered(rows: list[Work]) -> list[Work]:
    """Search, specialty, order."""
    search, specialty, order = st.columns([2, 1, 1])
    # Each letter at once: what waits for a pause is sent after the click that ends the typing, and takes it away.
    words = search.text_input(
        "Search title or task id", placeholder="Search title or task id", label_visibility="collapsed",
        icon=":material/search:", key="find-task", live="0s",
    )  # fmt: skip
    kinds = sorted({one.listed.specialty for one in rows if one.listed.specialty})
    chosen = specialty.selectbox("Specialty", [ANY, *kinds], label_visibility="collapsed", key="find-specialty")
    by = order.selectbox("Order", SORTS, label_visibility="collapsed", key="find-order")
    kept = [
        one
        for one in rows
        if all(word in f"{one.listed.title} {one.task_id}".casefold() for word in (words or "").casefold().split())
        and chosen in (None, ANY, one.listed.specialty)
    ]
    if by == SORTS[1]:
        return sorted(kept, key=lambda one: one.since or datetime.min.replace(tzinfo=UTC), reverse=True)
    return sorted(kept, key=lambda one: one.listed.title) if by == SORTS[2] else kept


def table(rows: list[Work], now: datetime) -> None:
    """One row a task, with one verb."""
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", key="rowhead-work"):
        names = ("Task", "Stage", "Round", "Findings", "Veto", "Reviewers in", "Age")
        frame.show(tag("div", *[tag("span", name) for name in names], cls="work-row heading"))
        with st.container(width=110):
            frame.show(tag("span", "", cls="nowrap"))
    at, pages = frame.paged(len(rows), PAGE)
    for one in rows[(at - 1) * PAGE : at * PAGE]:
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-work-{one.task_id}"):
            frame.show(cells(one, now))
            frame.door(one.page, one.verb, {"id": one.task_id}, key=f"work-{one.task_id}", width=110)
    frame.pager(at, pages)
    if not rows:
        frame.show(tag("p", "Nothing here.", cls="empty"))


def cells(one: Work, now: datetime) -> Markup:
    """The cells of a row."""
    state = one.state
    total = len(state.round_reviewers) or len(state.reviewers)
    done = 0 if one.blind else len(state.submitted)
    dots = join([tag("span", "●" if n < done else "○", cls="dot") for n in range(total)])
    return tag(
        "div",
        tag(
            "div",
            tag("div", one.listed.title, cls="h3"),
            tag("div", f"{one.listed.specialty} · {one.listed.workflow} · {one.task_id}", cls="sm mute"),
        ),
        tag("div", stage_chip(one)),
        tag("div", tag("span", "round ", cls="narrow-only"), str(state.round or "–")),
        tag("div", tag("span", "findings ", cls="narrow-only"),
            "hidden" if one.blind else f"{one.findings} open" if one.findings else "none",
            cls=None if one.findings else "mute"),
        tag("div", theme.chip(f"{one.vetoes} veto{'es' if one.vetoes > 1 else ''}", "veto", "front_hand"))
        if one.vetoes
        else tag("div", tag("span", "vetoes ", cls="narrow-only"), "hidden" if one.blind else "none", cls="mute"),
        tag("div", tag("span", dots, aria_hidden="true"),
            tag("span", " hidden" if one.blind else f" {done} of {total}" if total else "–", cls="sm mute")),
        tag("div", f"{one.days(now)} d"),
        cls="work-row",
    )  # fmt: skip


#: What others did, in two words, with an icon.
NEWS: dict[type[ev.Base], tuple[str, str]] = {
    ev.Proposed: ("edit_note", "Changes proposed"),
    ev.Decided: ("checklist", "Decided"),
    ev.VetoLifted: ("front_hand", "Veto lifted"),
    ev.Adjudicated: ("gavel", "Adjudicated"),
    ev.Applied: ("commit", "Changes applied"),
    ev.Signed: ("draw", "Signed"),
    ev.Released: ("verified", "Released"),
    ev.RoundOpened: ("flag", "Round opened"),
}


def since(rows: list[Work], db: StateDb, who: Person) -> None:
    """What others did since this person last looked at each task that is theirs."""
    found = []
    for one in rows:
        if not one.assigned or one.blind:
            continue
        seen = db.seen(who.id, one.task_id)
        mark = seen[1] if seen else None
        for event in one.listed.events:
            if event.actor in (who.id, "workbench") or (mark and event.at <= mark) or type(event) not in NEWS:
                continue
            found.append((event, one))
    frame.show(theme.section("Since I last looked", f"{len(found)} by others" if found else ""))
    if not found:
        frame.show(tag("p", "Nothing new on your tasks.", cls="sm mute"))
        return
    found.sort(key=lambda pair: pair[0].at, reverse=True)
    from authoring.audit import event_words

    names = {one.id: one.name for one in identity.people()}
    lines = []
    for event, one in found[:8]:
        icon, what = NEWS[type(event)]
        if isinstance(event, ev.Decided) and event.decision == "veto":
            icon, what = "front_hand", "Veto placed"
        words = event_words(event, lambda id: names.get(id, id), place_of(one.state, {}))
        lines.append(
            tag(
                "div",
                theme.icon(icon, "mute"),
                tag("span", what, cls="b"),
                tag("span", f"{names.get(event.actor, event.actor)}: {words[:200]}",
                    tag("span", f" · {one.listed.title[:60]}", cls="mute"), cls="sm"),
                tag("span", when(event.at), cls="sm mute nowrap"),
                cls="since-row",
            )
        )  # fmt: skip
    frame.show(tag("div", join(lines), cls="rows"))


def when(at: datetime) -> str:
    """ "07:55" today, "yesterday 18:40", else "27 Nov"."""
    here, today = at.astimezone(), datetime.now().astimezone().date()
    if here.date() == today:
        return f"{here:%H:%M}"
    return f"yesterday {here:%H:%M}" if (today - here.date()).days == 1 else f"{here:%-d %b}"


def due(needs: list[Work], now: datetime) -> Markup | None:
    """The reviews that are asked for within seven days, or were; None where no round of theirs has a day."""
    today = now.astimezone().date()
    dated = sorted(
        ((one.state.due, one) for one in needs if one.state.due is not None and one.state.round_is_open),
        key=lambda pair: (pair[0], pair[1].task_id),
    )
    shown = [(day, one) for day, one in dated if (day - today).days <= 7]
    if not shown:
        return None
    lines = [
        tag(
            "div",
            tag("span", f"{day:%a %-d %b}", cls="nowrap num-left"),
            tag("span", one.listed.title[:80]),
            theme.chip("past its day", "orange", "schedule")
            if day < today
            else tag("span", "Submit checklist" if one.solved else "Lock plan, submit", cls="sm mute"),
            cls="due-row",
        )
        for day, one in shown[:8]
    ]
    return join([theme.section("Due this week", "as the lead asked"), tag("div", join(lines), cls="rows")])
