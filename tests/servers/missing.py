"""Requirements of tests that a machine may lack."""

from __future__ import annotations


class MissingError(Exception):
    """A server's programs, a browser or the requirements of labs are missing; the message states the fix."""
