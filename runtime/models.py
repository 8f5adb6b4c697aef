"""The models of workbench.toml: which there are, and whether one can be used; a check asks it for one tool call.

What a check found is kept in the workspace's cache, so that a page can show it without asking a model. No key is in
any of this, only the name of the variable that should hold one.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError

from providers import RetryPolicy, chat
from providers.base import (
    DataClassRefused,
    Message,
    ModelConfigError,
    ModelMessage,
    ProviderFault,
    SystemMessage,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    UserMessage,
)
from providers.chat import key_variable
from tasks.errors import UsageError
from tasks.settings import ModelSettings, Price
from tasks.stored import agent_folder, write_whole
from tasks.strict import Strict
from tasks.taxonomy import DataClass
from tasks.trials import Usage
from tasks.workspace import Workspace

#: A check waits no longer than this for a provider that is busy: seconds.
PATIENCE = 20.0

Code = Literal[
    "not cleared", "no key", "refused", "unreachable", "busy", "tools ignored", "tools as text", "no call",
    "wrong arguments", "no usage", "thinking dropped", "no price", "another model", "cut", "no answer",
]  # fmt: skip


class Finding(Strict):
    """One thing that a check found. A blocking one means that no trial can be run with the model."""

    code: Code
    what: str
    remedy: str
    blocks: bool


class Checked(Strict):
    """What a check came to."""

    model: str
    at: AwareDatetime
    settings: str = Field(description="digest of the settings that were checked")
    answered_as: str = Field(default="", description="the name that the provider gave")
    seconds: float = 0.0
    usage: Usage = Usage()
    sent: dict[str, object] = Field(default={}, description="settings as they were sent")
    findings: tuple[Finding, ...] = ()

    @property
    def works(self) -> bool:
        """Whether trials can be run with it."""
        return not any(finding.blocks for finding in self.findings)


class ModelRow(Strict):
    """One configured model, as a page or a list shows it."""

    name: str
    endpoint: str = Field(description="'' = the provider's own")
    key_env: str = Field(description="the variable that holds the key")
    has_key: bool = Field(description="whether that variable is set where this runs")
    data_class: DataClass
    price: Price | None
    reasoning: str
    concurrency: int
    uses: tuple[str, ...] = Field(description="what [use] names it for: judge, reviser, rewriter")
    checked: Checked | None
    is_stale: bool = Field(description="the settings have changed since the check")


def configured(workspace: Workspace, environ: Mapping[str, str] = os.environ) -> list[ModelRow]:
    """Every model of workbench.toml, by name. Asks nobody. Raises SettingsError."""
    settings = workspace.settings
    rows = []
    for name, told in sorted(settings.models.items()):
        variable = key_variable(name, told)
        checked = last_check(workspace, name)
        rows.append(
            ModelRow(
                name=name,
                endpoint=told.endpoint,
                key_env=variable,
                has_key=bool(environ.get(variable, "").strip()) if variable else False,
                data_class=told.data_class,
                price=told.price,
                reasoning=told.reasoning,
                concurrency=told.concurrency,
                uses=tuple(use for use in ("judge", "reviser", "rewriter") if getattr(settings.use, use) == name),
                checked=checked,
                is_stale=checked is not None and checked.settings != _digest(told),
            )
        )
    return rows


def last_check(workspace: Workspace, name: str) -> Checked | None:
    """What the last check found; None where there was none, or where it cannot be read any more."""
    try:
        return Checked.model_validate_json(_place(workspace, name).read_bytes())
    except (OSError, ValidationError):
        return None


def check(
    workspace: Workspace,
    name: str,
    *,
    data_class: DataClass = "open",
    environ: Mapping[str, str] = os.environ,
    policy: RetryPolicy | None = None,
) -> Checked:
    """Ask the model for one tool call and its follow-up, and keep what was found.

    `data_class`: of the tasks that it is to be used for; the probe itself holds no patient. Raises UsageError for a
    model that is not in workbench.toml.
    """
    told = workspace.settings.models.get(name)
    if told is None:
        known = ", ".join(sorted(workspace.settings.models)) or "none yet"
        raise UsageError(
            "this model is not in workbench.toml.", where=name, remedy=f'There are: {known}. Add [model."{name}"].'
        )
    probe = _Probe(told, data_class)
    began = time.monotonic()
    findings = tuple(probe.findings(name, dict(environ), policy or RetryPolicy(budget=PATIENCE)))
    first = probe.turn
    done = Checked(
        model=name,
        at=datetime.now(UTC),
        settings=_digest(told),
        answered_as=first.model if first else "",
        seconds=round(time.monotonic() - began, 3),
        usage=first.usage if first else Usage(),
        sent=dict(first.sent or {}) if first else {},
        findings=findings,
    )
    place = _place(workspace, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, done.model_dump_json(indent=1) + "\n")
    return done


def _place(workspace: Workspace, name: str) -> Path:
    return workspace.cache / "models" / f"{agent_folder(name)}.json"


def _digest(told: ModelSettings) -> str:
    return hashlib.sha256(json.dumps(told.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


# ---- the probe ------------------------------------------------------------------------------------------------------

#: Long on purpose: a server that leaves tools out of the prompt shows it in its count of prompt tokens.
_TOOL = ToolSpec(
    "laboratory_code",
    "Give the name of a laboratory test by its LOINC code. The code is written as digits, a hyphen and one digit, for "
    "example 718-7 for the haemoglobin concentration of blood, 2160-0 for the creatinine of serum or plasma, 4548-4 "
    "for glycated haemoglobin, and 6301-6 for the international normalised ratio. The answer is one JSON object with "
    "the code and the long common name of the test. Give exactly one code a call; ask again for a further one. Codes "
    "of other systems, of SNOMED CT or CPT for instance, are answered with an error, as are names in place of a code.",
    {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "a LOINC code, such as 718-7"}},
        "required": ["code"],
        "additionalProperties": False,
    },
)
_ASKED: tuple[Message, ...] = (
    SystemMessage("You look up laboratory codes with the tool that you are given."),
    UserMessage("Which test has the LOINC code 2823-3? Call the tool laboratory_code once, then answer in a sentence."),
)
_ANSWER = '{"code": "2823-3", "name": "Potassium [Moles/volume] in Serum or Plasma"}'
#: The tool's description and schema come to about 170 tokens, the two messages to about 50. Below this, no tokenizer
#: can have been given both.
_FEWEST_TOKENS = 110


class _Probe:
    """One tool call and its follow-up. `turn` is the first turn, None where there was none."""

    def __init__(self, told: ModelSettings, data_class: DataClass) -> None:
        self.told = told
        self.data_class = data_class
        self.turn: Turn | None = None

    def findings(self, name: str, environ: dict[str, str], policy: RetryPolicy) -> Iterator[Finding]:
        try:
            model = chat(name, self.told, data_class=self.data_class, environ=environ, policy=policy)
        except DataClassRefused as fault:
            yield Finding(code="not cleared", what=fault.what, remedy=fault.remedy, blocks=True)
            return
        except ModelConfigError as fault:
            yield Finding(code="no key" if "key" in fault.what else "refused", what=fault.what, remedy=fault.remedy,
                          blocks=True)  # fmt: skip
            return
        try:
            self.turn = model.turn(_ASKED, [_TOOL])
            yield from self._first(self.turn, name)
            if self.turn.calls and self.turn.stop == "tools":
                results = ToolResults(tuple(ToolResult(call.id, _ANSWER) for call in self.turn.calls))
                yield from self._second(model.turn([*_ASKED, ModelMessage(self.turn), results], [_TOOL]))
        except ModelConfigError as fault:
            yield Finding(code="refused", what=fault.what, remedy=fault.remedy, blocks=True)
        except ProviderFault as fault:
            yield self._unanswered(fault)
        finally:
            model.close()
        if self.told.price is None:
            yield Finding(
                code="no price",
                what="no price is configured: the cost of its trials is unknown, and no money limit can be set.",
                remedy="Add price.input, price.cache_read, price.cache_write and price.output (USD per million "
                "tokens).",
                blocks=False,
            )

    def _unanswered(self, fault: ProviderFault) -> Finding:
        if "connection failed" in fault.what:
            return Finding(
                code="unreachable",
                what=f"nothing answers at {self.told.endpoint or 'the provider'}.",
                remedy="Check that the server runs, and the endpoint in workbench.toml.",
                blocks=True,
            )
        return Finding(code="busy", what=fault.what, remedy="Check again later.", blocks=True)

    def _first(self, turn: Turn, name: str) -> Iterator[Finding]:
        if turn.stop in ("refused", "overflow"):
            yield Finding(
                code="no answer",
                what="the model refused a harmless question." if turn.stop == "refused" else
                "a question of two sentences does not fit its window.",
                remedy="Look at the endpoint's filters and limits.",
                blocks=True,
            )  # fmt: skip
            return
        if turn.stop == "length":
            yield Finding(
                code="cut",
                what=f"its answer was cut at {self.told.max_output} tokens.",
                remedy="Raise max_output; thinking counts against it.",
                blocks=True,
            )
            return
        prompt = turn.usage.uncached_input + turn.usage.cache_read + turn.usage.cache_write
        is_counted = (turn.sent or {}).get("usage") != "not reported"
        if not is_counted:
            yield Finding(
                code="no usage",
                what="it reports no tokens: cost, token limits and money limits do not work.",
                remedy="Let the server report usage in streams (stream_options.include_usage).",
                blocks=False,
            )
        calls = [call for call in turn.calls if call.name == _TOOL.name]
        if not calls and not turn.calls:
            yield self._no_call(turn, prompt if is_counted else None)
        elif not calls or _code(calls[0].arguments_text) != "2823-3":
            yield Finding(
                code="wrong arguments",
                what="it called a tool, but not the one it was asked to, or with other arguments.",
                remedy="The loop will hold; do not expect much of the model.",
                blocks=False,
            )
        if self.told.reasoning not in ("", "none") and not _has_thought(turn):
            yield Finding(
                code="thinking dropped",
                what=f"reasoning = {self.told.reasoning!r} was sent, and neither thinking nor reasoning tokens came.",
                remedy="The model may not think, may think when it likes, or a proxy drops it; see docs/providers.md.",
                blocks=False,
            )
        asked = name.partition("/")[2]
        if turn.model and asked.rpartition("/")[2].casefold() not in turn.model.casefold():
            yield Finding(
                code="another model",
                what=f"it answers as {turn.model[:80]!r}.",
                remedy="Check the endpoint: a proxy may hand requests to another model.",
                blocks=False,
            )

    def _no_call(self, turn: Turn, prompt: int | None) -> Finding:
        if prompt is not None and prompt < _FEWEST_TOKENS:
            return Finding(
                code="tools ignored",
                what=f"the tools never reached the model: its prompt had {prompt} tokens, question and tool have more.",
                remedy="Switch tool use on at the server (llama.cpp: a chat format with functions; vLLM: "
                "--enable-auto-tool-choice and --tool-call-parser).",
                blocks=True,
            )
        if _TOOL.name in turn.text or "<tool_call" in turn.text or '"arguments"' in turn.text:
            return Finding(
                code="tools as text",
                what="the model wrote its tool call as text; the server did not read it as a call.",
                remedy="Set the server's tool parser to the one of this model.",
                blocks=True,
            )
        return Finding(
            code="no call",
            what="the model called no tool though it was told to.",
            remedy="Use a model that is trained for tool calls, or check the server's chat template.",
            blocks=True,
        )

    def _second(self, turn: Turn) -> Iterator[Finding]:
        if not turn.text.strip() and not turn.calls:
            yield Finding(
                code="no answer",
                what="after the tool's result it said nothing.",
                remedy="Check the server's chat template: the result may not reach the model.",
                blocks=False,
            )


def _code(arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except ValueError:
        return ""
    return str(value.get("code", "")) if isinstance(value, dict) else ""


def _has_thought(turn: Turn) -> bool:
    if turn.usage.reasoning:
        return True
    return any(
        block.get("type") in ("thinking", "redacted_thinking") or any("reasoning" in key for key in block)
        for block in turn.blocks
    )


def in_words(done: Checked) -> str:
    """A check as a few lines of text."""
    lines = [f"{done.model}: {'works' if done.works else 'cannot be used'} ({done.seconds:.1f} s)"]
    if done.answered_as:
        usage = done.usage
        prompt = usage.uncached_input + usage.cache_read + usage.cache_write
        lines.append(f"  answered as {done.answered_as}, {prompt} tokens in, {usage.output} out")
    for finding in done.findings:
        lines.append(f"  {'fault' if finding.blocks else 'note'}: {finding.what} {finding.remedy}")
    return "\n".join(lines)
