"""The review pages' own logic: what stands in a draft, what is still missing, what a change looks like."""
