"""Whether what is graded can be reached: through the real tools, inside their pages and the 10,000 characters shown.

For every resource that a checkpoint rests on, the tools are asked as a careful agent would: by the day, and by the code
and the day. One answer that shows it, whole or with the quoted words, is enough.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from authoring.gate.results import Check, checked
from graders.evidence import Evidence
from providers.base import ToolRequest
from runtime import ehr
from runtime.clock import clock_of
from runtime.tools import Toolbox
from tasks.anchors import Anchor
from tasks.fhir.resources import Resource, dump_json
from tasks.package import Task
from tasks.trials import ToolCall

_BUILT = ("paper",)
#: Category of an Observation -> the tool that shows it.
_OBSERVATIONS = {
    "laboratory": "fhir_observation_search_labs",
    "vital-signs": "fhir_observation_search_vitals",
    "social-history": "fhir_observation_search_social_history",
}
#: Type -> (tool, the parameter that narrows by day, elements that hold the day).
_TOOLS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "Condition": ("fhir_condition_search_problems", "onset_date", ("onsetDateTime",)),
    "Procedure": ("fhir_procedure_search_orders", "date", ("performedDateTime", "performedPeriod")),
    "MedicationRequest": ("fhir_medication_request_search_orders", "authoredon", ("authoredOn",)),
    "DocumentReference": ("fhir_document_reference_search_clinical_notes", "date", ("date",)),
    "ServiceRequest": ("fhir_service_request_search", "authored", ("authoredOn",)),
}
_OBSERVED = ("effectiveDateTime", "effectivePeriod")


def checks(task: Task) -> Iterator[Check]:
    """One check a profile that a checkpoint claims."""
    claimed = sorted({profile for one in task.checkpoints for profile in one.reachable})
    for profile in claimed:
        name = f"Evidence can be reached in profile {profile}"
        if profile not in _BUILT:
            yield Check(name, "skipped", "this profile is not built yet")
            continue
        wrong, count = [], 0
        with _Reader(task) as reader:
            for checkpoint in task.checkpoints:
                if profile not in checkpoint.reachable:
                    continue
                for entry in checkpoint.rests_on:
                    anchor = Anchor.parse(entry)
                    if anchor.is_instruction:
                        continue
                    count += 1
                    fault = reader.fault(anchor)
                    wrong += [f"{checkpoint.id}: {anchor.ref} {fault}"] if fault else []
        yield checked(name, wrong, f"{count} facts shown by a tool")


class _Reader:
    """A session that is only read."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._folder = tempfile.TemporaryDirectory(prefix="workbench-reach-")
        self._session = ehr.open(task.chart, now=clock_of(task).now)
        self._ask = lru_cache(maxsize=512)(self._answer)

    def __enter__(self) -> _Reader:
        self._session.__enter__()
        self._box = Toolbox(self._session, Path(self._folder.name), now=clock_of(self._task).now)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._session.close()
        self._folder.cleanup()

    def fault(self, anchor: Anchor) -> str:
        """ "" if a tool shows it, else why not."""
        resource = self._task.chart.get(anchor.ref)
        if resource is None:
            return "is not in the chart"
        queries = list(self._queries(resource))
        if not queries:
            return "is of a kind that no tool of this profile searches"
        for tool, arguments in queries:
            call = self._ask(tool, dump_json(arguments))
            found = Evidence(self._task, self._task.chart, calls=(call,))
            if (found.seen_text(anchor.quote, anchor.ref) if anchor.quote else found.seen(anchor.ref)) is not None:
                return ""
        return "is outside the pages or the part that the model is shown, however it is asked for"

    def _answer(self, tool: str, arguments: str) -> ToolCall:
        return self._box.answer(ToolRequest("reach", tool, arguments), number=1, turn=1).call

    def _queries(self, resource: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
        body = resource.body
        if resource.type == "Patient":
            yield "fhir_patient_search_demographics", {}
            born = {key: body[name] for key, name in (("birthdate", "birthDate"), ("gender", "gender")) if name in body}
            yield "fhir_patient_search_demographics", born
            return
        patient = self._task.meta.context.patient if self._task.meta.context else ""
        whom = {"patient": patient}
        code = next(iter(_codes(body)), "")
        if resource.type == "Observation":
            tools = [tool for category, tool in _OBSERVATIONS.items() if category in _categories(body)]
            days = _days(body, _OBSERVED)
            by_code, by = {"code": code} if code else {}, "date"
        elif resource.type in _TOOLS:
            tool, by, elements = _TOOLS[resource.type]
            tools, days = [tool], _days(body, elements)
            by_code = {"code": code} if code and resource.type in ("Condition", "ServiceRequest") else {}
        else:
            return
        for tool in tools:
            for day in days:
                yield tool, whom | {by: day}
                if by_code:
                    yield tool, whom | by_code | {by: day}
            if by_code:
                yield tool, whom | by_code
            yield tool, whom


def _days(body: dict[str, Any], elements: tuple[str, ...]) -> list[str]:
    found = []
    for element in elements:
        value = body.get(element)
        value = value.get("start") if isinstance(value, dict) else value
        if isinstance(value, str):
            # To the second first: some days hold more than is shown.
            found += [value, value[:10]]
    return list(dict.fromkeys(found))


def _codes(body: dict[str, Any]) -> Iterator[str]:
    for coding in (body.get("code") or {}).get("coding") or ():
        if coding.get("code"):
            yield str(coding["code"])


def _categories(body: dict[str, Any]) -> set[str]:
    return {
        str(coding.get("code")) for category in body.get("category") or () for coding in category.get("coding") or ()
    }
