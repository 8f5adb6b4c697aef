"""What the real providers refuse, refused here too: unpaired tools, changed thinking, missing fields."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

#: Only makes a signature that a client cannot guess; nothing secret.
_SALT = "physicianbench-wire"


class Refused(Exception):
    """A request that the provider answers with an HTTP error. `kind` is the provider's error type."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


def signature(thinking: str) -> str:
    """The signature that a thinking block carries; it must come back unchanged."""
    return base64.b64encode(hashlib.sha256((_SALT + thinking).encode()).digest()).decode()


def call_id(turn: int, position: int, key: str) -> str:
    """A tool call id that is the same whenever the same request is answered again."""
    return f"toolu_{hashlib.sha256(f'{key}/{turn}/{position}'.encode()).hexdigest()[:20]}"


def check_anthropic(body: Mapping[str, Any]) -> None:
    """Refuses what the Messages API refuses. Raises Refused."""
    for name in ("model", "messages", "max_tokens"):
        if name not in body:
            raise _bad(f"{name}: Field required")
    messages = body["messages"]
    if not messages or messages[0].get("role") != "user":
        raise _bad("messages: first message must use the user role")
    waiting: list[str] = []
    for index, message in enumerate(messages):
        blocks = _blocks(message)
        if message["role"] == "assistant":
            if waiting:
                raise _bad(_unanswered(index - 1, waiting))
            _check_thinking(index, blocks)
            if any(block.get("type") == "text" and not block.get("text", "").strip() for block in blocks):
                raise _bad(f"messages.{index}: text content blocks must be non-empty")
            waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
            continue
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if waiting and sorted(results) != sorted(waiting):
            missing = [call for call in waiting if call not in results]
            raise _bad(_unanswered(index, missing or waiting))
        if not waiting and results:
            raise _bad(f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {results[0]}")
        kinds = [block.get("type") for block in blocks]
        if results and kinds[: len(results)] != ["tool_result"] * len(results):
            raise _bad(f"messages.{index}: `tool_result` blocks must come first")
        waiting = []
    if waiting:
        raise _bad(_unanswered(len(messages), waiting))


def check_openai(body: Mapping[str, Any]) -> None:
    """Refuses what a chat-completions endpoint refuses. Raises Refused."""
    for name in ("model", "messages"):
        if name not in body:
            raise Refused(400, "invalid_request_error", f"Missing required parameter: '{name}'.")
    waiting: list[str] = []
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                raise Refused(
                    400,
                    "invalid_request_error",
                    f"messages[{index}]: 'tool' must follow an assistant message with 'tool_calls'.",
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Refused(
                400, "invalid_request_error", f"tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        if message["role"] == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            thinking = message.get("reasoning_content")
            sent = message.get("reasoning_signature")
            if (thinking or sent) and sent != signature(thinking or ""):
                raise Refused(400, "invalid_request_error", f"messages[{index}]: reasoning fields were changed.")
    if waiting:
        raise Refused(
            400, "invalid_request_error", f"tool_call_ids did not have response messages: {', '.join(waiting)}"
        )


def check_thinking_returned(sent: Sequence[str], returned: Sequence[str]) -> None:
    """Every assistant message that was sent with thinking must come back with it. Raises Refused."""
    for turn, (want, got) in enumerate(zip(sent, returned, strict=False)):
        if want and want != got:
            raise _bad(f"assistant message {turn}: Expected `thinking` as it was sent, but found something else")


def _blocks(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []


def _check_thinking(index: int, blocks: Sequence[Mapping[str, Any]]) -> None:
    for block in blocks:
        if block.get("type") == "thinking" and block.get("signature") != signature(block.get("thinking", "")):
            raise _bad(
                f"messages.{index}: `thinking` blocks in the latest assistant message cannot be modified: "
                "invalid `signature`"
            )


def _unanswered(index: int, calls: Sequence[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}"
    )


def _bad(message: str) -> Refused:
    return Refused(400, "invalid_request_error", message)
