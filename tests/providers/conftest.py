"""A scripted provider and a client of each wire format for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from providers import Chat, RetryPolicy, chat
from providers.wire import KEY, Reply, Script, WireServer
from tasks.settings import ModelSettings, Price

FACES = ("anthropic", "openai")


PRICE = Price(input=2.0, cache_read=0.2, cache_write=2.5, output=10.0)


class Played:
    """A wire server with one script, and chats with it that never really wait."""

    def __init__(self, server: WireServer) -> None:
        self.server = server
        self.waits: list[float] = []
        self.chats: list[Chat] = []

    def chat(self, face: str, *, budget: float = 600.0, model: str = "scripted", **settings: Any) -> Chat:
        url = self.server.anthropic_url if face == "anthropic" else self.server.openai_url
        policy = RetryPolicy(budget=budget, sleep=self.waits.append)
        key = settings.pop("key", KEY)
        data_class = settings.pop("task_class", "open")
        made = chat(
            f"{face}/{model}",
            ModelSettings(**({"endpoint": url, "key_env": "WIRE_KEY", "max_output": 2000, "price": PRICE} | settings)),
            data_class=data_class,
            policy=policy,
            environ={"WIRE_KEY": key},
        )
        self.chats.append(made)
        return made


@pytest.fixture(scope="module")
def shared_server() -> Iterator[WireServer]:
    """One server a module: it keeps nothing between tests but its port."""
    with WireServer({}) as server:
        yield server


@pytest.fixture
def play(shared_server: WireServer) -> Iterator[Callable[..., Played]]:
    servers: list[WireServer] = []
    players: list[Played] = []

    def start(*replies: Reply, player: Any = None) -> Played:
        script = {"scripted": player or Script(replies)}
        if players:  # a test that plays twice gets a second server
            servers.append(WireServer(script).start())
            players.append(Played(servers[-1]))
        else:
            shared_server.rewind()
            shared_server.players = script
            players.append(Played(shared_server))
        return players[-1]

    yield start
    for made in (one for played in players for one in played.chats):
        made.close()
    for server in servers:
        server.stop()


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)
