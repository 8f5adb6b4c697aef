"""A voucher says of one errand that its person was verified, and is good for nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from authoring.vouching import GOOD_FOR, VARIABLE, Errand, taken, vouch, vouched
from tasks.errors import EnvironmentFault
from tasks.workspace import Workspace

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
ERRAND = Errand("ann", "apply", "cardiology-001", "5" * 32, "5" * 32)


def test_it_is_good_for_its_errand(workspace: Workspace) -> None:
    voucher = vouch(workspace, ERRAND, now=NOW)
    assert vouched(workspace, ERRAND, voucher, now=NOW + timedelta(seconds=2))
    assert vouched(workspace, ERRAND, vouch(workspace, ERRAND, now=NOW), now=NOW), "the key is made once"


@pytest.mark.parametrize("field", ["person", "command", "task", "submission", "job"])
def test_it_is_good_for_no_other(workspace: Workspace, field: str) -> None:
    voucher = vouch(workspace, ERRAND, now=NOW)
    assert not vouched(workspace, replace(ERRAND, **{field: "other"}), voucher, now=NOW)


def test_it_is_good_for_a_quarter_of_an_hour_and_its_time_cannot_be_changed(workspace: Workspace) -> None:
    voucher = vouch(workspace, ERRAND, now=NOW)
    late = NOW + GOOD_FOR + timedelta(seconds=1)
    assert not vouched(workspace, ERRAND, voucher, now=late)
    assert not vouched(workspace, ERRAND, voucher, now=NOW - timedelta(minutes=1))
    issued, _, given = voucher.partition(" ")
    assert not vouched(workspace, ERRAND, f"{late.isoformat()} {given}", now=late)
    assert not vouched(workspace, ERRAND, f"{issued} {'0' * 64}", now=NOW)


@pytest.mark.parametrize("given", ["", " ", "x", "2026-03-14T09:00:00+00:00 ", "never é", "now " + "f" * 64])
def test_what_is_no_voucher_is_none(workspace: Workspace, given: str) -> None:
    assert not vouched(workspace, ERRAND, given, now=NOW), "no key"
    vouch(workspace, ERRAND)
    assert not vouched(workspace, ERRAND, given, now=NOW)


def test_a_key_that_others_can_read_or_that_is_a_link_counts_for_nothing(workspace: Workspace) -> None:
    voucher = vouch(workspace, ERRAND, now=NOW)
    key = workspace.jobs / "vouching.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in workspace.jobs.iterdir()] == [key.name], "nothing is left beside it"
    key.chmod(0o640)
    assert not vouched(workspace, ERRAND, voucher, now=NOW)
    with pytest.raises(EnvironmentFault, match="cannot be carried"):
        vouch(workspace, ERRAND)
    key.chmod(0o600)
    elsewhere = key.rename(workspace.path / "elsewhere")
    key.symlink_to(elsewhere)
    assert not vouched(workspace, ERRAND, voucher, now=NOW)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_key_of_another_user_than_the_workspace_s_owner_counts_for_nothing(workspace: Workspace) -> None:
    voucher = vouch(workspace, ERRAND, now=NOW)
    os.chown(workspace.jobs / "vouching.key", 12345, -1)
    assert not vouched(workspace, ERRAND, voucher, now=NOW)


def test_no_child_inherits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "now abc")
    assert taken() == "now abc"
    assert VARIABLE not in os.environ
    assert taken() == ""
