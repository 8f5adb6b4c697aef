"""One trial's tools: a request of the model goes in, the full result and the part that the model reads come out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from providers.base import ToolRequest, ToolSpec
from runtime.ehr.session import EhrError, Session
from runtime.tools.creates import (
    AppointmentCreate,
    CommunicationCreate,
    MedicationRequestCreate,
    ServiceRequestCreate,
)
from runtime.tools.declaration import ArgumentFault, Call, Place, Tool, arguments_of, error_text
from runtime.tools.files import WriteFile
from runtime.tools.reads import (
    ConditionSearch,
    LabSearch,
    MedicationSearch,
    NoteSearch,
    PatientSearch,
    ProcedureSearch,
    ServiceRequestSearch,
    SocialHistorySearch,
    VitalSearch,
)
from tasks.errors import EnvironmentFault, SearchError
from tasks.taxonomy import Profile
from tasks.trials import ToolCall

#: In the order that a model is shown them.
TOOLS: tuple[type[Tool], ...] = (
    PatientSearch,
    ConditionSearch,
    LabSearch,
    VitalSearch,
    SocialHistorySearch,
    ProcedureSearch,
    MedicationSearch,
    NoteSearch,
    ServiceRequestSearch,
    MedicationRequestCreate,
    ServiceRequestCreate,
    AppointmentCreate,
    CommunicationCreate,
    WriteFile,
)
TOOLS_BY_NAME: dict[str, type[Tool]] = {tool.tool: tool for tool in TOOLS}

#: A result longer than this is cut for the model; the full one is stored.
SHOWN_CHARACTERS = 10_000


def tool_specs(profile: Profile = "paper") -> tuple[ToolSpec, ...]:
    """The tools of a profile as a model is told of them."""
    return tuple(tool.spec() for tool in TOOLS if profile in tool.profiles)


def cut_notice(full: int) -> str:
    """What stands after a result of `full` characters that was cut."""
    return (
        f"\n\n[OUTPUT TRUNCATED: this is the first {SHOWN_CHARACTERS} of {full} characters. To see the rest, ask for "
        "less at a time: give a code, a date such as ge2022-01-01, or a smaller count.]"
    )


def text_shown(call: ToolCall) -> str:
    """What the model reads of a call's result: all of it, or its beginning and the notice."""
    return call.result if call.shown == len(call.result) else call.seen + cut_notice(len(call.result))


@dataclass(frozen=True)
class Answered:
    """A call as it is stored, and the text that the model reads."""

    call: ToolCall
    text: str


class Toolbox:
    """The tools of one trial over one session. `now` is the task's clock: write n is stamped now + n seconds."""

    def __init__(self, session: Session, output: Path, *, now: datetime, profile: Profile = "paper") -> None:
        self.session = session
        self.output = output
        self.now = now
        self.tools = {tool.tool: tool for tool in TOOLS if profile in tool.profiles}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec() for tool in self.tools.values())

    def rewrite(self, calls: Sequence[ToolCall]) -> None:
        """Make the files of an earlier attempt again from its write_file calls, in an empty output folder.

        Raises EnvironmentFault where a file does not become what it was.
        """
        for call in calls:
            if call.tool != WriteFile.tool or call.error or not isinstance(call.arguments, dict):
                continue
            made = self._run(call.tool, call.arguments, call.n, 0)
            if made.text != call.result:
                raise EnvironmentFault(
                    f"a file of call {call.n} could not be made again.", remedy="Run the trial anew."
                )

    def answer(self, request: ToolRequest, *, number: int, turn: int) -> Answered:
        """Carry out one call, once. Whatever is wrong with it is an error result.

        A create that the ledger holds under this call's number was sent by an attempt that ended before it could say
        so; it is answered from the ledger.

        Raises EnvironmentFault where the EHR cannot be reached: that is no answer about the patient.
        """
        arguments: dict[str, Any] | str = request.arguments_text
        ledger = self.session.ledger
        stored = next((write for write in ledger if write.call == number), None)
        written = len(ledger) if stored is None else stored.sequence - 1
        began = time.monotonic()
        try:
            arguments = arguments_of(request.arguments_text)
            if stored is None:
                result = self._run(request.name, arguments, number, written)
            else:
                result = Call(stored.resource, False, f"POST {stored.reference.partition('/')[0]}")
        except ArgumentFault as fault:
            fault = ArgumentFault(fault.tool or request.name, fault.problems)
            result = Call(fault.answer(), error=True, request="")
        seconds = time.monotonic() - began
        shown = min(len(result.text), SHOWN_CHARACTERS)
        call = ToolCall(
            n=number,
            turn=turn,
            call_id=request.id,
            tool=request.name,
            arguments=_stored(arguments),
            result=result.text,
            shown=shown,
            error=result.error,
            request=result.request,
            writes=tuple(write.sequence for write in self.session.ledger[written:]),
            seconds=round(seconds, 6),
        )
        return Answered(call, text_shown(call))

    def _run(self, name: str, arguments: dict[str, Any], number: int, written: int) -> Call:
        kind = self.tools.get(name)
        if kind is None:
            return Call(error_text(f"There is no tool named {name!r}.", tools=list(self.tools)), True, "")
        tool = kind.parse(arguments)
        stamp = self.now + timedelta(seconds=written + 1)
        try:
            return tool.run(Place(self.session, self.output, number, stamp))
        except EhrError as fault:
            return Call(
                error_text(
                    f"The server refused the request ({fault.status}): {fault}", operation_outcome=fault.outcome
                ),
                True,
                _request_of(tool),
            )
        except SearchError as fault:
            return Call(error_text(f"The server refused the request (400): {fault}"), True, _request_of(tool))
        except OSError as fault:
            raise EnvironmentFault(
                f"The trial's workspace cannot be written ({fault.strerror}).", remedy="Look at the disk of the runs."
            ) from None


def _stored(value: Any) -> Any:
    """Arguments as plain JSON values: a Decimal would be stored as text. The model's event keeps its own digits."""
    if isinstance(value, Decimal):
        whole = int(value) if value == value.to_integral_value() and abs(value) < 10**15 else None
        return whole if whole is not None and "." not in str(value) else float(value)
    if isinstance(value, dict):
        return {key: _stored(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_stored(inner) for inner in value]
    return value


def _request_of(tool: Tool) -> str:
    kind = getattr(tool, "resource_type", "")
    return f"{'POST' if tool.writes else 'GET'} {kind}" if kind else ""
