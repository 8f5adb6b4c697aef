"""guide."""

from __future__ import annotations
