"""Votes: several jurors are asked the same, alone; who fails is left out and said so; the majority decides.

A tie, or no majority of the votes that count, goes to a physician. So does a majority for "needs review". Where half
of the jurors or more failed there is no ruling but an error: too few have looked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from graders.judging.prompt import Question, misquoted
from providers.base import ModelConfigError, ProviderFault
from providers.chat import Chat, NoAnswer
from providers.pricing import add
from tasks.trials import Usage

T = TypeVar("T", bound=BaseModel)


class Said(BaseModel):
    """Words copied from a text, character for character."""

    model_config = ConfigDict(extra="forbid")

    source: Literal["answer", "record"]
    text: str = Field(min_length=3, max_length=2000)


class Opinion(BaseModel):
    """Your judgement: first the words that it rests on, then the reason, then the verdict."""

    model_config = ConfigDict(extra="forbid")

    quotes: list[Said] = Field(max_length=12)
    reason: str = Field(min_length=1, max_length=2000)
    verdict: Literal["pass", "partial", "fail", "needs_review"]


class OpinionWithoutPartial(BaseModel):
    """Your judgement: first the words that it rests on, then the reason, then the verdict."""

    model_config = ConfigDict(extra="forbid")

    quotes: list[Said] = Field(max_length=12)
    reason: str = Field(min_length=1, max_length=2000)
    verdict: Literal["pass", "fail", "needs_review"]


class StatedValue(BaseModel):
    """One place that states the value."""

    model_config = ConfigDict(extra="forbid")

    quote: str = Field(min_length=3, max_length=2000)
    number: str = Field(min_length=1, max_length=40)
    unit: str = Field(max_length=40)


class Reading(BaseModel):
    """Every place of the ANSWER that states the value as its author's own result."""

    model_config = ConfigDict(extra="forbid")

    values: list[StatedValue] = Field(max_length=12)


AnyOpinion = Opinion | OpinionWithoutPartial


@dataclass(frozen=True)
class Juror(Generic[T]):
    """What one juror came to: a value, or why there is none. `down`: the model could not be reached at all."""

    value: T | None
    fault: str
    usage: Usage
    answered: str = ""
    down: bool = False


def ask(
    model: Callable[[], Chat],
    question: Question,
    schema: type[T],
    *,
    votes: int,
    check: Callable[[T], str | None] | None = None,
    void: Callable[[T], str | None],
) -> list[Juror[T]]:
    """`votes` jurors, at once, each in a conversation of its own.

    `check` is mended by the model (bounded); `void` makes the juror's vote void at once: what was invented is not asked
    for again.
    """

    def one(_: int) -> Juror[T]:
        try:
            answer = model().answer(question.messages, schema, check=check)
        except NoAnswer as fault:
            return Juror(None, fault.what, fault.usage or Usage())
        except ModelConfigError as fault:
            return Juror(None, str(fault), Usage(cost=0.0), down=True)
        except ProviderFault as fault:
            return Juror(None, fault.what, Usage(cost=0.0), down=True)
        if wrong := void(answer.value):
            return Juror(None, wrong, answer.usage, answer.model)
        return Juror(answer.value, "", answer.usage, answer.model)

    if votes == 1:
        return [one(0)]
    with ThreadPoolExecutor(votes, thread_name_prefix="juror") as pool:
        return list(pool.map(one, range(votes)))


def lacks_support(opinion: AnyOpinion) -> str | None:
    """What is wrong with an opinion that passes without a quotation from the work itself."""
    if opinion.verdict in ("pass", "partial") and not any(said.source == "answer" for said in opinion.quotes):
        return "A verdict of pass or partial needs at least one quotation from the ANSWER."
    return None


def invents_quotes(question: Question) -> Callable[[Any], str | None]:
    """Tells which opinion or reading quotes what does not stand in the text."""
    wrong = misquoted(question)

    def check(value: Any) -> str | None:
        if isinstance(value, Reading):
            lost = [one for one in value.values if wrong("answer", one.quote) or one.number not in one.quote]
            return "a value was read from words that do not stand in the text" if lost else None
        lost_quotes = [said for said in value.quotes if wrong(said.source, said.text)]
        return "a quotation does not stand in the text" if lost_quotes else None

    return check


def majority(votes: Sequence[str]) -> str | None:
    """The vote that more than half of those that count gave; None where there is none."""
    if not votes:
        return None
    vote, number = Counter(votes).most_common(1)[0]
    return vote if 2 * number > len(votes) else None


def spent(jurors: Sequence[Juror[Any]]) -> Usage:
    """What all jurors cost together; an unknown cost makes the sum unknown."""
    total = Usage(cost=0.0)
    for juror in jurors:
        total = add(total, juror.usage)
    return total
