"""Replay of traces on virtual clusters, and example workloads."""
