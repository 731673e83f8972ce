"""Instances for training: fleets and their jobs, from files or generated."""
