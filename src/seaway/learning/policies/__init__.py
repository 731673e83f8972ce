"""Trained policies: storage, checks and execution. This package does not need torch."""
