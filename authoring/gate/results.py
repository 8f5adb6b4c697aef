"""What the gate found: checks, mutants and variants of the plans, and the score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tasks.stored import write_whole

#: The gate's version; it stands in the event, so that a result of an older gate is told apart.
VERSION = "2"

State = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Check:
    """One check. `detail`: what it looked at, or what is wrong, or what it would need where `state` is "skipped"."""

    name: str
    state: State
    detail: str = ""


@dataclass(frozen=True)
class Changed:
    """A plan with one thing changed, and what became of it.

    `kind`: left out, ten-fold dose, … for a mutant; order of writes, brand name, … for a harmless variant. `what`: the
    action that was changed, in words. `checkpoints`: which no longer passed. `why`: their reasons.
    """

    plan: str
    kind: str
    what: str
    checkpoints: tuple[str, ...] = ()
    why: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.plan}: {self.kind}: {self.what}"


@dataclass(frozen=True)
class GateResult:
    """All checks over one package. `mutants` must each fail a checkpoint; `variants` must fail none."""

    task: str
    package: str
    checks: tuple[Check, ...]
    version: str = VERSION
    mutants: tuple[Changed, ...] = ()
    variants: tuple[Changed, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether no check failed. What was skipped did not fail; a release has nothing left to skip."""
        return not self.failures

    @property
    def failures(self) -> tuple[str, ...]:
        """Each failed check in one line."""
        return tuple(f"{check.name}: {check.detail}" for check in self.checks if check.state == "failed")

    @property
    def survivors(self) -> tuple[Changed, ...]:
        """Mutants that every checkpoint let pass."""
        return tuple(mutant for mutant in self.mutants if not mutant.checkpoints)

    @property
    def broken_variants(self) -> tuple[Changed, ...]:
        """Harmless variants that a checkpoint failed."""
        return tuple(variant for variant in self.variants if variant.checkpoints)

    @property
    def mutation_score(self) -> float | None:
        """Caught mutants over all; None where there were none."""
        return 1 - len(self.survivors) / len(self.mutants) if self.mutants else None

    def as_json(self) -> dict[str, Any]:
        """The result for a script."""

        def told(changed: Changed) -> dict[str, Any]:
            return {
                "plan": changed.plan, "kind": changed.kind, "what": changed.what,
                "checkpoints": list(changed.checkpoints), "why": list(changed.why),
            }  # fmt: skip

        return {
            "task": self.task,
            "package": self.package,
            "gate": self.version,
            "passed": self.passed,
            "checks": [{"name": one.name, "state": one.state, "detail": one.detail} for one in self.checks],
            "mutation_score": self.mutation_score,
            "mutants": [told(one) for one in self.mutants],
            "variants": [told(one) for one in self.variants],
            "seconds": round(self.seconds, 2),
        }


#: The result of a job that records nothing, in the job's folder.
FILE = "gate.json"


def keep(folder: Path, result: GateResult) -> None:
    """Write the result into a job's folder, whole."""
    write_whole(folder / FILE, json.dumps(result.as_json(), ensure_ascii=False) + "\n")


def kept_in(folder: Path) -> GateResult | None:
    """The result that a job left in its folder; None where it left none, or one that cannot be read."""
    try:
        told = json.loads((folder / FILE).read_bytes())
        return GateResult(
            task=told["task"], package=told["package"], version=told["gate"], seconds=float(told["seconds"]),
            checks=tuple(Check(one["name"], one["state"], one["detail"]) for one in told["checks"]),
            mutants=tuple(_changed(one) for one in told["mutants"]),
            variants=tuple(_changed(one) for one in told["variants"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _changed(told: Mapping[str, Any]) -> Changed:
    return Changed(told["plan"], told["kind"], told["what"], tuple(told["checkpoints"]), tuple(told["why"]))


#: How many faults a check lists before it counts the rest.
MOST_SHOWN = 8


def checked(name: str, wrong: Sequence[str], detail: str = "") -> Check:
    """A check that failed on each of `wrong`, or passed with what it looked at."""
    if not wrong:
        return Check(name, "passed", detail)
    more = f"; and {len(wrong) - MOST_SHOWN} more" if len(wrong) > MOST_SHOWN else ""
    return Check(name, "failed", "; ".join(wrong[:MOST_SHOWN]) + more)
