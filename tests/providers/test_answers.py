"""`answer`: a value of a known shape, or a plain error; never half a value."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from providers import NoAnswer
from providers.base import UserMessage
from providers.wire import Fault, Reply, Tokens, ToolUse

ASK = [UserMessage("Is the dose right?")]


class Opinion(BaseModel):
    """Your opinion on the dose."""

    quote: str = Field(min_length=1)
    verdict: Literal["right", "wrong"]


def said(**values: Any) -> Reply:
    return Reply(calls=(ToolUse(name="answer", arguments=values),), tokens=Tokens(uncached_input=10, output=5))


GOOD = said(quote="10 mg daily", verdict="right")


def test_a_forced_answer_of_the_asked_shape(play: Callable[..., Any], face: str) -> None:
    played = play(GOOD)
    answer = played.chat(face, reasoning="high").answer(ASK, Opinion)
    assert answer.value == Opinion(quote="10 mg daily", verdict="right")
    assert (answer.repairs, answer.model) == (0, "scripted")
    heard = played.server.heard[0]
    assert (heard.forced_tool, list(heard.tools)) == ("answer", ["answer"])


@pytest.mark.parametrize(
    "bad",
    [
        Reply(text="I think it is right."),
        Reply(),
        Reply(calls=(ToolUse(name="answer", arguments='{"quote": "10 mg'),)),
        Reply(calls=(ToolUse(name="answer", arguments='{"quote": "10 mg'),), stop="length"),
        Reply(calls=(ToolUse(name="order_drug", arguments={}),)),
        said(quote="10 mg daily", verdict="PASS"),
        said(quote="", verdict="right"),
    ],
    ids=["prose", "empty", "half", "cut", "another tool", "wrong value", "empty quote"],
)
def test_what_is_wrong_goes_back_and_is_mended(play: Callable[..., Any], face: str, bad: Reply) -> None:
    answer = play(bad, GOOD).chat(face).answer(ASK, Opinion)
    assert answer.repairs == 1
    assert answer.value.verdict == "right"


def test_after_two_repairs_there_is_no_answer(play: Callable[..., Any], face: str) -> None:
    played = play(*[Reply(text="Right, I would say.")] * 5)
    with pytest.raises(NoAnswer, match="after 2 repairs"):
        played.chat(face).answer(ASK, Opinion)
    assert len(played.server.requests) == 3


def test_a_refusal_is_no_answer_and_is_asked_once(play: Callable[..., Any], face: str) -> None:
    played = play(Reply(stop="refusal"), GOOD)
    with pytest.raises(NoAnswer, match="refused"):
        played.chat(face).answer(ASK, Opinion)
    assert len(played.server.requests) == 1


def test_an_overload_is_retried_below_the_answer(play: Callable[..., Any], face: str) -> None:
    played = play(GOOD.model_copy(update={"faults": (Fault(kind="status", status=529, times=3),)}))
    assert played.chat(face).answer(ASK, Opinion).repairs == 0
    assert len(played.waits) == 3


def test_a_check_beyond_the_schema(play: Callable[..., Any], face: str) -> None:
    played = play(said(quote="20 mg daily", verdict="right"), GOOD)
    text = "Finerenone 10 mg daily."
    answer = played.chat(face).answer(
        ASK, Opinion, check=lambda o: None if o.quote in text else f"{o.quote!r} is not in the text."
    )
    assert answer.value.quote == "10 mg daily"
    # Two calls of (10 x 2 + 5 x 10) millionths.
    assert answer.usage.cost == pytest.approx(140 / 1_000_000)


class Dose(BaseModel):
    """A dose."""

    value: Any


def test_a_reader_of_its_own_keeps_what_pydantic_would_lose(play: Callable[..., Any], face: str) -> None:
    def read(text: str) -> Dose:
        value = json.loads(text, parse_float=Decimal)
        if "value" not in value:
            raise ValueError("The dose is missing.")
        return Dose.model_validate(value)

    played = play(
        Reply(calls=(ToolUse(name="answer", arguments="{}"),)),
        Reply(calls=(ToolUse(name="answer", arguments='{"value": 5.00}'),)),
    )
    answer = played.chat(face).answer(ASK, Dose, read=read)
    assert (str(answer.value.value), answer.repairs) == ("5.00", 1)
    assert "The dose is missing." in json.dumps(played.server.requests[1])
