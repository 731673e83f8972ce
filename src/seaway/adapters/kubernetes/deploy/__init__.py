"""Carrying commands out: objects written and deleted, straight in a cluster or through Karmada."""
