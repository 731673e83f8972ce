"""Protocols of the external dependencies of the application, implemented in `seaway.adapters`."""
