"""The app in a process of its own, and a real Chromium to look at it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def packages() -> ModuleType:
    """tests/review_ui/packages.py."""
    if "packages" in sys.modules:
        return sys.modules["packages"]
    spec = importlib.util.spec_from_file_location("packages", ROOT / "tests" / "review_ui" / "packages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["packages"] = module
    spec.loader.exec_module(module)
    return module


def _beside(name: str) -> ModuleType:
    """A module that stands beside this file."""
    if f"browser_{name}" in sys.modules:
        return sys.modules[f"browser_{name}"]
    spec = importlib.util.spec_from_file_location(f"browser_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"browser_{name}"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def load() -> Callable[[str], ModuleType]:
    """Modules that stand beside this file, by name."""
    return _beside


@pytest.fixture(scope="session")
def reviews() -> ModuleType:
    """tests/browser/reviews.py: workspaces with tasks under review."""
    return _beside("reviews")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@dataclass
class Seen:
    """A page, and what happened in it."""

    page: Page
    url: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """Requests that left this machine."""
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in {"data", "blob", "about"} and urlsplit(url).hostname not in {"127.0.0.1"}
        ]

    def open(self, path: str = "/") -> None:
        """Go there and wait for the page's heading, and for the script to have finished."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector("h1", timeout=60_000)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being drawn, and every choice is confirmed by the server."""
        self.page.wait_for_function(
            "() => document.querySelectorAll('[data-stale=true], .wb-sheet[data-waiting]').length === 0"
            " && !document.querySelector('[data-testid=stStatusWidget]')"
            " && document.querySelector('[data-testid=stApp]')?.dataset.testScriptState !== 'running'",
            timeout=60_000,
        )


@contextmanager
def running(script: Path, environment: dict[str, str], port: int = 0) -> Iterator[str]:
    """The app as a user starts it, on a free port unless one is given; its address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)],
        cwd=ROOT,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5) as answer:
                    if answer.status == 200:
                        break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the app did not start")
            # Waiting for a server that says nothing when it is ready.
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def serve() -> Callable[[Path, dict[str, str]], object]:
    """Starts the app: `with serve(script, environment) as address`."""
    return running


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory, playwright: Playwright) -> Iterator[str]:
    """The app as `make app` starts it, with nothing configured."""
    workspace = tmp_path_factory.mktemp("workspace") / "workspace"
    with running(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace)}) as url:
        yield url


@pytest.fixture
def look(chromium: Browser) -> Iterator[Callable[[str], Seen]]:
    """Opens a fresh browser window on an address, and watches it."""
    contexts = []

    def opened(url: str, width: int = 1280) -> Seen:
        context = chromium.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        seen = Seen(page, url)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        return seen

    yield opened
    for context in contexts:
        context.close()
