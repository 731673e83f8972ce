"""Waiting jobs of a replay, and the rules by which they start."""
