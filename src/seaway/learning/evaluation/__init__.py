"""Evaluation of policies: rows of figures by policy, instance and seed, and their summary."""
