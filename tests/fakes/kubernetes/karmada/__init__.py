"""Karmada's control plane in memory: its work between a policy and the pods of its members."""
