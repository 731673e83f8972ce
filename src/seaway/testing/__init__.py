"""Fakes, builders and conformance suites, as a public part of the package."""
