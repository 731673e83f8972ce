"""Runs: an algorithm learns in a folder, from the beginning or from a checkpoint, and leaves a policy."""
