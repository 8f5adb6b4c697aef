"""FHIR R4 resources as written, the element table, and the one search engine over a chart."""
