"""What tests need and a machine may lack."""

from __future__ import annotations


class MissingError(Exception):
    """A server's programs, a browser or what labs take is not there; the message says how to mend that."""
