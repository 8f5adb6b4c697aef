"""One whole loop of review, played in a scratch workspace: `python -m authoring demo`.

Everything is real but the people and the model: the desk, the repository, the gate. The model is the scripted wire
server of this project, asked over HTTP as any other would be, and the output says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from authoring.demonstration.story import (
    AUTHOR,
    DECISIONS,
    FINDINGS,
    JUDGE,
    LEAD,
    MODEL,
    ONE,
    PLAN,
    RATINGS,
    SETTLED,
    TASK,
    TWO,
    VERDICTS,
    VETO_HARM,
    Reviser,
)
from authoring.desk import Desk, Release
from authoring.library import open_store
from authoring.reviser import Draft, revise, send, weakening
from providers.exchange import EXCHANGE, exchanges
from providers.wire import WireServer
from tasks.errors import UsageError
from tasks.package import FolderSource
from tasks.people import person
from tasks.review.checklist import DIMENSIONS
from tasks.review.state import ReviewState
from tasks.store import Commit
from tasks.workspace import Workspace

__all__ = ["Played", "Step", "Story", "play", "with_model"]

_PACKAGES = Path(__file__).with_name("demonstration")
#: Without a variable that names a key, a loopback endpoint is asked with this one (providers/chat.py).
_NO_KEY = "none"
_SETTINGS = """
# ---- the demonstration's model: a script, not a model. It is gone when the demonstration ends. ----

[model."anthropic/{model}"]
endpoint = "{url}"
max_output = 8000
price.input = 3.0
price.output = 15.0
"""


@dataclass(frozen=True)
class Step:
    """One step of the story: what happens, what is to be seen, the commits that it left."""

    title: str
    lines: tuple[str, ...]
    commits: tuple[Commit, ...]


@dataclass(frozen=True)
class Played:
    """The whole story, and the release that it ended in."""

    workspace: Path
    steps: tuple[Step, ...]
    release: Release


def play(folder: Path, *, tell: Callable[[Step], None] = lambda step: None) -> Played:
    """Play the loop in a new workspace; `tell` hears each step as it ends.

    Raises UsageError where the folder holds something already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            "the folder is not empty.", where=str(folder), remedy="Name a new one; nothing is overwritten."
        )
    workspace = Workspace(folder.absolute())
    workspace.make()
    with WireServer({MODEL: Reviser()}, key=_NO_KEY) as wire:
        with_model(workspace, wire.anthropic_url)
        return Story(workspace, tell).played()


def with_model(workspace: Workspace, url: str) -> None:
    """The workspace's settings, with the scripted model at this address."""
    assert workspace.settings.people  # the first look writes the file, with its demonstration people
    with workspace.settings_file.open("a", encoding="utf-8") as file:
        file.write(_SETTINGS.format(model=MODEL, url=url))


class Story:
    """The people at their desks, and what they do in turn."""

    def __init__(self, workspace: Workspace, tell: Callable[[Step], None]) -> None:
        self.workspace, self.tell = workspace, tell
        self.store = open_store(workspace)
        self.steps: list[Step] = []
        self.known: set[str] = set()

    def desk(self, who: str) -> Desk:
        return Desk(self.workspace, self.store, person(self.workspace.settings.people, who))

    @property
    def state(self) -> ReviewState:
        return self.desk(LEAD).state(TASK)

    def step(self, title: str, *lines: str) -> None:
        """End a step: what was committed since the last one belongs to it."""
        new = [one for one in reversed(self.store.history(TASK)) if one.hash not in self.known]
        self.known |= {one.hash for one in new}
        self.steps.append(Step(title, lines, tuple(new)))
        self.tell(self.steps[-1])

    def played(self) -> Played:
        self.brought_in()
        self.judged(first=True)
        draft = self.revised("Round 1: the model drafts edits that answer the findings")
        self.put_up(draft)
        self.decided()
        self.settled()
        self.applied()
        self.second_round()
        release = self.released()
        return Played(self.workspace.path, tuple(self.steps), release)

    def brought_in(self) -> None:
        files = dict(FolderSource(_PACKAGES).files(TASK))
        self.desk(AUTHOR).bring_in(files, where=TASK)
        self.step("The author brings a task in", f"{TASK}: a dose threshold, a note and a sentence of it are wrong.")
        lead = self.desk(LEAD)
        for who in (ONE, TWO):
            lead.assign(TASK, who, "reviewer")
        lead.assign(TASK, JUDGE, "adjudicator")
        lead.open_round(TASK)
        self.step("The lead asks two physicians, and an adjudicator for where they differ")

    def judged(self, *, first: bool) -> None:
        with self.store.at() as view:
            ids = [one.id for one in self.desk(LEAD).snapshot(view, TASK).task.checkpoints]
        for who in (ONE, TWO):
            self.desk(who).lock_plan(TASK, PLAN[who])
        sealed = len(self.state.findings)
        for who in (ONE, TWO):
            found = FINDINGS[who] if first else []
            verdicts: Mapping[str, str] = VERDICTS[who] if first else {}
            ratings: Mapping[str, str] = RATINGS[who] if first else {}
            self.desk(who).submit_review(
                TASK,
                {
                    "verdicts": [{"dimension": one, "verdict": verdicts.get(one, "acceptable")} for one in DIMENSIONS],
                    "ratings": [{"checkpoint": id, "rating": ratings.get(id, "essential")} for id in ids],
                    "findings": found,
                    "confidence": "sure",
                },
            )
        if not first:
            self.step("Round 2: both judge the task as it is now, and find nothing new")
            return
        assert sealed == 0
        lines = [f"{one.by}, {one.finding.weight}: {one.finding.text}" for one in self.state.findings.values()]
        lines.append(
            "They differ: cp3 is wrong to one, essential to the other; cp5 essential to one, optional to the other."
        )
        self.step(
            "Round 1: both solve the case, lock their plans and judge; nothing is seen before both are in", *lines
        )

    def revised(self, title: str) -> Draft:
        said: list[str] = []
        draft = revise(self.desk(AUTHOR), TASK, model=f"anthropic/{MODEL}", tell=said.append)
        cost = "unknown" if draft.usage.cost is None else f"${draft.usage.cost:.3f}"
        lines = ["The model is a script of this demonstration, behind the wire server on this machine.", *said]
        if draft.repairs:
            lines += ["What went back to it:", *(f"  | {line}" for line in self._went_back(draft).splitlines())]
        times = "once" if draft.repairs == 1 else f"{draft.repairs} times"
        mended = f"Mended {times}. " if draft.repairs else ""
        lines.append(f"{mended}At its invented price this costs {cost}; every word of it is in jobs/{draft.id}/.")
        self.step(title, *lines)
        return draft

    def _went_back(self, draft: Draft) -> str:
        """The first repair that was asked for, as it went over the wire."""
        second = list(exchanges(self.workspace.jobs / draft.id / EXCHANGE))[1]
        (result,) = second.request["messages"][-1]["content"]
        content = result["content"]
        return content if isinstance(content, str) else str(content[0]["text"])

    def put_up(self, draft: Draft) -> None:
        weak = weakening(self.desk(AUTHOR), draft)
        lines = [f"left open: {one.reason}" for one in draft.left_open]
        for number, one in enumerate(draft.edits, 1):
            mark = f"  WEAKENS A SAFETY CHECKPOINT: {'; '.join(weak[number])}" if number in weak else ""
            lines.append(f"{number}. {one.edit.rationale}{mark}")
        lines += [f"left out, {one.why}: {one.unit}" for one in draft.left_out]
        send(self.desk(AUTHOR), draft)
        self.step("The author sends the draft to decision; the gate has run on the result", *lines)

    def decided(self) -> None:
        state = self.state
        for who in (ONE, TWO):
            rows: list[dict[str, Any]] = []
            for change in state.live_changes:
                ref = change.ref
                word, reason = DECISIONS[ref.unit][who]
                row: dict[str, Any] = {"change": ref.change, "base": ref.base, "result": ref.result}
                row |= {"decision": word, "reason": reason}
                rows.append(row | ({"harm": VETO_HARM} if word == "veto" else {}))
            self.desk(who).decide(TASK, rows)
        lines = [f"{one.ref.unit}: {one.status}" for one in self.state.changes.values()]
        self.step("Both decide, change by change: one veto, one that they do not agree on", *lines)

    def settled(self) -> None:
        judge = self.desk(JUDGE)
        for veto in self.state.vetoes:
            judge.lift_veto(
                TASK, veto.change, veto.owner, "does not agree", "Asked; the veto's owner keeps to it. To be settled."
            )
        for id, change in self.state.changes.items():
            if change.status != "split" or self.state.changes[id].status != "split":
                continue
            word, reason = SETTLED.get(change.ref.unit, SETTLED["checkpoints.toml#cp3"])
            judge.adjudicate(TASK, id, word, reason)
        lines = [f"{one.ref.unit}: {one.status}" for one in self.state.changes.values()]
        self.step("The adjudicator records the owner's answer to the veto, and settles both", *lines)

    def applied(self) -> None:
        self.desk(AUTHOR).apply(TASK)
        state = self.state
        lines = [f"{one.end or 'open'}: {one.finding.text}" for one in state.findings.values()]
        self.step("What was accepted becomes the task, in one commit, after the gate", *lines)

    def second_round(self) -> None:
        self.desk(LEAD).open_round(TASK)
        self.judged(first=False)
        test = next(id for id, one in self.state.findings.items() if one.open and "HLA" in one.finding.text)
        self.desk(TWO).withdraw(TASK, test, "Answered: nothing in her record asks for it.")
        self.step("The second reviewer takes a question back that was answered")
        draft = self.revised("Round 2: the model answers the finding that is left")
        self.put_up(draft)
        for who in (ONE, TWO):
            live = self.state.live_changes
            self.desk(who).decide(
                TASK,
                [
                    {"change": one.ref.change, "base": one.ref.base, "result": one.ref.result, "decision": "approve"}
                    for one in live
                ],
            )
        self.desk(AUTHOR).apply(TASK)
        self.step("Both approve, and it is applied")

    def released(self) -> Release:
        for who, statement in ((ONE, "Safe and fair as it stands."), (TWO, "Fair as it stands.")):
            self.desk(who).sign(TASK, statement)
        self.step("Both sign exactly these bytes")
        release = self.desk(LEAD).release(TASK)
        self.step("The lead releases it", f"Tag {release.tag}", *release.text.splitlines())
        return release
