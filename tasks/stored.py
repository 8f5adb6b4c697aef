"""Stored runs: what a batch leaves on the disk, written event by event and read back even after a crash (design 9).

    runs/<batch>/plan.jsonl  lock
                 trials/<task>/<agent, / as __>/<run>/attempt-<n>/
                     trajectory.jsonl  ehr.ndjson  workspace/output/  verdicts.jsonl  outcome.json

Every line is on the disk before the call that wrote it returns. outcome.json is written last, by rename: its presence
means that the trial is over. While a trial runs, its process holds a lock on trajectory.jsonl, which the system
releases when the process ends in whatever way; so "running" and "process gone" are told apart without a process id.
A line cut short by a killed process is left out by every reader and reported by `damage()`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from tasks.errors import EnvironmentFault, UsageError
from tasks.manifest import OUTPUT, TASK_ID
from tasks.places import Fault, at
from tasks.trials import Event, Outcome, ToolCall, TrialKey, TrialOutcome, Verdict, Write

EventType = Literal["system", "user", "model", "tool", "limit", "error", "resumed"]
Line = TypeVar("Line", bound=BaseModel)

_BATCH = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
_AGENT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:@+-]*(?:/[A-Za-z0-9][A-Za-z0-9._:@+-]*)*$")
_ATTEMPT = re.compile(r"^attempt-([1-9][0-9]*)$")


# ---- paths ----------------------------------------------------------------------------------------------------------


def agent_folder(agent: str) -> str:
    """`anthropic/claude` -> `anthropic__claude`. Raises UsageError for a name that a folder cannot carry back."""
    if not _AGENT.match(agent) or "__" in agent or len(agent) > 120:
        raise UsageError(
            f"'{agent[:60]}' cannot name an agent.",
            remedy="Use a built-in agent or provider/model, without spaces and without '__'.",
        )
    return agent.replace("/", "__")


def trial_folder(key: TrialKey) -> Path:
    """The attempt's folder inside a batch."""
    if not re.match(TASK_ID, key.task):
        raise UsageError(f"'{key.task[:60]}' is no id of a task.")
    return Path("trials", key.task, agent_folder(key.agent), str(key.run), f"attempt-{key.attempt}")


# ---- lines on the disk ----------------------------------------------------------------------------------------------


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or type(error).__name__
        raise EnvironmentFault(
            f"the record cannot be written: {reason}.", where=str(path), remedy="Free or repair the disk, then resume."
        ) from None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append whole lines under the file's lock and have them on the disk before returning.

    A torn last line of an earlier, killed writer is closed first, so that it damages nothing but itself.
    """
    data = "".join(f"{line}\n" for line in lines).encode()
    with _disk(path):
        fresh = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            _write_all(descriptor, b"\n" + data if torn else data)
        finally:
            os.close(descriptor)
        if fresh:
            _sync_folder(path.parent)


def _raw_lines(path: Path) -> tuple[list[tuple[int, bytes]], list[Fault]]:
    """(line number, bytes) of every whole line, and what is torn."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [Fault(str(path), f"the file cannot be read: {error.strerror}")]
    rows = data.split(b"\n")
    tail = rows.pop()
    faults = [Fault(at(str(path), len(rows) + 1), "the last line is cut short and is left out")] if tail else []
    return [(number, row) for number, row in enumerate(rows, start=1) if row.strip()], faults


def _read(path: Path, model: type[Line]) -> tuple[list[Line], list[Fault]]:
    rows, faults = _raw_lines(path)
    found = []
    for number, row in rows:
        try:
            found.append(model.model_validate_json(row))
        except ValidationError:
            faults.append(Fault(at(str(path), number), "the line cannot be read and is left out"))
    return found, sorted(faults)


# ---- one trial, read ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredTrial:
    """One attempt of one trial as it stands on the disk; every call reads anew, so a running one can be watched."""

    path: Path
    key: TrialKey

    @classmethod
    def of(cls, batch: Path, key: TrialKey) -> StoredTrial:
        """The attempt of a batch folder that `key` names, whether it is there or not."""
        return cls(batch / trial_folder(key), key)

    @property
    def outcome(self) -> TrialOutcome | None:
        """How it ended; None while it runs, after its process died, and where outcome.json cannot be read."""
        try:
            return TrialOutcome.model_validate_json((self.path / "outcome.json").read_bytes())
        except (OSError, ValidationError):
            return None

    @property
    def state(self) -> Outcome:
        """The outcome; `running` where there is none (see `alive` for whether anybody is still at it)."""
        outcome = self.outcome
        return outcome.outcome if outcome else Outcome.running

    @property
    def alive(self) -> bool:
        """Whether the process that runs it still lives. False once it has an outcome."""
        if (self.path / "outcome.json").exists():
            return False
        try:
            descriptor = os.open(self.path / "trajectory.jsonl", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def events(self) -> list[Event]:
        """The trajectory, in order."""
        return _read(self.path / "trajectory.jsonl", Event)[0]

    def calls(self) -> list[ToolCall]:
        """The tool calls with their full results, in order."""
        found = []
        for event in self.events():
            if event.type == "tool":
                try:
                    found.append(ToolCall.model_validate_json(json.dumps(event.data)))
                except ValidationError:
                    continue  # named by damage()
        return found

    def writes(self) -> list[Write]:
        """The session's ledger, in order."""
        return _read(self.path / "ehr.ndjson", Write)[0]

    def files(self) -> dict[str, str]:
        """What the agent left in its workspace: `/workspace/output/<file>` -> text. Links are not followed."""
        root = self.path / "workspace" / "output"
        found = {}
        for folder, _, names in os.walk(root, followlinks=False):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    inside = path.relative_to(root).as_posix()
                    found[OUTPUT + inside] = path.read_bytes().decode("utf-8", errors="replace")
        return dict(sorted(found.items()))

    def verdicts(self) -> list[Verdict]:
        """Every verdict ever given, in the order in which they were given."""
        return _read(self.path / "verdicts.jsonl", Verdict)[0]

    def latest_verdicts(self) -> dict[str, Verdict]:
        """Checkpoint -> the verdict that counts: a person's latest, else the latest of any grader.

        Latest is by place in the file: clocks of two machines may disagree, the order of appending does not.
        """
        return verdicts_that_count(self.verdicts())

    def damage(self) -> list[Fault]:
        """Every line that a reader left out, and why; empty for a sound record."""
        found = []
        models: tuple[tuple[str, type[BaseModel]], ...] = (
            ("trajectory.jsonl", Event),
            ("ehr.ndjson", Write),
            ("verdicts.jsonl", Verdict),
        )
        for name, model in models:
            found += _read(self.path / name, model)[1]
        for event in self.events():
            if event.type == "tool":
                try:
                    ToolCall.model_validate_json(json.dumps(event.data))
                except ValidationError:
                    place = str(self.path / "trajectory.jsonl")
                    found.append(Fault(place, f"event {event.n} is not a tool call and is left out"))
        outcome = self.path / "outcome.json"
        if outcome.exists() and self.outcome is None:
            found.append(Fault(str(outcome), "the outcome cannot be read; the trial counts as not finished"))
        return found

    def add_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Append verdicts. Raises EnvironmentFault where the disk refuses."""
        lines = [verdict.model_dump_json() for verdict in verdicts]
        if lines:
            append_lines(self.path / "verdicts.jsonl", lines)


def verdicts_that_count(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    """Of verdicts in the order of giving, the one per checkpoint that counts (design 10)."""
    counting: dict[str, Verdict] = {}
    for verdict in verdicts:
        standing = counting.get(verdict.checkpoint)
        if standing is None or standing.grader.kind != "person" or verdict.grader.kind == "person":
            counting[verdict.checkpoint] = verdict
    return counting


# ---- one trial, written ---------------------------------------------------------------------------------------------


class TrialWriter:
    """The one writer of an attempt. Hold it for as long as the trial runs; `finish` or `close` ends it.

    A context manager: leaving it without `finish` leaves a trial without outcome, which a resume goes on with.
    """

    def __init__(self, batch: Path, key: TrialKey, *, carried: Mapping[str, bytes] | None = None) -> None:
        """Makes the attempt's folder. `carried`: what it begins with of an earlier attempt, {file: whole lines}.

        The folder appears at once and whole, so that no half-carried attempt is ever taken for the latest.
        Raises UsageError where it exists, EnvironmentFault where the disk refuses.
        """
        self.key = key
        self.path = batch / trial_folder(key)
        self._torn = False
        begun = {"trajectory.jsonl": b""} | dict(carried or {})
        self._events = begun["trajectory.jsonl"].count(b"\n")
        with _disk(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                raise self._taken()
            making = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.tmp")
            (making / "workspace" / "output").mkdir(parents=True)
            self._trajectory: int | None = None
            for name, data in begun.items():
                descriptor = os.open(
                    making / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644
                )
                _write_all(descriptor, data)
                if name == "trajectory.jsonl":
                    self._trajectory = descriptor
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                else:
                    os.close(descriptor)
            _sync_folder(making)
            try:
                making.rename(self.path)
            except OSError:
                self.close()
                shutil.rmtree(making, ignore_errors=True)
                if self.path.exists():
                    raise self._taken() from None
                raise
            _sync_folder(self.path.parent)

    def _taken(self) -> UsageError:
        return UsageError("this attempt is on the disk already.", where=str(self.path))

    def __enter__(self) -> TrialWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def workspace(self) -> Path:
        """The folder that the agent knows as /workspace; `output/` is in it."""
        return self.path / "workspace"

    @property
    def stored(self) -> StoredTrial:
        """The same attempt, for reading."""
        return StoredTrial(self.path, self.key)

    def event(self, type: EventType, data: Mapping[str, Any]) -> Event:
        """Append one event to the trajectory, on the disk before this returns; a `tool` event holds a ToolCall."""
        if self._trajectory is None:
            raise UsageError("the trial is over; nothing can be added.", where=str(self.path))
        event = Event(n=self._events + 1, at=datetime.now(UTC), type=type, data=dict(data))
        line = (event.model_dump_json() + "\n").encode()
        with _disk(self.path / "trajectory.jsonl"):
            # After a write that failed half-way, the line feed closes what it left.
            torn, self._torn = self._torn, True
            _write_all(self._trajectory, b"\n" + line if torn else line)
            self._torn = False
        self._events = event.n
        return event

    def call(self, call: ToolCall) -> Event:
        """Append one tool call."""
        return self.event("tool", call.model_dump(mode="json"))

    def write(self, write: Write) -> None:
        """Append one entry of the ledger. Do so before the event of the call that made it."""
        append_lines(self.path / "ehr.ndjson", [write.model_dump_json()])

    def verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Append verdicts."""
        self.stored.add_verdicts(verdicts)

    def finish(self, outcome: TrialOutcome) -> None:
        """Write outcome.json by rename, and end the trial. Raises UsageError where there is an outcome already."""
        target = self.path / "outcome.json"
        if target.exists():
            raise UsageError("the trial has an outcome already.", where=str(target))
        write_whole(target, outcome.model_dump_json(indent=1) + "\n")
        self.close()

    def close(self) -> None:
        """Release the trial. Doing so twice is harmless."""
        if self._trajectory is not None:
            os.close(self._trajectory)
            self._trajectory = None


def write_whole(target: Path, content: str) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with _disk(target):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                _write_all(descriptor, content.encode())
            finally:
                os.close(descriptor)
            temporary.replace(target)
            _sync_folder(target.parent)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


# ---- a batch --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """One batch of trials: runs/<name>."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @classmethod
    def create(cls, runs: Path, name: str) -> Batch:
        """A new batch folder. Raises UsageError for a name that cannot be one, or that is taken."""
        if not _BATCH.match(name):
            raise UsageError(f"'{name[:60]}' cannot name a batch.", remedy="Use letters, digits, '.', '_' and '-'.")
        path = runs / name
        with _disk(path):
            runs.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir()
            except FileExistsError:
                raise UsageError(
                    f"there is a batch '{name}' already.", where=str(path), remedy="Resume it, or take another name."
                ) from None
            _sync_folder(runs)
        return cls(path)

    @classmethod
    def open(cls, runs: Path, name: str) -> Batch:
        """A batch that is there. Raises UsageError, with the names there are, where it is not."""
        path = runs / name
        if not _BATCH.match(name) or not path.is_dir():
            known = [batch.name for batch in batches(runs)]
            raise UsageError(
                f"there is no batch '{name[:60]}' in {runs}.",
                remedy=f"There are: {', '.join(known[-10:])}." if known else "Nothing has been run yet.",
            )
        return cls(path)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the batch: one process at a time schedules its trials. Raises EnvironmentFault where one does."""
        with _disk(self.path):
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EnvironmentFault(
                    "another process runs this batch.", where=str(self.path), remedy="Wait for it, or stop it."
                ) from None
            yield
        finally:
            os.close(descriptor)

    def add_plan(self, line: Mapping[str, Any]) -> None:
        """Append one line to plan.jsonl."""
        append_lines(self.path / "plan.jsonl", [json.dumps(line, ensure_ascii=False, sort_keys=True)])

    def plan(self) -> list[dict[str, Any]]:
        """The plan's lines, in order; a torn one is left out."""
        return self._plan()[0]

    def planned(self) -> list[dict[str, Any]]:
        """The plan's lines of kind `planned` that name a task, in order. A plan cut by hand may lack any other key."""
        return [line for line in self.plan() if line.get("kind") == "planned" and isinstance(line.get("task"), str)]

    def _plan(self) -> tuple[list[dict[str, Any]], list[Fault]]:
        path = self.path / "plan.jsonl"
        rows, faults = _raw_lines(path)
        found = []
        for number, row in rows:
            try:
                value = json.loads(row)
            except ValueError:
                value = None
            if isinstance(value, dict):
                found.append(value)
            else:
                faults.append(Fault(at(str(path), number), "the line cannot be read and is left out"))
        return found, faults

    def attempts(self) -> list[StoredTrial]:
        """Every attempt on the disk, by task, agent, run, attempt."""
        found = []
        for task, tasks in _folders(self.path / "trials"):
            for agent, agents in _folders(tasks):
                for run, runs in _folders(agents):
                    for attempt, path in _folders(runs):
                        number = _ATTEMPT.match(attempt)
                        if number and run.isdecimal() and int(run) > 0:
                            key = TrialKey(
                                task=task, agent=agent.replace("__", "/"), run=int(run), attempt=int(number[1])
                            )
                            found.append(StoredTrial(path, key))
        return sorted(found, key=lambda trial: (trial.key.task, trial.key.agent, trial.key.run, trial.key.attempt))

    def trials(self) -> list[StoredTrial]:
        """The attempt that counts of every trial: the last one."""
        last = {(trial.key.task, trial.key.agent, trial.key.run): trial for trial in self.attempts()}
        return list(last.values())

    def next_attempt(self, task: str, agent: str, run: int) -> TrialKey:
        """The key of the attempt that comes next."""
        folder = self.path / trial_folder(TrialKey(task=task, agent=agent, run=run, attempt=1)).parent
        taken = [int(found[1]) for path in folder.glob("attempt-*") if (found := _ATTEMPT.match(path.name))]
        return TrialKey(task=task, agent=agent, run=run, attempt=max(taken, default=0) + 1)

    def damage(self) -> list[Fault]:
        """What readers left out, in the plan and in every attempt."""
        return [*self._plan()[1], *(fault for trial in self.attempts() for fault in trial.damage())]


def _folders(folder: Path) -> list[tuple[str, Path]]:
    """(name, path) of the folders in a folder, none where it is not there. Names with a leading dot are left out.

    By scandir: a batch has thousands of trials, and a glob asks the system about each of them several times.
    """
    try:
        with os.scandir(folder) as entries:
            return [(one.name, folder / one.name) for one in entries if one.name[0] != "." and one.is_dir()]
    except OSError:
        return []


def batches(runs: Path) -> list[Batch]:
    """The batches of a runs folder; the one whose plan grew last comes last."""

    def age(path: Path) -> tuple[float, str]:
        plan = path / "plan.jsonl"
        return (plan.stat().st_mtime if plan.exists() else path.stat().st_mtime, path.name)

    if not runs.is_dir():
        return []
    return [Batch(path) for path in sorted((p for p in runs.iterdir() if p.is_dir() and _BATCH.match(p.name)), key=age)]
