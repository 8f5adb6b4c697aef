"""EHR sessions: a private, writable view of one chart, with a ledger of every write."""
