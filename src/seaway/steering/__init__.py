"""Desired and current state of gateways, and the changes between the two, as immutable values."""
