"""The judge: a model of its own role, asked by a rubric about what an agent wrote (design 10).

    judge = Judge.configured(Workspace.find())       # None where [use] names none
    ruling = judge.rule(checkpoint, evidence)        # pass, partial, fail, ungraded ("needs review") or error
    ruling = judge.read_value(checkpoint, evidence, unit)

Rubric, evidence and the agent's text stand apart, the last two fenced (graders/judging/prompt.py). `votes` jurors
answer alone; the majority decides, a tie goes to a physician (graders/judging/jury.py). A judge that cannot be reached,
or whose quotations do not stand in the text, gives an error and never a fail. The same question is asked once
(graders/judging/rulings.py).
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, cast

from graders.evidence import Evidence
from graders.judging import jury
from graders.judging.jury import Juror, Opinion, OpinionWithoutPartial, Reading
from graders.judging.prompt import Question, rubric_question, value_question
from graders.judging.rulings import Ruling, Stated, key_of, remember, remembered
from providers.base import DataClassRefused
from providers.chat import Chat, chat
from providers.retry import RetryPolicy
from tasks.declarations import Checkpoint
from tasks.errors import SettingsError
from tasks.settings import ModelSettings
from tasks.taxonomy import DataClass
from tasks.trials import Judging, QuoteCite, Result, Vote
from tasks.workspace import Workspace

NEEDS_REVIEW = "ungraded: needs review"
#: Seconds that one request may wait for a judge that does not answer, and that it is left alone after that.
PATIENCE = 60.0


class Judge:
    """One judge. Safe to use from several threads; `close` releases its connections.

    `cache`: a folder of rulings, or None. `slots`: as in `providers.chat`.
    """

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        *,
        votes: int = 1,
        cache: Path | None = None,
        slots: Path | None = None,
        policy: RetryPolicy | None = None,
        environ: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.votes = votes
        self._settings = settings
        self._cache = cache
        self._slots = slots
        self._policy = policy or RetryPolicy(budget=PATIENCE)
        self._environ = dict(os.environ) if environ is None else environ
        self._chats: dict[DataClass, Chat] = {}
        self._guard = threading.Lock()
        self._down: tuple[float, str] | None = None

    @classmethod
    def configured(cls, workspace: Workspace, *, policy: RetryPolicy | None = None) -> Judge | None:
        """The judge that workbench.toml names; None where it names none, or is not there. Raises SettingsError."""
        if not workspace.settings_file.exists():
            return None
        settings = workspace.settings
        name = settings.use.judge
        if not name:
            return None
        return cls(
            name,
            settings.models[name],
            votes=settings.use.judge_votes,
            cache=workspace.cache / "judge",
            slots=workspace.cache / "slots",
            policy=policy,
        )

    def close(self) -> None:
        """Release the connections. The judge can be asked again."""
        with self._guard:
            chats, self._chats = list(self._chats.values()), {}
        for one in chats:
            one.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what it is asked -----------------------------------------------------------------------------------------

    def rule(self, checkpoint: Checkpoint, evidence: Evidence, *, agent: str = "") -> Ruling:
        """The ruling on a judge checkpoint. `agent`: the model under test, which never judges itself.

        A deliverable that is missing or blank fails without a question. DeclarationError without criteria or evidence.
        """
        file = checkpoint.file or ""
        text = evidence.text(file)
        question = rubric_question(checkpoint, evidence, text or "")
        if not question.answer.strip():
            return Ruling(result="fail", reason=f"{file} {'was not written' if text is None else 'is empty'}.")
        if agent and agent == self.name:
            return _own_work(agent)
        schema = Opinion if checkpoint.rubric and checkpoint.rubric.partial is not None else OpinionWithoutPartial
        key = key_of(self.name, self._settings, self.votes, question, schema)
        data_class = evidence.task.meta.data_class
        if kept := remembered(self._cache, key):
            return kept
        asked = self._ask(question, schema, data_class, check=jury.lacks_support)
        if isinstance(asked, Ruling):
            return asked
        ruling = self._counted(asked, question, file, key)
        remember(self._cache, key, ruling, data_class)
        return ruling

    def key(self, checkpoint: Checkpoint, evidence: Evidence) -> str:
        """The key under which this judge would rule now; a verdict with the same key needs no new question."""
        question = rubric_question(checkpoint, evidence, evidence.text(checkpoint.file or "") or "")
        schema = Opinion if checkpoint.rubric and checkpoint.rubric.partial is not None else OpinionWithoutPartial
        return key_of(self.name, self._settings, self.votes, question, schema)

    def read_value(self, checkpoint: Checkpoint, evidence: Evidence, unit: str, *, agent: str = "") -> Ruling:
        """What a deliverable states for a hybrid checkpoint's `extract.field`, in `values`; the result is `pass` where
        it could be read (also if nothing is stated), ungraded without a majority, error where the judge failed."""
        file = checkpoint.extract.file if checkpoint.extract else ""
        text = evidence.text(file) or ""
        question = value_question(checkpoint, text, unit)
        if not question.answer.strip():
            return Ruling(result="pass", reason=f"{file} is not there or empty.")
        if agent and agent == self.name:
            return _own_work(agent)
        key = key_of(self.name, self._settings, self.votes, question, Reading)
        data_class = evidence.task.meta.data_class
        if kept := remembered(self._cache, key):
            return kept
        asked = self._ask(question, Reading, data_class)
        if isinstance(asked, Ruling):
            return asked
        ruling = self._read(asked, question, key)
        remember(self._cache, key, ruling, data_class)
        return ruling

    # ---- asking ---------------------------------------------------------------------------------------------------

    def _ask(
        self, question: Question, schema: Any, data_class: DataClass, check: Any = None
    ) -> list[Juror[Any]] | Ruling:
        if self._down and time.monotonic() < self._down[0]:
            return Ruling(result="error", reason=f"The judge {self.name} was not reached a moment ago: {self._down[1]}")
        try:
            self._chat(data_class)
        except DataClassRefused:
            reason = f"ungraded: the judge {self.name} is not cleared for data class {data_class}; nothing was sent"
            return Ruling(result="ungraded", reason=reason)
        except SettingsError as fault:
            return Ruling(result="error", reason=f"The judge cannot be asked: {fault}")
        jurors = jury.ask(
            lambda: self._chat(data_class),
            question,
            schema,
            votes=self.votes,
            check=check,
            void=jury.invents_quotes(question),
        )
        if all(juror.down for juror in jurors):
            self._down = (time.monotonic() + PATIENCE, jurors[0].fault)
        return jurors

    def _chat(self, data_class: DataClass) -> Chat:
        with self._guard:
            if data_class not in self._chats:
                self._chats[data_class] = chat(
                    self.name,
                    self._settings,
                    data_class=data_class,
                    policy=self._policy,
                    slots=self._slots,
                    environ=self._environ,
                )
            return self._chats[data_class]

    # ---- counting -------------------------------------------------------------------------------------------------

    def _judging(self, jurors: list[Juror[Any]], votes: list[Vote], key: str) -> Judging:
        return Judging(
            model=self.name,
            answered=next((juror.answered for juror in jurors if juror.answered), ""),
            key=key,
            votes=tuple(votes),
            faults=tuple(juror.fault for juror in jurors if juror.value is None),
            usage=jury.spent(jurors),
        )

    def _counted(self, jurors: list[Juror[Any]], question: Question, file: str, key: str) -> Ruling:
        votes: list[Vote] = [juror.value.verdict if juror.value is not None else "failed" for juror in jurors]
        judging = self._judging(jurors, votes, key)
        if fault := _too_few(judging):
            return Ruling(result="error", reason=fault, judging=judging)
        decided = jury.majority(judging.counted)
        spread = _spread(judging)
        if decided in (None, "needs_review"):
            why = "the judge asks for a physician" if decided else "no majority"
            said = " / ".join(dict.fromkeys(juror.value.reason for juror in jurors if juror.value is not None))
            return Ruling(result="ungraded", reason=f"{NEEDS_REVIEW}: {why} ({spread}). {said}", judging=judging)
        speaker = next(juror.value for juror in jurors if juror.value is not None and juror.value.verdict == decided)
        cites = tuple(
            dict.fromkeys(
                QuoteCite(file=file if said.source == "answer" else "record", text=said.text) for said in speaker.quotes
            )
        )
        notes = [speaker.reason]
        if len(votes) > 1:
            notes.append(f"({spread}.)")
        if question.cut:
            notes.append(f"(The text is longer by {question.cut:,} characters, which were not judged.)")
        return Ruling(result=cast(Result, decided), reason=" ".join(notes), cites=cites, judging=judging)

    def _read(self, jurors: list[Juror[Any]], question: Question, key: str) -> Ruling:
        readings = [_values(juror.value) if juror.value is not None else None for juror in jurors]
        same = [_compared(reading) for reading in readings if reading is not None]
        decided = jury.majority(same)
        votes: list[Vote] = [
            "failed" if reading is None else "pass" if _compared(reading) == decided else "needs_review"
            for reading in readings
        ]
        judging = self._judging(jurors, votes, key)
        if fault := _too_few(judging):
            return Ruling(result="error", reason=fault, judging=judging)
        if decided is None:
            return Ruling(result="ungraded", reason=f"{NEEDS_REVIEW}: the value was read differently", judging=judging)
        values = next(reading for reading in readings if reading is not None and _compared(reading) == decided)
        note = f"{question.cut:,} characters at the end were not read." if question.cut else ""
        return Ruling(result="pass", reason=note, judging=judging, values=values)


def _own_work(agent: str) -> Ruling:
    reason = f"ungraded: {agent} is the model under test and does not judge itself; name another judge in [use]"
    return Ruling(result="ungraded", reason=reason)


def _values(reading: Reading) -> tuple[Stated, ...]:
    return tuple(Stated(quote=one.quote, number=one.number, unit=one.unit) for one in reading.values)


def _compared(values: tuple[Stated, ...]) -> str:
    return " ".join(sorted({f"{one.number.strip()}|{one.unit.strip().casefold()}" for one in values}))


def _too_few(judging: Judging) -> str:
    counted, all_votes = len(judging.counted), len(judging.votes)
    if 2 * counted > all_votes:
        return ""
    why = "; ".join(dict.fromkeys(judging.faults))
    if all_votes == 1:
        return f"The judge {judging.model} gave no verdict: {why}."
    return f"The judge {judging.model} gave no verdict: {all_votes - counted} of {all_votes} jurors failed ({why})."


def _spread(judging: Judging) -> str:
    """ "2 pass, 1 fail; 1 juror failed and is left out"."""
    order = ("pass", "partial", "fail", "needs_review")
    said = ", ".join(
        f"{judging.counted.count(vote)} {vote.replace('_', ' ')}" for vote in order if vote in judging.counted
    )
    failed = len(judging.votes) - len(judging.counted)
    lost = (
        f"; {failed} juror{'s' if failed > 1 else ''} failed and {'are' if failed > 1 else 'is'} left out"
        if failed
        else ""
    )
    return f"votes: {said}{lost}"
