"""Reading what a person wrote: any bytes are read or refused with a place, never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from tasks.errors import PackageError
from tasks.package import faults, load
from tasks.places import Misread, json_value, key_path, text, toml, toml_line, validated
from tasks.strict import Strict
from tests.tasks.packages import TINY_ID, tiny_files

SOURCE = '''title = "a"
# [commented]
note = """
[not a table]
title = "inside a text"
"""

[context]
now.year = 1

[[checkpoint]]
id = "cp1"

[[checkpoint]]
id = "cp2"
rows = [
  {dose = "5 mg"},
]

[checkpoint.harm]
kind = "omission"

[model."provider/name"]
price.input = 3
"quoted key" = 1
'''


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("title",), 1),
        (("note",), 3),
        (("context",), 8),
        (("context", "now"), 9),
        (("context", "now", "year"), 9),
        (("checkpoint", 0, "id"), 12),
        (("checkpoint", 1), 14),
        (("checkpoint", 1, "id"), 15),
        (("checkpoint", 1, "rows", 0, "dose"), 16),
        (("checkpoint", 1, "harm", "kind"), 21),
        (("checkpoint", 1, "harm", "severity"), 20),
        (("model", "provider/name", "price", "output"), 24),
        (("model", "provider/name", "quoted key"), 25),
        (("nothing",), None),
        ((), None),
    ],
)
def test_a_key_is_found_on_its_line(location: tuple[str | int, ...], line: int | None) -> None:
    toml(SOURCE, "x")
    assert toml_line(SOURCE, location) == line


class Inner(Strict):
    dose: str | None = None


class Outer(Strict):
    rows: tuple[Inner, ...] = Field(default=(), min_length=1)
    named: dict[str, Inner] = Field(default={})
    either: str | tuple[str, ...] = ""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("[[rows]]\ndos = '5'", ["x:2: rows[1].dos: unknown key. Did you mean 'dose'?"]),
        ("[named.a]\ndos = '5'", ["x:2: named.a.dos: unknown key. Did you mean 'dose'?"]),
        ("colour = 1", ["x:1: colour: unknown key. Valid here: rows, named, either."]),
        ("[[rows]]\ndose = 5\n[[rows]]\ndos = 5",
         ["x:2: rows[1].dose: the value should be a valid string",
          "x:4: rows[2].dos: unknown key. Did you mean 'dose'?"]),
        ('"a\\nb" = 1\nrows = [{}]', ["x: a\\x0ab: unknown key. Valid here: rows, named, either."]),
        ("rows = []", ["x:1: rows: too few; give at least 1"]),
        ("rows = 1", ["x:1: rows: not a list; write it as one"]),
        ("rows = [1]", ["x:1: rows[1]: not a table; write it as one"]),
        ("named = []", ["x:1: named: not a table; write it as one"]),
        ("either = 1\nrows = [{}]", ["x:1: either: the value should be a valid string"]),
    ],
)  # fmt: skip
def test_each_mistake_is_told_once_in_the_order_of_the_lines(source: str, said: list[str]) -> None:
    with pytest.raises(Misread) as caught:
        validated(Outer, toml(source, "x"), "x", source=source)
    assert [str(fault) for fault in caught.value.faults] == said


def test_a_field_goes_by_its_written_name_alone() -> None:
    class Row(Strict):
        drug_class: str = Field(default="", alias="class")

    assert validated(Row, {"class": "NSAID"}, "x").drug_class == "NSAID"
    with pytest.raises(Misread, match="drug_class: unknown key"):
        validated(Row, {"drug_class": "NSAID"}, "x")


def test_positions_count_from_one() -> None:
    assert key_path(("checkpoint", 1, "order", "accept", 0, "dose")) == "checkpoint[2].order.accept[1].dose"


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_refused_with_a_place(data: bytes) -> None:
    read = refused = None
    try:
        read = text(data, "file")
    except Misread as error:
        refused = error.faults[0].place.split(":")[0]
    assert (read is not None and read.encode() == data) or refused == "file"


@given(st.text(max_size=80))
def test_any_text_is_toml_or_refused_with_a_line(source: str) -> None:
    place = "file"
    try:
        toml(source, "file")
    except Misread as error:
        place = error.faults[0].place
    assert place.startswith("file")
    toml_line(source, ("a", 0, "b"))


@pytest.mark.parametrize(
    "source", ["[" * 100_000, '{"a":' * 100_000, "1" * 10_000, "NaN", '{"a":1,"a":2}', "-Infinity"]
)
def test_json_that_python_would_take_or_choke_on_is_refused(source: str) -> None:
    with pytest.raises(Misread):
        json_value(source, "file")


def test_toml_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(Misread):
        toml("a = " + "[" * 50_000, "file")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_package_damaged_anywhere_is_told_and_never_crashes(data: st.DataObject) -> None:
    files = tiny_files()
    path = data.draw(st.sampled_from(sorted(files)))
    content = files[path]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 30)))
    files[path] = content[:start] + data.draw(st.binary(max_size=12)) + content[end:]
    found = faults(files, where=TINY_ID, release=True)
    assert all(fault.place.startswith(TINY_ID) and "\n" not in fault.message for fault in found)
    refused = None
    try:
        load(files, where=TINY_ID)
    except PackageError as error:
        refused = (error.where, error.what)
    assert refused is None or refused in found
