"""Desired and current state of a gateway, and the changes between them, as values."""
