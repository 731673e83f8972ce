"""Simulated clusters: complete implementations of `Backend` with their own resource accounting and fault injection."""
