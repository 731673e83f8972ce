"""Benchmarks of training speed."""
