"""Fakes, builders and conformance suites; public and shipped."""
