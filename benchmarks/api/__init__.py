"""Benchmarks of the REST API under load: submits, jobs to running, a full store, and many listeners."""
