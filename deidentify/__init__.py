"""Warehouse records in; perturbed, de-identified FHIR R4 out, with an audit."""
