"""Chat completions as OpenAI and its imitators speak them: requests read, replies written as JSON or as chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from providers.wire.script import Heard, Reply, Tokens, ToolResult
from providers.wire.strictness import call_id, signature

_STOPS = {"end": "stop", "tools": "tool_calls", "length": "length", "refusal": "content_filter", "overflow": "length"}


def hear(body: Mapping[str, Any]) -> tuple[Heard, list[str]]:
    """The request in the server's own words, and the reasoning that each assistant message carries."""
    calls: list[tuple[str, str, str]] = []
    results: dict[str, ToolResult] = {}
    thinking: list[str] = []
    system, first_user = "", ""
    for message in body["messages"]:
        role, text = message["role"], _text(message.get("content"))
        if role in ("system", "developer"):
            system += text
        elif role == "assistant":
            thinking.append(message.get("reasoning_content") or "")
            for call in message.get("tool_calls") or ():
                calls.append((call["id"], call["function"]["name"], call["function"]["arguments"]))
        elif role == "tool":
            results[message["tool_call_id"]] = ToolResult(message["tool_call_id"], text)
        elif not first_user:
            first_user = text
    choice = body.get("tool_choice")
    heard = Heard(
        face="openai",
        model=body["model"],
        system=system,
        first_user=first_user,
        turn=len(thinking),
        calls=calls,
        results=results,
        tools=[tool["function"]["name"] for tool in body.get("tools") or ()],
        forced_tool=choice["function"]["name"] if isinstance(choice, dict) else None,
        raw=body,
    )
    return heard, thinking


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content)


def usage(tokens: Tokens) -> dict[str, Any]:
    """Usage as chat completions show it: prompt_tokens holds the cached ones, completion_tokens the reasoning."""
    prompt = tokens.uncached_input + tokens.cache_read + tokens.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def _calls(reply: Reply, heard: Heard, key: str) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id or call_id(heard.turn, position, key),
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
            },
        }
        for position, call in enumerate(reply.calls)
    ]


def whole(reply: Reply, heard: Heard, key: str) -> dict[str, Any]:
    """The answer to a request without streaming."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.stopped == "refusal":
        message |= {"content": None, "refusal": "I can't help with that."}
    if reply.thinking:
        message |= {"reasoning_content": reply.thinking, "reasoning_signature": signature(reply.thinking)}
    if reply.calls:
        message["tool_calls"] = _calls(reply, heard, key)
    return _envelope(heard, key, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "finish_reason": _STOPS[reply.stopped], "logprobs": None}],
        "usage": usage(reply.tokens),
    }


def _envelope(heard: Heard, key: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{key[:16]}-{heard.turn}", "object": kind, "created": 1780000000, "model": heard.model}


def events(reply: Reply, heard: Heard, key: str) -> Iterator[dict[str, Any]]:
    """The answer as chunks. The last one carries usage and no choices, where the request asked for it."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _envelope(heard, key, "chat.completion.chunk") | {"choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for part in _parts(reply.thinking):
        yield chunk({"reasoning_content": part})
    if reply.thinking:
        yield chunk({"reasoning_signature": signature(reply.thinking)})
    for part in _parts(reply.text):
        yield chunk({"content": part})
    if reply.stopped == "refusal":
        yield chunk({"refusal": "I can't help with that."})
    for index, call in enumerate(_calls(reply, heard, key)):
        function = call["function"]
        opening = {"index": index, "id": call["id"], "type": "function"}
        yield chunk({"tool_calls": [opening | {"function": {"name": function["name"], "arguments": ""}}]})
        for part in _parts(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, _STOPS[reply.stopped])
    if (heard.raw.get("stream_options") or {}).get("include_usage"):
        yield _envelope(heard, key, "chat.completion.chunk") | {"choices": [], "usage": usage(reply.tokens)}


def _parts(text: str, size: int = 24) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def error(kind: str, message: str, code: str | None = None) -> dict[str, Any]:
    """An error body, the same in a response and in a stream."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


OVERFLOW = "This model's maximum context length is 131072 tokens. However, your messages resulted in 204233 tokens."
