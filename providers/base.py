"""The seam between an agent loop and whatever answers it: messages in, one turn out.

Provider-neutral: `runtime/agent.py` speaks only these types, the clients of this package and the built-in agents of
`runtime/agents.py` implement `Model`. A turn keeps the provider's own blocks, and they are sent back unchanged.

    A conversation is SystemMessage, UserMessage, then ModelMessage and ToolResults (or UserMessage) in turn.
    Every call of a ModelMessage is answered in the ToolResults right after it, in order; `check_pairing` holds that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from tasks.errors import EnvironmentFault, SettingsError, WorkbenchError
from tasks.trials import Usage

#: Why a turn ended. `end`: the model is done. `tools`: it waits for tool results. `length`: cut at the output limit.
#: `refused` and `overflow` end the trial; they are outcomes of the model, not errors.
Stop = Literal["end", "tools", "length", "refused", "overflow"]


class ProviderFault(EnvironmentFault):
    """The provider could not answer within the retry budget (outcome provider_error)."""


class ModelConfigError(SettingsError):
    """The model cannot be asked as configured: unknown name, no key, a bad key, no price for a money limit."""


class DataClassRefused(ModelConfigError):
    """The task's data class is one that the model's endpoint is not cleared for; nothing was sent."""


class PairingError(WorkbenchError):
    """A conversation in which a tool call has no result, or a result no call. It must never be sent."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class ToolRequest:
    """One call that a model asks for. `arguments_text` is the text as the model wrote it, JSON or not."""

    id: str
    name: str
    arguments_text: str


@dataclass(frozen=True)
class Turn:
    """One model response.

    blocks: the provider's own content, JSON values, replayed unchanged. calls: in the order asked. text: the plain
    words of the turn, for people. model: the name that the provider answered with. waited: seconds of back-off and
    queueing before the answer, which no time budget counts. sent: settings as they were sent (reasoning effort, ...).
    """

    blocks: tuple[dict[str, Any], ...]
    calls: tuple[ToolRequest, ...]
    usage: Usage
    stop: Stop
    text: str = ""
    model: str = ""
    waited: float = 0.0
    sent: dict[str, Any] | None = None
    exchange: int = 0
    """The line of exchange.jsonl that holds this answer as it came, 1 = the first; 0 where none is kept."""


def whole_text(value: Any) -> Any:
    """A JSON value whose texts can be written down: half of a surrogate pair, which a model can send as an escape and
    no file or request can hold, becomes U+FFFD; two halves that met again are the character that they are."""
    if isinstance(value, str):
        return value if _can_be_written(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {whole_text(key): whole_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_text(inner) for inner in value]
    return value


def _can_be_written(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class SystemMessage:
    text: str


@dataclass(frozen=True)
class UserMessage:
    text: str


@dataclass(frozen=True)
class ModelMessage:
    """A turn put back into the conversation."""

    turn: Turn


@dataclass(frozen=True)
class ToolResult:
    """The answer to one call, as the model reads it."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True)
class ToolResults:
    """All answers to one turn's calls, in the order of the calls; `note` is a word of the loop after them, or ""."""

    results: tuple[ToolResult, ...]
    note: str = ""


Message = SystemMessage | UserMessage | ModelMessage | ToolResults


@runtime_checkable
class Model(Protocol):
    """Whatever answers a conversation: a provider's model or a built-in agent."""

    name: str

    @property
    def has_price(self) -> bool:
        """Whether the cost of a turn is known. A money limit on a model without a price is a configuration error."""
        ...

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        """The next turn. Raises ProviderFault, ModelConfigError."""
        ...

    def close(self) -> None:
        """Release connections; the model is not asked again."""
        ...


@runtime_checkable
class KeepsExchange(Protocol):
    """A model whose requests and raw answers can be kept (providers/exchange.py)."""

    def keep_exchange(self, path: Path) -> None:
        """From now on put each into this file."""
        ...


def check_pairing(messages: Sequence[Message]) -> None:
    """Raise PairingError unless every tool call is answered once, in order, in the message after its turn."""
    for place, message in enumerate(messages):
        where = f"message {place + 1}"
        if isinstance(message, ModelMessage):
            asked = [call.id for call in message.turn.calls]
            if not asked:
                continue
            follower = messages[place + 1] if place + 1 < len(messages) else None
            answered = [result.call_id for result in follower.results] if isinstance(follower, ToolResults) else []
            if asked != answered:
                raise PairingError(
                    f"{len(asked)} tool calls, answered: {len(answered)}, or in another order", where=where
                )
        elif isinstance(message, ToolResults):
            before = messages[place - 1] if place else None
            if not (isinstance(before, ModelMessage) and before.turn.calls):
                raise PairingError("tool results that follow no tool call", where=where)
