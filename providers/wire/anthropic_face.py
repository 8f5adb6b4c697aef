"""The Messages API as Anthropic's servers speak it: requests read, replies written as JSON or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from providers.wire.script import Heard, Reply, Tokens, ToolResult
from providers.wire.strictness import call_id, signature

_STOPS = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "overflow": "model_context_window_exceeded",
}


def hear(body: Mapping[str, Any]) -> tuple[Heard, list[str]]:
    """The request in the server's own words, and the thinking that each assistant message carries."""
    calls: list[tuple[str, str, str]] = []
    results: dict[str, ToolResult] = {}
    thinking: list[str] = []
    first_user = ""
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            thinking.append("".join(block.get("thinking", "") for block in blocks))
            calls += [(b["id"], b["name"], json.dumps(b["input"])) for b in blocks if b["type"] == "tool_use"]
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                text = _text(block.get("content", ""))
                results[block["tool_use_id"]] = ToolResult(
                    block["tool_use_id"], text, bool(block.get("is_error", False))
                )
            elif block["type"] == "text" and not first_user:
                first_user = block["text"]
    choice = body.get("tool_choice") or {}
    heard = Heard(
        face="anthropic",
        model=body["model"],
        system=_text(body.get("system", "")),
        first_user=first_user,
        turn=len(thinking),
        calls=calls,
        results=results,
        tools=[tool["name"] for tool in body.get("tools") or ()],
        forced_tool=choice.get("name") if choice.get("type") == "tool" else None,
        raw=body,
    )
    return heard, thinking


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def usage(tokens: Tokens) -> dict[str, Any]:
    """Usage as the Messages API shows it: input_tokens leaves out what was read from or written to the cache."""
    return {
        "input_tokens": tokens.uncached_input,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
        "output_tokens": tokens.output,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning},
    }


def blocks(reply: Reply, heard: Heard, key: str) -> list[dict[str, Any]]:
    """The content blocks of the reply; tool input as text under "_json" where it is not valid JSON."""
    out: list[dict[str, Any]] = []
    if reply.thinking:
        out.append({"type": "thinking", "thinking": reply.thinking, "signature": signature(reply.thinking)})
    if reply.text:
        out.append({"type": "text", "text": reply.text})
    for position, call in enumerate(reply.calls):
        raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        name = call.id or call_id(heard.turn, position, key)
        out.append({"type": "tool_use", "id": name, "name": call.name, "_json": raw})
    return out


def whole(reply: Reply, heard: Heard, key: str) -> dict[str, Any]:
    """The answer to a request without streaming."""
    content = blocks(reply, heard, key)
    for block in content:
        if "_json" in block:
            try:
                block["input"] = json.loads(block.pop("_json"))
            except ValueError:
                block["input"] = {}
    return {
        "id": f"msg_{key[:16]}_{heard.turn}",
        "type": "message",
        "role": "assistant",
        "model": heard.model,
        "content": content,
        "stop_reason": _STOPS[reply.stopped],
        "stop_sequence": None,
        "usage": usage(reply.tokens),
    }


def events(reply: Reply, heard: Heard, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The answer as (event, data) pairs, in the order of the Messages stream."""
    opening = whole(Reply(tokens=reply.tokens.model_copy(update={"output": 1, "reasoning": 0})), heard, key)
    yield "message_start", {"type": "message_start", "message": opening | {"content": [], "stop_reason": None}}
    for index, block in enumerate(blocks(reply, heard, key)):
        deltas: list[dict[str, Any]]
        if block["type"] == "thinking":
            start: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"])]
            if not reply.is_cut_in_thinking:
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": part} for part in _parts(block["text"])]
        else:
            start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in _parts(block["_json"])]
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        if not (reply.stopped == "length" and (block["type"] == "tool_use" or reply.is_cut_in_thinking)):
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
    closing = {"stop_reason": _STOPS[reply.stopped], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": closing, "usage": usage(reply.tokens)}
    yield "message_stop", {"type": "message_stop"}


def _parts(text: str, size: int = 24) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


def error(kind: str, message: str) -> dict[str, Any]:
    """An error body, the same in a response and in a stream."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_wire"}


#: HTTP status -> the error type that Anthropic gives it.
ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OVERFLOW = "prompt is too long: 1204233 tokens > 1000000 maximum"
