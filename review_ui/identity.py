"""Who is at the page: `current()` is the one place that says so.

Where single sign-on is configured ([auth] in Streamlit's secrets) it is whoever signed in, found in workbench.toml by
e-mail. Else this is local mode: whoever sits here says who they are, nobody checks it, and that is enough for tasks of
data class open only. The choice stands in the address, so that a reload and a second browser keep theirs.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.config import is_manually_set

from review_ui import theme
from review_ui.markup import Markup, join, tag
from tasks.errors import SettingsError
from tasks.people import Person, Role
from tasks.workspace import Workspace

CHOICE = "as"
_ROLES: dict[Role, str] = {
    "author": "Author",
    "reviewer": "Reviewer",
    "pharmacist": "Pharmacist",
    "adjudicator": "Adjudicator",
    "lead": "Lead",
    "researcher": "Researcher",
    "steward": "Steward",
}


@dataclass(frozen=True)
class Identity:
    """The person at the page. `verified` is False in local mode, which is for data class open only. `person` is None
    where nobody has been chosen, or whoever signed in is nobody in workbench.toml."""

    name: str
    verified: bool
    person: Person | None = None

    @property
    def id(self) -> str:
        """The person's id, or ""."""
        return self.person.id if self.person else ""


def single_sign_on() -> bool:
    """Whether a sign-in is configured.

    Raises SettingsError where there are secrets that cannot be read: whether a sign-in is asked for stands in them, and
    a slip of the pen must not open the pages to everybody.
    """
    # Whatever goes wrong, they are not read; the message may quote them.
    with suppress(Exception):
        if st.secrets.load_if_toml_exists():
            return "auth" in st.secrets
    files = [Path(one) for one in st.get_option("secrets.files")]
    there = [one for one in files if one.exists()]
    if there or is_manually_set("secrets.files"):
        what = "cannot be read" if there else "are not there, although they are named"
        raise SettingsError(
            f"the secrets {what}, so that nobody can be signed in; no page is shown.",
            where=str((there or files)[0]),
            remedy="Mend the file (the server's log says where it is wrong), then restart the app.",
        )
    return False


def people() -> tuple[Person, ...]:
    """Everybody of the workspace."""
    return Workspace.find().settings.people


def current() -> Identity:
    """The person of this session."""
    if single_sign_on():
        return _signed_in()
    asked = str(st.query_params.get(CHOICE, "") or st.session_state.get("person", ""))
    found = next((one for one in people() if one.id == asked), None) if asked else None
    if found is None:
        return Identity(name="Local user", verified=False)
    return Identity(name=found.name, verified=False, person=found)


def _signed_in() -> Identity:
    if not getattr(st.user, "is_logged_in", False):
        return Identity(name="Not signed in", verified=False)
    email = str(getattr(st.user, "email", "") or "")
    trusted = _checked(getattr(st.user, "email_verified", None))
    found = next((one for one in people() if email and one.email.casefold() == email.casefold()), None)
    if not trusted or found is None:
        return Identity(name=email, verified=False)
    return Identity(name=found.name, verified=True, person=found)


def _checked(claim: object) -> bool:
    """Whether the provider has checked that the address is this person's. A provider that does not say has not,
    unless whoever runs the workbench vouches for it ([sign_on] addresses_are_verified in the secrets)."""
    if claim is None:
        return bool(st.secrets.get("sign_on", {}).get("addresses_are_verified", False))
    return claim is True or str(claim).casefold() == "true"


def admitted() -> bool:
    """Whether pages are shown at all: where sign-on is configured, to people of the workspace only."""
    return not single_sign_on() or current().person is not None


def gate() -> None:
    """What stands instead of every page while nobody of the workspace is signed in."""
    if not getattr(st.user, "is_logged_in", False):
        draw(tag("h1", "Sign in", cls="h1"))
        draw(tag("p", "Tasks, reviews and results are for the people of this workspace.", cls="lead"))
        st.button("Sign in", on_click=st.login, type="primary", icon=":material/login:")
        return
    email = str(getattr(st.user, "email", "") or "")
    draw(tag("h1", "You are signed in, but not admitted", cls="h1"))
    if not email:
        words = "Your sign-in carries no e-mail address, and people are known here by theirs."
    elif not _checked(getattr(st.user, "email_verified", None)):
        words = "Your sign-in says that nobody has checked whether this address is yours. Have it verified there."
    else:
        words = "Nobody of this workspace has this address. Whoever looks after the workbench adds you."
    draw(tag("p", tag("span", email, cls="b"), cls="lead"), tag("p", words))
    st.button("Sign out", on_click=st.logout, icon=":material/logout:")


def draw(*each: Markup) -> None:
    """Draw markup; frame.show is not to be had here, since it stands on this module."""
    st.html(join(each))


def keep() -> None:
    """Keep a choice that was made where it survives a reload and another page. Called at every run."""
    if single_sign_on():
        return
    asked = str(st.query_params.get(CHOICE, ""))
    known = {one.id for one in people()} if asked else set()
    if asked in known:
        st.session_state["person"] = asked
    elif chosen := st.session_state.get("person"):
        st.query_params[CHOICE] = chosen


def choose(id: str) -> None:
    """Be this person from now on. Local mode only."""
    st.session_state["person"] = id
    st.query_params[CHOICE] = id


def role_words(person: Person) -> str:
    """ "Reviewer, lead"."""
    return ", ".join(_ROLES[role] for role in person.roles).capitalize()


def identity_chips(who: Identity) -> Markup:
    """Who is here, and whether anybody checked that."""
    checked = (
        theme.chip("Identity verified", "green", "verified_user")
        if who.verified
        else theme.chip("Identity not verified", "orange", "gpp_maybe")
    )
    name = f"{who.name} · {role_words(who.person)}" if who.person else who.name
    return theme.chips(theme.chip(name, "plain", "person"), checked)


def name_chip(who: Identity) -> Markup:
    """The same in one chip, for a header that is full: a link that names somebody is not acted on unseen."""
    if who.verified:
        return theme.chip(who.name, "green", "verified_user")
    return theme.chip(f"{who.name}, not verified", "orange", "gpp_maybe")


def chooser() -> None:
    """In local mode the choice of who one is; where sign-on is configured, the sign-out."""
    who = current()
    if single_sign_on():
        st.button("Sign out", on_click=st.logout, icon=":material/logout:", key="sign-out")
        return
    label = "Change who I am" if who.person else "Say who you are"
    with st.popover(label, icon=":material/switch_account:", key=f"who-{who.id}"):
        list_of_people()


def list_of_people() -> None:
    """Everybody of the workspace, to choose oneself. Local mode only. Names stand beside the buttons, as text."""
    here = current().id
    for one in people():
        with st.container(horizontal=True, vertical_alignment="center", key=f"row-person-{one.id}"):
            draw(tag("div", tag("span", one.name, cls="b"), tag("span", f" · {role_words(one)}", cls="sm mute")))
            st.button(
                "This is me" if one.id != here else "You are here", key=f"be-{one.id}", on_click=choose,
                args=(one.id,), disabled=one.id == here,
            )  # fmt: skip
