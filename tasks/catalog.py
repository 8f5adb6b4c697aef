"""What a source of tasks holds: one row a task, and how the whole covers groups, workflows and capabilities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tasks.errors import PackageError
from tasks.package import Task, TaskSource
from tasks.taxonomy import CAPABILITIES, GROUPS, REASONING_KINDS, WORKFLOWS


@dataclass(frozen=True)
class Catalog:
    """The tasks of a source that load, and why the others do not. No chart is parsed."""

    tasks: tuple[Task, ...]
    broken: tuple[PackageError, ...]

    @classmethod
    def of(cls, source: TaskSource) -> Catalog:
        """Every task of the source. Raises EnvironmentFault where the source itself cannot be read."""
        tasks, broken = [], []
        for id in source.list():
            try:
                tasks.append(source.load(id))
            except PackageError as error:
                broken.append(error)
        return cls(tuple(tasks), tuple(broken))


def row(task: Task) -> dict[str, Any]:
    """One task as a list shows it."""
    meta = task.meta
    return {
        "id": task.id,
        "version": meta.version,
        "title": meta.title,
        "specialty": meta.specialty,
        "group": meta.group,
        "workflow": meta.workflow,
        "authority": meta.context.authority if meta.context else None,
        "data_class": meta.data_class,
        "split": meta.split,
        "estimated_minutes": meta.estimated_minutes,
        "checkpoints": len(task.checkpoints),
        "draft": task.is_draft,
    }


def resource_counts(task: Task) -> dict[str, int]:
    """Resource type -> how many lines its chart file has; nothing is parsed."""
    return {
        name.removesuffix(".ndjson"): data.count(b"\n") + (not data.endswith(b"\n"))
        for name, data in sorted(task.chart_files.items())
    }


def detail(task: Task) -> dict[str, Any]:
    """One task in full, as JSON has it: meta, checkpoints as declared, digests, what a release lacks."""
    return {
        **row(task),
        "context": task.meta.model_dump(mode="json")["context"],
        "deliverables": [deliverable.path for deliverable in task.meta.deliverables],
        "limits": task.meta.limits.model_dump(mode="json", exclude_none=True),
        "provenance": task.meta.provenance.model_dump(mode="json") if task.meta.provenance else None,
        "resources": resource_counts(task),
        "instruction": task.instruction,
        "checkpoints": [
            checkpoint.model_dump(mode="json", by_alias=True, exclude_defaults=True) for checkpoint in task.checkpoints
        ],
        "plans": {name: len(plan.actions) for name, plan in sorted(task.plans.items())},
        "agent_digest": task.agent_digest,
        "grade_digest": task.grade_digest,
        "missing_for_release": task.missing_for_release(),
    }


@dataclass(frozen=True)
class Coverage:
    """How many tasks stand in each group and workflow, and how many checkpoints ask for what. Zeros are kept."""

    tasks: int
    checkpoints: int
    cells: dict[str, dict[str, int]]
    capabilities: dict[str, int]
    kinds: dict[str, int]
    critical: int
    safety: int
    authorities: dict[str, int]

    @classmethod
    def of(cls, tasks: tuple[Task, ...]) -> Coverage:
        """The coverage of these tasks."""
        cell: Counter[tuple[str, str]] = Counter((task.meta.group, task.meta.workflow) for task in tasks)
        checkpoints = [checkpoint for task in tasks for checkpoint in task.checkpoints]
        capability: Counter[str] = Counter(checkpoint.capability for checkpoint in checkpoints)
        kind: Counter[str] = Counter(checkpoint.kind for checkpoint in checkpoints)
        authority = Counter(
            task.meta.context.authority or "not stated" if task.meta.context else "not stated" for task in tasks
        )
        return cls(
            tasks=len(tasks),
            checkpoints=len(checkpoints),
            cells={group: {workflow: cell[group, workflow] for workflow in WORKFLOWS} for group in GROUPS},
            capabilities={name: capability[name] for name in CAPABILITIES},
            kinds={name: kind[name] for name in REASONING_KINDS},
            critical=sum(checkpoint.criticality == "critical" for checkpoint in checkpoints),
            safety=sum(checkpoint.is_safety for checkpoint in checkpoints),
            authorities=dict(sorted(authority.items())),
        )
