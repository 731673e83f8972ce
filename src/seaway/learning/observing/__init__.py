"""Observations of trained policies."""
