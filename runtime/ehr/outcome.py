"""OperationOutcome: how a FHIR server says what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.ehr.session import EhrError
from tasks.fhir.elements import Issue


def operation_outcome(issues: Sequence[Issue], *, severity: str = "error") -> dict[str, Any]:
    """An OperationOutcome body; an issue's path becomes its `expression`."""
    return {
        "resourceType": "OperationOutcome",
        "issue": [
            {
                "severity": severity,
                "code": issue.code,
                "diagnostics": f"{issue.path}: {issue.message}" if issue.path else issue.message,
                **({"expression": [issue.path]} if issue.path else {}),
            }
            for issue in issues
        ],
    }


def refusal(status: int, code: str, message: str, *, path: str = "") -> EhrError:
    """An EhrError of one issue."""
    return refusals(status, [Issue(path, code, message)])


def refusals(status: int, issues: Sequence[Issue]) -> EhrError:
    """An EhrError of several issues; its message is the first one and how many more there are.

    The message names elements, never their content.
    """
    first = issues[0]
    more = f" ({len(issues) - 1} more)" if len(issues) > 1 else ""
    return EhrError(f"{first.message}{more}", where=first.path, status=status, outcome=operation_outcome(issues))
