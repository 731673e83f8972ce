"""Runs: an algorithm learns in a folder, from the beginning or from where it was stopped, and leaves a policy."""
