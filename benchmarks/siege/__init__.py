"""Benchmark of a server under attack: many kinds of hostile clients at once, while others submit jobs."""
