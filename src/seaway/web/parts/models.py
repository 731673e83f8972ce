"""GPU models in forms, with the number of GPUs and of free ones."""

from __future__ import annotations

from collections.abc import Iterable

from seaway.web.words import Words
from seaway.wire.fleet import ModelOut

MOST = 8
"""Maximum number of models in a hint."""


def model_titles(words: Words, models: Iterable[ModelOut]) -> dict[str, str]:
    """Return the models by name, each with a title such as ``NVIDIA L4 (8 GPUs, 3 free)``."""
    return {
        each.model: words("{model} ({total} GPUs, {free} free)", model=each.model, total=each.devices, free=each.free)
        for each in models
    }


def models_hint(words: Words, models: Iterable[ModelOut]) -> str:
    """Return a hint that lists the models; empty without GPUs."""
    titles = list(model_titles(words, models).values())
    listed = ", ".join(titles[:MOST]) + (", ..." if titles[MOST:] else "")
    return words("Models here: {models}.", models=listed) if titles else ""
