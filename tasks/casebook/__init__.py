"""Builders of the bundled tasks: each rebuilds its package in tasks/suite/ byte for byte."""
