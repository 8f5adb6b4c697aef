"""The nouns: task packages, FHIR charts, stored trials, the workspace, and the errors a user can meet."""
