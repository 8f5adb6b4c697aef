"""A check says in words what is wrong with a model and what to do; the list shows it, and never a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from providers import RetryPolicy
from providers.wire import KEY, Fault, Reply, Script, Tokens, ToolUse, WireServer
from runtime.__main__ import app
from runtime.models import Checked, check, configured, in_words, last_check
from tasks.errors import SettingsError, UsageError
from tasks.workspace import Workspace

FACES = ("anthropic", "openai")
CALL = ToolUse(name="laboratory_code", arguments={"code": "2823-3"})
MANY = Tokens(uncached_input=230, output=20)
GOOD = Script([Reply(calls=(CALL,), tokens=MANY)], after=Reply(text="Potassium.", tokens=MANY))
PRICED = {"price": "{input = 1.0, output = 2.0}"}
QUICK = RetryPolicy(budget=5, sleep=lambda seconds: None)


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    with WireServer({}) as server:
        yield server


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(
    workspace: Workspace,
    wire: WireServer,
    face: str,
    player: Any,
    *,
    key: str = KEY,
    model: str = "scripted",
    **more: str,
) -> Checked:
    wire.rewind()
    wire.players = {"scripted": player}
    url = wire.anthropic_url if face == "anthropic" else wire.openai_url
    told = {"endpoint": json.dumps(url), "key_env": '"WIRE_KEY"'} | PRICED | more
    workspace.make()
    workspace.settings_file.write_text(
        f'[model."{face}/{model}"]\n' + "".join(f"{name} = {value}\n" for name, value in told.items() if value)
    )
    return check(workspace, f"{face}/{model}", environ={"WIRE_KEY": key}, policy=QUICK)


def codes(done: Checked) -> list[str]:
    return [finding.code for finding in done.findings]


def test_a_model_that_works(workspace: Workspace, wire: WireServer, face: str) -> None:
    done = ask(workspace, wire, face, GOOD)
    assert (done.works, codes(done), done.answered_as) == (True, [], "scripted")
    assert last_check(workspace, f"{face}/scripted") == done
    assert in_words(done).startswith(f"{face}/scripted: works")
    assert len(wire.requests) == 2


#: What is wrong -> (what answers, settings, the finding, whether it blocks).
FAULTS: dict[str, tuple[Any, dict[str, str], str, bool]] = {
    "overloaded": (Script([Reply(faults=(Fault(kind="status", times=99),))]), {}, "busy", True),
    "tools never reach it": (Script([Reply(text="It is potassium.", tokens=Tokens(uncached_input=48))]), {},
                             "tools ignored", True),
    "calls as text": (Script([Reply(text='{"name": "laboratory_code", "arguments": {}}', tokens=MANY)]), {},
                      "tools as text", True),
    "no call": (Script([Reply(text="It is potassium.", tokens=MANY)]), {}, "no call", True),
    "nothing at all": (Script([Reply(tokens=MANY)]), {}, "no call", True),
    "other arguments": (Script([Reply(calls=(ToolUse(name="laboratory_code", arguments="{"),), tokens=MANY)]), {},
                        "wrong arguments", False),
    "refusal": (Script([Reply(stop="refusal")]), {}, "no answer", True),
    "cut": (Script([Reply(text="It", stop="length")]), {}, "cut", True),
    "thinking dropped": (GOOD, {"reasoning": '"high"'}, "thinking dropped", False),
    "no price": (GOOD, {"price": ""}, "no price", False),
    "silent after the result": (Script([Reply(calls=(CALL,), tokens=MANY)], after=Reply(tokens=MANY)), {},
                                "no answer", False),
    "unreachable": (GOOD, {"endpoint": '"http://127.0.0.1:9/v1"'}, "unreachable", True),
    "a reasoning that does not exist": (GOOD, {"reasoning": '"a lot"'}, "refused", True),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_with_its_remedy(workspace: Workspace, wire: WireServer, face: str, name: str) -> None:
    player, settings, code, blocks = FAULTS[name]
    done = ask(workspace, wire, face, player, **settings)
    assert codes(done) == [code]
    (finding,) = done.findings
    assert (finding.blocks, done.works) == (blocks, not blocks)
    assert finding.remedy
    assert finding.what in in_words(done)


def test_thinking_that_came_is_no_finding(workspace: Workspace, wire: WireServer, face: str) -> None:
    thought = Script([Reply(thinking="Potassium.", calls=(CALL,), tokens=MANY)], after=Reply(text="K", tokens=MANY))
    assert codes(ask(workspace, wire, face, thought, reasoning='"high"')) == []


def test_a_key_or_a_name_that_is_wrong(workspace: Workspace, wire: WireServer, face: str) -> None:
    wrong = ask(workspace, wire, face, GOOD, key="sk-WRONG-0123")
    assert codes(wrong)[0] == "refused"
    assert "WIRE_KEY" in wrong.findings[0].remedy
    assert "sk-WRONG" not in in_words(wrong) + wrong.model_dump_json()
    renamed = ask(workspace, wire, face, GOOD, model="scriptd")
    assert "404" in renamed.findings[0].what
    assert "name" in renamed.findings[0].remedy
    remote = ask(workspace, wire, face, GOOD, key="", endpoint='"http://192.0.2.1/v1"')
    assert (codes(remote), remote.works) == (["no key"], False)
    assert "WIRE_KEY" in remote.findings[0].remedy


def test_a_model_that_is_not_cleared_is_not_asked(workspace: Workspace, wire: WireServer, face: str) -> None:
    ask(workspace, wire, face, GOOD)
    wire.rewind()
    done = check(workspace, f"{face}/scripted", data_class="phi", environ={"WIRE_KEY": KEY})
    assert (codes(done), wire.requests) == (["not cleared"], [])
    with pytest.raises(UsageError, match=f"There are: {face}/scripted"):
        check(workspace, "openai/other")


def test_a_server_that_reports_no_usage(workspace: Workspace, wire: WireServer, monkeypatch: Any) -> None:
    from providers.openai_client import OpenAIClient

    ask_for = OpenAIClient.request

    def without(self: Any, *args: Any) -> dict[str, Any]:
        asked = ask_for(self, *args)
        del asked["stream_options"]
        return asked

    monkeypatch.setattr(OpenAIClient, "request", without)
    done = ask(workspace, wire, "openai", GOOD)
    assert (codes(done), done.works) == (["no usage"], True)


def test_the_list_shows_key_price_clearance_and_check_and_no_key(
    workspace: Workspace, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(workspace, wire, "openai", GOOD, data_class='"dua"')
    workspace.settings_file.write_text(
        workspace.settings_file.read_text() + '\n[model."anthropic/other"]\n[use]\njudge = "anthropic/other"\n'
    )
    monkeypatch.setenv("WIRE_KEY", "sk-MARKED-1")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    other, scripted = configured(workspace)
    assert (other.name, other.has_key, other.key_env, other.checked) == (
        "anthropic/other", False, "ANTHROPIC_API_KEY", None,
    )  # fmt: skip
    assert (other.uses, scripted.data_class, scripted.has_key, scripted.is_stale) == (("judge",), "dua", True, False)
    workspace.settings_file.write_text(workspace.settings_file.read_text().replace("2.0", "3.0"))
    assert configured(workspace)[1].is_stale
    for arguments in (["models", "list"], ["models", "list", "--json"]):
        said = CliRunner().invoke(app, arguments)
        assert said.exit_code == 0
        assert "sk-MARKED" not in said.output
        assert "openai/scripted" in said.output


def test_the_command_ends_with_what_it_found(
    workspace: Workspace, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(workspace, wire, "openai", GOOD)
    monkeypatch.setenv("WIRE_KEY", KEY)
    said = CliRunner().invoke(app, ["models", "check", "openai/scripted", "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["works"] is True
    wire.rewind()
    wire.players = {"scripted": Script([Reply(text="Hm.", tokens=MANY)])}
    said = CliRunner().invoke(app, ["models", "check", "openai/scripted"])
    assert said.exit_code == 1
    assert "fault: the model called no tool" in said.stdout
    assert CliRunner().invoke(app, ["models", "check", "openai/none"]).exit_code == 2
    assert CliRunner().invoke(app, ["models", "check", "openai/scripted", "--data-class", "x"]).exit_code == 2


@pytest.mark.parametrize(
    "url", ["http://user:s3cret@host/v1", "https://host/v1?api_key=s3cret", "https://host/v1#s3cret", "s3cret"]
)
def test_an_endpoint_holds_no_secret(workspace: Workspace, url: str) -> None:
    workspace.make()
    workspace.settings_file.write_text(f'[model."openai/x"]\nendpoint = "{url}"\n')
    with pytest.raises(SettingsError, match="address") as refused:
        configured(workspace)
    assert "s3cret" not in str(refused.value)
