"""EHR sessions: a private, writable view of one chart, with a ledger of every write."""

from runtime.ehr.session import BACKENDS, RESTORING, EhrError, Response, Restorable, Session, open

__all__ = ["BACKENDS", "RESTORING", "EhrError", "Response", "Restorable", "Session", "open"]
