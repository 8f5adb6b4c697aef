"""The publish gate: what must hold of a package's bytes before a physician decides on them or a release is made.

    results.py     what a run found: checks, mutants, variants, the score
    run.py         the checks in order
    replay.py      plans carried out in process, in milliseconds
    mutants.py     plans with one thing made wrong: each must fail a checkpoint
    variants.py    plans changed in what does not matter: each must pass
    package.py     checks of text and chart: identifiers, clock, sources, leaks
    reach.py       whether the graded evidence can be reached with the tools of each profile

Each check says what it looked at and what is wrong. A run is over a whole package, without a model, in seconds; its
result is an event (`gate_ran`) bound to the package's hash.
"""

from authoring.gate.results import VERSION, Changed, Check, GateResult
from authoring.gate.run import count, run_gate

__all__ = ["VERSION", "Changed", "Check", "GateResult", "count", "run_gate"]
