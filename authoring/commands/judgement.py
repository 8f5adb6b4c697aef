"""A reviewer's commands: lock, amend, review."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from authoring.commands.shell import Actor, AsJson, ReviewId, TaskId, desk, read_table, reported, told
from tasks.errors import UsageError

From = Annotated[
    Path | None, typer.Option("--from", help="A TOML or JSON file with what is submitted.", show_default=False)
]
Template = Annotated[bool, typer.Option("--template", help="Print a file to fill in, and stop.")]

PLAN = """# Your own plan, before you see how the task is graded. It is locked as it stands.
answer = ""       # your answer to the question, in a sentence or two
do_now = ""       # what you would order or do today
if_then = ""      # what would make you change course, and how
must_not = ""     # what must not be done
follow_up = ""    # what is checked when, and by whom
confidence = ""   # unsure | fairly sure | sure
"""


def lock(
    task: TaskId,
    from_: From = None,
    template: Template = False,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Lock one's own plan, before the checkpoints open.

    The file has answer, do_now, if_then, must_not, follow_up, confidence.
    """
    if template:
        typer.echo(PLAN, nl=False)
        return
    with reported():
        done = desk(actor).lock_plan(task, read_table(from_, "plan"), review_id=review_id)
        told(done, "Your plan is locked and sealed", as_json=as_json)


def amend(
    task: TaskId,
    text: Annotated[str, typer.Option(help="The correction; the plan stays visible beside it.", show_default=False)],
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Add a correction to one's locked plan."""
    with reported():
        told(desk(actor).amend_plan(task, text, review_id=review_id), "Your plan is amended", as_json=as_json)


def review(
    task: TaskId,
    from_: From = None,
    template: Template = False,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Submit the judgement of a task: verdicts, ratings, findings.

    It stays sealed until everybody's is in. What is missing is said, and nothing is submitted then.
    """
    with reported():
        mine = desk(actor, reads=template)
        if template:
            with mine.store.at() as view:
                found = mine.snapshot(view, task).task
                typer.echo(_template([(one.id, one.title) for one in found.checkpoints]), nl=False)
            return
        done = mine.submit_review(task, _without_blanks(read_table(from_, "review")), review_id=review_id)
        waiting = mine.waiting_for(task)
        said = "Your review is in, and everybody's is open now"
        if waiting:
            said = f"Your review is in and sealed; waiting for {', '.join(waiting)}"
        told(done, said, as_json=as_json)


def _without_blanks(table: dict[str, Any]) -> dict[str, Any]:
    """The file with what was left empty taken out, and what had to be filled in named."""
    blank = [f"verdict of {one.get('dimension')}" for one in _rows(table, "verdicts") if not one.get("verdict")]
    blank += [f"rating of {one.get('checkpoint')}" for one in _rows(table, "ratings") if not one.get("rating")]
    blank += ["confidence"] if not table.get("confidence") else []
    if blank:
        raise UsageError(f"not filled in yet: {', '.join(blank)}.")
    verdicts = [
        {**one, "answers": {key: value for key, value in one.get("answers", {}).items() if value}}
        for one in _rows(table, "verdicts")
    ]
    return {**table, "verdicts": verdicts}


def _rows(table: dict[str, Any], key: str) -> Sequence[dict[str, Any]]:
    rows = table.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
        raise UsageError(f"{key} is a list of tables.", remedy="--template prints one to fill in.")
    return rows


def _template(checkpoints: Sequence[tuple[str, str]]) -> str:
    from tasks.review.checklist import checklist

    lines = [
        "# Your judgement. Every verdict and every rating is filled in; nothing has a default.",
        "# verdict: acceptable | needs change | unsafe | cannot judge",
        "# cannot judge needs why_not: missing context | ambiguous wording | genuine equipoise | outside my specialty",
        "# answers: yes | no | unsure; leave empty what you do not answer",
        'confidence = ""   # unsure | fairly sure | sure',
    ]
    for dimension in checklist().dimensions:
        lines += ["", f"# {dimension.title}: {dimension.asks}", "[[verdicts]]", f'dimension = "{dimension.id}"']
        lines += ['verdict = ""', 'why_not = ""', 'comment = ""', "[verdicts.answers]"]
        lines += [f'{question.id} = ""   # {question.text}' for question in dimension.questions]
    lines += ["", "# rating: essential | optional | wrong | not gradable"]
    for id, title in checkpoints:
        lines += ["", f"# {title}", "[[ratings]]", f'checkpoint = "{id}"', 'rating = ""', 'comment = ""']
    lines += [
        "",
        "# One [[findings]] for each thing that you found. Take the leading # away and fill in.",
        '# anchor: {kind = "text", path = "instruction.md", quote = "..."} or {kind = "resource", ref = "Type/id"}',
        '#         or {kind = "checkpoint", checkpoint = "cp1"} or {kind = "task"}',
        "# weight: blocking | should | note",
        '# harm: {kind = "omission" or "commission", severity = none | mild | moderate | severe | death,',
        "#        likelihood = unlikely | possible | likely}, or leave it out",
        "#[[findings]]",
        f'#dimension = "{checklist().dimensions[0].id}"',
        '#anchor = {kind = "task"}',
        '#weight = "should"',
        '#text = ""',
        '#source = ""',
        '#alternative_plan = ""',
        '#confidence = "fairly sure"',
    ]
    return "\n".join(lines) + "\n"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (("lock", lock), ("amend", amend), ("review", review)):
        app.command(name)(command)
