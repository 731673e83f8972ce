"""Benchmark of a server that runs for long: its use of resources at a hundred times the usual rates."""
