"""One chat interface to every model: `turn` for agents, `answer` for whoever needs a value of a known shape.

    model = chat("anthropic/claude-…", settings, data_class="open")
    turn = model.turn(messages, tools)              # runtime/agent.py
    answer = model.answer(messages, Verdict)        # judge, reviser, note rewriter

Both go through the same clearance check, the same key handling, the same retries and the same accounting.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import filelock
from pydantic import BaseModel, ValidationError

from providers.base import (
    DataClassRefused,
    Message,
    ModelConfigError,
    ModelMessage,
    ProviderFault,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    UserMessage,
    check_pairing,
)
from providers.endpoint import Endpoint, Overflowed
from providers.exchange import OVERFLOW, ExchangeFile, overflowed
from providers.pricing import add, cost
from providers.retry import RetryPolicy, Transient, with_retries
from tasks.settings import ModelSettings, Price
from tasks.taxonomy import DataClass
from tasks.trials import Usage

T = TypeVar("T", bound=BaseModel)

#: What each clearance covers: a chart may go to an endpoint that is cleared for its class or for a stricter one.
_STRICTNESS: dict[DataClass, int] = {"open": 0, "dua": 1, "phi": 2}

#: Provider prefix -> (the variable that holds its key, unless settings name another).
KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}

_REASONING = re.compile(r"|none|minimal|low|medium|high|xhigh|max|budget:[1-9][0-9]{2,6}")

#: How often a model may mend an answer that does not fit the schema.
REPAIRS = 2


class Client(Protocol):
    """One wire format."""

    api: str

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec], forced: str | None) -> dict[str, Any]: ...

    def stream(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]: ...

    def read(self, events: Sequence[dict[str, Any]], asked: dict[str, Any]) -> Turn: ...

    def close(self) -> None: ...


class NoAnswer(ProviderFault):
    """The model gave no answer of the asked shape: a refusal, prose, or values that stay wrong after the repairs.

    `usage`: what the useless answers cost, where they could be counted.
    """

    usage: Usage | None = None


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A value of the asked shape, and what it took. `exchange`: every message, the failed ones too."""

    value: T
    usage: Usage
    model: str
    repairs: int
    exchange: tuple[Message, ...]


_slots: dict[tuple[str, int], threading.BoundedSemaphore] = {}
_slots_guard = threading.Lock()


class Chat:
    """One model, ready to be asked. Made by `chat()`; `name` is the one in settings."""

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        price: Price | None = None,
        concurrency: int = 4,
        policy: RetryPolicy | None = None,
        slots: Path | None = None,
        key: str = "",
    ) -> None:
        self.name = name
        self._key = key
        self._exchange: ExchangeFile | None = None
        self._client = client
        self._price = price
        self._concurrency = concurrency
        self._policy = policy or RetryPolicy()
        self._slots = slots

    def __repr__(self) -> str:
        return f"Chat({self.name!r})"

    @property
    def has_price(self) -> bool:
        """Whether a cost can be given at all."""
        return self._price is not None

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        """The next turn of a conversation.

        `waited` in it is the seconds spent on back-off and on waiting for a free place. Refusal and overflow are
        turns, not errors. Raises PairingError before anything is sent, ProviderFault, ModelConfigError.
        """
        return self._ask(messages, tools, None)

    def keep_exchange(self, path: Path) -> None:
        """From now on put every request and its raw answer into this file (exchange.py)."""
        self._exchange = ExchangeFile(path, api=self._client.api, model=self.name, key=self._key)

    def close(self) -> None:
        """Release the connections; the model is not asked again."""
        self._client.close()

    def answer(
        self,
        messages: Sequence[Message],
        schema: type[T],
        *,
        check: Callable[[T], str | None] | None = None,
        read: Callable[[str], T] | None = None,
    ) -> Answer[T]:
        """A value of `schema`, forced through a tool call.

        `check` may say in words what else is wrong with a value that fits the schema. What is wrong goes back to the
        model, at most REPAIRS times. `read` reads the text of the arguments where pydantic's JSON would lose something
        (it makes 5.00 a 5.0); it raises ValueError with words for the model. Raises NoAnswer, ProviderFault,
        ModelConfigError.
        """
        tool = ToolSpec("answer", schema.__doc__ or "Give the answer.", schema.model_json_schema())
        exchange = list(messages)
        usage = Usage(cost=0.0)
        for repairs in range(REPAIRS + 1):
            turn = self._ask(exchange, [tool], tool.name)
            usage = add(usage, turn.usage)
            exchange.append(ModelMessage(turn))
            if turn.stop in ("refused", "overflow"):
                words = {"refused": "the model refused to answer", "overflow": "the question exceeds the context"}
                raise _no_answer(words[turn.stop], self.name, usage)
            value, wrong = _read(turn, read or schema.model_validate_json)
            if value is not None:
                wrong = (check(value) if check else None) or ""
                if not wrong:
                    return Answer(value, usage, turn.model, repairs, tuple(exchange))
            results = tuple(ToolResult(call.id, wrong, is_error=True) for call in turn.calls)
            exchange.append(ToolResults(results) if results else UserMessage(wrong))
        raise _no_answer(f"no answer of the asked shape after {REPAIRS} repairs", self.name, usage)

    def _ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec], forced: str | None) -> Turn:
        check_pairing(messages)
        with self._place() as queued:
            asked = self._client.request(messages, tools, forced)
            turn, retried = with_retries(lambda: self._send(asked), self._policy, model=self.name)
        sent = dict(turn.sent or {}) | ({"retried": list(retried.kinds)} if retried.kinds else {})
        priced = turn.usage.model_copy(update={"cost": cost(turn.usage, self._price)})
        if sent.get("usage") == "not reported":
            priced = priced.model_copy(update={"cost": None})
        return replace(turn, usage=priced, waited=queued + retried.waited, sent=sent)

    def _send(self, asked: dict[str, Any]) -> Turn:
        """One request, one answer, both kept before the answer is used."""
        events: list[dict[str, Any]] = []
        try:
            for event in self._client.stream(asked):
                events.append(event)
            turn = self._client.read(events, asked)
        except Overflowed:
            return replace(overflowed(asked["model"]), exchange=self._kept(asked, events, OVERFLOW))
        except Transient as failure:
            self._kept(asked, events, failure.kind)
            raise
        except ModelConfigError as failure:
            self._kept(asked, events, failure.what)
            raise
        return replace(turn, exchange=self._kept(asked, events, ""))

    def _kept(self, asked: dict[str, Any], events: list[dict[str, Any]], failure: str) -> int:
        return self._exchange.add(asked, events, failure) if self._exchange else 0

    @contextmanager
    def _place(self) -> Iterator[float]:
        """A free place among the requests that this model takes at once, over all processes of the workspace."""
        started = time.monotonic()
        with _slots_guard:
            key = (self.name, self._concurrency)
            gate = _slots.setdefault(key, threading.BoundedSemaphore(self._concurrency))
        with gate:
            if self._slots is None:
                yield time.monotonic() - started
                return
            folder = self._slots / self.name.replace("/", "__")
            folder.mkdir(parents=True, exist_ok=True)
            lock = self._free(folder)
            try:
                yield time.monotonic() - started
            finally:
                lock.release()

    def _free(self, folder: Path) -> filelock.BaseFileLock:
        while True:
            for place in range(self._concurrency):
                lock = filelock.FileLock(folder / f"{place}.lock", thread_local=False)
                try:
                    lock.acquire(timeout=0)
                except filelock.Timeout:
                    continue
                return lock
            time.sleep(0.05)


def _no_answer(what: str, where: str, usage: Usage) -> NoAnswer:
    failure = NoAnswer(what, where=where)
    failure.usage = usage
    return failure


def _read(turn: Turn, read: Callable[[str], T]) -> tuple[T | None, str]:
    """The value in a turn, or what is wrong with it, in words that the model can act on."""
    calls = [call for call in turn.calls if call.name == "answer"]
    if turn.stop == "length":
        return None, "Your answer was cut at the output limit. Give a shorter one, in one call of the tool `answer`."
    if not calls:
        return None, "Answer with one call of the tool `answer`, nothing else."
    try:
        return read(calls[0].arguments_text), ""
    except ValidationError as failure:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}" for e in failure.errors()[:20]]
        return None, "The answer does not fit the schema. " + "; ".join(faults)
    except ValueError as failure:
        return None, f"The answer cannot be read. {failure}"


def chat(
    name: str,
    settings: ModelSettings,
    *,
    data_class: DataClass,
    policy: RetryPolicy | None = None,
    slots: Path | None = None,
    environ: dict[str, str] | None = None,
) -> Chat:
    """The model `name` ("anthropic/…", "openai/…", or any other prefix with an endpoint), cleared for `data_class`.

    `slots` is a folder (workspace cache) that all processes share, so that `concurrency` holds over all of them.
    Raises DataClassRefused before a client is even made, ModelConfigError for a missing key or endpoint.
    """
    if _STRICTNESS[data_class] > _STRICTNESS[settings.data_class]:
        raise DataClassRefused(
            f"this model is cleared for data class {settings.data_class}, and the task is {data_class}; "
            "nothing was sent.",
            where=name,
            remedy="Choose a cleared model, or record the clearance as data_class in workbench.toml.",
        )
    endpoint = endpoint_of(name, settings, environ)
    return Chat(
        name,
        _client(name, endpoint),
        price=settings.price,
        concurrency=settings.concurrency,
        policy=policy,
        slots=slots,
        key=endpoint.key,
    )


def endpoint_of(name: str, settings: ModelSettings, environ: dict[str, str] | None = None) -> Endpoint:
    """Where and how a model is asked. Raises ModelConfigError where its key or its endpoint is missing."""
    provider, _, model = name.partition("/")
    if not model:
        raise ModelConfigError("a model is named provider/name", where=name)
    url = settings.endpoint
    if provider not in KEY_VARIABLES and not url:
        raise ModelConfigError(
            f"{provider!r} is no provider with an address of its own",
            where=name,
            remedy="Set endpoint for it in workbench.toml.",
        )
    key_env = key_variable(name, settings)
    if not _REASONING.fullmatch(settings.reasoning):
        raise ModelConfigError(
            f"there is no reasoning {settings.reasoning[:40]!r}.",
            where=name,
            remedy="Give none, minimal, low, medium, high, xhigh or max, or budget:N tokens.",
        )
    if settings.reasoning.startswith("budget:") and provider != "anthropic":
        # Sent, it would be refused; left out, the setting would silently mean nothing.
        raise ModelConfigError(
            "chat completions take no budget of reasoning tokens.", where=name, remedy="Give an effort instead."
        )
    key = (os.environ if environ is None else environ).get(key_env, "").strip() if key_env else ""
    if not key and _is_loopback(url):
        key = "none"  # A local server asks for no key, and the SDKs insist on one.
    if not key:
        variable = key_env or "a variable, named by key_env in workbench.toml,"
        raise ModelConfigError("no key for this model.", where=name, remedy=f"Set {variable} in the environment.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelConfigError(
            f"the key in {key_env} holds characters that no key has.", where=name, remedy="Copy the key again, whole."
        )
    return Endpoint(
        name=name,
        model=model,
        url=url,
        key=key,
        key_env=key_env,
        reasoning=settings.reasoning,
        max_output=settings.max_output,
    )


def key_variable(name: str, settings: ModelSettings) -> str:
    """The environment variable that holds a model's key, "" where none is known."""
    return settings.key_env or KEY_VARIABLES.get(name.partition("/")[0], "")


def _client(name: str, endpoint: Endpoint) -> Any:
    # The SDKs cost a second to import: only the one that is asked.
    if name.startswith("anthropic/"):
        from providers.anthropic_client import AnthropicClient

        _quiet()
        return AnthropicClient(endpoint)
    from providers.openai_client import OpenAIClient

    _quiet()
    return OpenAIClient(endpoint)


def _quiet() -> None:
    """At debug level (a variable of the shell is enough) the SDKs log whole requests: a patient's chart in a log."""
    for name in ("anthropic", "openai", "httpx2", "httpcore2", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
