"""Benchmarks with the Kubernetes protocol, on fake API servers in a separate process."""
