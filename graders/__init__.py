"""What an agent did, judged: evidence, orders, facts seen, reports."""

from __future__ import annotations

from graders.evidence import Evidence
from graders.grade import grade
from graders.version import VERSION

__all__ = ["VERSION", "Evidence", "grade"]
