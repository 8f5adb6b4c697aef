"""Cut HL7's two R4 tables down to what is shipped: `python -m tasks.fhir.definitions.slicer FOLDER`.

FOLDER holds r4-elements.json and r4-search-parameters.json, as derived from HL7's R4 definitions (4.0.1).
Writes elements.json and parameters.json beside this module:

    elements.json     {"Observation": ["resource", {"status": [min, many, [types], codes or null], ...}], ...}
    parameters.json   {"Observation": {"code": ["token", "Observation.code", [targets]], ...}, ...}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

#: In the table, but not R4: it came in with 4.3.
_NOT_R4 = frozenset({"SubscriptionStatus"})


def slice_elements(table: dict[str, Any]) -> dict[str, Any]:
    """The element table by type and by path below the type; `@path` stands for "same content as there"."""
    sliced: dict[str, Any] = {}
    for name, definition in table.items():
        if name in _NOT_R4:
            continue
        elements = {}
        for element in definition["elements"]:
            types = [f"@{element['same_as']}"] if "same_as" in element else element["type"]
            path = element["path"].split(".", 1)[1]
            elements[path] = [element["min"], int(element["max"] == "*"), types, element.get("codes")]
        kind = "abstract" if definition["abstract"] else definition["kind"].removesuffix("-type")
        sliced[name] = [kind, elements]
    return sliced


def _alternatives(expression: str, base: str) -> str:
    """The alternatives of a shared expression that start from `base`; those that name no type start from any."""
    kept = []
    for alternative in expression.split("|"):
        start = alternative.strip().lstrip("(").split(".", 1)[0].split(" ", 1)[0]
        if start == base or not start[:1].isupper():
            kept.append(alternative.strip())
    return " | ".join(kept)


def slice_parameters(table: list[dict[str, Any]], elements: dict[str, Any]) -> dict[str, Any]:
    """The search parameters of every concrete resource type, those of Resource and DomainResource included."""
    sliced: dict[str, Any] = {}
    for name, (kind, _) in elements.items():
        if kind != "resource":
            continue
        own: dict[str, Any] = {}
        for parameter in table:
            if "expression" not in parameter or parameter["type"] == "special":
                continue
            for base in ("Resource", "DomainResource", name):
                if base in parameter["base"]:
                    expression = _alternatives(parameter["expression"], base)
                    if expression:
                        own[parameter["code"]] = [parameter["type"], expression, parameter.get("target", [])]
        sliced[name] = dict(sorted(own.items()))
    return sliced


def render(folder: Path) -> dict[str, str]:
    """Both files as text, from the tables in `folder`."""
    elements = slice_elements(json.loads((folder / "r4-elements.json").read_text("utf-8")))
    table = json.loads((folder / "r4-search-parameters.json").read_text("utf-8"))
    parameters = slice_parameters(table, elements)
    return {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace('],"', '],\n"') + "\n"
        for name, value in (("elements.json", elements), ("parameters.json", parameters))
    }


if __name__ == "__main__":
    for file_name, text in render(Path(sys.argv[1])).items():
        (HERE / file_name).write_text(text, "utf-8")
