"""Compiled functions on arrays, without allocations in the inner loops."""
