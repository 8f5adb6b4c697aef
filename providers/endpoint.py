"""Where a model is and how it is asked; what an HTTP failure there means."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from providers.base import ModelConfigError
from providers.retry import Transient, is_transient, retry_after


@dataclass(frozen=True)
class Endpoint:
    """One model of one provider, ready to be asked. The key is in no repr.

    `name` as in settings ("anthropic/claude-…"); `model` as the provider calls it; `url` "" = the provider's own;
    `max_output` in tokens; `timeout` in seconds between two events of a stream; `reasoning` "" (leave it to the
    provider), "none", an effort, or "budget:N" tokens.
    """

    name: str
    model: str
    url: str
    key: str = field(repr=False)
    key_env: str
    reasoning: str = ""
    max_output: int = 16_000
    timeout: float = 300.0


#: How providers say, each in its own words, that the conversation is longer than the model's window.
_OVERFLOW = re.compile(
    r"context_length_exceeded|prompt is too long|maximum context length|context window|exceeds? the context"
    r"|input length and `?max_tokens`? exceed|too many (input )?tokens|context size",
    re.IGNORECASE,
)


class Overflowed(Exception):
    """The conversation does not fit into the model's window: an outcome of the trial, never retried."""


def status_failure(
    endpoint: Endpoint, status: int, body: object, headers: dict[str, str]
) -> Transient | Overflowed | ModelConfigError:
    """What an HTTP error means (status 200: an error event inside a stream), as the exception to raise.

    Transient for what may pass, ModelConfigError for what must be configured. The provider's own words can quote the
    conversation, so that only status and error type are repeated.
    """
    said = body if isinstance(body, str) else json.dumps(body, default=str)
    kind = _kind(body)
    # Some self-hosted servers say it with a 500, or inside a stream that has begun.
    if status == 413 or (status in (200, 400, 422, 500) and _OVERFLOW.search(said)):
        return Overflowed()
    if status == 200 or is_transient(status) or kind in ("overloaded_error", "rate_limit_error", "api_error"):
        where = "an error inside a 200 answer" if status == 200 else f"HTTP {status}"
        return Transient(f"{where} ({kind})" if kind else where, retry_after=retry_after(headers))
    remedies = {
        401: f"Set the environment variable {endpoint.key_env} to a valid key.",
        403: f"The key in {endpoint.key_env} may not use this model.",
        404: "Check the model's name and the endpoint in workbench.toml.",
        402: "The provider's account has no credit left.",
    }
    return ModelConfigError(
        f"the provider refused the request: HTTP {status}{f' ({kind})' if kind else ''}.",
        where=endpoint.name,
        remedy=remedies.get(
            status, "Run `python -m runtime models check` with this model to see which part it refuses."
        ),
    )


def broken_transport(failure: Exception) -> Transient:
    """A connection that could not be made, timed out or broke off."""
    return Transient(f"connection failed ({type(failure.__cause__ or failure).__name__})")


def _kind(body: object) -> str:
    inner: Any = body
    if isinstance(inner, dict) and isinstance(inner.get("error"), dict):
        inner = inner["error"]
    kind = inner.get("type") if isinstance(inner, dict) else None
    return kind if isinstance(kind, str) and re.fullmatch(r"\w{1,40}", kind) else ""
