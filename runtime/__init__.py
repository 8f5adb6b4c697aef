"""Agents at work: EHR sessions, the 14 tools, the agent loop, trials and batches."""
