"""Packings: the maximum number of jobs that fit on a fleet at the same time, for imitation and comparison."""
