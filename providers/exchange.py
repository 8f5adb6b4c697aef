"""The full exchange with a provider, a line a request: what was sent, and the events of the answer as they came.

A conversation is sent again with every request. Each line therefore holds only the messages that the line before did
not (`same` = how many it shares), so that a long trial grows by what is new. Two things are left out: prompt-cache
marks, which wander from message to message and say nothing, and the key, which is in no request body and is blotted
out should a provider ever repeat it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from providers.base import Turn
from tasks.errors import UsageError
from tasks.stored import append_lines
from tasks.trials import Usage

#: Its name in a trial's folder.
EXCHANGE = "exchange.jsonl"
BLOTTED = "[key]"

OVERFLOW = "context overflow"


@dataclass(frozen=True)
class Exchange:
    """One request and its answer. `failure` says in words why there is none; events may have come before it."""

    number: int
    api: str
    model: str
    request: dict[str, Any]
    events: tuple[dict[str, Any], ...]
    failure: str

    def turn(self) -> Turn:
        """The turn that the answer is, read from its events as it was live. Raises UsageError for a failed one."""
        if self.failure == OVERFLOW:
            return overflowed(self.model)
        if self.failure:
            raise UsageError("this request was not answered.", where=f"{EXCHANGE}:{self.number}")
        if self.api == "messages":
            from providers.anthropic_client import read

            return read(self.events, self.request)
        from providers.openai_client import read as read_completion

        return read_completion(self.events, self.request)


def overflowed(model: str) -> Turn:
    """The turn of a conversation that no longer fits into the model's window; the provider counts nothing for it."""
    return Turn(blocks=(), calls=(), usage=Usage(), stop="overflow", model=model)


class ExchangeFile:
    """Where one conversation's requests and answers are put, each on the disk before the answer is used."""

    def __init__(self, path: Path, *, api: str, model: str, key: str) -> None:
        self._path, self._api, self._model, self._key = path, api, model, key
        self._sent: list[Any] = []
        self._lines = max((one.number for one in exchanges(path)), default=0) if path.exists() else 0

    def __repr__(self) -> str:
        return f"ExchangeFile({str(self._path)!r})"

    def add(self, request: Mapping[str, Any], events: Sequence[Mapping[str, Any]], failure: str = "") -> int:
        """Append one request with its answer and give the line's number. Raises EnvironmentFault."""
        messages = [_unmarked(message) for message in request["messages"]]
        same = 0
        while same < min(len(messages), len(self._sent)) and messages[same] == self._sent[same]:
            same += 1
        self._sent = messages
        rest = {name: _unmarked(value) for name, value in request.items() if name != "messages"}
        line = {"n": self._lines + 1, "at": datetime.now(UTC).isoformat(), "api": self._api, "model": self._model}
        line |= {"same": same, "messages": messages[same:], "request": rest, "events": list(events), "failure": failure}
        text = json.dumps(line, ensure_ascii=True, default=str)
        if len(self._key) >= 8:
            text = text.replace(self._key, BLOTTED)
        append_lines(self._path, [text])
        self._lines += 1
        return self._lines


def exchanges(path: Path) -> Iterator[Exchange]:
    """Every exchange of a file, its request whole again. Raises UsageError for a line that cannot be read."""
    messages: list[Any] = []
    for number, text in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            messages = messages[: line["same"]] + line["messages"]
            request = line["request"] | {"messages": messages}
            yield Exchange(line["n"], line["api"], line["model"], request, tuple(line["events"]), line["failure"])
        except (ValueError, KeyError, TypeError):
            raise UsageError("the line cannot be read.", where=f"{path}:{number}") from None


def _unmarked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _unmarked(inner) for name, inner in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(inner) for inner in value]
    return value
