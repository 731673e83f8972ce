"""Instances generated from a seed, to train on more fleets and loads than there are files."""
