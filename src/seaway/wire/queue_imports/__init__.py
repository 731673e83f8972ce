"""Queues of other schedulers, read from their files."""
