"""Karmada's control plane in memory: what it does between a policy and the pods of its members."""
