"""What grading loads: tables and plots belong to reports, provider SDKs to the first question."""

from __future__ import annotations

import subprocess
import sys


def test_grading_imports_no_tables_and_no_sdk() -> None:
    code = (
        "import sys, graders.grade, graders.regrade, graders.judge, graders.metrics, graders.paper\n"
        "print([name for name in ('pandas', 'pint', 'altair', 'anthropic', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
