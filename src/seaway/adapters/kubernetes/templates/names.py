"""Names of objects, derived from what they stand for, so that writing them twice changes nothing."""

from __future__ import annotations

import json
import re
from base64 import b32encode
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice

from seaway.domain.deployment import Deployment

LONGEST = 63
"""Characters of a DNS label."""

LONGEST_OBJECT = 46
"""Characters of an object's name; leaves room for what controllers hang on: an index, ``-worker-3``, a role."""

DIGEST_BYTES = 5
"""Of a digest: 40 bits, so that among 10,000 parts two are alike once in 20,000 attempts."""

DIGEST_LENGTH = 8

MOST_NUMBERS = 100_000
"""More replicas no job has."""

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_STRANGE = re.compile(r"[^a-z0-9]+")


def digest(what: object) -> str:
    """Condense plain values to 8 letters and digits that may stand in a name."""
    text = json.dumps(what, separators=(",", ":"), sort_keys=True)
    return b32encode(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()).decode().lower()


def object_name(deployment: Deployment, what: str) -> str:
    """Name an object of an attempt.

    Parameters
    ----------
    what
        A digest of what the object stands for within the attempt.

    Returns
    -------
    name
        The attempt's own name and `what`: a DNS label of at most 46 characters.
    """
    return f"{_fitting(deployment.name, LONGEST_OBJECT - len(what) - 1)}-{what}"


def cluster_digest(deployment: Deployment) -> str:
    """Stand for all that goes to one cluster: objects of one attempt for two clusters meet in Karmada."""
    return digest([deployment.cluster])


def numbers_text(numbers: Sequence[int]) -> str:
    """Write ascending numbers in short: ``0-3,7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def numbers_of(text: str) -> tuple[int, ...]:
    """Read what `numbers_text` wrote; whatever stands in a cluster, it costs no more than that.

    Raises
    ------
    ValueError
        When it did not write that.
    """
    numbers: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        numbers.extend(islice(range(int(first), int(last or first) + 1), MOST_NUMBERS))
        if len(numbers) > MOST_NUMBERS:
            break
    if numbers_text(numbers) != text or numbers != sorted(set(numbers)):
        raise ValueError(f"{text[:60]!r} is no list of numbers")
    return tuple(numbers)


def _fitting(name: str, most: int) -> str:
    """Return a DNS label; other names than Seaway's own are cut, and told apart by a digest."""
    if len(name) <= most and _LABEL.fullmatch(name):
        return name
    plain = _STRANGE.sub("-", name.lower()).strip("-")[: most - DIGEST_LENGTH - 1].strip("-")
    return f"{plain}-{digest(name)}"
