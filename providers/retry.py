"""The one retry layer. The SDKs' own retries are off; nothing else in the project waits for a provider.

A request is tried again after HTTP 408, 409, 425, 429 and every 5xx, after a broken connection or stream, and after an
error inside a 200. `Retry-After` is honoured whole; without it, or with 0, the wait doubles, with jitter. The budget is
seconds of waiting, not tries: a Retry-After that does not fit into what is left ends the trial at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from providers.base import ProviderFault

T = TypeVar("T")

RETRIED = frozenset({408, 409, 425, 429})


class Transient(Exception):
    """A failure that may pass: `kind` in words, `retry_after` in seconds where the server said so."""

    def __init__(self, kind: str, *, retry_after: float | None = None) -> None:
        super().__init__(kind)
        self.kind, self.retry_after = kind, retry_after


def is_transient(status: int) -> bool:
    """Whether an HTTP status is worth another try."""
    return status in RETRIED or status >= 500


def retry_after(headers: dict[str, str] | None, now: float | None = None) -> float | None:
    """Seconds to wait from a Retry-After header (seconds or an HTTP date), or from retry-after-ms; None if absent."""
    headers = {key.lower(): value for key, value in (headers or {}).items()}
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        said = headers.get("retry-after")
        if said is None:
            return None
        try:
            return max(0.0, float(said))
        except ValueError:
            return max(0.0, parsedate_to_datetime(said).timestamp() - (time.time() if now is None else now))
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class RetryPolicy:
    """`budget`, `first` and `longest` in seconds: all waiting for one request; the first wait; the cap of one wait."""

    budget: float = 600.0
    first: float = 1.0
    longest: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random


@dataclass(frozen=True)
class Retried:
    """What the retries cost: how many there were, and seconds waited between tries."""

    tries: int
    waited: float
    kinds: tuple[str, ...]


def with_retries(send: Callable[[], T], policy: RetryPolicy, *, model: str) -> tuple[T, Retried]:
    """`send()` until it answers or the budget is spent.

    Raises ProviderFault, which names the model, the last failure and the tries; what `send` raises besides Transient
    goes through.
    """
    waited, kinds = 0.0, list[str]()
    while True:
        try:
            return send(), Retried(len(kinds) + 1, waited, tuple(kinds))
        except Transient as failure:
            kinds.append(failure.kind)
            ceiling = min(policy.longest, policy.first * 2.0 ** (len(kinds) - 1))
            # Not before the server says, nor at once where it says 0: that would be for ever.
            wait = max(failure.retry_after or 0.0, ceiling * (0.5 + policy.draw() / 2))
            if waited + wait > policy.budget:
                asked = f" and asks to wait {wait:.0f} s" if failure.retry_after is not None else ""
                raise ProviderFault(
                    f"the provider failed {len(kinds)} times, last: {failure.kind}{asked}; "
                    f"the retry budget is {policy.budget:.0f} s",
                    where=model,
                    remedy="Run `runtime resume` later: what is finished stays.",
                ) from None
            policy.sleep(wait)
            waited += wait
