"""The paper's table from counts: weakness 19 of the reference, that figures follow other formulas than stated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graders.metrics import estimate
from graders.paper import as_text, counts_of, published, reproduce
from tasks.errors import UsageError


def test_all_printed_figures_of_all_12_models_are_rebuilt() -> None:
    found = reproduce(published())
    assert len(found) == 36
    assert [(one.model, one.figure) for one in found if not one.matches] == []


def test_the_formula_that_the_paper_states_does_not_print_its_figures() -> None:
    # 1 - C(n-c,k)/C(n,k) for pass@3 fits none of the 12; the two conventions of one name are kept apart.
    stated = [one for one in reproduce(published()) if one.figure == "pass@3"]
    assert [one.model for one in stated if "1 - C(n-c,k)/C(n,k)" in one.fits] == []
    for row in published().models:
        unbiased = estimate("pass@3", "1 - C(n-c,k)/C(n,k)", 3, counts_of(row)).value
        assert round(100 * (unbiased or 0)) == row.unbiased_pass_at_3


def test_the_table_is_the_one_of_the_shared_page() -> None:
    page = Path(__file__).resolve().parents[3] / "shared" / "paper" / "published-results.json"
    if not page.is_file():
        pytest.skip("../shared/paper is not on this machine")
    assert json.loads(page.read_text("utf-8")) == json.loads(
        (Path(__file__).resolve().parents[2] / "graders/published/physicianbench-v1.json").read_text("utf-8")
    )


@pytest.mark.parametrize(
    ("column", "value", "figure"),
    [("pass_at_1", 46.4, "pass@1"), ("pass_at_3", 62.0, "pass@3"), ("pass_hat_3", 34.7, "pass^3")],
)
def test_another_figure_is_a_mismatch_that_names_it(tmp_path: Path, column: str, value: float, figure: str) -> None:
    raw = json.loads(published().model_dump_json())
    raw["models"][0][column] = value
    path = tmp_path / "other.json"
    path.write_text(json.dumps(raw), "utf-8")
    found = reproduce(published(path))
    assert [(one.model, one.figure) for one in found if not one.matches] == [("GPT-5.5", figure)]
    assert "MISMATCH" in as_text(found)
    assert "35 of 36" in as_text(found)


def test_a_file_that_is_no_table_is_refused_in_one_message(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        published(tmp_path / "absent.json")
    (tmp_path / "bad.json").write_text('{"models": []}', "utf-8")
    with pytest.raises(UsageError, match="not of the known shape"):
        published(tmp_path / "bad.json")
    row = published().models[0].model_copy(update={"tasks_with_passes": (60, 30, 20)})
    with pytest.raises(UsageError, match="no split of 100"):
        counts_of(row)
