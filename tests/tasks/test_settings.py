"""workbench.toml: strict, one message a mistake, and a first start that can be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tasks.errors import EnvironmentFault, SettingsError, UsageError
from tasks.people import ROLES, acting, person
from tasks.places import valid_keys
from tasks.settings import FIRST, Settings, parse
from tasks.taxonomy import GROUPS
from tasks.workspace import Workspace


def test_finding_a_workspace_writes_nothing(workspace: Workspace) -> None:
    assert workspace.cache == workspace.path / "cache"
    assert not workspace.path.exists()


def test_a_first_start_writes_defaults_and_people_marked_as_demonstration(workspace: Workspace) -> None:
    settings = workspace.settings
    assert workspace.settings_file.read_text("utf-8") == FIRST
    assert all(one.demonstration for one in settings.people)
    reviewers = [one for one in settings.people if one.has("reviewer")]
    assert len(reviewers) == 2
    assert all(one.groups == GROUPS for one in reviewers)
    assert {role for one in settings.people for role in one.roles} == set(ROLES)
    assert settings.model_copy(update={"people": (), "team": Settings().team}) == Settings()


def test_what_a_person_wrote_is_never_written_over(workspace: Workspace) -> None:
    workspace.make()
    workspace.settings_file.write_text("[limits]\nturns = 7\n", "utf-8")
    assert workspace.settings.limits.turns == 7
    assert workspace.settings_file.read_text("utf-8") == "[limits]\nturns = 7\n"


def keys(model: type[BaseModel], location: tuple[str, ...] = ()) -> set[str]:
    found = set()
    for key in valid_keys(model, location):
        found.add(key)
        found |= keys(model, (*location, key)) if len(location) < 4 else set()
    return found


def test_every_key_stands_in_the_file_that_a_first_start_writes() -> None:
    every = (
        keys(Settings)
        | set(valid_keys(Settings, ("model", "a/b")))
        | set(valid_keys(Settings, ("model", "a/b", "price")))
    )
    # Tables of backends that are not built: they are read, so that a file that has them stays valid, and not offered.
    unbuilt = {"hapi", "url"} | keys(Settings, ("ehr", "hapi")) | keys(Settings, ("ehr", "url"))
    missing = {key for key in every - unbuilt if key not in FIRST}
    assert missing == set()


def test_a_first_start_offers_only_backends_that_a_run_takes(workspace: Workspace) -> None:
    from runtime.ehr import BACKENDS

    assert workspace.settings.ehr.backend in BACKENDS
    offered = next(line for line in FIRST.splitlines() if line.startswith("backend = "))
    assert {"hapi", "url"} & set(re.findall(r"\w+", offered)) <= set(BACKENDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[use]\njugde = 'a/b'", "w:2: use.jugde: unknown key. Did you mean 'judge'?"),
        ("[use]\njudge = 'a/b'", "w:2: use.judge: there is no model 'a/b'. Add [model.\"a/b\"]."),
        ("[use]\njudge_votes = 1.5", "w:2: use.judge_votes: the value should be a valid integer"),
        ('[model."a/b"]\nprice.inptu = 1\nprice.output = 2',
         "w:2: model.a/b.price.inptu: unknown key. Did you mean 'input'?"),
        ('[model."a/b"]\nprice.input = 1', "w:2: model.a/b.price.output: the key is missing; add it"),
        ("[model.ab]", "w:1: model.ab: a model is named provider/name"),
        ('[model."a/b"]\nkey_env = "sk-123"', "w:2: model.a/b.key_env: the name of an environment variable is wanted"),
        ("[modle]", "w:1: modle: unknown key. Did you mean 'model'?"),
        ("[ehr]\nbackend = 'hapy'",
         "w:2: ehr.backend: 'hapy' is not one of 'embedded', 'hapi' or 'url'. Did you mean 'hapi'?"),
        ("[ehr]\nbackend = 'url'", "w:1: ehr.url.base_url: backend 'url' needs the server's http(s) address"),
        ("[ehr.hapi]\nmemory = '2 GB'", "w:2: ehr.hapi.memory:"),
        ("[review]\nblind = 'yes'", "w:2: review.blind: the value should be a valid boolean"),
        ("[limits]\nturns = 0", "w:2: limits.turns: the value should be greater than or equal to 1"),
        ("[limits]\nturns = 1\nturns = 2", "w:3: not valid TOML: cannot overwrite a value"),
        ("x = ", "w:1: not valid TOML"),
        ("\ufeffx = 1", "w:1: the file begins with a byte order mark"),
        ("", "w: the file is empty"),
        (
            "[[person]]\nid = 'a1'\nname = 'A'\nemail = 'a@x.invalid'\nroles = ['boss']",
            "w:5: person[1].roles[1]: 'boss' is not one of",
        ),
        (
            "[[person]]\nid = 'a1'\nname = 'A'\nemail = 'a@x.invalid'\nroles = ['reviewer']",
            "w:1: person[1].specialties: a reviewer needs at least one",
        ),
        (
            "[[person]]\nid = 'a1'\nname = 'A'\nemail = 'nowhere'\nroles = ['lead']",
            "w:4: person[1].email: not an e-mail address",
        ),
        (
            "[[person]]\nid = 'a1'\nname = 'A'\nemail = 'a@x.invalid'\nroles = ['lead']\n"
            "[[person]]\nid = 'a1'\nname = 'B'\nemail = 'b@x.invalid'\nroles = ['lead']",
            "w:7: person[2].id: 'a1' stands twice",
        ),
    ],
)  # fmt: skip
def test_a_mistake_gives_one_message_with_line_and_key(text: str, said: str) -> None:
    _, found = parse(text.encode(), "w")
    assert len(found) == 1, found
    assert str(found[0]).startswith(said)
    assert "sk-123" not in str(found[0])


def test_several_mistakes_are_told_at_once(workspace: Workspace) -> None:
    workspace.make()
    workspace.settings_file.write_text("[limits]\nturns = 0\n[use]\njudge = 1\n", "utf-8")
    with pytest.raises(SettingsError) as caught:
        _ = workspace.settings
    assert caught.value.where == f"{workspace.settings_file}:2"
    assert str(caught.value).count("\n") == 1
    assert caught.value.exit_code == 2


def test_settings_that_are_a_folder_are_one_message(workspace: Workspace) -> None:
    workspace.settings_file.mkdir(parents=True)
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        _ = workspace.settings


def test_a_workspace_that_cannot_be_made_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(EnvironmentFault, match="WORKBENCH_WORKSPACE"):
        _ = Workspace(tmp_path / "file" / "workspace").settings


def test_the_actor_is_the_one_named_or_the_one_with_gits_email(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = workspace.settings.people
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "none"))
    (tmp_path / "gitconfig").write_text("[user]\n\temail = Demo-Lead@workbench.invalid\n", "utf-8")
    assert acting(people, folder=tmp_path).id == "demo-lead"
    assert acting(people, "demo-author", folder=tmp_path).id == "demo-author"
    with pytest.raises(UsageError, match="Did you mean 'demo-author'"):
        acting(people, "demo-autor", folder=tmp_path)
    (tmp_path / "gitconfig").write_text("[user]\n\temail = somebody@else.invalid\n", "utf-8")
    with pytest.raises(UsageError, match="nobody's"):
        acting(people, folder=tmp_path)
    (tmp_path / "gitconfig").write_text("", "utf-8")
    with pytest.raises(UsageError, match="nobody is named"):
        acting(people, folder=tmp_path)


def test_a_person_is_found_by_id(workspace: Workspace) -> None:
    assert person(workspace.settings.people, "demo-steward").roles == ("steward",)
