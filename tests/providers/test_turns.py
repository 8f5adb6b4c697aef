"""Every row of field/providers.md, over HTTP, in both wire formats."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from providers.base import (
    DataClassRefused,
    Message,
    ModelConfigError,
    ModelMessage,
    PairingError,
    ProviderFault,
    SystemMessage,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    UserMessage,
    whole_text,
)
from providers.chat import endpoint_of
from providers.endpoint import Overflowed, status_failure
from providers.retry import Transient
from providers.wire import Fault, Reply, Tokens, ToolUse

TOOLS = [
    ToolSpec(
        "read_record",
        "Read one record.",
        {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    )
]
START: list[Message] = [SystemMessage("You are a clinical assistant."), UserMessage("Please see the referral.")]
REMOTE: Any = SimpleNamespace(endpoint="", key_env="WIRE_KEY", reasoning="", max_output=1000)
CALL = ToolUse(name="read_record", arguments={"id": "k-1"})


def answered(turn: Turn, text: str = "{}") -> list[Message]:
    results = ToolResults(tuple(ToolResult(call.id, text) for call in turn.calls))
    return [*START, ModelMessage(turn), results]


def test_a_tool_call_and_its_answer(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(text="Looking.", calls=(CALL,)), Reply(text="The potassium is 4.7."))
    chat = played.chat(face)
    first = chat.turn(START, TOOLS)
    assert (first.stop, first.text, first.model) == ("tools", "Looking.", "scripted")
    assert [(c.name, json.loads(c.arguments_text)) for c in first.calls] == [("read_record", {"id": "k-1"})]
    second = chat.turn(answered(first, '{"value": 4.7}'), TOOLS)
    assert (second.stop, second.text, second.calls) == ("end", "The potassium is 4.7.", ())
    heard = played.server.heard[-1]
    assert heard.system == "You are a clinical assistant."
    assert heard.results[first.calls[0].id].text == '{"value": 4.7}'


def test_parallel_calls_go_back_in_one_message_results_first(play: Callable[..., Any], face: str) -> None:
    calls = tuple(ToolUse(name="read_record", arguments={"id": f"k-{n}"}) for n in range(4))
    played = play(Reply(calls=calls), Reply(text="Done."))
    chat = played.chat(face)
    first = chat.turn(START, TOOLS)
    assert [json.loads(c.arguments_text)["id"] for c in first.calls] == ["k-0", "k-1", "k-2", "k-3"]
    results = ToolResults(tuple(ToolResult(c.id, "ok", is_error=c is first.calls[1]) for c in first.calls), "3 of 4.")
    chat.turn([*START, ModelMessage(first), results], TOOLS)
    sent = played.server.requests[-1]["messages"]
    if face == "anthropic":
        assert [block["type"] for block in sent[-1]["content"]] == ["tool_result"] * 4 + ["text"]
        assert [block.get("is_error", False) for block in sent[-1]["content"][:4]] == [False, True, False, False]
    else:
        assert [message["role"] for message in sent[-5:]] == ["tool"] * 4 + ["user"]


@pytest.mark.parametrize("broken", ["missing", "reordered", "foreign"])
def test_an_unpaired_conversation_is_never_sent(play: Callable[..., Any], face: str, broken: str) -> None:
    calls = (CALL, ToolUse(name="read_record", arguments={"id": "k-2"}))
    played = play(Reply(calls=calls), Reply(text="Done."))
    chat = played.chat(face)
    first = chat.turn(START, TOOLS)
    ids = [call.id for call in first.calls]
    given = {"missing": ids[:1], "reordered": ids[::-1], "foreign": [ids[0], "call_x"]}[broken]
    with pytest.raises(PairingError):
        chat.turn([*START, ModelMessage(first), ToolResults(tuple(ToolResult(i, "ok") for i in given))], TOOLS)
    assert len(played.server.requests) == 1


def test_the_wire_server_itself_refuses_what_the_providers_refuse(play: Callable[..., Any], face: str) -> None:
    # What our own check would let through if it were wrong, the server would not.
    played = play(Reply(calls=(CALL,)), Reply(text="Done."))
    chat = played.chat(face)
    first = chat.turn(START, TOOLS)
    with pytest.raises(ModelConfigError, match="HTTP 400"):
        chat._send(chat._client.request([*START, ModelMessage(first), UserMessage("and?")], TOOLS, None))


TRANSIENT = {
    "429": (Fault(kind="status", status=429), None),
    "429 with Retry-After": (Fault(kind="status", status=429, retry_after=7), 7.0),
    "408": (Fault(kind="status", status=408), None),
    "409": (Fault(kind="status", status=409), None),
    "425": (Fault(kind="status", status=425), None),
    "500": (Fault(kind="status", status=500), None),
    "503 with Retry-After": (Fault(kind="status", status=503, retry_after=33), 33.0),
    "524": (Fault(kind="status", status=524), None),
    "529": (Fault(kind="status", status=529), None),
    "error event inside a 200 stream": (Fault(kind="stream_error"), None),
    "cut stream": (Fault(kind="cut_stream"), None),
    "a body that is no answer": (Fault(kind="garbled"), None),
}


@pytest.mark.parametrize("row", TRANSIENT)
def test_what_may_pass_is_tried_again(play: Callable[..., Any], face: str, row: str) -> None:
    fault, wait = TRANSIENT[row]
    long = "A long enough answer to be cut in the middle of its stream, twice."
    played = play(Reply(text=long, calls=(CALL,), faults=(fault.model_copy(update={"times": 2}),)))
    turn = played.chat(face).turn(START, TOOLS)
    assert turn.text == long, "nothing of a broken turn may stay in the answer"
    assert len(turn.calls) == 1
    assert len(played.server.requests) == 3
    assert turn.sent is not None
    assert len(turn.sent["retried"]) == 2
    if wait is not None:
        assert played.waits == [wait, wait]
    else:
        assert 0.5 <= played.waits[0] <= 1.0 <= played.waits[1] <= 2.0
    assert turn.waited == pytest.approx(sum(played.waits), abs=5.0)


def test_a_retry_after_beyond_the_budget_ends_at_once(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(text="never", faults=(Fault(kind="status", status=429, retry_after=3600),)))
    with pytest.raises(ProviderFault, match="asks to wait 3600 s"):
        played.chat(face, budget=600).turn(START, TOOLS)
    assert played.waits == []
    assert len(played.server.requests) == 1


def test_the_budget_ends_an_endless_overload(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(text="never", faults=(Fault(kind="status", status=529, times=99),)))
    with pytest.raises(ProviderFault, match=r"HTTP 529"):
        played.chat(face, budget=100).turn(START, TOOLS)
    assert sum(played.waits) <= 100


def test_a_slow_stream_is_waited_for(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(text="word " * 40, faults=(Fault(kind="slow", delay=0.01),)))
    assert played.chat(face).turn(START, TOOLS).text == "word " * 40


def test_a_refusal_is_an_outcome_not_an_error_and_is_not_retried(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(stop="refusal"))
    turn = played.chat(face).turn(START, TOOLS)
    assert (turn.stop, turn.calls) == ("refused", ())
    assert len(played.server.requests) == 1


@pytest.mark.parametrize("how", ["status", "stop"])
def test_a_context_overflow_is_its_own_outcome_and_is_not_retried(
    play: Callable[..., Any], face: str, how: str
) -> None:
    if how == "stop" and face == "openai":
        pytest.skip("chat completions have no such stop reason")
    reply = Reply(stop="overflow") if how == "stop" else Reply(faults=(Fault(kind="overflow", times=9),))
    played = play(reply)
    assert played.chat(face).turn(START, TOOLS).stop == "overflow"
    assert len(played.server.requests) == 1


def test_a_call_cut_by_the_output_limit_keeps_its_text_as_it_was(play: Callable[..., Any], face: str) -> None:
    half = ToolUse(name="read_record", arguments='{"id": "k-1", "note": "Start ')
    played = play(Reply(calls=(CALL, half), stop="length"), Reply(text="Shorter."))
    chat = played.chat(face)
    turn = chat.turn(START, TOOLS)
    assert turn.stop == "length"
    assert turn.calls[1].arguments_text == '{"id": "k-1", "note": "Start '
    assert chat.turn(answered(turn, "not run: cut"), TOOLS).text == "Shorter."


@pytest.mark.parametrize("raw", ['{"id": ', "[1, 2]", "not json", '{"id": 7, "id": 8}', ""])
def test_arguments_reach_the_loop_as_the_model_wrote_them(play: Callable[..., Any], face: str, raw: str) -> None:
    played = play(Reply(calls=(ToolUse(name="read_record", arguments=raw),)), Reply(text="Sorry."))
    chat = played.chat(face)
    turn = chat.turn(START, TOOLS)
    assert turn.calls[0].arguments_text == (raw or "{}")
    assert chat.turn(answered(turn, '{"error": "not JSON"}'), TOOLS).text == "Sorry."


def test_tool_calls_written_as_text_are_text(play: Callable[..., Any], face: str) -> None:
    words = '<tool_call>{"name": "read_record", "arguments": {"id": "k-1"}}</tool_call>'
    turn = play(Reply(text=words)).chat(face).turn(START, TOOLS)
    assert (turn.text, turn.calls, turn.stop) == (words, (), "end")


def test_an_unknown_tool_is_a_call_like_any_other(play: Callable[..., Any], face: str) -> None:
    turn = play(Reply(calls=(ToolUse(name="delete_chart"),))).chat(face).turn(START, TOOLS)
    assert [call.name for call in turn.calls] == ["delete_chart"]


def test_empty_content_ends_and_can_be_replayed(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(), Reply(text="Here."))
    chat = played.chat(face)
    empty = chat.turn(START, TOOLS)
    assert (empty.stop, empty.text, empty.calls) == ("end", "", ())
    assert chat.turn([*START, ModelMessage(empty), UserMessage("Go on.")], TOOLS).text == "Here."


@pytest.mark.parametrize("reasoning", ["", "high", "low"])
def test_thinking_goes_back_unchanged(play: Callable[..., Any], face: str, reasoning: str) -> None:
    thought = "The eGFR is 33, so the starting dose … " * 5
    played = play(Reply(thinking=thought, text="Reading.", calls=(CALL,)), Reply(text="Done."))
    chat = played.chat(face, reasoning=reasoning)
    first = chat.turn(START, TOOLS)
    assert chat.turn(answered(first), TOOLS).text == "Done."
    block = first.blocks[0]
    assert (block["thinking"] if face == "anthropic" else block["reasoning_content"]) == thought


def test_changed_or_dropped_thinking_is_refused_by_the_server(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(thinking="as it was", calls=(CALL,)), Reply(text="Done."))
    chat = played.chat(face)
    first = chat.turn(START, TOOLS)
    blocks = list(first.blocks)
    if face == "anthropic":
        blocks[0] = blocks[0] | {"thinking": "something else"}
    else:
        blocks[0] = {k: v for k, v in blocks[0].items() if not k.startswith("reasoning")}
    forged = Turn(tuple(blocks), first.calls, first.usage, first.stop)
    with pytest.raises(ModelConfigError, match="HTTP 400"):
        chat.turn(answered(forged), TOOLS)


REASONING = {
    ("anthropic", "high"): {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    ("anthropic", "minimal"): {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ("anthropic", "none"): {"thinking": {"type": "disabled"}},
    ("anthropic", "budget:4096"): {"thinking": {"type": "enabled", "budget_tokens": 4096}},
    ("anthropic", ""): {},
    ("openai", "high"): {"reasoning_effort": "high"},
    ("openai", "none"): {"reasoning_effort": "none"},
    ("openai", ""): {},
}


@pytest.mark.parametrize(("face", "setting"), REASONING)
def test_reasoning_is_mapped_and_recorded_as_sent(play: Callable[..., Any], face: str, setting: str) -> None:
    played = play(Reply(text="ok"))
    turn = played.chat(face, reasoning=setting).turn(START, TOOLS)
    names = ("thinking", "output_config", "reasoning_effort")
    wanted = REASONING[face, setting]
    sent = played.server.requests[0]
    assert {name: sent[name] for name in names if name in sent} == wanted
    assert turn.sent is not None
    assert {name: turn.sent[name] for name in names if name in turn.sent} == wanted


def test_usage_by_tier_and_what_it_costs(play: Callable[..., Any], face: str) -> None:
    tokens = Tokens(uncached_input=1_000, cache_read=20_000, cache_write=3_000, output=700, reasoning=400)
    played = play(Reply(text="ok", tokens=tokens))
    usage = played.chat(face).turn(START, TOOLS).usage
    assert (usage.uncached_input, usage.cache_read, usage.cache_write) == (1_000, 20_000, 3_000)
    assert (usage.output, usage.reasoning) == (700, 400)
    # By hand: 1000 x 2 + 20000 x 0.2 + 3000 x 2.5 + 700 x 10 = 20500 millionths of a dollar.
    assert usage.cost == pytest.approx(0.0205)


def test_an_unknown_price_is_unknown(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(text="ok"))
    assert played.chat(face, price=None).turn(START, TOOLS).usage.cost is None


def test_prompt_caching_is_asked_for_where_the_provider_has_it(play: Callable[..., Any]) -> None:
    played = play(Reply(calls=(CALL,)), Reply(text="Done."))
    chat = played.chat("anthropic")
    first = chat.turn(START, TOOLS)
    before = json.dumps(first.blocks)
    chat.turn(answered(first), TOOLS)
    sent = played.server.requests[-1]
    assert sent["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert sent["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(sent["messages"][1]["content"]) == before, "the model's own blocks carry no mark of ours"


@pytest.mark.parametrize(
    ("model", "key", "words"),
    [("no-such-model", None, "HTTP 404"), ("scripted", "wrong-key-123", "HTTP 401")],
)
def test_a_wrong_model_or_key_says_what_to_do(
    play: Callable[..., Any], face: str, model: str, key: str | None, words: str
) -> None:
    played = play(Reply(text="never"))
    chat = played.chat(face, model=model, **({"key": key} if key else {}))
    with pytest.raises(ModelConfigError, match=words) as refused:
        chat.turn(START, TOOLS)
    assert refused.value.remedy
    assert "wrong-key" not in str(refused.value) + repr(chat) + repr(chat._client._endpoint)
    assert played.waits == []


def test_nothing_is_sent_to_an_endpoint_that_is_not_cleared(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(text="never"))
    with pytest.raises(DataClassRefused, match="cleared for data class open, and the task is phi"):
        played.chat(face, task_class="phi")
    with pytest.raises(DataClassRefused):
        played.chat(face, task_class="phi", data_class="dua")
    assert played.chat(face, task_class="dua", data_class="phi").turn(START, TOOLS).text == "never"
    assert len(played.server.requests) == 1


@pytest.mark.parametrize("key", ["", "  ", "has space", "line\nbreak", "ключ"])
def test_a_missing_or_broken_key_is_named_by_its_variable(key: str) -> None:
    with pytest.raises(ModelConfigError, match="WIRE_KEY") as refused:
        endpoint_of("anthropic/x", REMOTE, {"WIRE_KEY": key})
    assert key.strip() == "" or key not in str(refused.value)


def test_no_more_requests_at_once_than_the_settings_allow(play: Callable[..., Any], face: str) -> None:
    busy, most, guard = [0], [0], threading.Lock()

    class Counting:
        def reply(self, heard: Any) -> Reply:
            with guard:
                busy[0] += 1
                most[0] = max(most[0], busy[0])
            time.sleep(0.02)
            with guard:
                busy[0] -= 1
            return Reply(text="ok")

    played = play(player=Counting())
    chat = played.chat(face, concurrency=3)
    threads = [threading.Thread(target=chat.turn, args=(START, TOOLS)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(played.server.requests) == 12
    assert most[0] <= 3


@pytest.mark.parametrize(
    ("setting", "face", "words"),
    [
        ("budget:2048", "openai", "no budget"),
        ("a lot", "anthropic", "no reasoning"),
        ("budget:x", "anthropic", "no reas"),
    ],
)
def test_a_reasoning_setting_that_would_mean_nothing_is_refused(
    play: Callable[..., Any], setting: str, face: str, words: str
) -> None:
    with pytest.raises(ModelConfigError, match=words):
        play(Reply(text="ok")).chat(face, reasoning=setting)


def test_a_retry_after_of_zero_still_backs_off(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(faults=(Fault(kind="status", status=429, retry_after=0, times=99),)))
    with pytest.raises(ProviderFault):
        played.chat(face, budget=100).turn(START, TOOLS)
    assert len(played.waits) < 20


@pytest.mark.parametrize("status", [200, 400, 413, 422, 500])
def test_an_overflow_is_known_by_its_words_wherever_they_stand(status: int) -> None:
    endpoint = endpoint_of("openai/x", REMOTE, {"WIRE_KEY": "k"})
    said = {"error": {"message": "Requested tokens (9000) exceed context window of 8192", "type": "server_error"}}
    assert isinstance(status_failure(endpoint, status, said, {}), Overflowed)


@pytest.mark.parametrize("status", [200, 408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529])
def test_what_may_pass_is_told_by_its_status(status: int) -> None:
    endpoint = endpoint_of("openai/x", REMOTE, {"WIRE_KEY": "k"})
    failure = status_failure(endpoint, status, {"error": {"type": "overloaded"}}, {"Retry-After": "12"})
    assert isinstance(failure, Transient)
    assert failure.retry_after == 12


def test_thinking_cut_before_its_signature_stays_away(play: Callable[..., Any]) -> None:
    played = play(Reply(thinking="So much to think about", stop="length"), Reply(text="Shorter."))
    chat = played.chat("anthropic")
    cut = chat.turn(START, TOOLS)
    assert cut.stop == "length"
    assert not cut.blocks[0].get("signature")
    assert chat.turn([*START, ModelMessage(cut), UserMessage("Go on.")], TOOLS).text == "Shorter."
    assert played.server.requests[-1]["messages"][1]["content"] == [{"type": "text", "text": "(no answer)"}]


def test_no_level_of_logging_writes_down_what_is_sent(
    play: Callable[..., Any], face: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    play(Reply(text="ok")).chat(face).turn(START, TOOLS)
    assert "Please see the referral" not in caplog.text


def test_halves_of_a_character_are_joined_or_replaced() -> None:
    assert whole_text({"a": ["\ud83d\ude00", "x\ud83d", "as it was"]}) == {"a": ["\U0001f600", "x\ufffd", "as it was"]}
