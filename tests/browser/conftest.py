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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, TimeoutError, expect, sync_playwright

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
#: How long anything on a page is waited for, in ms. What a page is slow at under load is no fault of it: speed is
#: measured by benchmarks.review_pages, on a quiet machine.
PATIENCE = 90_000


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
        # Whoever knows that there is one (.ci/run) does not take a skipped test for a passed one.
        if os.environ.get("WORKBENCH_BROWSER") == "required":
            pytest.fail("WORKBENCH_BROWSER=required, and no Chromium is found on this machine")
        pytest.skip("no Chromium on this machine")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


#: What runs out of the page sideways, and by how much; null if nothing does.
BEYOND = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  const by = Math.max(main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth);
  const out = [...main.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
  return by <= 1 ? null : [by, ...out.slice(0, 8).map((one) => `${one.tagName} ${one.className}`.slice(0, 90))];
}"""


#: The script has run and ended, nothing waits to be drawn anew, and every choice is confirmed by the server.
AT_REST = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
  && !document.querySelector('[data-testid=stStatusWidget]')
  && document.querySelectorAll('[data-stale=true], .wb-sheet[data-waiting]').length === 0"""
#: Two frames later. What React has drawn hears keys once it has been painted: a person cannot be faster, a test can.
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


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
        # Looked for frame by frame: wait_for_selector looks every half second.
        self.page.wait_for_function("() => document.querySelector('h1')?.getClientRects().length > 0")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is at rest and painted.

        After a press what the press brings is expected first, then this: Streamlit's page learns that a run has begun
        from the server, so that right after a click the page is still at rest as it was before it.
        """
        # Looked for at 20 a second: once a frame costs 7% of a processor while it waits.
        self.page.wait_for_function(AT_REST, polling=50)
        self.page.evaluate(PAINTED)

    def faults(self) -> list[tuple[str, str, str]]:
        """What axe holds serious or critical, Streamlit's own parts included: rule, place, source."""
        found = Axe().run(self.page).response
        # Contrast was really measured: 4.5:1 is axe's rule for text, of luminance, so that it holds in grayscale too.
        assert any(one["id"] == "color-contrast" for one in found["passes"])
        return [
            (one["id"], str(node["target"]), node["html"][:160])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def fits(self, width: int) -> None:
        """In a window so wide nothing has to be scrolled sideways. A table follows its window in a moment. 640 is half
        of 1280, and so is the height: what a window of 1280 × 900 holds at 200%."""
        self.page.set_viewport_size({"width": width, "height": 450 if width == 640 else 900})
        self.settle()
        with suppress(TimeoutError):
            self.page.wait_for_function(f"() => ({BEYOND})() === null")
        assert self.page.evaluate(BEYOND) is None, f"at {width}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


#: This worker's own ports, below those that the system gives to connections: another worker never takes one of them.
#: The first that is free is taken, so that the browser mostly knows Streamlit's files already.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = range(20_000 + 200 * (_WORKER % 60), 20_200 + 200 * (_WORKER % 60))


def _free_port() -> int:
    return next(filter(_is_free, _PORTS))


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it is this process that answers there, and not a server of another test run."""
    with suppress(psutil.Error):
        found = psutil.Process(process.pid).net_connections("tcp")
        return any(one.status == psutil.CONN_LISTEN and one.laddr[1] == port for one in found)
    return False


def _is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def running(script: Path, environment: dict[str, str], port: int = 0) -> Iterator[str]:
    """The app as a user starts it, on a free port unless one is given; its address."""
    port = port or _free_port()
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
        while not (_listens(process, port) and _is_healthy(address)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the app did not start")
            # Waiting for a server that says nothing when it is ready.
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            # Seen once in twenty under load: no page is running any more, and its web server waits for a connection
            # that the browser has not closed.
            process.kill()
            process.wait(timeout=30)


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """A port for `serve`, where something has to name it before the app runs on it."""
    return _free_port


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


@pytest.fixture(scope="session")
def windows(chromium: Browser) -> Iterator[list[BrowserContext]]:
    """Browser windows that no test has at the moment, each with one empty tab. They keep the cache of what Streamlit is
    made of: a page in a new window takes a second more."""
    free: list[BrowserContext] = []
    yield free
    for window in free:
        window.close()


@contextmanager
def looking(chromium: Browser, windows: list[BrowserContext]) -> Iterator[Callable[..., Seen]]:
    """Opens a browser window of a person's own on an address, and watches it: no cookie, no tab and with it no session
    storage is in it from before."""
    mine = []

    def opened(url: str, width: int = 1280) -> Seen:
        if windows:
            window = windows.pop()
        else:
            window = chromium.new_context()
            window.new_page()
        mine.append(window)
        page = window.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.set_default_timeout(PATIENCE)
        seen = Seen(page, url)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        return seen

    yield opened
    for window in mine:
        for page in window.pages[1:]:
            page.close()
        window.clear_cookies()
    windows += mine


@pytest.fixture
def look(chromium: Browser, windows: list[BrowserContext]) -> Iterator[Callable[..., Seen]]:
    """`looking`, for one test."""
    with looking(chromium, windows) as opened:
        yield opened


@pytest.fixture(scope="module")
def one_by_one(chromium: Browser, windows: list[BrowserContext]) -> Iterator[Callable[[str, str], Seen]]:
    """Opens one address after the other in one tab, for a file that looks at many: a page in a tab that has shown one
    before takes a third of the time. What was seen is of the last page alone."""
    with looking(chromium, windows) as opened:
        tab: list[Seen] = []

        def go(url: str, path: str) -> Seen:
            if not tab:
                tab.append(opened(url))
            (seen,) = tab
            seen.page.set_viewport_size({"width": 1280, "height": 900})
            seen.requests.clear()
            seen.errors.clear()
            seen.open(path)
            return seen

        yield go
