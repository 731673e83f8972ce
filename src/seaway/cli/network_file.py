"""The file that says how the network between gateways is meant to be."""

from __future__ import annotations

from seaway.cli.job_file import Kind, Written, read_jobs
from seaway.domain.errors import RejectedError
from seaway.wire.network_in import MOST_VALUES

NETWORK = Kind("network", "gateways: []", MOST_VALUES)


def read_network_file(file: str) -> Written:
    """Read it, with where everything stands in it; ``-`` is standard input.

    Raises
    ------
    RejectedError
        When it cannot be read, or holds not just one document.
    """
    first, *more = read_jobs(file, NETWORK)
    if more:
        raise RejectedError("holds more than one document; the network is one", where=file)
    return first
