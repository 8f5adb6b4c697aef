"""The clinical tables: every row says where it comes from, names are unambiguous, look-alikes stay apart."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from graders import tables
from graders.orders import drugs, frequencies, services
from graders.orders.text import normal
from tasks.errors import UsageError


@pytest.mark.parametrize("name", tables.names())
def test_every_row_has_a_source_a_section_a_date_and_says_whether_it_was_verified(name: str) -> None:
    known = {row["key"] for row in tables.rows("sources")} | {"rxnorm"}
    assert tables.rows(name)
    for row in tables.rows(name):
        assert row["source"] in known, row
        assert row["section"], row
        assert len(row["date"]) == 10, row
        assert isinstance(row["verified"], bool), row


@pytest.mark.parametrize("name", tables.names())
def test_every_row_renders_with_its_source(name: str) -> None:
    shown = tables.render(name).splitlines()
    assert len(shown) == len(tables.rows(name))
    assert all("[" in line and line.endswith("]") for line in shown)


def test_the_list_of_tables_counts_rows_and_what_is_not_verified() -> None:
    assert "ingredients" in tables.render()


def test_a_table_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="ingredients"):
        tables.rows("nonsense")


def test_there_are_at_least_two_hundred_ingredients_with_unambiguous_names() -> None:
    rows = tables.rows("ingredients")
    assert len(rows) >= 200
    spellings = Counter(normal(text) for row in rows for text in {row["name"], *row["synonyms"], *row["brands"]})
    assert [text for text, n in spellings.items() if n > 1] == []
    codes = Counter(row["rxnorm"] for row in rows if row.get("rxnorm"))
    assert [code for code, n in codes.items() if n > 1] == []


def test_every_class_parent_base_and_component_is_a_row_of_its_own() -> None:
    classes = {row["name"] for row in tables.rows("classes")}
    names = {row["name"] for row in tables.rows("ingredients")}
    for row in tables.rows("ingredients"):
        assert set(row["classes"]) <= classes, row["name"]
        assert row.get("base") is None or row["base"] in names, row["name"]
    for row in tables.rows("classes"):
        assert set(row["parents"]) <= classes, row["name"]
    for row in tables.rows("combinations"):
        assert set(row["components"]) <= names, row["name"]
    tests = {row["name"] for row in tables.rows("tests")}
    for row in tables.rows("tests"):
        assert set(row["members"]) <= tests, row["name"]


@pytest.mark.parametrize("row", tables.rows("lookalikes"), ids=lambda row: f"{row['name']}/{row['other']}")
def test_look_alikes_never_read_as_the_same_drug(row: tables.Row) -> None:
    one, other = drugs.read_name(row["name"]), drugs.read_name(row["other"])
    assert one is None or other is None or one != other


@pytest.mark.parametrize("table", ["renal", "interactions", "duplicates", "pregnancy", "monitoring"])
def test_the_safety_tables_name_drugs_and_classes_that_the_name_tables_know(table: str) -> None:
    keys = {"renal": ("ingredient",), "interactions": ("first",), "duplicates": ("class",)}.get(table, ("drug",))
    for row in tables.rows(table):
        for key in keys:
            assert drugs.read_name(row[key]) or drugs.read_class(row[key]), row[key]


def test_every_ingredient_brand_and_test_name_reads_back_as_itself() -> None:
    for row in tables.rows("ingredients"):
        for text in (row["name"], *row["synonyms"], *row["brands"]):
            read = drugs.read_name(text)
            assert read is not None, text
            assert read.components == (row["name"],), text
    for row in tables.rows("tests"):
        assert services.canonical("tests", row["name"]) == row["name"]


def test_each_panel_contains_what_the_rules_say() -> None:
    assert "potassium" in services.contains("CMP")
    assert "magnesium" not in services.contains("CMP")
    assert services.covers(["BMP", "hepatic panel"], "CMP")
    assert not services.covers(["BMP"], "CMP")


def test_a_new_row_needs_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_DATA", tmp_path)
    row = {"name": "x", "source": "practice", "section": "s", "date": "2026-11-30", "verified": False}
    (tmp_path / "novel.json").write_text(json.dumps([row]), "utf-8")
    tables.rows.cache_clear()
    tables.names.cache_clear()
    try:
        assert tables.rows("novel") == (row,)
        assert tables.names() == ("novel",)
    finally:
        monkeypatch.undo()
        tables.rows.cache_clear()
        tables.names.cache_clear()


@pytest.mark.shared_data
def test_rxnorm_codes_agree_with_the_coded_orders_of_a_public_record(shared_data: Path) -> None:
    import gzip

    # That record codes alendronate with the code of cyclophosphamide.
    wrong = {"3002"}
    checked = 0
    with gzip.open(shared_data / "fhir-clinosim" / "MedicationRequest.ndjson.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for coding in json.loads(line)["medicationCodeableConcept"].get("coding", []):
                drug = drugs.of_code(coding["system"], coding["code"])
                named = drugs.mentions(normal(coding.get("display", "")))
                if drug is None or coding["code"] in wrong or not named or named[0].drug.is_combination:
                    continue
                checked += 1
                assert drugs.names_same(drug, named[0].drug), coding
    assert checked > 50


def test_frequency_codes_can_be_read() -> None:
    assert all(frequencies.read(text) for text in frequencies.CODES.values())
