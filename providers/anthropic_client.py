"""The Messages API through Anthropic's SDK: always streamed, blocks kept as they came, arguments kept as text.

The SDK's own accumulator repairs broken tool arguments without a word, so the stream is put together here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import anthropic
import httpx2

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

#: https://docs.claude.com/en/api/messages: stop_reason. A paused or sequence-stopped message is a whole one to us.
_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "refusal": "refused",
    "model_context_window_exceeded": "overflow",
}
_CACHED = {"type": "ephemeral"}


class AnthropicClient:
    """One model behind a Messages endpoint."""

    api = "messages"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sdk = anthropic.Anthropic(
            api_key=endpoint.key,
            base_url=endpoint.url or None,
            max_retries=0,
            timeout=endpoint.timeout,
            # A proxy or profile of the shell must not decide where chart text goes or which credential is used.
            auth_token=None,
        )

    def close(self) -> None:
        """Release the connections."""
        self._sdk.close()

    def stream(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send one request; the events of its answer as they come. Raises Transient, Overflowed, ModelConfigError."""
        try:
            with self._sdk.messages.create(**asked, stream=True) as stream:
                for event in stream:
                    yield event.model_dump(mode="json", exclude_none=True)
                    if event.type == "message_stop":
                        return  # whole; how the connection ends does not matter any more
        except anthropic.APIStatusError as failure:
            raise status_failure(
                self._endpoint, failure.status_code, failure.body, dict(failure.response.headers)
            ) from None
        except (anthropic.APIConnectionError, httpx2.HTTPError) as failure:
            raise broken_transport(failure) from None
        except (anthropic.APIError, ValueError, AssertionError) as failure:
            raise Transient(f"an answer that is not a message ({type(failure).__name__})") from None

    def read(self, events: Sequence[dict[str, Any]], asked: dict[str, Any]) -> Turn:
        """See `read`."""
        return read(events, asked)

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec], forced: str | None) -> dict[str, Any]:
        system = [message.text for message in messages if isinstance(message, SystemMessage)]
        """The body of a request."""
        said = [_message(message) for message in messages if not isinstance(message, SystemMessage)]
        # Two breakpoints: the prefix that never changes, and the newest message, so that each turn pays for itself.
        # Only our own blocks carry one; a provider's block is sent back as it came.
        if said[-1]["role"] == "user":
            said[-1]["content"][-1]["cache_control"] = _CACHED
        asked: dict[str, Any] = {
            "model": self._endpoint.model,
            "max_tokens": self._endpoint.max_output,
            "messages": said,
        }
        if system:
            asked["system"] = [{"type": "text", "text": "\n\n".join(system), "cache_control": _CACHED}]
        if tools:
            asked["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
            ]
        if forced:
            # The API refuses a forced tool together with thinking.
            asked["tool_choice"] = {"type": "tool", "name": forced}
        else:
            asked |= _thinking(self._endpoint.reasoning)
        return asked


def read(events: Sequence[dict[str, Any]], asked: dict[str, Any]) -> Turn:
    """The turn that a whole answer's events make. Raises Transient where the answer is not whole.

    `asked` is the request; its settings are kept with the turn.
    """
    blocks: list[dict[str, Any]] = []
    partial: dict[int, str] = {}
    usage: dict[str, Any] = {}
    stop, model, is_whole = "", "", False
    try:
        for data in events:
            match data["type"]:
                case "message_start":
                    model = data["message"]["model"]
                    usage.update(data["message"].get("usage") or {})
                case "content_block_start":
                    blocks.append(copy.deepcopy(data["content_block"]))
                case "content_block_delta":
                    _extend(blocks, partial, data["index"], data["delta"])
                case "message_delta":
                    stop = data["delta"].get("stop_reason") or stop
                    usage.update(data.get("usage") or {})
                case "message_stop":
                    is_whole = True
    except (KeyError, IndexError, TypeError) as failure:
        raise Transient(f"an answer that is not a message ({type(failure).__name__})") from None
    if not model:
        raise Transient("an answer that is not a message")
    if not is_whole:
        raise Transient("the stream ended before the message did")
    calls = _finish_calls(blocks, partial)
    blocks = whole_text(blocks)
    return Turn(
        blocks=tuple(blocks),
        calls=calls,
        usage=_usage(usage),
        stop=_STOPS.get(stop, "tools" if calls else "end"),
        text="\n".join(block["text"] for block in blocks if block.get("type") == "text"),
        model=model,
        sent=_settings(asked) | ({} if usage.get("output_tokens") is not None else {"usage": "not reported"}),
    )


def _thinking(reasoning: str) -> dict[str, Any]:
    """Our one reasoning setting in Anthropic's words: an effort, or "budget:N" for models without adaptive thinking."""
    if not reasoning:
        return {}
    if reasoning == "none":
        return {"thinking": {"type": "disabled"}}
    if reasoning.startswith("budget:"):
        return {"thinking": {"type": "enabled", "budget_tokens": int(reasoning.removeprefix("budget:"))}}
    effort = "low" if reasoning == "minimal" else reasoning
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


def _settings(asked: dict[str, Any]) -> dict[str, Any]:
    kept = {key: asked[key] for key in ("max_tokens", "thinking", "output_config", "tool_choice") if key in asked}
    return {"api": "messages", "prompt_cache": True} | kept


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case ModelMessage(turn):
            # An empty assistant message is refused by the API; the turn said nothing, and that is what we say.
            kept = [block for block in turn.blocks if _is_whole(block)]
            return {"role": "assistant", "content": kept or [{"type": "text", "text": "(no answer)"}]}
        case ToolResults(results, note):
            content: list[dict[str, Any]] = [
                {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text or "(empty)"}
                | ({"is_error": True} if result.is_error else {})
                for result in results
            ]
            return {"role": "user", "content": content + ([{"type": "text", "text": note}] if note else [])}
    raise AssertionError("a system message is not part of the dialogue")


def _is_whole(block: dict[str, Any]) -> bool:
    """Whether the API takes a block back: no empty text, and no thinking that was cut before its signature."""
    if block.get("type") == "thinking":
        return bool(block.get("signature"))
    return block.get("type") != "text" or bool(block.get("text", "").strip())


def _extend(blocks: list[dict[str, Any]], partial: dict[int, str], index: int, delta: dict[str, Any]) -> None:
    block = blocks[index]
    match delta["type"]:
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "input_json_delta":
            partial[index] = partial.get(index, "") + delta["partial_json"]
        case "citations_delta":
            block.setdefault("citations", []).append(delta["citation"])


def _finish_calls(blocks: list[dict[str, Any]], partial: dict[int, str]) -> tuple[ToolRequest, ...]:
    """The calls of the message. `input` takes the parsed arguments; what is not a JSON object stays {} there, and the
    text as the model wrote it goes to the loop, which answers with an error."""
    calls = []
    for index, block in enumerate(blocks):
        if block.get("type") != "tool_use":
            continue
        text = partial.get(index, "") or json.dumps(block.get("input") or {})
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = {}
        block["input"] = arguments if isinstance(arguments, dict) else {}
        calls.append(ToolRequest(block["id"], whole_text(block["name"]), whole_text(text)))
    return tuple(calls)


def _usage(usage: dict[str, Any]) -> Usage:
    """input_tokens leaves out both cache tiers; output_tokens holds the thinking."""
    details = cast("dict[str, Any]", usage.get("output_tokens_details") or {})
    return Usage(
        uncached_input=usage.get("input_tokens") or 0,
        cache_read=usage.get("cache_read_input_tokens") or 0,
        cache_write=usage.get("cache_creation_input_tokens") or 0,
        output=usage.get("output_tokens") or 0,
        reasoning=details.get("thinking_tokens") or 0,
    )
