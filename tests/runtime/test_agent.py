"""The loop: what stops it, what it never does, and what is recorded before the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from providers.base import (
    ModelConfigError,
    ModelMessage,
    PairingError,
    ProviderFault,
    SystemMessage,
    ToolResult,
    ToolResults,
    UserMessage,
    check_pairing,
)
from runtime import ehr
from runtime.agent import (
    MAX_TURNS,
    SAME_BATCHES,
    SAME_CALLS,
    SAME_ERRORS,
    STEPS_WITHOUT_NEWS,
    AgentRun,
    run_agent,
    total_tokens,
)
from runtime.tools import Toolbox
from tasks.errors import EnvironmentFault
from tasks.manifest import Limits
from tasks.trials import Outcome, Usage
from tests.runtime.conftest import PATIENT, PRACTITIONER, Scripted, turn

LABS = "fhir_observation_search_labs"
ORDER: tuple[str, dict[str, Any]] = (
    "fhir_service_request_create",
    {
        "patient_reference": PATIENT,
        "code_code": "2823-3",
        "code_display": "Potassium",
        "requester_reference": PRACTITIONER,
    },
)


def read(n: int) -> tuple[str, dict[str, Any]]:
    """A read that differs from every other one."""
    return LABS, {"patient": "p-7001", "count": n + 1}


class Recorder(list[tuple[str, dict[str, Any]]]):
    def __call__(self, type: str, data: dict[str, Any]) -> None:
        self.append((type, data))

    def of(self, type: str) -> list[dict[str, Any]]:
        return [data for kind, data in self if kind == type]


@pytest.fixture
def record() -> Recorder:
    return Recorder()


def play(model: Scripted, box: Toolbox, record: Recorder, **more: Any) -> AgentRun:
    return run_agent(model, box, instruction="Please see the patient.", record=record, **more)


# ---- the ordinary way -----------------------------------------------------------------------------------------------


def test_a_run_that_ends_by_itself_is_finished_and_recorded_in_order(box: Toolbox, record: Recorder) -> None:
    run = play(Scripted([[read(1)], [ORDER]]), box, record)
    assert (run.outcome, run.turns, run.calls, run.flags) == (Outcome.finished, 3, 2, ())
    assert [kind for kind, _ in record] == ["system", "user", "model", "tool", "model", "tool", "model"]
    assert record.of("system")[0]["profile"] == "paper"
    assert record.of("user")[0]["text"] == "Please see the patient."
    assert [data["n"] for data in record.of("tool")] == [1, 2]
    assert [data["turn"] for data in record.of("tool")] == [1, 2]
    assert record.of("tool")[1]["writes"] == (1,)
    assert run.models == ("scripted-1",)


def test_parallel_calls_are_answered_in_order_in_one_message(box: Toolbox, record: Recorder) -> None:
    model = Scripted([[read(1), ("no_such_tool", {}), ORDER, (LABS, "{not json")]])
    play(model, box, record)
    answered = model.seen[1][-1]
    assert isinstance(answered, ToolResults)
    assert [result.call_id for result in answered.results] == ["t0-0", "t0-1", "t0-2", "t0-3"]
    assert [result.is_error for result in answered.results] == [False, True, False, True]
    assert len(model.seen[1]) == 4


def test_blocks_of_a_turn_come_back_unchanged(box: Toolbox, record: Recorder) -> None:
    first = turn([read(1)], text="thinking")
    model = Scripted([first])
    play(model, box, record)
    replayed = model.seen[1][2]
    assert isinstance(replayed, ModelMessage)
    assert replayed.turn is first
    assert record.of("model")[0]["blocks"] == list(first.blocks)


def test_every_event_is_recorded_before_the_next_step(box: Toolbox, session: ehr.Session) -> None:
    log: list[str] = []

    class Watched(Recorder):
        def __call__(self, type: str, data: dict[str, Any]) -> None:
            log.append(f"{type} {len(session.ledger)} {len(model.seen)}")

    model = Scripted([[ORDER, ORDER], [ORDER]])
    run_agent(model, box, instruction="x", record=Watched())
    # (event, writes in the record so far, questions asked of the model so far)
    assert log == ["system 0 0", "user 0 0", "model 0 1", "tool 1 1", "tool 2 1", "model 2 2", "tool 3 2", "model 3 3"]


def test_an_answer_without_any_tool_call_is_flagged(box: Toolbox, record: Recorder) -> None:
    run = play(Scripted([turn(text='<tool_call>{"name": "write_file"}</tool_call>')]), box, record)
    assert (run.outcome, run.flags) == (Outcome.finished, ("no tool calls",))


def test_usage_is_summed_by_tier_and_an_unknown_cost_stays_unknown(box: Toolbox, record: Recorder) -> None:
    one = Usage(uncached_input=10, cache_read=5, cache_write=2, output=7, reasoning=3, cost=0.25)
    run = play(Scripted([turn([read(1)], usage=one), turn(usage=one)]), box, record)
    assert run.usage == Usage(uncached_input=20, cache_read=10, cache_write=4, output=14, reasoning=6, cost=0.5)
    assert total_tokens(run.usage) == 48
    run = play(Scripted([turn([read(1)], usage=one), turn(usage=Usage())]), box, record)
    assert run.usage.cost is None


# ---- the four loop stops --------------------------------------------------------------------------------------------


def stopped(run: AgentRun, record: Recorder, rule: str) -> None:
    assert run.outcome is Outcome.loop_stopped
    assert run.detail.startswith(rule)
    assert [data["limit"] for data in record.of("limit")] == ["loop_stopped"]
    assert record.of("limit")[0]["detail"] == run.detail


def test_the_same_error_five_times_in_a_row_stops(box: Toolbox, record: Recorder) -> None:
    model = Scripted(lambda n: [("fhir_medication_request_create", {"patient_reference": f"{PATIENT}-{n}"})])
    run = play(model, box, record)
    stopped(run, record, "same_errors")
    assert run.calls == SAME_ERRORS


def test_another_result_in_between_starts_the_count_of_errors_anew(box: Toolbox, record: Recorder) -> None:
    model = Scripted(
        lambda n: [read(n)] if n % 5 == 4 else [("fhir_service_request_create", {"patient_reference": f"{n}"})]
    )
    assert play(model, box, record, limits=Limits(turns=30)).outcome is Outcome.turn_limit


def test_the_same_call_five_times_in_a_row_stops(box: Toolbox, record: Recorder) -> None:
    run = play(Scripted(lambda n: [read(1)]), box, record)
    stopped(run, record, "same_calls")
    assert (run.calls, run.turns) == (SAME_CALLS, SAME_CALLS)


def test_the_same_call_in_one_batch_stops_inside_it(box: Toolbox, record: Recorder) -> None:
    run = play(Scripted([[ORDER] * 12]), box, record)
    stopped(run, record, "same_calls")
    assert run.calls == SAME_CALLS
    assert len(record.of("tool")) == SAME_CALLS


def test_arguments_in_another_order_are_the_same_call(box: Toolbox, record: Recorder) -> None:
    flipped = '{"count": 2, "patient": "p-7001"}', '{"patient": "p-7001", "count": 2}'
    run = play(Scripted(lambda n: [(LABS, flipped[n % 2])]), box, record)
    stopped(run, record, "same_calls")


def test_the_same_batch_five_times_within_ten_steps_stops(box: Toolbox, record: Recorder) -> None:
    model = Scripted(lambda n: [read(1), read(2)] if n % 2 == 0 else [read(100 + n)])
    run = play(model, box, record)
    stopped(run, record, "same_batch")
    assert run.turns == 2 * SAME_BATCHES - 1


def test_the_same_batch_four_times_within_ten_steps_does_not_stop(box: Toolbox, record: Recorder) -> None:
    model = Scripted(lambda n: [read(1), read(2)] if n % 3 == 0 else [read(100 + n)])
    assert play(model, box, record, limits=Limits(turns=40)).outcome is Outcome.turn_limit


def test_fifteen_steps_without_a_new_call_stop(box: Toolbox, record: Recorder) -> None:
    # Eight different batches in turn: no batch comes five times within ten steps.
    batches = [[read(n), read((n + 1) % 8)] for n in range(8)]
    run = play(Scripted(lambda n: batches[n % 8]), box, record)
    stopped(run, record, "nothing_new")
    assert run.turns == 7 + STEPS_WITHOUT_NEWS


# ---- budgets --------------------------------------------------------------------------------------------------------


def test_a_hundred_turns_are_the_end(box: Toolbox, record: Recorder) -> None:
    run = play(Scripted(lambda n: [read(n), read(1000 + n)]), box, record)
    assert (run.outcome, run.turns, run.calls) == (Outcome.turn_limit, MAX_TURNS, 2 * MAX_TURNS)
    assert record.of("limit")[0]["limit"] == "turn_limit"


def test_the_token_budget_is_an_outcome(box: Toolbox, record: Recorder) -> None:
    model = Scripted(lambda n: turn([read(n)], usage=Usage(uncached_input=30, output=10, cost=0.0)))
    run = play(model, box, record, limits=Limits(tokens=100))
    assert (run.outcome, run.turns, run.calls) == (Outcome.token_limit, 3, 3)
    assert record.of("limit")[0]["limit"] == "token_limit"


def test_the_money_budget_is_an_outcome(box: Toolbox, record: Recorder) -> None:
    model = Scripted(lambda n: turn([read(n)], usage=Usage(cost=0.4)))
    run = play(model, box, record, limits=Limits(cost=1.0))
    assert (run.outcome, run.turns) == (Outcome.cost_limit, 3)


def test_a_money_budget_without_a_price_is_a_config_error_before_anything_is_asked(
    box: Toolbox, record: Recorder
) -> None:
    model = Scripted([[read(1)]], has_price=False)
    run = play(model, box, record, limits=Limits(cost=1.0))
    assert (run.outcome, run.turns) == (Outcome.config_error, 0)
    assert model.seen == []


def test_time_is_counted_without_waiting_for_the_provider(box: Toolbox, record: Recorder) -> None:
    now = [0.0]

    def step(n: int) -> Any:
        now[0] += 10.0
        made = turn([read(n)])
        return type(made)(made.blocks, made.calls, made.usage, made.stop, waited=9.0)

    run = play(Scripted(step), box, record, limits=Limits(seconds=3.5), clock=lambda: now[0])
    assert (run.outcome, run.turns) == (Outcome.time_limit, 4)
    assert run.waited == pytest.approx(36.0)


def test_the_last_answer_within_a_spent_budget_still_finishes(box: Toolbox, record: Recorder) -> None:
    model = Scripted([turn([read(1)], usage=Usage(output=60)), turn(usage=Usage(output=60))])
    assert play(model, box, record, limits=Limits(tokens=100)).outcome is Outcome.finished


def test_stopping_on_request_takes_effect_between_two_calls(
    box: Toolbox, record: Recorder, session: ehr.Session
) -> None:
    run = play(Scripted([[ORDER, ORDER, ORDER]]), box, record, cancelled=lambda: len(session.ledger) >= 2)
    assert (run.outcome, run.calls) == (Outcome.cancelled, 2)
    assert len(session.ledger) == 2


# ---- what a provider can do -----------------------------------------------------------------------------------------


def test_nothing_of_a_truncated_turn_is_carried_out_and_the_model_is_told(
    box: Toolbox, record: Recorder, session: ehr.Session
) -> None:
    model = Scripted([turn([ORDER, ("write_file", '{"file_path": "n.md", "cont')], stop="length"), [read(1)]])
    run = play(model, box, record)
    assert session.ledger == ()
    answered = model.seen[1][-1]
    assert isinstance(answered, ToolResults)
    assert len(answered.results) == 2
    assert all(result.is_error for result in answered.results)
    assert "cut off" in answered.note
    assert (run.outcome, run.calls, run.flags) == (Outcome.finished, 1, ("1 truncated turns",))
    assert record.of("limit")[0]["limit"] == "output_limit"


def test_a_truncated_turn_without_calls_is_told_so_too(box: Toolbox, record: Recorder) -> None:
    model = Scripted([turn(stop="length", text="I think"), [read(1)]])
    assert play(model, box, record).outcome is Outcome.finished
    assert isinstance(model.seen[1][-1], UserMessage)


def test_a_model_that_is_only_ever_truncated_is_stopped(box: Toolbox, record: Recorder) -> None:
    run = play(Scripted(lambda n: turn([ORDER], stop="length")), box, record)
    assert (run.outcome, run.turns) == (Outcome.loop_stopped, SAME_ERRORS)


@pytest.mark.parametrize(("stop", "outcome"), [("refused", Outcome.refused), ("overflow", Outcome.context_overflow)])
def test_refusal_and_overflow_end_the_run_as_themselves(
    box: Toolbox, record: Recorder, session: ehr.Session, stop: str, outcome: Outcome
) -> None:
    model = Scripted([[read(1)], turn([ORDER], stop=stop)])
    run = play(model, box, record)
    assert (run.outcome, run.turns, len(model.seen)) == (outcome, 2, 2)
    assert session.ledger == ()


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (ProviderFault("The provider is overloaded."), Outcome.provider_error),
        (ModelConfigError("The key is refused."), Outcome.config_error),
    ],
)
def test_a_provider_that_does_not_answer_is_no_fault_of_the_agent(
    box: Toolbox, record: Recorder, fault: Exception, outcome: Outcome
) -> None:
    run = play(Scripted(lambda n: fault if n else [read(1)]), box, record)
    assert (run.outcome, run.detail, run.turns) == (outcome, str(fault), 1)
    assert record.of("error")[0]["outcome"] == outcome


def test_an_ehr_that_goes_away_is_an_environment_error_and_the_create_is_not_repeated(
    box: Toolbox, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def gone(body: Mapping[str, Any], *, call: int | None = None) -> Any:
        tried.append(call)
        raise EnvironmentFault("The EHR does not answer.")

    monkeypatch.setattr(box.session, "create", gone)
    run = play(Scripted([[ORDER], [ORDER]]), box, record)
    assert (run.outcome, tried) == (Outcome.environment_error, [1])


# ---- the pairing invariant ------------------------------------------------------------------------------------------


def _results(*ids: str) -> ToolResults:
    return ToolResults(tuple(ToolResult(id, "{}") for id in ids))


_ASKED = ModelMessage(turn([read(1), read(2)]))
_START = (SystemMessage("s"), UserMessage("u"))


@pytest.mark.parametrize(
    "tail",
    [
        (_ASKED,),
        (_ASKED, UserMessage("and?")),
        (_ASKED, _results("x-0")),
        (_ASKED, _results("x-1", "x-0")),
        (_ASKED, _results("x-0", "x-1", "x-2")),
        (_ASKED, _results("x-0"), _results("x-1")),
        (_results("x-0"),),
    ],
)
def test_a_conversation_that_is_not_paired_is_never_sent(tail: Sequence[Any]) -> None:
    with pytest.raises(PairingError):
        check_pairing((*_START, *tail))


def test_a_paired_conversation_passes() -> None:
    check_pairing((*_START, _ASKED, _results("x-0", "x-1"), ModelMessage(turn()), UserMessage("more")))


def test_a_token_limit_on_a_model_that_reports_none_is_a_fault_of_the_settings(box: Toolbox) -> None:
    from dataclasses import replace

    uncounted = [replace(turn([read(n)], prefix=f"t{n}"), sent={"usage": "not reported"}) for n in range(3)]
    limited = play(Scripted(uncounted), box, Recorder(), limits=Limits(tokens=100))
    assert (limited.outcome, limited.turns) == (Outcome.config_error, 1)
    assert "reports no tokens" in limited.detail
    free = play(Scripted(uncounted), box, Recorder())
    assert (free.outcome, free.flags) == (Outcome.finished, ("3 turns without reported tokens",))
