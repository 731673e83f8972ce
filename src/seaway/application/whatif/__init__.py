"""Dry runs and what-if questions on a copy of the fleet."""
