"""A room with one open finding or several, and a scripted reviser behind the real wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from providers.wire import Reply, Script, WireServer
from tasks.workspace import Workspace
from tests.authoring.revise.revising import Revising
from tests.authoring.rooms import Room


@pytest.fixture
def revising(workspace: Workspace) -> Iterator[Callable[..., Revising]]:
    """`revising(room, reply, …, face="anthropic")`: the room with a model that gives these replies."""
    servers: list[WireServer] = []

    def start(room: Room, *replies: Reply, face: str = "anthropic") -> Revising:
        server = WireServer({"scripted": Script(replies)}).start()
        servers.append(server)
        return Revising(room, server, face)

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def room(workspace: Workspace) -> Room:
    """A workspace with the tiny task, nothing done yet."""
    return Room(workspace)
