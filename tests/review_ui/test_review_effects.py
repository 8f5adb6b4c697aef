"""What a grader change would do, without a page: which checkpoints it touches, runs counted, an answer that is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from review_ui.reviewing import effect_view, effects
from review_ui.reviewing.effects import Effect, Flip
from runtime.trial import run_trial
from tasks.package import Task, load
from tasks.stored import Batch, StoredTrial
from tasks.trials import TrialKey
from tests.tasks.packages import TINY_ID, tiny_files


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    """Two runs of the reference plan and one of an agent that does nothing."""
    task = changed()
    made = Batch.create(tmp_path / "runs", "a")
    for agent, run in (("oracle", 1), ("oracle", 2), ("noop", 1)):
        run_trial(task, TrialKey(task=TINY_ID, agent=agent, run=run), made.path)
    return made


def changed(path: str = "", old: bytes = b"", new: bytes = b"") -> Task:
    files = tiny_files()
    if path:
        assert files[path].count(old) >= 1
        files[path] = files[path].replace(old, new)
    return load(files, where=TINY_ID)


def trials(batch: Batch, task: Task) -> list[StoredTrial]:
    return effects.stored([batch], task)[0]


def test_a_declaration_touches_its_checkpoint_and_code_those_that_it_judges() -> None:
    before = changed()
    assert effects.touched(before, changed("checkpoints.toml", b'dose = "5 mg"', b'dose = "2.5 mg"'), []) == ("cp2",)
    code = changed("checkpoints.py", b"def ", b"# another line\ndef ")
    assert effects.touched(before, code, []) == ("cp3",)
    example = next(path for path in before.examples if path in before.checkpoints[1].must_match)
    assert effects.touched(before, before, [example]) == ("cp2",)
    assert effects.touched(before, before, ["instruction.md"]) == ()


def test_runs_that_came_to_the_same_are_one_row_and_flips_stand_first(batch: Batch) -> None:
    before, after = changed(), changed("checkpoints.toml", b'dose = "5 mg"', b'dose = "2.5 mg"')
    found = effects.effect(before, after, ("cp2",), trials(batch, before))
    assert (found.trials, found.count("pass", "fail"), found.count("fail", "fail")) == (3, 2, 1)
    first, second = found.rows
    assert (first.who, first.runs, first.before, first.after, first.flips) == ("oracle", 2, "pass", "fail", True)
    assert "apixaban" in first.ordered
    assert "2.5 mg" in first.why
    assert "MedicationRequest/" not in first.why
    assert (second.who, second.runs, second.ordered, second.flips) == ("noop", 1, "nothing", False)
    assert effects.parsed(effects.dump(found)) == found


def test_what_binds_a_trial_may_change_its_result_while_every_verdict_stays(batch: Batch) -> None:
    before = changed()
    place = tiny_files()["checkpoints.toml"].index(b'id = "cp2"')
    text = tiny_files()["checkpoints.toml"]
    line = next(one for one in text[place:].split(b"\n") if one.startswith(b"criticality"))
    other = b'criticality = "optional"'
    files = tiny_files()
    files["checkpoints.toml"] = text[:place] + text[place:].replace(line, other, 1)
    found = effects.effect(before, load(files, where=TINY_ID), ("cp2",), trials(batch, before))
    assert found.flipped == ()
    # The function of cp3 is not of the suite and ungraded: of a trial as a whole nothing is said either way.
    assert found.whole == ()


def test_a_trial_that_lacks_nothing_but_what_no_longer_binds_passes_as_a_whole(tmp_path: Path) -> None:
    files = tiny_files()
    text = files["checkpoints.toml"]
    files["checkpoints.toml"] = text = text[: text.index(b'[[checkpoint]]\nid = "cp3"')]
    del files["checkpoints.py"]
    plan = "solution/apixaban/actions.jsonl"
    calls = files[plan].splitlines(keepends=True)
    files[plan] = b"".join(call for call in calls if b"fhir_medication_request_create" not in call)
    before = load(files, where=TINY_ID)
    made = Batch.create(tmp_path / "runs", "b")
    run_trial(before, TrialKey(task=TINY_ID, agent="oracle", run=1), made.path)
    assert text.count(b'criticality = "critical"') == 1
    files["checkpoints.toml"] = text.replace(b'criticality = "critical"', b'criticality = "optional"')
    found = effects.effect(before, load(files, where=TINY_ID), ("cp2",), trials(made, before))
    assert [(row.checkpoint, row.before, row.after) for row in found.rows] == [("cp2", "fail", "fail")]
    assert [(row.checkpoint, row.before, row.after) for row in found.whole] == [("", "fail", "pass")]


def test_trials_of_another_version_are_left_out_and_counted(batch: Batch) -> None:
    other = changed("instruction.md", b"Please", b"Kindly")
    assert effects.stored([batch], other) == ([], 3)
    card = effect_view.card(Effect(0, 3, 0, (), (), ()), {})
    assert "3 trials saw another version of the task" in card
    assert "No trial of this task is stored yet" in effect_view.card(Effect(0, 0, 0, (), (), ()), {})


def test_text_of_a_trial_is_shown_as_text() -> None:
    row = Flip("<b>agent</b>", "<script>x</script>", "cp1", "fail", "pass", "<img src=x>")
    card = effect_view.card(Effect(1, 0, 0, (row,), (), ()), {"cp1": "One"})
    assert "<script>" not in card
    assert "<img" not in card
    assert "&lt;b&gt;agent&lt;/b&gt;" in card
