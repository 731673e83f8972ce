"""Benchmarks on real clusters' protocol: API servers in memory, in a process of their own."""
