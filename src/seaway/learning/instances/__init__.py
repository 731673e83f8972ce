"""Instances for training: fleets with jobs, from files or generated."""
