"""Product names of NVIDIA's cards, the same whoever says them."""

from __future__ import annotations

import re
from functools import lru_cache

NVIDIA = "NVIDIA"
UNKNOWN_NVIDIA = "NVIDIA GPU"
"""A card of which nobody says what it is."""

_OWN_DASHES = re.compile(r"[A-Z0-9]+-(?:SXM[0-9]?|PCIE)(?:-[0-9]+GB)?(?:-LS)?\b|Max-Q")
"""Parts of product names that have dashes of their own, like ``A100-SXM4-80GB``."""

_FOUR_SLICES = ("A30", "RTX PRO 6000")


@lru_cache(1024)  # a fleet has cards of a few models
def nvidia_model(name: str) -> str:
    """Return a product name as NVIDIA's library has it, with the maker in front once.

    HAMi up to v2.7 and Volcano put ``NVIDIA-`` before names that begin with it already.
    """
    words = " ".join(name.split())
    while words.startswith((f"{NVIDIA}-", f"{NVIDIA} ")):
        words = words[len(NVIDIA) + 1 :].lstrip("- ")
    return f"{NVIDIA} {words}" if words and words != NVIDIA else UNKNOWN_NVIDIA


def nvidia_label_model(label: str) -> str:
    """Return the product name that a label stands for; labels have dashes for blanks."""
    words, at = "", 0
    for kept in _OWN_DASHES.finditer(label):
        words += label[at : kept.start()].replace("-", " ") + kept.group()
        at = kept.end()
    return nvidia_model(words + label[at:].replace("-", " "))


def compute_slices(model: str) -> int:
    """Return how many compute slices MIG cuts a card of this model into."""
    return 4 if any(name in model for name in _FOUR_SLICES) else 7


def profile_slices(profile: str) -> int:
    """Return the compute slices of a MIG profile like ``3g.20gb``; 0 when its name does not say."""
    found = re.match(r"([1-7])g(?:[.0-9]|$)", profile)
    return int(found[1]) if found else 0
