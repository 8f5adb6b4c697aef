"""The pages of the workbench and their components."""
