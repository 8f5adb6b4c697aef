"""The one loopback HTTP server of this process, shared by its sessions.

It starts when the first base URL is asked for, on a port that the kernel chooses, and stops with the process (a server
a session would cost half a second each at shutdown). A session lives under an unguessable path. Requests are answered
on the server's own thread, one after another: each takes about a millisecond, and Python would not run two at once.
Nothing of a request is logged: queries hold what is known of a patient.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from runtime.ehr import rest
from runtime.ehr.session import Response
from tasks.errors import EnvironmentFault

Handler = Callable[[rest.Request], Response]
_Scope = dict[str, Any]
_Receive = Callable[[], Awaitable[dict[str, Any]]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]

#: Seconds that an idle connection is kept. A model thinks for minutes between two calls, and a client that finds its
#: connection gone cannot know whether its create was taken.
KEEP_ALIVE = 900
#: How much of a refused body is read away, so that the client sees the answer instead of a reset connection.
_DRAINED = 256 * 1024 * 1024


class LoopbackServer:
    """An HTTP server on 127.0.0.1 for the sessions of one process."""

    _current: ClassVar[LoopbackServer | None] = None
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, port: int = 0) -> None:
        """Bind and start. Raises EnvironmentFault if the port cannot be had."""
        self._handlers: dict[str, Handler] = {}
        self._pid = os.getpid()
        # With the protocol named, asyncio turns Nagle's algorithm off; without, each answer takes 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("127.0.0.1", port))
            # Connections made from here on wait for the server's thread, so nobody has to wait for its start.
            self._socket.listen(512)
        except (OSError, OverflowError) as fault:
            self._socket.close()
            raise EnvironmentFault(
                f"Port {port} of 127.0.0.1 cannot be had: {getattr(fault, 'strerror', None) or fault}.",
                remedy="Use another, or 0 to let the kernel choose.",
            ) from fault
        self.port: int = self._socket.getsockname()[1]
        self._stop: Callable[[], None] = lambda: None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ehr-http", daemon=True)
        self._thread.start()

    @classmethod
    def of_this_process(cls, port: int = 0) -> LoopbackServer:
        """The server of this process, started at first use; a forked child gets its own."""
        with cls._making:
            server = cls._current
            if server is None or not server._thread.is_alive():
                server = cls._current = cls(port)
                atexit.register(server.stop)
            return server

    @classmethod
    def _after_fork(cls) -> None:
        """In a child: let go of the parent's socket, or its port would stay taken and answer nobody."""
        cls._making = threading.Lock()
        if cls._current is not None:
            cls._current._socket.close()
            cls._current = None

    def mount(self, handler: Handler) -> str:
        """The base URL under which `handler` answers from now on."""
        token = secrets.token_urlsafe(16)
        self._handlers[token] = handler
        return f"http://127.0.0.1:{self.port}/s/{token}/fhir"

    def unmount(self, base_url: str) -> None:
        """Take a base URL away; it answers 404 from now on."""
        self._handlers.pop(base_url.split("/")[-2], None)

    def stop(self) -> None:
        """Stop serving, and give the port back. Connections are closed; stopping twice is fine."""
        if self._pid == os.getpid() and self._thread.is_alive():
            self._ready.wait(10)
            self._stop()
            self._thread.join(10)
        self._socket.close()

    def _run(self) -> None:
        import uvicorn

        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            proxy_headers=False,
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=256 * 1024,
        )
        server = uvicorn.Server(config)

        def stop() -> None:
            server.should_exit = True

        self._stop = stop
        self._ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            server.run(sockets=[self._socket])

    async def _app(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._answer(scope, receive)
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        if scope["method"] != "HEAD" and response.status != 304:
            headers.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _answer(self, scope: _Scope, receive: _Receive) -> Response:
        raw = scope.get("raw_path") or scope["path"].encode()
        _, _, token, *rest_of_path = raw.decode("latin-1").split("/", 3) if raw.startswith(b"/s/") else ("", "", "")
        path = "/".join(rest_of_path)
        handler = self._handlers.get(token)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = await _read_body(headers, receive)
        if handler is None or not (path == "fhir" or path.startswith("fhir/")):
            return rest.failure(404, "not-found", "There is no session at this address: it was closed or never was.")
        if body is None:
            return rest.too_large()
        query = scope["query_string"].decode("latin-1")
        try:
            return handler(rest.Request(scope["method"], path[5:], query, headers, body))
        except EnvironmentFault:
            return rest.failure(404, "not-found", "The session at this address was closed.")
        except Exception as fault:  # noqa: BLE001 (a fault of ours must not print a chart's text to a log)
            return rest.failure(500, "exception", f"The server failed on this request ({type(fault).__name__}).")


os.register_at_fork(after_in_child=LoopbackServer._after_fork)


async def _read_body(headers: dict[str, str], receive: _Receive) -> bytes | None:
    """The body, or None if it is too large."""
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return b""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= rest.MAX_BODY:
            chunks.append(chunk)
        else:
            chunks.clear()
        if not message.get("more_body") or size > _DRAINED:
            return b"".join(chunks) if size <= rest.MAX_BODY else None
