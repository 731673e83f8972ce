"""Snapshots of the fleet as arrays: nodes, devices and links, with their free resources."""
