"""The app over a folder of test packages (TASKS), instead of over the suite."""

from __future__ import annotations

import os
from pathlib import Path

from review_ui import frame
from tasks.package import FolderSource

_SOURCE = FolderSource(Path(os.environ["TASKS"]))
frame.source = lambda: _SOURCE
frame.serve()
