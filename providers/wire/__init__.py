"""A scripted server that speaks the providers' wire formats."""

from providers.wire.script import Fault, Faulty, Heard, PlanScript, Reply, Script, Tokens, ToolUse
from providers.wire.server import KEY, WireServer

__all__ = ["KEY", "Fault", "Faulty", "Heard", "PlanScript", "Reply", "Script", "Tokens", "ToolUse", "WireServer"]
