"""What a tool is: a pydantic model whose fields are the parameters; the schema for models is made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from providers.base import ToolSpec
from runtime.ehr.session import Session
from tasks.errors import ChartError
from tasks.fhir.resources import dump_json, parse_json
from tasks.taxonomy import Profile


@dataclass(frozen=True)
class Place:
    """Where a call acts: the EHR session, the trial's output folder, the call's number and the time for a write."""

    session: Session
    output: Path
    number: int
    stamp: datetime


class Call(NamedTuple):
    """The answer of one tool: JSON text, whether it is an error, and the FHIR request that was sent ("" if none)."""

    text: str
    error: bool
    request: str


class ArgumentFault(Exception):
    """Arguments that a tool cannot take; `problems` is [(field, what is wrong)]."""

    def __init__(self, tool: str, problems: list[tuple[str, str]]) -> None:
        self.tool = tool
        self.problems = problems
        super().__init__("; ".join(f"{field}: {what}" if field else what for field, what in problems))

    def answer(self) -> str:
        """The structured error that the model reads."""
        return error_text(
            f"{self.tool} was not called: {self}",
            fields=[{"field": field, "problem": what} for field, what in self.problems if field],
        )


def error_text(message: str, **more: Any) -> str:
    """`{"error": message, ...}`; what is empty is left out."""
    return dump_json({"error": message} | {key: value for key, value in more.items() if value})


def _number(value: Any) -> Any:
    """JSON numbers only, kept as they were written; true is no number."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise ValueError("must be a number")


#: A JSON number, kept with the digits that the model wrote.
Amount = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
Required = Annotated[str, Field(min_length=1)]
Optional = str | None


class Tool(BaseModel):
    """One tool. A subclass is its declaration; an instance is one call with valid arguments.

    An argument of null, or empty text for an optional one, counts as not given, as models send both.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)

    tool: ClassVar[str] = ""
    profiles: ClassVar[tuple[Profile, ...]] = ("paper", "extended")
    writes: ClassVar[bool] = False
    #: Parameters of one vendor's server that no R4 server has: declared, and answered without a request.
    vendor_only: ClassVar[tuple[str, ...]] = ()
    #: Parameters that are shown after all others.
    last: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def spec(cls) -> ToolSpec:
        """The tool as a model is told of it: name, description, flat JSON schema without titles."""
        return _spec(cls)

    @classmethod
    def parse(cls, arguments: Mapping[str, Any]) -> Tool:
        """A valid call. Raises ArgumentFault naming each field that is wrong."""
        given = {key: value for key, value in arguments.items() if not cls._absent(key, value)}
        if foreign := [name for name in cls.vendor_only if name in given]:
            raise ArgumentFault(
                cls.tool,
                [(name, "this server has no such search parameter; leave it out") for name in foreign],
            )
        try:
            return cls.model_validate(given)
        except ValidationError as fault:
            raise ArgumentFault(cls.tool, [_in_words(error, cls) for error in fault.errors()]) from None

    @classmethod
    def _absent(cls, key: str, value: Any) -> bool:
        field = cls.model_fields.get(key)
        return value is None or (value == "" and field is not None and not field.is_required())

    def run(self, place: Place) -> Call:
        """Carry the call out. Raises EhrError where the server refuses, EnvironmentFault where it is not there."""
        raise NotImplementedError


@cache
def _spec(cls: type[Tool]) -> ToolSpec:
    # Made once a process: it is half of what a short trial would cost.
    schema = cls.model_json_schema()
    required = list(schema.get("required", []))
    # What a subclass declares stands before what it inherits: the search's own parameters before its paging.
    names = sorted(schema["properties"], key=lambda name: name in cls.last)
    properties = {name: _plain(schema["properties"][name]) for name in names}
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    parameters["additionalProperties"] = False
    return ToolSpec(cls.tool, " ".join((cls.__doc__ or "").split()), parameters)


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments object that a model wrote; empty text is no arguments. Raises ArgumentFault("") if not one."""
    if not text.strip():
        return {}
    try:
        value = parse_json(text)
    except ChartError as fault:
        raise ArgumentFault("", [("", f"the arguments are not valid JSON ({fault.what})")]) from None
    if not isinstance(value, dict):
        raise ArgumentFault("", [("", "the arguments are not a JSON object")])
    return value


def _plain(shape: dict[str, Any]) -> dict[str, Any]:
    """One property without what only confuses a model: titles, and `anyOf [..., null]` for optional ones."""
    options = [option for option in shape.get("anyOf", []) if option.get("type") != "null"]
    merged = (options[0] if options else {}) | {
        key: value for key, value in shape.items() if key not in ("anyOf", "title")
    }
    if merged.get("default", "") is None:
        del merged["default"]
    order = ["type", "enum", "description", "default"]
    return {key: merged[key] for key in sorted(merged, key=lambda key: order.index(key) if key in order else 9)}


_EXPECTED = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "missing": "is required",
    "string_too_short": "must not be empty",
}


def _in_words(error: Any, tool: type[Tool]) -> tuple[str, str]:
    field = ".".join(str(part) for part in error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return field, f"there is no such parameter; the parameters are {', '.join(tool.model_fields)}"
    if kind == "greater_than_equal":
        return field, f"must be {context['ge']} or more"
    if kind == "less_than_equal":
        return field, f"must be {context['le']} or less"
    if kind == "literal_error":
        return field, f"must be {context['expected']}"
    if kind == "value_error":
        return field, str(context.get("error", "is not valid"))
    return field, _EXPECTED.get(kind, "is not valid")
