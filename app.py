"""The workbench: identity, workspace and navigation. Pages live in review_ui/."""
