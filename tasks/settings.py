"""workbench.toml as strict models, and the file that a first start writes (design 3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from tasks.errors import EnvironmentFault, SettingsError
from tasks.manifest import Limits
from tasks.people import Person
from tasks.places import Fault, Misread, at, nearest, shown, text, toml, toml_line, validated
from tasks.strict import Strict
from tasks.taxonomy import DataClass

FILE = "workbench.toml"


def _variable(name: str) -> str:
    if not re.match(r"^([A-Z_][A-Z0-9_]{0,63})?$", name):
        raise ValueError(
            "the name of an environment variable is wanted, such as PROVIDER_API_KEY, never the key itself"
        )
    return name


def _model_name(name: str) -> str:
    if name and not re.match(r"^[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:/@+-]*$", name):
        raise ValueError("a model is named provider/name")
    return name


def _endpoint(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValueError("an http(s) address is wanted")
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Settings are stored with each run, and a key must not be.
        raise ValueError("an address without user, password or query is wanted; keys go into the environment")
    return url


#: A base URL that holds no secret.
Endpoint = Annotated[str, AfterValidator(_endpoint)]
#: The name of an environment variable. A key itself never fits it, so that none can end up in the file.
Variable = Annotated[str, AfterValidator(_variable)]
ModelName = Annotated[str, AfterValidator(_model_name)]
Count = Annotated[int, Field(ge=1)]
Dollars = Annotated[float, Field(ge=0)]


class Team(Strict):
    """Who works here."""

    name: str = Field(default="", description="shown in the bar and in a release's manifest")


class Review(Strict):
    """How tasks are reviewed."""

    reviewers: Count = Field(default=2, description="who must judge a task in stage 1")
    same_group: bool = Field(default=True, description="a reviewer covers the task's group of specialties")
    blind: bool = Field(default=True, description="nobody sees another's judgement before all are in")


class Hapi(Strict):
    """The `hapi` backend, a HAPI FHIR server a session in Docker: read and checked, but no backend of that name yet."""

    image: str = "hapiproject/hapi:v8.8.0-1"
    memory: Annotated[str, StringConstraints(pattern=r"^[0-9]+[kmg]$")] = Field(default="2g", description="as Docker")
    pool: int = Field(default=2, ge=0, description="containers kept warm")
    start_timeout_s: Annotated[float, Field(gt=0)] = Field(default=180.0, description="seconds until it must answer")


class Url(Strict):
    """The `url` backend, any R4 server, without isolation: read and checked, but no backend of that name yet."""

    base_url: str = ""
    token_env: Variable = Field(default="", description="variable that holds a bearer token")


class Ehr(Strict):
    """Where the patient's record is served from."""

    backend: Literal["embedded", "hapi", "url"] = "embedded"
    hapi: Hapi = Hapi()
    url: Url = Url()


class Price(Strict):
    """USD per million tokens. A tier that is absent is unknown, not free."""

    input: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    output: Dollars


class ModelSettings(Strict):
    """One `[model."provider/name"]`."""

    endpoint: Endpoint = Field(default="", description="base URL; empty = the provider's own")
    key_env: Variable = Field(default="", description="variable that holds the key; empty = the provider's usual one")
    reasoning: str = Field(
        default="", description="an effort, 'none', or 'budget:N' tokens; empty = the provider's own"
    )
    context: Count | None = Field(default=None, description="tokens that fit its window")
    max_output: Count = Field(default=16_000, description="tokens of one answer")
    concurrency: Count = Field(default=4, description="requests at once, over all processes of the workspace")
    data_class: DataClass = Field(default="open", description="the most sensitive data that the endpoint may see")
    price: Price | None = Field(default=None, description="without it cost is unknown")


class Use(Strict):
    """Which model does what; each names a `[model."…"]`. Empty = nothing does it."""

    judge: ModelName = ""
    judge_votes: Count = 1
    reviser: ModelName = ""
    rewriter: ModelName = ""


class Sandbox(Strict):
    """How task code that does not ship with the workbench is run."""

    mode: Literal["kernel", "process", "off"] = Field(
        default="kernel",
        description="process = without the kernel's help, weaker and named in every verdict; off = never run, ungraded",
    )


class Settings(Strict):
    """workbench.toml."""

    team: Team = Team()
    people: tuple[Person, ...] = Field(default=(), alias="person")
    review: Review = Review()
    ehr: Ehr = Ehr()
    models: dict[ModelName, ModelSettings] = Field(default={}, alias="model")
    use: Use = Use()
    limits: Limits = Limits(turns=100)
    sandbox: Sandbox = Sandbox()


def parse(data: bytes, path: str) -> tuple[Settings | None, list[Fault]]:
    """The settings in a file's bytes (None where they cannot be read), and every mistake with line and key."""
    try:
        source = text(data, path)
        settings = validated(Settings, toml(source, path), path, source=source)
    except Misread as error:
        return None, list(error.faults)
    return settings, [Fault(at(path, toml_line(source, place)), said) for place, said in _contradictions(settings)]


def _contradictions(settings: Settings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for key in ("id", "email"):
        values = [getattr(one, key).casefold() for one in settings.people]
        for index, value in enumerate(values):
            if value in values[:index]:
                yield ("person", index, key), f"person[{index + 1}].{key}: {shown(value)} stands twice"
    for index, one in enumerate(settings.people):
        if "reviewer" in one.roles and not one.specialties:
            yield ("person", index), f"person[{index + 1}].specialties: a reviewer needs at least one; add it"
    for key in ("judge", "reviser", "rewriter"):
        name = getattr(settings.use, key)
        if name and name not in settings.models:
            hint = nearest(name, settings.models) or f' Add [model."{name}"].'
            yield ("use", key), f"use.{key}: there is no model {shown(name)}.{hint}"
    if settings.ehr.backend == "url" and not settings.ehr.url.base_url.startswith(("http://", "https://")):
        yield ("ehr", "url", "base_url"), "ehr.url.base_url: backend 'url' needs the server's http(s) address; add it"


def read(path: Path) -> Settings:
    """The settings in a file. Raises SettingsError with every mistake, EnvironmentFault where it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EnvironmentFault(f"the settings cannot be read: {error.strerror}.", where=str(path)) from None
    settings, faults = parse(data, str(path))
    if settings is None or faults:
        first, *more = faults
        raise SettingsError("\n".join([first.message, *map(str, more)]), where=first.place)
    return settings


#: What a first start writes: every table that does something, with its defaults, and people who do not exist.
FIRST = """\
# Settings of this workspace. Every key is checked; a mistake is named with its line.

[team]
name = "Demonstration team"

# ---- people ----
# Written at first start so that everything can be tried. They are not real: replace them by your own.
# specialties: what they can judge. conflicts: ids of people and tasks that they may not judge.
# roles: author, reviewer, pharmacist, adjudicator, lead, researcher, steward (a steward may see identified records).

[[person]]
id = "demo-author"
name = "Demo author"
email = "demo-author@workbench.invalid"
roles = ["author"]
specialties = ["Internal Medicine", "Nephrology"]
demonstration = true

# The two reviewers cover all eight groups of specialties.
[[person]]
id = "demo-reviewer-1"
name = "Demo reviewer 1"
email = "demo-reviewer-1@workbench.invalid"
roles = ["reviewer"]
specialties = [
    "Cardiology", "Endocrinology", "Gastroenterology", "Hematology", "Infectious Disease", "Nephrology", "Neurology",
    "Internal Medicine",
]
demonstration = true

[[person]]
id = "demo-reviewer-2"
name = "Demo reviewer 2"
email = "demo-reviewer-2@workbench.invalid"
roles = ["reviewer"]
specialties = [
    "Cardiology", "Endocrinology", "Hepatology", "Oncology", "Allergy & Immunology", "Urology", "Psychiatry",
    "Gynecology", "Family Medicine",
]
demonstration = true

[[person]]
id = "demo-pharmacist"
name = "Demo pharmacist"
email = "demo-pharmacist@workbench.invalid"
roles = ["pharmacist"]
demonstration = true

[[person]]
id = "demo-adjudicator"
name = "Demo adjudicator"
email = "demo-adjudicator@workbench.invalid"
roles = ["adjudicator"]
demonstration = true

[[person]]
id = "demo-lead"
name = "Demo lead"
email = "demo-lead@workbench.invalid"
roles = ["lead"]
demonstration = true

[[person]]
id = "demo-researcher"
name = "Demo researcher"
email = "demo-researcher@workbench.invalid"
roles = ["researcher"]
demonstration = true

[[person]]
id = "demo-steward"
name = "Demo steward"
email = "demo-steward@workbench.invalid"
roles = ["steward"]
demonstration = true

# ---- review ----

[review]
reviewers = 2        # who must judge a task in stage 1
same_group = true    # a reviewer covers the task's group of specialties
blind = true         # nobody sees another's judgement before all are in

# ---- the record that agents work in ----

[ehr]
backend = "embedded" # in this process; there is no other one yet

# ---- models ----
# One table a model. Keys stay in the environment: key_env names the variable. Prices in USD per million tokens.
#
# [model."provider/name"]
# endpoint = ""
# key_env = "PROVIDER_API_KEY"
# reasoning = "high"
# context = 200000
# max_output = 16000
# concurrency = 4
# data_class = "open"    # open | dua | phi: the most sensitive data that the endpoint may see
# price.input = 3.0
# price.cache_read = 0.3
# price.cache_write = 3.75
# price.output = 15.0

[use]
judge = ""
judge_votes = 1
reviser = ""
rewriter = ""

# ---- limits of a trial ----
# Beside turns: tokens, seconds, cost (USD). A task can set its own.

[limits]
turns = 100

[sandbox]
mode = "kernel"      # kernel | off (task code that does not ship with the workbench is then never run)
"""
