"""Protocols for everything that the application needs from outside, implemented in `seaway.adapters`."""
