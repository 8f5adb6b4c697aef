"""Chat completions through OpenAI's SDK, for OpenAI and every compatible endpoint: streamed, reasoning fields kept.

Compatible servers add fields to the assistant message (reasoning_content, reasoning_details, ...). Whatever came is
put together and sent back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import openai

from providers.base import (
    Message,
    ModelMessage,
    Stop,
    SystemMessage,
    ToolRequest,
    ToolResults,
    ToolSpec,
    Turn,
    UserMessage,
    whole_text,
)
from providers.endpoint import Endpoint, broken_transport, status_failure
from providers.retry import Transient
from tasks.trials import Usage

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}
#: Fields of a delta that are read by name; every other one is kept as it is.
_READ = frozenset({"role", "content", "tool_calls", "function_call"})


class OpenAIClient:
    """One model behind a chat-completions endpoint."""

    api = "chat.completions"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sdk = openai.OpenAI(
            api_key=endpoint.key,
            base_url=endpoint.url or "https://api.openai.com/v1",
            max_retries=0,
            timeout=endpoint.timeout,
        )

    def close(self) -> None:
        """Release the connections."""
        self._sdk.close()

    def stream(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send one request; the chunks of its answer as they come. Raises Transient, Overflowed, ModelConfigError."""
        try:
            with self._sdk.chat.completions.create(**asked) as stream:
                for chunk in stream:
                    yield chunk.model_dump(mode="json", exclude_none=True)
        except openai.APIStatusError as failure:
            raise status_failure(
                self._endpoint, failure.status_code, failure.body, dict(failure.response.headers)
            ) from None
        except (openai.APIConnectionError, httpx2.HTTPError) as failure:
            raise broken_transport(failure) from None
        except openai.APIError as failure:
            raise status_failure(self._endpoint, 200, failure.body or failure.message, {}) from None
        except (ValueError, AssertionError) as failure:
            raise Transient(f"an answer that is not a message ({type(failure).__name__})") from None

    def read(self, events: Sequence[dict[str, Any]], asked: dict[str, Any]) -> Turn:
        """See `read`."""
        return read(events, asked)

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec], forced: str | None) -> dict[str, Any]:
        """The body of a request."""
        said = [part for message in messages for part in _messages(message)]
        # OpenAI itself knows only max_completion_tokens, most compatible servers only max_tokens.
        limit = "max_tokens" if self._endpoint.url else "max_completion_tokens"
        asked: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": said,
            limit: self._endpoint.max_output,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            asked["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in tools
            ]
        if forced:
            asked["tool_choice"] = {"type": "function", "function": {"name": forced}}
        if self._endpoint.reasoning:
            asked["reasoning_effort"] = self._endpoint.reasoning
        return asked


def read(events: Sequence[dict[str, Any]], asked: dict[str, Any]) -> Turn:
    """The turn that a whole answer's chunks make. Raises Transient where the answer is not whole.

    `asked` is the request; its settings are kept with the turn.
    """
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    usage: dict[str, Any] | None = None
    finish, model = "", ""
    try:
        for data in events:
            model = data.get("model") or model
            usage = data.get("usage") or usage
            for choice in data.get("choices") or ():
                finish = choice.get("finish_reason") or finish
                _extend(message, calls, choice.get("delta") or {})
    except (KeyError, IndexError, TypeError, AttributeError) as failure:
        raise Transient(f"an answer that is not a message ({type(failure).__name__})") from None
    if not finish:
        raise Transient("the stream ended before the message did")
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    message = whole_text(message)
    requests = tuple(
        ToolRequest(call["id"], call["function"]["name"], call["function"]["arguments"] or "{}")
        for call in message.get("tool_calls", ())
    )
    stop = _STOPS.get(finish, "end")
    if message.get("refusal"):
        stop = "refused"
    elif requests and stop == "end":
        # Several servers end a message with calls as "stop".
        stop = "tools"
    return Turn(
        blocks=(message,),
        calls=requests,
        usage=_usage(usage),
        stop=stop,
        text=message["content"] or message.get("refusal") or "",
        model=model,
        sent=_settings(asked) | ({} if usage else {"usage": "not reported"}),
    )


def _settings(asked: dict[str, Any]) -> dict[str, Any]:
    names = ("max_tokens", "max_completion_tokens", "reasoning_effort", "tool_choice")
    return {"api": "chat.completions"} | {name: asked[name] for name in names if name in asked}


def _messages(message: Message) -> list[dict[str, Any]]:
    match message:
        case SystemMessage(text):
            return [{"role": "system", "content": text}]
        case UserMessage(text):
            return [{"role": "user", "content": text}]
        case ModelMessage(turn):
            block = dict(turn.blocks[0]) if turn.blocks else {"role": "assistant", "content": None}
            if not block.get("content") and not block.get("tool_calls"):
                # An assistant message must say something; this one did not.
                block["content"] = "(no answer)"
            return [block]
        case ToolResults(results, note):
            said = [{"role": "tool", "tool_call_id": result.call_id, "content": result.text} for result in results]
            return said + ([{"role": "user", "content": note}] if note else [])
    raise AssertionError("unknown kind of message")


def _extend(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    if delta.get("content"):
        message["content"] = (message["content"] or "") + delta["content"]
    for position, part in enumerate(delta.get("tool_calls") or ()):
        # Some servers leave out the index of the only call.
        index = part.get("index", position)
        call = calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = part.get("id") or call["id"] or f"call_{index}"
        function = part.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
    for name in sorted(delta.keys() - _READ):
        message[name] = _joined(message.get(name), delta[name])


def _joined(before: Any, value: Any) -> Any:
    """A field that comes in pieces: text is appended, and so are list items, those of one index merged."""
    if isinstance(before, str) and isinstance(value, str):
        return before + value
    if not (isinstance(before, list) and isinstance(value, list)):
        return value
    out = list(before)
    for item in value:
        last = out[-1] if out else None
        if isinstance(item, dict) and isinstance(last, dict) and item.get("index", -1) == last.get("index"):
            pieces = {"text", "summary", "data"} & item.keys()
            out[-1] = last | {key: _joined(last.get(key), v) if key in pieces else v for key, v in item.items()}
        else:
            out.append(item)
    return out


def _usage(usage: dict[str, Any] | None) -> Usage:
    """prompt_tokens holds both cache tiers, completion_tokens the reasoning."""
    if usage is None:
        return Usage()
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    read, written = prompt.get("cached_tokens") or 0, prompt.get("cache_write_tokens") or 0
    return Usage(
        uncached_input=max(0, (usage.get("prompt_tokens") or 0) - read - written),
        cache_read=read,
        cache_write=written,
        output=usage.get("completion_tokens") or 0,
        reasoning=completion.get("reasoning_tokens") or 0,
    )
