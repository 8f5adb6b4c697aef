"""The workbench: identity, workspace and navigation. Pages live in review_ui/."""

from __future__ import annotations

from review_ui import frame

frame.serve()
