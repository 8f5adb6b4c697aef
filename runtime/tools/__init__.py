"""The 14 tools of profile `paper`, each declared once as a pydantic model, and the box that runs their calls.

declaration.py   what a tool is: Tool, its JSON schema, faults of arguments in words
reads.py         the nine searches
creates.py       the four creates, as FHIR R4
files.py         write_file, inside the trial's workspace
box.py           Toolbox: one trial's tools over one EHR session
"""

from runtime.tools.box import TOOLS, TOOLS_BY_NAME, Toolbox, text_shown, tool_specs
from runtime.tools.declaration import ArgumentFault, Call, Tool

__all__ = ["TOOLS", "TOOLS_BY_NAME", "ArgumentFault", "Call", "Tool", "Toolbox", "text_shown", "tool_specs"]
