"""The commands of `python -m authoring`: each reads its options, calls one method of the desk, and prints."""
