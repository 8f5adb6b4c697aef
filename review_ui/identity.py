"""Who is at the page. One function, so that a verified sign-in has one place to go."""

from __future__ import annotations

from dataclasses import dataclass

from review_ui import theme
from review_ui.markup import Markup


@dataclass(frozen=True)
class Identity:
    """The person at the page. `verified` is False in local mode, which is for data class open only."""

    name: str
    verified: bool


def current() -> Identity:
    """The person of this session: without a configured sign-in, whoever sits at this machine."""
    return Identity(name="Local user", verified=False)


def identity_chips(person: Identity) -> Markup:
    """Who is here, and whether anybody checked that."""
    checked = (
        theme.chip("Identity verified", "green", "verified_user")
        if person.verified
        else theme.chip("Identity not verified", "orange", "gpp_maybe")
    )
    return theme.chips(theme.chip(person.name, "plain", "person"), checked)
