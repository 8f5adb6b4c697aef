"""EHR sessions: a private, writable view of one chart, with a ledger of every write."""

from runtime.ehr.session import BACKENDS, EhrError, Response, Session, open

__all__ = ["BACKENDS", "EhrError", "Response", "Session", "open"]
