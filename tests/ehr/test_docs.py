"""docs/ehr.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from runtime import ehr
from runtime.ehr import rest
from tasks.fhir.query import DEFAULT_COUNT, MAX_COUNT

DOC = (Path(__file__).resolve().parents[2] / "docs" / "ehr.md").read_text("utf-8")


def test_every_backend_and_no_other_is_documented() -> None:
    table = DOC.partition("## Backends")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == sorted(ehr.BACKENDS)


def test_the_limits_are_those_of_the_code() -> None:
    assert f"a body over {rest.MAX_BODY // 1024**2} MB" in DOC
    assert f"({DEFAULT_COUNT} rows a page, at most {MAX_COUNT})" in DOC


def test_every_status_that_the_code_refuses_with_is_documented() -> None:
    folder = Path(rest.__file__).parent
    source = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    refused = set(re.findall(r"(?:refusal|refusals|failure)\((4\d\d)", source))
    assert refused
    assert refused <= set(re.findall(r"\b4\d\d\b", DOC))
