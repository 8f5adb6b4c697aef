"""What every command line has in common: help that reads well in a plain terminal of 80 columns."""

import os
import subprocess
import sys

import pytest

PACKAGES = ("tasks", "runtime", "graders", "authoring")


@pytest.mark.parametrize("package", PACKAGES)
def test_help_is_plain_and_tells_every_command_in_one_whole_line(package: str) -> None:
    got = subprocess.run(
        [sys.executable, "-m", package, "--help"],
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert got.isascii(), "boxes and colors are for nobody's script"
    assert "0 ok, 1 found faults, 2 usage, 3 environment" in got
    commands = got.split("Commands:\n")[1].splitlines()
    assert len(commands) >= 6
    assert [line for line in commands if line.endswith("...")] == [], "cut off: its first sentence is too long"
