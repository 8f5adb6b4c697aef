"""The reviser: a model turns open findings into a draft proposal; a person sends it to decision (stage 2).

    draft = revise(desk, "nephrology-finerenone-011", model="anthropic/…")
    send(desk, draft)

The model has one forced tool and no other. What it gives is tried on the real bytes; edits that do not hold go back to
it twice at most and are left out then; the gate runs on the package with all that is kept. Nothing is committed here.
The whole exchange and the draft stay in jobs/<id>/.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from authoring.applying import Gate
from authoring.revising.answer import RevisionAnswer, read_answer
from authoring.revising.checking import Bench, Tried, composed_faults
from authoring.revising.drafts import (
    Draft,
    DraftEdit,
    DraftGate,
    LeftOut,
    compose,
    drafts,
    find,
    gated,
    send,
    store,
    weakening,
)
from authoring.revising.request import Request, Sent, request
from authoring.seat import Snapshot
from providers.chat import REPAIRS, Chat, NoAnswer, chat
from providers.exchange import EXCHANGE
from tasks.errors import SettingsError, UsageError
from tasks.review import events as ev
from tasks.review.permissions import refuse_unverified, require
from tasks.settings import ModelSettings
from tasks.trials import Usage

if TYPE_CHECKING:
    from authoring.desk import Desk
    from authoring.gate import GateResult

__all__ = [
    "Draft", "DraftEdit", "DraftGate", "Preview", "compose", "drafts", "find", "gated", "preview", "revise", "send",
    "store", "weakening",
]  # fmt: skip

#: Hears in a few words, without text of the task, how far it is.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Preview:
    """What would be sent to which model, and what reading it once costs (USD, by estimate; None = unknown)."""

    model: str
    sent: Sent
    cost: float | None


def run_gate(files: Mapping[str, bytes], task: str) -> GateResult:
    """The publish gate, brought in when it is needed: it loads the runtime and the graders."""
    from authoring.gate import run_gate as run

    return run(files, task=task)


def preview(desk: Desk, task: str, model: str | None = None) -> Preview:
    """What `revise` would send. Raises what `revise` raises before it asks."""
    name, settings = _chosen(desk, model)
    with desk.store.at() as view:
        asked = request(_open(desk, desk.snapshot(view, task)), settings)
    return Preview(name, asked.sent, asked.sent.cost(settings.price))


def revise(
    desk: Desk,
    task: str,
    *,
    model: str | None = None,
    job: str = "",
    gate: Gate = run_gate,
    model_chat: Chat | None = None,
    tell: Tell = lambda words: None,
) -> Draft:
    """Ask the model, try what it gives, run the gate, and keep the draft in jobs/<job>/.

    Raises NotAllowed, UsageError where there is nothing to answer, SettingsError without a model, DataClassRefused
    before anything is sent, NoAnswer and ProviderFault where none comes. No draft is left then; the exchange is.
    """
    require(desk.actor, "propose")
    name, settings = _chosen(desk, model)
    id = job or secrets.token_hex(8)
    with desk.store.at() as view:
        at = _open(desk, desk.snapshot(view, task))
        asked = request(at, settings)
        working = _Working(at, asked, gate, tell)
    made = model_chat or chat(name, settings, data_class=at.meta.data_class, slots=desk.workspace.cache / "slots")
    sent = asked.sent
    tell(
        f"Asking {name}. Sent: findings {sent.findings}, resources whole {len(sent.resources)}, in a line "
        f"{sent.listed}; about {sent.tokens:,} tokens"
    )
    try:
        folder = desk.workspace.jobs / id
        folder.mkdir(parents=True, exist_ok=True)
        made.keep_exchange(folder / EXCHANGE)
        try:
            answer = made.answer(asked.messages, RevisionAnswer, check=working.check, read=read_answer)
            took = _Took(answer.model, answer.usage, answer.repairs)
        except NoAnswer as none:
            # What held of an earlier answer is not lost because a later one was worse.
            if not working.holds_anything:
                raise
            took = _Took(name, none.usage or Usage(), REPAIRS)
            tell(f"{none.what}; what held of an earlier answer is kept")
    finally:
        if model_chat is None:
            made.close()
    tried = working.tried
    draft = Draft(
        id=id, proposal=ev.new_id(), task=task, title=at.meta.title, package=ev.package_hash(at.files),
        person=desk.actor.id, at=desk.now(), asked=name, answered=took.model, usage=took.usage,
        repairs=took.repairs, sent=sent, edits=tuple(DraftEdit(given=one) for _, one in tried.kept),
        unaddressed=tried.unaddressed,
        left_out=tuple(LeftOut(unit=one.unit, why=one.why, message=one.message) for one in tried.fallen),
        gate=working.gate_on(tried) if tried.kept else None,
    )  # fmt: skip
    store(desk.workspace, draft)
    tell(f"Edits: {len(draft.edits)}; findings left open: {len(draft.unaddressed)}; left out: {len(draft.left_out)}")
    return draft


class _Took(NamedTuple):
    """What the answer took: the model as answered, its use, the repairs."""

    model: str
    usage: Usage
    repairs: int


class _Working:
    """One request's answers as they come in: each is tried, and gated where all its edits hold."""

    def __init__(self, at: Snapshot, asked: Request, gate: Gate, tell: Tell) -> None:
        self._task, self._files, self._gate, self._tell = at.task_id, at.files, gate, tell
        self._bench = Bench(at.task, at.files, at.state, asked.handles, asked.fence)
        self._turn = 0
        self._gated: dict[str, DraftGate] = {}
        self.tried: Tried

    @property
    def holds_anything(self) -> bool:
        """Whether an answer so far has an edit that holds."""
        return self._turn > 0 and bool(self.tried.kept)

    def check(self, answer: RevisionAnswer) -> str | None:
        """What is wrong with the answer, for the model; None where it is taken as it is."""
        self.tried = tried = self._bench.try_(answer)
        self._turn += 1
        said = f"Answer {self._turn}: {len(tried.kept)} of {len(answer.edits)} edits hold"
        self._tell(f"{said}, {len(tried.wrong)} to be mended" if tried.wrong else said)
        if self._turn > REPAIRS:
            return None
        if not tried.holds:
            return self._bench.words(tried, self._turn, REPAIRS)
        if not tried.kept:
            return None
        failed = composed_faults(tried.after, self._files, where=self._task) or self.gate_on(tried).new
        return self._bench.words(tried, self._turn, REPAIRS, failed) if failed else None

    def gate_on(self, tried: Tried) -> DraftGate:
        """The gate on the package with all edits that hold; a package is gated once."""
        package = ev.package_hash(tried.after)
        if package not in self._gated:
            self._tell("The gate runs on the result")
            self._gated[package] = gated(self._task, self._files, tried.after, self._gate)
            found = self._gated[package]
            self._tell("The gate passes" if found.passed else f"The gate fails on {len(found.new)} things it did not")
        return self._gated[package]


def _open(desk: Desk, at: Snapshot) -> Snapshot:
    """The task, where there is something to revise and it may be sent. Raises UsageError, NotAllowed."""
    refuse_unverified(at.meta.data_class, verified=desk.verified)
    if at.state.round_is_open:
        raise UsageError("reviews are still coming in.", where=at.task_id, remedy="Revise when all have submitted.")
    if not at.state.open_findings:
        raise UsageError("no finding is open; there is nothing to revise.", where=at.task_id)
    return at


def _chosen(desk: Desk, model: str | None) -> tuple[str, ModelSettings]:
    settings = desk.workspace.settings
    name = model or settings.use.reviser
    if not name:
        raise SettingsError(
            "no model is set to revise.", where="workbench.toml", remedy="Name one with --model, or set use.reviser."
        )
    if name not in settings.models:
        known = ", ".join(sorted(settings.models)) or "none"
        raise SettingsError(f"workbench.toml has no model {name!r}.", remedy=f"It has: {known}.")
    return name, settings.models[name]
