"""Every fault of a package, its chart included, and what a release still needs."""

from __future__ import annotations

from collections.abc import Mapping

from tasks.places import Fault
from tasks.structure import Parts, read


def faults(files: Mapping[str, bytes], *, where: str, release: bool = False) -> list[Fault]:
    """All faults, one message each, in the order of the files; empty = right. `release` asks for completeness too."""
    parts, found = read(files, where)
    if parts is not None and release:
        found += [Fault(where, missing) for missing in missing_for_release(parts, files)]
    return found


def missing_for_release(parts: Parts, files: Mapping[str, bytes]) -> list[str]:
    """What a release still needs, one sentence each."""
    context = parts.meta.context
    missing = []
    if context is None:
        missing.append("task.toml has no [context]: patient, practitioner, now and authority")
    else:
        for key in ("practitioner", "now", "authority"):
            if getattr(context, key) is None:
                missing.append(f"task.toml: [context] lacks {key}")
    if not parts.meta.deliverables:
        missing.append("task.toml names no [[deliverable]]")
    if parts.meta.estimated_minutes is None:
        missing.append("task.toml lacks estimated_minutes")
    if parts.meta.provenance is None or not parts.meta.provenance.contamination_guid:
        missing.append("task.toml: [provenance] lacks contamination_guid")
    if not any(path.startswith("chart/") for path in files):
        missing.append("there is no chart/")
    if not any(checkpoint.criticality != "optional" for checkpoint in parts.checkpoints):
        missing.append("checkpoints.toml holds no checkpoint that is critical or required")
    if not parts.plans:
        missing.append("there is no solution/<plan>/")
    return missing
