"""What a turn costs, in USD, from its tokens by tier. Unknown is None, never 0."""

from __future__ import annotations

from tasks.settings import Price
from tasks.trials import Usage


def cost(usage: Usage, price: Price | None) -> float | None:
    """USD of one turn: each tier by its own price; reasoning tokens are part of output.

    None where no price is configured, or where a tier was used that has none.
    """
    if price is None:
        return None
    total = usage.uncached_input * price.input + usage.output * price.output
    for tokens, each in ((usage.cache_read, price.cache_read), (usage.cache_write, price.cache_write)):
        if tokens and each is None:
            return None
        total += tokens * (each or 0.0)
    return total / 1_000_000


def add(first: Usage, second: Usage) -> Usage:
    """Both together. An unknown cost makes the sum unknown."""
    known = first.cost is not None and second.cost is not None
    return Usage(
        uncached_input=first.uncached_input + second.uncached_input,
        cache_read=first.cache_read + second.cache_read,
        cache_write=first.cache_write + second.cache_write,
        output=first.output + second.output,
        reasoning=first.reasoning + second.reasoning,
        cost=(first.cost or 0.0) + (second.cost or 0.0) if known else None,
    )
