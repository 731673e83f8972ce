"""Observations of learned policies."""
