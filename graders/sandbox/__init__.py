"""Task code that did not ship with the workbench, run where it can reach nothing: the kernel holds it, not trust.

    P       the grading process: keys in its environment, verdicts in its memory. Never runs task code.
    W       a warm process, started once with an empty environment: Python and our modules. Never runs task code.
    holder  a fork of W that holds one task, and a fork of that with one trial's evidence. Never runs task code.
    C       a fork of the trial's holder for one call: rlimits, Landlock, seccomp, then the function, then gone.

C cannot reach another call, trial or task: no answers are kept in any of them, what another trial or task needs is in
no memory that C shares, C's pipe goes straight to P, and no other descriptor is open in it.
"""

from graders.sandbox.runner import Mode, Sandbox, SandboxFault, SandboxUnavailable, configured, sandbox

__all__ = ["Mode", "Sandbox", "SandboxFault", "SandboxUnavailable", "configured", "sandbox"]
