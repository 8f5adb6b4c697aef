"""Counts as people read them."""

from __future__ import annotations


def counted(n: int, one: str, many: str = "") -> str:
    """ "1 task", "3,000 tasks". `many`: the plural where an s is not enough."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
