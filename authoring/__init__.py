"""New tasks, proposals, edits and diffs, and the publish gate."""
