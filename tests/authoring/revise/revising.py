"""A reviser in a room: its model is a script, everything else is real."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from authoring.gate import Check, GateResult
from authoring.reviser import Draft, revise
from providers import Chat, RetryPolicy, chat
from providers.wire import KEY, Reply, Tokens, ToolUse, WireServer
from tasks.review import events as ev
from tasks.settings import ModelSettings, Price
from tests.authoring.rooms import AUTHOR, Room, passing
from tests.tasks.packages import TINY_ID

PRICE = Price(input=2.0, cache_read=0.2, cache_write=2.5, output=10.0)
LABORATORY = {
    "kind": "text", "path": "instruction.md", "find": "arrange the follow-up laboratory",
    "replace": "arrange the follow-up creatinine",
}  # fmt: skip


class Revising:
    """One model and one room. `heard` is every request as the server got it."""

    def __init__(self, room: Room, server: WireServer, face: str = "anthropic") -> None:
        self.room, self.server, self.face = room, server, face
        self.waits: list[float] = []
        self.told: list[str] = []
        url = server.anthropic_url if face == "anthropic" else server.openai_url
        self.model = f"{face}/scripted"
        self.settings = ModelSettings(endpoint=url, key_env="WIRE_KEY", max_output=4000, price=PRICE)
        # The models of an earlier Revising in this room are gone with their server.
        kept = room.workspace.settings_file.read_text("utf-8").partition('\n[model."')[0]
        room.workspace.settings_file.write_text(
            f'{kept}\n[model."{self.model}"]\nendpoint = "{url}"\nkey_env = "WIRE_KEY"\nmax_output = 4000\n'
            "price.input = 2.0\nprice.cache_read = 0.2\nprice.cache_write = 2.5\nprice.output = 10.0\n",
            "utf-8",
        )

    def chat(self, *, budget: float = 600.0) -> Chat:
        policy = RetryPolicy(budget=budget, sleep=self.waits.append)
        return chat(
            self.model, self.settings, data_class="open", policy=policy, environ={"WIRE_KEY": KEY},
        )  # fmt: skip

    def revise(
        self, task: str = TINY_ID, *, job: str = "job1", gate: Callable[..., GateResult] = passing, **more: Any
    ) -> Draft:
        asked = self.chat(**more)
        try:
            return revise(
                self.room.desk(AUTHOR), task, model=self.model, job=job, gate=gate, model_chat=asked,
                tell=self.told.append,
            )  # fmt: skip
        finally:
            asked.close()

    @property
    def questions(self) -> list[str]:
        """What each request said in all, as text."""
        return [json.dumps(one, ensure_ascii=False) for one in self.server.requests]


def answer(*edits: Mapping[str, Any], unaddressed: tuple[tuple[str, str], ...] = ()) -> Reply:
    """One call of the forced tool."""
    value = {
        "edits": [edits_of(one) for one in edits],
        "unaddressed": [{"finding": finding, "reason": reason} for finding, reason in unaddressed],
    }
    call = ToolUse(name="answer", arguments=value)
    return Reply(calls=(call,), tokens=Tokens(uncached_input=1000, output=100))


def edits_of(one: Mapping[str, Any]) -> dict[str, Any]:
    """An edit with what every edit says, unless it says otherwise itself."""
    said = {
        "findings": ["F1"], "dimension": "instruction_clarity", "rationale": "It says which laboratory.",
        "evidence": ["finding: F1"], "risk": "none seen",
    }  # fmt: skip
    return said | (dict(one) if "edit" in one else {"edit": dict(one)})


def failing(name: str, when: Callable[[Mapping[str, bytes]], bool]) -> Callable[[Mapping[str, bytes], str], GateResult]:
    """A gate with one check that fails on some packages."""

    def gate(files: Mapping[str, bytes], task: str) -> GateResult:
        state = "failed" if when(files) else "passed"
        return GateResult(task, ev.package_hash(files), (Check(name, state, "because"),))

    return gate
