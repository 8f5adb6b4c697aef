"""The shipped tables are what the slicer makes of HL7's, and everything in them compiles."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tasks.errors import SearchError
from tasks.fhir import parameters
from tasks.fhir.definitions.slicer import render
from tasks.fhir.elements import resource_types
from tasks.fhir.fhirpath import compiled


@pytest.mark.shared_data
def test_the_shipped_tables_are_made_from_the_definitions(shared_data: Path) -> None:
    for name, text in render(shared_data / "definitions").items():
        assert (files("tasks.fhir.definitions") / name).read_text("utf-8") == text


@pytest.mark.parametrize("kind", sorted(resource_types()))
def test_every_parameter_of_a_type_leads_somewhere(kind: str) -> None:
    for code in parameters.codes(kind):
        found = parameters.parameter(kind, code)
        assert found is not None
        assert found.walks, f"{kind}.{code} reaches no element"
        if found.type == "composite":
            assert len(found.components) == 2
            assert all(component.walks for component in found.components)


def test_fhirpath_beyond_the_subset_is_an_error() -> None:
    for expression in ("Patient.name.where(use = 'official' and text)", "Patient.name.first().family", "Patient.a+b"):
        with pytest.raises(ValueError, match="beyond the subset"):
            compiled(expression, "Patient")


def test_an_unknown_type_has_no_parameters() -> None:
    with pytest.raises(SearchError, match="no FHIR R4 resource type"):
        parameters.codes("Prescription")
    assert parameters.parameter("Patient", "nothing") is None
