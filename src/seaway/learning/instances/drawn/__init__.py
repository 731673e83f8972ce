"""Instances that are drawn from a seed: to learn on more fleets and loads than there are files."""
