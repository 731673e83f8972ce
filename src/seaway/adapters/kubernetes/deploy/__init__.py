"""Execution of commands: objects are written and deleted directly in a cluster or through Karmada."""
