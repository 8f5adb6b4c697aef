"""Task code that did not ship with the workbench, run where it can reach nothing: the kernel holds it, not trust.

    P  the grading process: keys in its environment, verdicts in its memory. Never runs task code.
    W  a warm process, started once with an empty environment: holds Python, our modules and the chart. Never runs it.
    C  a fork of W for one call: rlimits, Landlock, seccomp, then the function, then gone.

C cannot reach another call: W keeps no answers, C's pipe goes straight to P, and no other descriptor is open in it.
"""

from graders.sandbox.runner import Sandbox, SandboxUnavailable, sandbox

__all__ = ["Sandbox", "SandboxUnavailable", "sandbox"]
