"""The judgement of a task: events, the state they fold to, who may do what, and what sign-off still needs."""
