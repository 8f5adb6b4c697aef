"""What is said in the demonstration. All of it is invented; the clinical content is that of the task's sources."""

from __future__ import annotations

import json
from typing import Any

from providers.wire.script import Heard, Reply, Script, Tokens, ToolUse

TASK = "gout-allopurinol-demo"
MODEL = "scripted-reviser"
ONE, TWO, JUDGE = "demo-reviewer-1", "demo-reviewer-2", "demo-adjudicator"
AUTHOR, LEAD = "demo-author", "demo-lead"

PLAN = {
    ONE: {
        "answer": "Allopurinol, started very low, because the kidneys are at stage 4.",
        "do_now": "Allopurinol 50 mg daily; uric acid in four weeks.",
        "if_then": "Uric acid above 6: add 50 mg every four weeks. Rash or fever: stop at once.",
        "must_not": "No NSAID. Not 300 mg at the start.",
        "follow_up": "Uric acid and creatinine in four weeks, primary care.",
        "confidence": "sure",
    },
    TWO: {
        "answer": "Allopurinol, started low.",
        "do_now": "Allopurinol 50 or 100 mg daily.",
        "if_then": "Raise by the uric acid, target below 6.",
        "must_not": "No NSAID.",
        "follow_up": "Uric acid in one to two months.",
        "confidence": "fairly sure",
    },
}

FINDINGS: dict[str, list[dict[str, Any]]] = {
    ONE: [
        {
            "dimension": "patient_safety",
            "anchor": {"kind": "checkpoint", "checkpoint": "cp3"},
            "weight": "blocking",
            "text": "An order of 300 mg passes. At an eGFR of 26 that is a danger: start at 50 mg and raise it by the "
            "uric acid.",
            "harm": {"kind": "commission", "severity": "severe", "likelihood": "possible"},
            "source": "American College of Rheumatology, 2020, starting dose of allopurinol",
            "confidence": "sure",
        },
        {
            "dimension": "ehr_consistency",
            "anchor": {"kind": "resource", "ref": "DocumentReference/n-visit", "quote": "creatinine 1.2 mg/dL today"},
            "weight": "blocking",
            "text": "The visit note has creatinine 1.2 on 2 June; the laboratory has 2.1 on the same day, 2.0 in "
            "January, and she has stage 4 disease. The note must be wrong.",
            "confidence": "sure",
        },
    ],
    TWO: [
        {
            "dimension": "instruction_clarity",
            "anchor": {"kind": "text", "path": "instruction.md", "quote": "orders are ready"},
            "weight": "should",
            "text": "Ready to be signed, or active? It does not say whether the consultant may order.",
        },
        {
            "dimension": "plan_completeness",
            "anchor": {"kind": "checkpoint", "checkpoint": "cp5"},
            "weight": "should",
            "text": "Five weeks at the latest is tight where the laboratory comes once a week. Give it more room.",
        },
        {
            "dimension": "plan_completeness",
            "anchor": {"kind": "task"},
            "weight": "note",
            "text": "Should HLA-B*5801 be tested before allopurinol?",
            "confidence": "unsure",
        },
    ],
}

#: How the two rate what they differ on; everything else is "acceptable" and "essential".
VERDICTS = {
    ONE: {"patient_safety": "needs change", "ehr_consistency": "needs change"},
    TWO: {"instruction_clarity": "needs change", "plan_completeness": "needs change"},
}
RATINGS = {ONE: {"cp3": "wrong"}, TWO: {"cp5": "optional"}}

_ORDER = {"type": "MedicationRequest", "count": "one"}
_THREE_HUNDRED = json.dumps(
    {
        "resourceType": "MedicationRequest", "id": "example", "status": "active", "intent": "order",
        "medicationCodeableConcept": {"text": "allopurinol 300 mg tablet"},
        "subject": {"reference": "Patient/p-2f80c1"}, "requester": {"reference": "Practitioner/dr-moor"},
        "dosageInstruction": [
            {
                "text": "once daily", "route": {"text": "oral"},
                "doseAndRate": [{"doseQuantity": {"value": 300, "unit": "mg"}}],
            }
        ],
    },
    indent=2,
)  # fmt: skip


def _follow_up(when: str) -> list[dict[str, str]]:
    return [{"type": "ServiceRequest", "test": "uric acid", "when": when}]


def _wider(window: tuple[str, str], finding: str, why: str, risk: str) -> dict[str, Any]:
    when, words = window
    return {
        "edit": {
            "kind": "checkpoint", "checkpoint": "cp5",
            "set": {"title": f"Uric acid checked {words} after the start", "followup": _follow_up(when)},
            "was": {"title": "Uric acid checked two to five weeks after the start", "followup": _follow_up("2-5 wk")},
        },
        "findings": [finding], "dimension": "plan_completeness", "rationale": why,
        "evidence": [f"finding: {finding}"], "risk": risk,
    }  # fmt: skip


TOO_WIDE = ("2-12 wk", "two to twelve weeks")
WIDE_ENOUGH = ("2-6 wk", "two to six weeks")


def _first(find: str) -> dict[str, Any]:
    """The first round's answer; `find` is what it quotes of the instruction."""
    safety = {"findings": ["F1"], "dimension": "patient_safety"}
    return {
        "edits": [
            {
                "edit": {"kind": "add_file", "path": "examples/cp3-three-hundred.json", "content": _THREE_HUNDRED},
                "rationale": "An order of 300 mg becomes an example that has to fail.",
                "evidence": ["finding: F1"],
                "risk": "none seen",
                **safety,
            },
            {
                "edit": {
                    "kind": "checkpoint", "checkpoint": "cp3",
                    "set": {
                        "order": {
                            **_ORDER, "accept": [{"ingredient": "allopurinol", "dose": "50 mg", "frequency": "daily"}],
                        },
                        "must_not_match": ["examples/cp3-three-hundred.json"],
                    },
                    "was": {
                        "order": {**_ORDER, "accept": [{"ingredient": "allopurinol", "daily": "<=300 mg"}]},
                        "must_not_match": None,
                    },
                },
                "rationale": "At stage 4 the start is 50 mg a day; a dose of 300 mg no longer passes.",
                "evidence": ["Observation/o-creatinine-2", "finding: F1"],
                "risk": "An agent that starts at 100 mg fails now.",
                **safety,
            },
            {
                "edit": {
                    "kind": "note", "ref": "DocumentReference/n-visit", "find": "creatinine 1.2 mg/dL today",
                    "replace": "creatinine 2.1 mg/dL today",
                },
                "findings": ["F2"], "dimension": "ehr_consistency",
                "rationale": "The note says now what the laboratory measured that morning.",
                "evidence": ["Observation/o-creatinine-2", "Observation/o-creatinine-1", "Condition/c-ckd"],
                "risk": "A reader of the note alone now also arrives at stage 4.",
            },
            {
                "edit": {
                    "kind": "text", "path": "instruction.md", "find": find,
                    "replace": "You may order: place\nthe orders as active ones.",
                },
                "findings": ["F3"], "dimension": "instruction_clarity",
                "rationale": "It says that the consultant orders, as task.toml has it.",
                "evidence": ['task.toml#"orders"'],
                "risk": "none seen",
            },
            _wider(
                TOO_WIDE, "F4", "The first check may come up to twelve weeks after the start.",
                "A dose that is too low, or harms, is seen later.",
            ),
        ],
        "unaddressed": [
            {
                "finding": "F5",
                "reason": "The record names no ancestry in which guidelines advise the test.",
            }
        ],
    }  # fmt: skip


#: The model copies a line of the instruction without its line break; that stands nowhere, and goes back.
MISQUOTED = "See to it that the orders are ready."
QUOTED = "See to it that the\norders are ready."
_SECOND = {
    "edits": [
        _wider(
            TOO_WIDE, "F1", "The first check may come up to twelve weeks after the start.", "It is seen later."
        ),
        _wider(
            WIDE_ENOUGH, "F1", "One week more, so that a weekly laboratory day fits, and still before the second step.",
            "A check in the sixth week passes now.",
        ),
    ],
    "unaddressed": [],
}  # fmt: skip


def _call(value: dict[str, Any], tokens: int) -> Reply:
    return Reply(
        thinking="Which words of the package does each finding touch?",
        calls=(ToolUse(name="answer", arguments=value),),
        tokens=Tokens(uncached_input=tokens, output=900),
    )


class Reviser:
    """The scripted model: a bad edit first, mended when it comes back; then a rejected change and a better one."""

    def reply(self, heard: Heard) -> Reply:
        """What it says next."""
        if "# Changes that were rejected before" in heard.first_user:
            return Script([_call(_SECOND, 9_000)]).reply(heard)
        return Script([_call(_first(MISQUOTED), 9_000), _call(_first(QUOTED), 11_000)]).reply(heard)


#: unit -> what each of the two decides in round 1, with the reason.
DECISIONS: dict[str, dict[str, tuple[str, str]]] = {
    "examples/cp3-three-hundred.json": {
        ONE: ("approve", ""), TWO: ("reject", "It belongs to the change of cp3, which I reject."),
    },
    "checkpoints.toml#cp3": {
        ONE: ("approve", "This is what I asked for."),
        TWO: ("reject", "100 mg is within the guideline too; I would start there."),
    },
    "chart/DocumentReference.ndjson#n-visit": {ONE: ("approve", ""), TWO: ("approve", "")},
    "instruction.md": {ONE: ("approve", ""), TWO: ("approve", "")},
    "checkpoints.toml#cp5": {
        ONE: ("veto", "Twelve weeks is late: the first check belongs before the first step of the dose."),
        TWO: ("approve", ""),
    },
}  # fmt: skip
VETO_HARM = {"kind": "omission", "severity": "moderate", "likelihood": "possible"}
SETTLED = {
    "checkpoints.toml#cp3": (
        "approve",
        "100 mg is the guideline's upper limit, and lower in stage 3 and worse. At an eGFR of 26 the answer is 50 mg.",
    ),
    "checkpoints.toml#cp5": ("reject", "Twelve weeks is too long; a week more would do."),
}
