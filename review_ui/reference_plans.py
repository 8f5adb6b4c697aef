"""The reference plans of a task in plain words: what is looked up, ordered and written, in order."""

from __future__ import annotations

from review_ui import frame, prose, steps, theme
from review_ui.markup import Markup, tag
from tasks.package import Task
from tasks.plans import Action, Plan
from tasks.toolnames import WRITE_FILE


def draw(task: Task) -> None:
    """All of them."""
    if not task.plans:
        frame.show(tag("p", "This draft has no reference plan yet.", cls="empty"))
    for plan in task.plans.values():
        count = len(plan.actions)
        frame.show(theme.section(f"Plan: {plan.name}", f"{count} step{'s' if count != 1 else ''}"))
        frame.show(tag("div", *[step(plan, number, one) for number, one in enumerate(plan.actions, 1)], cls="rows"))
        for name, data in plan.files.items():
            words = prose.formatted(data.decode("utf-8", "replace"))
            frame.show(tag("div", tag("p", name, cls="b sm"), words, cls="card"))


def step(plan: Plan, number: int, action: Action) -> Markup:
    """One step: number, verb, what, and below it why and what is noted."""
    given = action.arguments
    if action.tool == WRITE_FILE:
        what = f"{given.get('file_path', '')}, {len(plan.content(action).split())} words"
    else:
        what = steps.argument_words(action.tool, given)
    amount = " ".join(str(given[key]) for key in ("dispense_quantity", "dispense_unit") if given.get(key))
    refills = given.get("num_refills")
    more = [
        f"dispense {amount}" if amount else "",
        f"{refills} refill{'s' if refills != 1 else ''}" if refills is not None else "",
        f"for: {given['reason_display']}" if given.get("reason_display") else "",
    ]
    detail = " · ".join(part for part in more if part)
    note = str(given.get("note_text") or "")
    return tag(
        "div",
        tag("span", f"{number}", cls="no"),
        tag("span", steps.VERBS.get(action.tool, action.tool), cls="b"),
        tag(
            "span",
            what,
            tag("div", detail, cls="sm mute") if detail else None,
            tag("div", f"“{note}”", cls="sm mute") if note else None,
        ),
        cls="step-row",
    )
