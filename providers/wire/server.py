"""A loopback server that answers as model providers do, from scripts. Demonstration and tests play on it.

    with WireServer({"scripted": Script([...])}) as wire:
        wire.anthropic_url     # base URL for the anthropic SDK
        wire.openai_url        # base URL for the openai SDK

Nothing here decides anything: a Player does. What it does keep is how often a fault has been played to a conversation,
and every request that came in (`heard`, `requests`), so that a test can say what was really sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from providers.wire import anthropic_face, openai_face
from providers.wire.script import Fault, Heard, Player, Reply, Tokens
from providers.wire.strictness import Refused, check_anthropic, check_openai, check_thinking_returned
from tasks.errors import EnvironmentFault

KEY = "wire-key"


class WireServer:
    """Serves both wire formats on one loopback port until stopped.

    `players`: model name -> what answers for it. Any other model name is answered 404, any other key 401.
    Raises EnvironmentFault if the port cannot be bound.
    """

    def __init__(self, players: Mapping[str, Player], *, port: int = 0, key: str = KEY) -> None:
        self.players = dict(players)
        self.key = key
        self.requests: list[Mapping[str, Any]] = []
        self.heard: list[Heard] = []
        #: What was answered whole, by model: the tokens that a provider would put on the bill.
        self.served: dict[str, list[Tokens]] = {}
        self._played: Counter[tuple[str, int]] = Counter()
        self._guard = threading.Lock()
        app = Starlette(
            routes=[
                Route("/anthropic/v1/messages", self._messages, methods=["POST"]),
                Route("/openai/v1/chat/completions", self._completions, methods=["POST"]),
                Route("/anthropic/v1/models", self._models),
                Route("/openai/v1/models", self._models),
            ]
        )
        config = uvicorn.Config(
            app, host="127.0.0.1", port=port, log_level="critical", lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Serve in a thread of this process; returns once the port is bound."""
        self._thread = threading.Thread(target=self._server.run, name="wire-server", daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise EnvironmentFault("the scripted model server could not bind its port", where="127.0.0.1")
            self._thread.join(0.005)
        return self

    def join(self) -> None:
        """Wait until the server ends or KeyboardInterrupt comes."""
        while self._thread and self._thread.is_alive():
            self._thread.join(1.0)

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread:
            self._thread.join(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        socket = self._server.servers[0].sockets[0]
        return int(socket.getsockname()[1])

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/anthropic"

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/openai/v1"

    def rewind(self) -> None:
        """Forget what was played and heard: faults come again."""
        with self._guard:
            self._played.clear()
            self.requests.clear()
            self.heard.clear()
            self.served.clear()

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in self.players]})

    async def _messages(self, request: Request) -> Response:
        given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            body, heard, reply, fault, key = await self._answer(request, given, check_anthropic, anthropic_face.hear)
        except Refused as refused:
            return JSONResponse(anthropic_face.error(refused.kind, refused.message), refused.status)
        if fault and (wrong := _http_fault(fault, anthropic_face.ERROR_KINDS, anthropic_face.OVERFLOW)):
            status, kind, message, headers = wrong
            return JSONResponse(anthropic_face.error(kind, message), status, headers)
        if fault and fault.kind == "garbled":
            return Response("<html>upstream hiccup</html>", media_type="text/html")
        if not body.get("stream"):
            self._serve(heard, reply)
            return JSONResponse(anthropic_face.whole(reply, heard, key))
        lines = (
            f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in anthropic_face.events(reply, heard, key)
        )
        broken = json.dumps(anthropic_face.error("overloaded_error", "Overloaded"))
        return _stream(lines, fault, f"event: error\ndata: {broken}\n\n", lambda: self._serve(heard, reply))

    async def _completions(self, request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            body, heard, reply, fault, key = await self._answer(request, given, check_openai, openai_face.hear)
        except Refused as refused:
            return JSONResponse(openai_face.error(refused.kind, refused.message), refused.status)
        if fault and (wrong := _http_fault(fault, {}, openai_face.OVERFLOW)):
            status, kind, message, headers = wrong
            code = "context_length_exceeded" if fault.kind == "overflow" else None
            return JSONResponse(openai_face.error(kind, message, code), status, headers)
        if fault and fault.kind == "garbled":
            return Response("<html>upstream hiccup</html>", media_type="text/html")
        if not body.get("stream"):
            self._serve(heard, reply)
            return JSONResponse(openai_face.whole(reply, heard, key))
        chunks = (f"data: {json.dumps(data)}\n\n" for data in openai_face.events(reply, heard, key))
        broken = json.dumps(openai_face.error("server_error", "The server had an error. Sorry about that!"))
        end = "data: [DONE]\n\n"
        return _stream(chunks, fault, f"data: {broken}\n\n", lambda: self._serve(heard, reply), done=end)

    async def _answer(
        self, request: Request, given: str, check: Any, hear: Any
    ) -> tuple[Mapping[str, Any], Heard, Reply, Fault | None, str]:
        try:
            body = json.loads(await request.body())
        except ValueError as wrong:
            raise Refused(400, "invalid_request_error", "The request body is not valid JSON") from wrong
        if given != self.key:
            raise Refused(401, "authentication_error", "invalid x-api-key")
        check(body)
        player = self.players.get(body["model"])
        if player is None:
            raise Refused(404, "not_found_error", f"model: {body['model']}")
        heard, returned = hear(body)
        earlier = [player.reply(_at_turn(heard, turn)) for turn in range(heard.turn)]
        # Thinking that the limit cut has no signature, and a signature-less block is refused; so it stays away.
        sent = ["" if heard.face == "anthropic" and one.is_cut_in_thinking else one.thinking for one in earlier]
        check_thinking_returned(sent, returned)
        key = hashlib.sha256(f"{heard.model}\0{heard.system}\0{heard.first_user}".encode()).hexdigest()
        reply = player.reply(heard)
        with self._guard:
            self.requests.append(body)
            self.heard.append(heard)
            fault = self._next_fault(reply, (key, heard.turn))
        return body, heard, reply, fault, key

    def _serve(self, heard: Heard, reply: Reply) -> None:
        with self._guard:
            self.served.setdefault(heard.model, []).append(reply.tokens)

    def _next_fault(self, reply: Reply, place: tuple[str, int]) -> Fault | None:
        queue = [fault for fault in reply.faults for _ in range(fault.times)]
        played = self._played[place]
        self._played[place] += 1
        return queue[played] if played < len(queue) else None


def _at_turn(heard: Heard, turn: int) -> Heard:
    return Heard(
        heard.face, heard.model, heard.system, heard.first_user, turn, heard.calls, heard.results, heard.tools, None
    )


def _http_fault(
    fault: Fault, kinds: Mapping[int, str], overflow: str
) -> tuple[int, str, str, dict[str, str] | None] | None:
    if fault.kind == "overflow":
        return 400, "invalid_request_error", overflow, None
    if fault.kind != "status":
        return None
    kind = kinds.get(fault.status, "rate_limit_error" if fault.status == 429 else "api_error")
    headers = None if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
    return fault.status, kind, f"played fault {fault.status}", headers


def _stream(
    lines: Iterable[str], fault: Fault | None, broken: str, served: Callable[[], None], done: str = ""
) -> Response:
    async def body() -> AsyncIterator[str]:
        told = list(lines)
        breaks = fault is not None and fault.kind in ("stream_error", "cut_stream")
        # Never after the last line: that message would be whole.
        last = min(3, len(told) - 1) if breaks else len(told)
        for line in told[:last]:
            if fault and fault.kind == "slow":
                await asyncio.sleep(fault.delay)
            if line is told[-1]:
                # Before the last line: a client that has it may hang up, and this generator is never resumed.
                served()
            yield line
        if fault and fault.kind == "cut_stream":
            raise _Cut
        if fault and fault.kind == "stream_error":
            yield broken
            return
        if done:
            yield done

    return StreamingResponse(body(), media_type="text/event-stream")


class _Cut(Exception):
    """Ends the connection in the middle of a response, as a dying upstream does."""
