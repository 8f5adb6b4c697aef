"""The Models page: what is configured and what a check found; never a key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from runtime.models import Checked, Finding, _place
from tasks.stored import write_whole
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """\
[model."anthropic/one"]
data_class = "dua"
price = {input = 3.0, output = 15.0}

[model."local/two"]
"""


def opened() -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.run()
    test.switch_page("review_ui/pages/models.py")
    test.run()
    assert not test.exception
    return test


def said(test: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in test.get("html"))


def test_without_a_model_the_page_says_what_to_do(workspace: Path) -> None:
    assert "No model is configured" in said(opened())


def test_it_shows_key_price_clearance_and_findings_and_no_key(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-MARKED-9")
    workspace.mkdir(parents=True)
    (workspace / "workbench.toml").write_text(SETTINGS)
    here = Workspace(workspace)
    finding = Finding(code="no call", what="the model <i>called</i> no tool.", remedy="Use another.", blocks=True)
    checked = Checked(model="local/two", at=datetime.now(UTC), settings="old", findings=(finding,))
    place = _place(here, "local/two")
    place.parent.mkdir(parents=True)
    write_whole(place, checked.model_dump_json())
    shown = said(opened())
    assert "set in ANTHROPIC_API_KEY" in shown
    assert "sk-MARKED" not in shown
    assert "USD 3 in, 15 out" in shown
    assert "data under an agreement" in shown
    assert "Settings changed since the check" in shown
    assert "&lt;i&gt;called&lt;/i&gt; no tool. Use another." in shown
    assert "<i>called" not in shown


def test_wrong_settings_are_said_on_the_page(workspace: Path) -> None:
    here = opened()
    (workspace / "workbench.toml").write_text("nonsense = 1\n")
    here.run()
    assert not here.exception
    assert "nonsense" in said(here)
