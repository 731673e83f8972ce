"""Simulated clusters: everything a `Backend` does, with books of their own, and faults on demand."""
