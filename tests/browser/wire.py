"""Everything that reached a browser's page: its source, and every websocket frame that was sent to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page


@dataclass
class Wire:
    """What one page was sent. Attach it before the page goes anywhere."""

    page: Page
    frames: list[bytes] = field(default_factory=list)
    #: The source of pages that were looked at, by their address.
    pages: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.page.on("websocket", self._opened)

    def _opened(self, socket: Any) -> None:
        socket.on("framereceived", self._received)

    def _received(self, payload: Any) -> None:
        self.frames.append(payload.encode("utf-8") if isinstance(payload, str) else bytes(payload))

    def where(self, *markers: str) -> dict[str, list[str]]:
        """{address: the markers that stand in its source} of the pages that were kept."""
        found = {path: [one for one in markers if one in source] for path, source in self.pages.items()}
        return {path: held for path, held in found.items() if held}

    def found(self, *markers: str) -> list[str]:
        """The markers that stand in the page's source, or in any frame so far."""
        source = self.page.content()
        sent = b"".join(self.frames)
        return [one for one in markers if one in source or one.encode("utf-8") in sent]
