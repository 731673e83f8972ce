"""Benchmarks of pages: their speed, and the cost of viewers for the control plane."""
