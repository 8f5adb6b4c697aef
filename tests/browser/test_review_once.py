"""Every button that submits something, pressed twice, 450 ms apart: one submission each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
WHOLE = "nephrology-finerenone-011"
HARM = {"kind": "commission", "severity": "severe", "likelihood": "possible"}
EDIT = {"kind": "text", "path": "instruction.md", "find": "advise.", "replace": "advise today."}


@dataclass
class Room:
    """One task at one stage, made through the desk."""

    workspace: Workspace
    reviews: ModuleType
    task: str
    url: str

    def desk(self, who: str) -> Any:
        return self.reviews.desk(self.workspace, who)

    @property
    def events(self) -> list[Any]:
        desk = self.desk(self.reviews.LEAD)
        with desk.store.at() as view:
            return list(desk.snapshot(view, self.task).events)

    def decided(self, *words: str) -> None:
        """One change of the instruction, and what the reviewers say of it."""
        (ref,) = self.reviews.proposed(self.workspace, self.task, ({"edit": EDIT, "rationale": "Today."},)).changes
        for who, word in zip((self.reviews.ONE, self.reviews.TWO), words, strict=False):
            one = {"change": ref.change, "base": ref.base, "result": ref.result, "decision": word}
            if word != "approve":
                one |= {"reason": "It is not right."}
            if word == "veto":
                one |= {"harm": HARM}
            self.desk(who).decide(self.task, [one])


def small(kind: str) -> str:
    """The small task of one case."""
    return f"nephrology-{kind.replace('_', '-').replace(' ', '-')}"


@pytest.fixture(scope="module")
def shared(
    serve: Callable[..., Any], packages: ModuleType, reviews: ModuleType, tmp_path_factory: pytest.TempPathFactory,
    playwright: object,
) -> Iterator[tuple[Workspace, str]]:  # fmt: skip
    """One workspace and one server for all cases, each on a task of its own."""
    root = tmp_path_factory.mktemp("once")
    for kind in CASES:
        packages.write(root / "suite", small(kind))
    workspace = Workspace(root / "workspace")
    reviews.desk(workspace, reviews.LEAD, root / "suite")
    with workspace.settings_file.open("a", encoding="utf-8") as file:
        file.write(
            '\n[[person]]\nid = "outside"\nname = "Of another group"\nemail = "outside@workbench.invalid"\n'
            'roles = ["reviewer"]\nspecialties = ["Psychiatry"]\n'
        )
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield workspace, url


@pytest.fixture(scope="module")
def whole(
    serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, playwright: object
) -> Callable[[], AbstractContextManager[tuple[Workspace, str]]]:
    """A workspace over the bundled tasks. Only a task with all that a release needs can be signed."""

    @contextmanager
    def opened() -> Iterator[tuple[Workspace, str]]:
        workspace = Workspace(tmp_path_factory.mktemp("whole") / "workspace")
        with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
            yield workspace, url

    return opened


@pytest.fixture
def room(
    reviews: ModuleType, shared: tuple[Workspace, str], kind: str,
    whole: Callable[[], AbstractContextManager[tuple[Workspace, str]]],
) -> Iterator[Room]:  # fmt: skip
    """Both have judged, one with a finding."""
    own = kind in ("signed", "released")
    with whole() if own else nullcontext(shared) as (workspace, url):
        task = WHOLE if own else small(kind)
        reviews.opened(workspace, task)
        reviews.judged(workspace, task, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
        yield Room(workspace, reviews, task, url)


def write(page: Page, name: str, text: str) -> None:
    box = page.get_by_role("textbox", name=name)
    box.fill(text)
    box.blur()


# Each makes the stage and gives (page, who), what has to be done before the button can be pressed, and the button.


def propose(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    def ready(page: Page) -> Locator:
        box = page.get_by_role("textbox", name="The instruction, as it should read")
        box.fill(box.input_value().replace("advise.", "advise today."))
        box.blur()
        page.get_by_role("button", name="Add to the proposal").click(delay=60)
        return page.get_by_role("button", name="Put up for decision")

    return "propose", room.reviews.LEAD, ready


def decide(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    room.decided()

    def ready(page: Page) -> Locator:
        page.get_by_role("button", name="Approve").click(delay=60)
        return page.get_by_role("button", name="Submit 1 decision")

    return "decide", room.reviews.ONE, ready


def lift(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    room.decided("veto")

    def ready(page: Page) -> Locator:
        page.get_by_role("button", name="Lift my veto").click(delay=60)
        write(page, "Why the danger is gone", "It is right after all.")
        return page.get_by_role("button", name="Lift the veto")

    return "decide", room.reviews.ONE, ready


def lift_over_its_owner(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    room.decided("veto", "approve")

    def ready(page: Page) -> Locator:
        page.get_by_text("Lift it with the owner's answer").click()
        page.get_by_role("radio", name="The owner agrees").click()
        write(page, "Why it is lifted", "The owner agrees on the phone.")
        return page.get_by_role("button", name="Lift the veto")

    return "decide", room.reviews.JUDGE, ready


def adjudicate(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    room.decided("approve", "reject")

    def ready(page: Page) -> Locator:
        write(page, "Reason, read by everybody", "Four weeks is the label's.")
        return page.get_by_role("button", name="Accept the change")

    return "decide", room.reviews.JUDGE, ready


def apply(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    # The gate refuses this small task: nothing is applied, once. That a job applies once is in test_review_jobs.
    room.decided("approve", "approve")
    return "signoff", room.reviews.LEAD, lambda page: page.get_by_role("button", name="Apply 1 accepted change")


def gate(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    return "signoff", room.reviews.LEAD, lambda page: page.get_by_role("button", name="Run the gate")


def sign(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    _gated(room)
    return "signoff", room.reviews.ONE, lambda page: page.get_by_role("button", name="Sign", exact=True)


def release(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    _gated(room)
    for who in (room.reviews.ONE, room.reviews.TWO):
        room.desk(who).sign(room.task, "I have reviewed it.")
    return "signoff", room.reviews.LEAD, lambda page: page.get_by_role("button", name="Release", exact=True)


def _gated(room: Room) -> None:
    """Nothing is open, and a gate has passed on these bytes."""
    from authoring.gate import Check, GateResult

    lead = room.desk(room.reviews.LEAD)
    lead.dismiss(room.task, "f-1", "It is said in the title.")
    with lead.store.at() as view:
        package = lead.snapshot(view, room.task).package
    lead.record_gate(room.task, GateResult(room.task, package, (Check("all", "passed"),)))


def open_round(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    return "signoff", room.reviews.LEAD, lambda page: page.get_by_role("button", name="Open round 2")


def assign(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    def ready(page: Page) -> Locator:
        page.get_by_role("button", name="Assign somebody").click(delay=60)
        return page.get_by_role("button", name="Demo adjudicator as adjudicator")

    return "signoff", room.reviews.LEAD, ready


def withdraw(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    def ready(page: Page) -> Locator:
        page.get_by_role("button", name="Withdraw").click(delay=60)
        write(page, "Reason", "It is said after all.")
        return page.get_by_role("button", name="Withdraw this finding")

    return "signoff", room.reviews.ONE, ready


def dismiss(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    def ready(page: Page) -> Locator:
        page.get_by_role("button", name="Dismiss").click(delay=60)
        write(page, "Reason", "It is said in the title.")
        return page.get_by_role("button", name="Dismiss this finding")

    return "signoff", room.reviews.LEAD, ready


def waive(room: Room) -> tuple[str, str, Callable[[Page], Locator]]:
    def ready(page: Page) -> Locator:
        page.get_by_role("button", name="Waive the group rule").click(delay=60)
        page.get_by_role("combobox", name="For").select_option(label="Of another group")
        write(page, "Reason, printed in the release", "Nobody else is there.")
        return page.get_by_role("button", name="Waive", exact=True)

    return "signoff", room.reviews.LEAD, ready


CASES = {
    "proposed": propose, "decided": decide, "veto_lifted": lift, "veto_lifted by another": lift_over_its_owner,
    "adjudicated": adjudicate, "no event": apply, "gate_ran": gate, "signed": sign, "released": release,
    "round_opened": open_round, "assigned": assign, "finding_withdrawn": withdraw, "finding_dismissed": dismiss,
    "waived": waive,
}  # fmt: skip


@pytest.mark.parametrize("kind", list(CASES))
def test_two_clicks_are_one_submission(kind: str, room: Room, look: Callable[..., Any]) -> None:
    path, who, ready = CASES[kind](room)
    before = len(room.events)
    seen = look(room.url)
    seen.open(f"/{path}?id={room.task}&as={who}")
    button = ready(seen.page)
    room.reviews.twice(seen, button, room.workspace)
    expect(button).to_have_count(0)
    if kind in ("no event", "gate_ran"):
        word = "Nothing was applied." if kind == "no event" else "The gate fails"
        expect(seen.page.get_by_text(word).first).to_be_visible()
    seen.settle()
    # What the second click says is what the first one did.
    expect(seen.page.get_by_text("Not submitted")).to_have_count(0)
    room.reviews.dealt_with(seen)
    new = room.events[before:]
    assert [one.type for one in new] == ([] if kind == "no event" else [kind.split(" ")[0]])
    assert len({one.submission for one in new}) == len(new)
