"""Every row of what goes wrong with judges, over HTTP against the scripted provider."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graders.evidence import Evidence
from providers.wire import Fault, Reply, Script, ToolUse
from tasks.errors import DeclarationError
from tasks.package import load
from tests.graders.judging.conftest import GOOD_NOTE, RUBRIC, Bench, judge_checkpoint, said
from tests.tasks.packages import TINY_NOTE

Benches = Callable[..., Bench]
Notes = Callable[..., Evidence]
PASS = said("pass", "Apixaban 5 mg by mouth twice daily", "weight 84 kg")
PARTIAL = said("partial", "Apixaban 5 mg by mouth twice daily")
FAIL = said("fail")
DOWN = Reply(faults=(Fault(kind="status", status=529, times=99),))
PROSE = Reply(text="I would say it passes.")


def test_a_verdict_with_its_quotations_in_one_request(bench: Benches, note: Notes) -> None:
    wire = bench(PASS)
    ruling = wire.judge().rule(judge_checkpoint(), note())
    assert (ruling.result, ruling.reason) == ("pass", "As quoted.")
    assert [(cite.file, cite.text) for cite in ruling.cites if cite.kind == "quote"] == [
        (TINY_NOTE, "Apixaban 5 mg by mouth twice daily"),
        (TINY_NOTE, "weight 84 kg"),
    ]
    (heard,) = wire.server.heard
    assert (heard.forced_tool, list(heard.tools)) == ("answer", ["answer"])
    assert ruling.judging is not None
    assert (ruling.judging.model, ruling.judging.answered, ruling.judging.votes) == (wire.name, "scripted", ("pass",))


def test_rubric_evidence_and_answer_stand_apart(bench: Benches, note: Notes) -> None:
    wire = bench(PASS)
    wire.judge().rule(judge_checkpoint(), note())
    asked = wire.asked[0]
    assert asked.index(RUBRIC["pass"]) < asked.index("RECORD Observation/o-creatinine") < asked.index("=== ANSWER")
    assert "1.1" in asked
    assert "| Mr Ostrander stopped warfarin in July" in asked
    assert f"| {GOOD_NOTE}" in asked


# ---- unparsable -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        PROSE,
        Reply(calls=(ToolUse(name="answer", arguments='{"verdict": "pa'),)),
        said("PASS", "weight 84 kg"),
        said("pass"),
        Reply(stop="refusal"),
    ],
    ids=["prose", "half", "another level", "no quotation", "refusal"],
)
def test_what_cannot_be_read_is_an_error_after_bounded_retries_and_never_a_fail(
    bench: Benches, note: Notes, reply: Reply
) -> None:
    wire = bench(player=Script([reply] * 9))
    ruling = wire.judge().rule(judge_checkpoint(), note())
    assert ruling.result == "error"
    assert len(wire.server.requests) <= 3
    assert ruling.judging is not None
    assert ruling.judging.votes == ("failed",)
    assert ruling.judging.usage.cost is not None  # what was spent on useless answers is still counted


def test_an_unreadable_verdict_is_mended_once_asked(bench: Benches, note: Notes) -> None:
    assert bench(player=Script([PROSE, PASS])).judge().rule(judge_checkpoint(), note()).result == "pass"


def test_partial_is_no_choice_where_the_rubric_has_none(bench: Benches, note: Notes) -> None:
    two = judge_checkpoint(rubric={"pass": RUBRIC["pass"], "fail": RUBRIC["fail"]})
    assert bench(player=Script([PARTIAL] * 9)).judge().rule(two, note()).result == "error"


# ---- flips ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "result", "told"),
    [
        ([PASS, FAIL, PASS], "pass", "2 pass, 1 fail"),
        ([FAIL, PASS, FAIL], "fail", "1 pass, 2 fail"),
        ([PASS, FAIL], "ungraded", "no majority"),
        ([PASS, PARTIAL, FAIL], "ungraded", "no majority"),
        ([PASS, PASS, FAIL, FAIL, PARTIAL], "ungraded", "no majority"),
        ([PASS, PROSE, PASS], "pass", "1 juror failed and is left out"),
        ([PASS, PROSE, FAIL], "ungraded", "no majority"),
        ([PASS, PROSE, PROSE], "error", "2 of 3 jurors failed"),
    ],
)
def test_votes_for_passes_and_fails_alike(
    bench: Benches, note: Notes, votes: list[Reply], result: str, told: str
) -> None:
    ruling = bench(player=_ByOrder(votes)).judge(votes=len(votes)).rule(judge_checkpoint(), note())
    assert ruling.result == result
    assert told in ruling.reason
    assert ruling.judging is not None
    assert len(ruling.judging.votes) == len(votes)


class _ByOrder:
    """The n-th first turn gets the n-th reply; every later turn of any conversation is prose.

    The server also asks again what it had said at earlier turns (without `raw`): that takes no reply from the list.
    """

    def __init__(self, replies: list[Reply]) -> None:
        self.replies, self.guard = list(replies), threading.Lock()

    def reply(self, heard: Any) -> Reply:
        with self.guard:
            return PROSE if heard.turn or not heard.raw or not self.replies else self.replies.pop(0)


def test_flips_are_counted(bench: Benches, note: Notes) -> None:
    ruling = bench(PASS, FAIL, PASS, PASS, FAIL).judge(votes=5).rule(judge_checkpoint(), note())
    assert ruling.judging is not None
    assert (len(ruling.judging.counted), ruling.judging.dissenting) == (5, 2)


# ---- evidence -------------------------------------------------------------------------------------------------------


def test_an_invented_quotation_voids_the_verdict_and_is_not_asked_for_again(bench: Benches, note: Notes) -> None:
    wire = bench(said("pass", "Apixaban 10 mg by mouth twice daily"), PASS)
    ruling = wire.judge().rule(judge_checkpoint(), note())
    assert (ruling.result, len(wire.server.requests)) == ("error", 1)
    assert "a quotation does not stand in the text" in ruling.reason


def test_words_of_the_answer_do_not_pass_as_words_of_the_record(bench: Benches, note: Notes) -> None:
    wire = bench(said("fail", "weight 84 kg", source="record"))
    assert wire.judge().rule(judge_checkpoint(), note()).result == "error"


def test_white_space_and_typographic_quotes_do_not_matter(bench: Benches, note: Notes) -> None:
    text = (
        "He said:\n\u201cno more   blood\ntests\u201d \u2014 apixaban 5 mg twice daily, creatinine 1.1, weight 84 kg."
    )
    wire = bench(said("pass", '"no more blood tests" - apixaban 5 mg'))
    assert wire.judge().rule(judge_checkpoint(), note(text)).result == "pass"


def test_a_fail_for_missing_words_needs_no_quotation(bench: Benches, note: Notes) -> None:
    assert bench(FAIL).judge().rule(judge_checkpoint(), note("See you in spring.")).result == "fail"


# ---- forced choice --------------------------------------------------------------------------------------------------


def test_a_borderline_answer_goes_to_a_physician(bench: Benches, note: Notes) -> None:
    ruling = bench(said("needs_review", reason="Weight is implied.")).judge().rule(judge_checkpoint(), note())
    assert ruling.result == "ungraded"
    assert "needs review" in ruling.reason
    assert "Weight is implied." in ruling.reason


# ---- empty rubric, no evidence --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        {"rubric": {"pass": " ", "fail": "Nothing is named."}},
        {"rests_on": ()},
        {"rests_on": ("Observation/not-there",)},
        {"rests_on": ('DocumentReference/n-1#"took warfarin gladly"',)},
    ],
    ids=["blank criterion", "no evidence", "lost evidence", "changed evidence"],
)
def test_no_criteria_or_no_evidence_is_an_error_before_anything_is_asked(
    bench: Benches, note: Notes, keys: dict[str, Any]
) -> None:
    wire = bench(PASS)
    with pytest.raises(DeclarationError):
        wire.judge().rule(judge_checkpoint(**keys), note())
    assert wire.server.requests == []


# ---- stale cache ----------------------------------------------------------------------------------------------------


def test_the_same_question_is_asked_once_and_costs_nothing_again(bench: Benches, note: Notes) -> None:
    wire = bench(PASS, FAIL)
    first = wire.judge().rule(judge_checkpoint(), note())
    again = wire.judge().rule(judge_checkpoint(), note())
    assert len(wire.server.requests) == 1
    assert first.judging is not None
    assert again.judging is not None
    assert first.judging.usage.cost == pytest.approx(0.002)  # 1,000 x 1 + 100 x 10 millionths
    assert (again.judging.cached, again.judging.usage.cost) == (True, 0.0)
    assert (again.result, again.reason, again.cites) == (first.result, first.reason, first.cites)


def test_whatever_the_verdict_depends_on_makes_it_another_question(
    bench: Benches, note: Notes, tiny_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = bench(PASS)
    keys = [wire.judge().key(judge_checkpoint(), note())]
    keys.append(wire.judge().key(judge_checkpoint(rubric=RUBRIC | {"fail": "Neither number is named."}), note()))
    keys.append(wire.judge().key(judge_checkpoint(title="Another point"), note()))
    keys.append(wire.judge().key(judge_checkpoint(rests_on=("Observation/o-weight",)), note()))
    keys.append(wire.judge().key(judge_checkpoint(), note(GOOD_NOTE + "!")))
    keys.append(wire.judge(votes=3).key(judge_checkpoint(), note()))
    keys.append(wire.judge(reasoning="high").key(judge_checkpoint(), note()))
    keys.append(wire.judge(endpoint="http://127.0.0.1:9/").key(judge_checkpoint(), note()))
    other = wire.judge()
    other.name = "other/model"
    keys.append(other.key(judge_checkpoint(), note()))
    # Evidence: another value in the chart under the same reference.
    files = dict(tiny_task.files)
    name = "chart/Observation.ndjson"
    files[name] = files[name].replace(b'"value": 1.1', b'"value": 1.7').replace(b'"value":1.1', b'"value":1.7')
    assert files[name] != tiny_task.files[name]
    changed = load(files, where=tiny_task.id)
    keys.append(wire.judge().key(judge_checkpoint(), note(GOOD_NOTE, changed)))
    monkeypatch.setattr("graders.judging.prompt.RULES", "Other rules.")
    keys.append(wire.judge().key(judge_checkpoint(), note()))
    assert len(set(keys)) == len(keys)


def test_an_error_is_not_remembered_and_a_broken_cache_file_is_asked_anew(bench: Benches, note: Notes) -> None:
    wire = bench(said("pass", "never written"), PASS)
    assert wire.judge().rule(judge_checkpoint(), note()).result == "error"
    assert wire.judge().rule(judge_checkpoint(), note()).result == "pass"
    (kept,) = wire.cache.rglob("*.json")
    assert json.loads(kept.read_text("utf-8"))["data_class"] == "open"
    kept.write_text('{"data_class": "open", "rul', "utf-8")
    assert wire.judge().rule(judge_checkpoint(), note()).result == "pass"
    assert len(wire.server.requests) == 3


# ---- self-judging ---------------------------------------------------------------------------------------------------


def test_the_model_under_test_does_not_judge_itself(bench: Benches, note: Notes) -> None:
    wire = bench(PASS)
    ruling = wire.judge().rule(judge_checkpoint(), note(), agent=wire.name)
    assert (ruling.result, wire.server.requests) == ("ungraded", [])
    assert "does not judge itself" in ruling.reason
    assert wire.judge().rule(judge_checkpoint(), note(), agent="other/model").result == "pass"


# ---- down, not cleared ----------------------------------------------------------------------------------------------


def test_a_judge_that_is_down_gives_an_error_after_a_bounded_wait(bench: Benches, note: Notes) -> None:
    wire = bench(DOWN)
    judge = wire.judge()
    ruling = judge.rule(judge_checkpoint(), note())
    assert ruling.result == "error"
    assert "529" in ruling.reason
    assert sum(wire.waits) <= 5
    asked = len(wire.server.requests)
    assert judge.rule(judge_checkpoint(title="Next"), note()).result == "error"
    assert len(wire.server.requests) == asked  # left alone for a while


def test_nobody_there_at_all(bench: Benches, note: Notes) -> None:
    wire = bench(PASS)
    assert wire.judge(endpoint="http://127.0.0.1:9/v1", budget=0.0).rule(judge_checkpoint(), note()).result == "error"


def test_an_overload_passes_by_itself(bench: Benches, note: Notes) -> None:
    wire = bench(said("pass", "weight 84 kg", faults=(Fault(kind="status", status=429, times=2),)))
    assert wire.judge().rule(judge_checkpoint(), note()).result == "pass"
    assert len(wire.waits) == 2


@pytest.mark.parametrize("key", ["", "wrong-key"])
def test_a_missing_or_refused_key_is_an_error(bench: Benches, note: Notes, key: str) -> None:
    wire = bench(PASS)
    judge = wire.judge(key=key)
    if key == "":
        judge._settings = judge._settings.model_copy(update={"endpoint": ""})
    assert judge.rule(judge_checkpoint(), note()).result == "error"


def test_text_of_another_data_class_is_not_sent(bench: Benches, note: Notes, tiny_task: Any) -> None:
    wire = bench(PASS)
    phi = replace(tiny_task, meta=tiny_task.meta.model_copy(update={"data_class": "phi"}))
    ruling = wire.judge().rule(judge_checkpoint(), note(GOOD_NOTE, phi))
    assert (ruling.result, wire.server.requests) == ("ungraded", [])
    assert wire.judge(data_class="phi").rule(judge_checkpoint(), note(GOOD_NOTE, phi)).result == "pass"


# ---- cost -----------------------------------------------------------------------------------------------------------


def test_the_cost_of_all_jurors_is_summed_and_unknown_without_a_price(bench: Benches, note: Notes) -> None:
    wire = bench(PASS)
    three = wire.judge(votes=3).rule(judge_checkpoint(), note()).judging
    unpriced = wire.judge(votes=2, price=None).rule(judge_checkpoint(), note()).judging
    assert three is not None
    assert unpriced is not None
    assert three.usage.cost == pytest.approx(0.006)
    assert three.usage.output == 300
    assert unpriced.usage.cost is None
