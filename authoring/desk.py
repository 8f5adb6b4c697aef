"""What people do to a task under review: each function asks whether they may, checks, and commits one submission.

A `Desk` is one person at one workspace. Every change of a task's state goes through here, from a page or a shell
alike. The stages stand in modules of their own: assigning, judging (stage 1), deciding (2 and 3), applying, releasing;
what they share is in seat.
"""

from __future__ import annotations

from authoring.applying import Applying, Composed, ConflictError, Consequence
from authoring.assigning import Assigning
from authoring.deciding import Deciding
from authoring.judging import Judging
from authoring.releasing import Release, Releasing
from authoring.seat import Done, Snapshot, Stamp

__all__ = ["Composed", "ConflictError", "Consequence", "Desk", "Done", "Release", "Snapshot", "Stamp"]


class Desk(Assigning, Judging, Deciding, Applying, Releasing):
    """A person at a workspace. Every method raises NotAllowed, UsageError or StoreError with nothing written."""
