"""Single sign-on for real: a provider on loopback in front of the app, in a Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from authoring.desk import Desk
from authoring.library import open_store
from runtime.batch import Item
from tasks.package import FolderSource
from tasks.people import person
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
CLOSED, OPEN = "nephrology-closed", "nephrology-open"
#: What stands in the closed task and nowhere else: its title, its instruction, a note of its chart, a checkpoint.
TITLE, ASKED, NOTE, CHECK = (
    "Zirconium title of the closed task",
    "Zirconium request",
    "Zirconium note",
    "Zirconium check",
)
MARKERS = (TITLE, ASKED, NOTE, CHECK)
PAGES = (
    "/",
    "/tasks",
    f"/task?id={CLOSED}",
    f"/task?id={CLOSED}&view=Checkpoints",
    f"/task?id={CLOSED}&view=Every+resource&at=DocumentReference/n-1",
    f"/review?id={CLOSED}",
    f"/propose?id={CLOSED}",
    f"/proposals?id={CLOSED}",
    f"/decide?id={CLOSED}",
    f"/signoff?id={CLOSED}",
    "/run",
    "/trials",
    f"/trials?q={CLOSED}",
    f"/trial?batch=b-1&task={CLOSED}&agent=noop&run=1",
    f"/trial?batch=b-1&task={CLOSED}&agent=noop&run=1&chart=1&step=0",
    "/results?batch=b-1",
    "/results?batch=b-1&view=Every+task+and+agent",
    "/calibrate?batch=b-1",
)


@pytest.fixture(scope="module")
def workspace(packages: ModuleType, reviews: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two tasks, one of data class dua and under review, both run by an agent."""
    root = tmp_path_factory.mktemp("identity")
    chart = packages.resources()
    chart.append(packages.note("n-9", NOTE, "2025-04-02T10:00:00-05:00", NOTE))
    packages.write(root / "suite", OPEN)
    closed = packages.write(
        root / "suite",
        CLOSED,
        title=TITLE,
        instruction=f"# Consult\n\n{ASKED}: potassium\n",
        chart=chart,
        checkpoints=packages.CHECKPOINTS.replace("Potassium found", CHECK),
    )
    manifest = closed / "task.toml"
    manifest.write_text(manifest.read_text("utf-8").replace('data_class = "open"', 'data_class = "dua"'), "utf-8")
    made = Workspace(root / "workspace")
    source = FolderSource(root / "suite")
    store = open_store(made, suite=source)
    lead = Desk(made, store, person(made.settings.people, "demo-lead"), verified=True)
    for who in ("demo-reviewer-1", "demo-reviewer-2"):
        lead.assign(CLOSED, who, "reviewer")
    lead.open_round(CLOSED)
    items = [Item(source.load(id), "noop", 1, source.root / id) for id in (OPEN, CLOSED)]
    reviews.run(made, items)
    return made


@pytest.fixture(scope="module")
def sign_on(load: Callable[[str], ModuleType], playwright: object) -> Iterator[Any]:
    with load("openid").provider() as running:
        yield running


@pytest.fixture(scope="module")
def app(
    serve: Callable[..., Any], sign_on: Any, workspace: Workspace, tmp_path_factory: pytest.TempPathFactory,
    free_port: Callable[[], int],
) -> Iterator[str]:  # fmt: skip
    """The app with sign-on configured."""
    port = free_port()
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.toml"
    secrets.write_text(sign_on.secrets(port), "utf-8")
    environment = {"WORKBENCH_WORKSPACE": str(workspace.path), "STREAMLIT_SECRETS_FILES": str(secrets)}
    with serve(ROOT / "app.py", environment, port) as url:
        yield url


def claims(email: str, **more: Any) -> dict[str, Any]:
    return {"sub": f"sub-{email}", "email": email, "email_verified": True, "name": "Whoever", **more}


def sign_in(page: Page) -> None:
    page.get_by_role("button", name="Sign in").click(delay=120)


def email_of(workspace: Workspace, id: str) -> str:
    return person(workspace.settings.people, id).email


def test_nobody_sees_anything_before_signing_in(
    app: str, look: Callable[..., Any], load: Callable[[str], ModuleType]
) -> None:
    seen = look(app)
    wire = load("wire").Wire(seen.page)
    for path in PAGES:
        seen.open(path)
        expect(seen.page.get_by_role("heading", name="Sign in")).to_be_visible()
        # Nor does it help to say who one is.
        seen.open(f"{path}{'&' if '?' in path else '?'}as=demo-lead")
        expect(seen.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert wire.found(*MARKERS, "Potassium 5.6", "Demo reviewer", "Demo lead", OPEN) == []


def test_a_person_is_found_by_address_and_reads_what_is_closed_to_others(
    app: str, sign_on: Any, workspace: Workspace, look: Callable[..., Any]
) -> None:
    sign_on.claims = claims(email_of(workspace, "demo-reviewer-1").upper())
    seen = look(app)
    seen.open()
    sign_in(seen.page)
    page = seen.page
    expect(page.get_by_text("Identity verified")).to_be_visible()
    expect(page.get_by_text("Demo reviewer 1 · Reviewer")).to_be_visible()
    expect(page.get_by_text(TITLE).first).to_be_visible()
    seen.open(f"/review?id={CLOSED}")
    expect(page.get_by_text(ASKED).first).to_be_visible()
    # Whoever signed in cannot be somebody else by saying so.
    seen.open(f"/signoff?id={CLOSED}&as=demo-lead")
    expect(page.get_by_role("heading", name=TITLE)).to_be_visible()
    assert page.get_by_role("button", name="Open round").count() == 0
    seen.open("/")
    expect(page.get_by_text("Demo reviewer 1 · Reviewer")).to_be_visible()
    # A reload, and a second tab of the same browser, are signed in as well.
    page.reload()
    expect(page.get_by_text("Identity verified")).to_be_visible()
    page.get_by_role("button", name="Sign out").click(delay=120)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(f"{app}/review?id={CLOSED}")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    seen.settle()
    assert seen.faults() == []
    assert sign_on.refused == []
    assert seen.outside == []


def test_the_bar_holds_what_the_role_may_use(
    app: str, sign_on: Any, workspace: Workspace, look: Callable[..., Any]
) -> None:
    entries = {}
    for id in ("demo-reviewer-1", "demo-adjudicator"):
        sign_on.claims = claims(email_of(workspace, id))
        seen = look(app)
        seen.open()
        sign_in(seen.page)
        expect(seen.page.get_by_text("Identity verified")).to_be_visible()
        seen.settle()
        entries[id] = [one.inner_text().split("\n")[-1] for one in seen.page.get_by_test_id("stTopNavLink").all()]
    assert entries["demo-reviewer-1"] == ["Home", "Tasks", "Run", "Trials", "Results", "Guide"]
    assert entries["demo-adjudicator"] == ["Home", "Tasks", "Trials", "Results", "Guide"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"email_verified": False}, "nobody has checked whether this address is yours"),
        ({"email_verified": "false"}, "nobody has checked whether this address is yours"),
        ({"email_verified": None}, "nobody has checked whether this address is yours"),
        ({"email": "stranger@example.org"}, "Nobody of this workspace has this address."),
        ({"email": ""}, "carries no e-mail address"),
    ],
)
def test_whoever_is_not_admitted_is_told_why_and_sees_nothing(
    app: str,
    sign_on: Any,
    workspace: Workspace,
    look: Callable[..., Any],
    load: Callable[[str], ModuleType],
    more: dict[str, Any],
    words: str,
) -> None:
    given = claims(email_of(workspace, "demo-lead")) | more
    sign_on.claims = {name: value for name, value in given.items() if value is not None}
    seen = look(app)
    wire = load("wire").Wire(seen.page)
    seen.open()
    sign_in(seen.page)
    expect(seen.page.get_by_text(words)).to_be_visible()
    for path in PAGES:
        seen.open(path)
        expect(seen.page.get_by_text(words)).to_be_visible()
    assert wire.found(*MARKERS, "Potassium 5.6", "Demo reviewer", OPEN) == []
    seen.page.get_by_role("button", name="Sign out").click(delay=120)
    expect(seen.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_provider_whose_addresses_are_vouched_for_need_not_say_so(
    serve: Callable[..., Any], sign_on: Any, workspace: Workspace, look: Callable[..., Any], tmp_path: Path,
    free_port: Callable[[], int],
) -> None:  # fmt: skip
    port = free_port()
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(sign_on.secrets(port, sign_on="addresses_are_verified = true"), "utf-8")
    environment = {"WORKBENCH_WORKSPACE": str(workspace.path), "STREAMLIT_SECRETS_FILES": str(secrets)}
    with serve(ROOT / "app.py", environment, port) as url:
        given = claims(email_of(workspace, "demo-lead"))
        del given["email_verified"]
        sign_on.claims = given
        seen = look(url)
        seen.open()
        sign_in(seen.page)
        expect(seen.page.get_by_text("Identity verified")).to_be_visible()


@pytest.mark.parametrize("who", ["", "demo-reviewer-1", "demo-lead", "demo-steward"])
def test_local_mode_says_nothing_of_a_task_that_is_not_open(
    serve: Callable[..., Any],
    workspace: Workspace,
    look: Callable[..., Any],
    load: Callable[[str], ModuleType],
    local: str,
    who: str,
) -> None:
    seen = look(local)
    wire = load("wire").Wire(seen.page)
    for path in PAGES:
        seen.open(f"{path}{'&' if '?' in path else '?'}as={who}")
        assert wire.found(*MARKERS) == [], path
        if path == "/results?batch=b-1":
            expect(seen.page.get_by_text("1 task × 1 agent")).to_be_visible()
            expect(seen.page.get_by_text("whose data class is not open are not shown")).to_be_visible()
    # The search does find what is open.
    assert wire.found("Potassium 5.6") == ["Potassium 5.6"]


@pytest.fixture(scope="module")
def local(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    """The same workspace without sign-on."""
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url
