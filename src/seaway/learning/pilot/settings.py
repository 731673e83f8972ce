"""Settings of the training of `pilot`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PilotSettings:
    """How `pilot` learns.

    Attributes
    ----------
    width, heads
        Of the network.
    pairs
        Pairs of candidates in a generation: each a step from the weights, there and back.
    batch
        Instances that a generation is played on, drawn from those of the run.
    spread
        Size of such a step, in each weight's own unit.
    rate
        How far the weights move in a generation, likewise.
    average
        Share of the old in the running mean of the weights, which is what is evaluated and kept.
    judged
        Every so many-th instance is kept apart from learning, to be evaluated on.
    scores
        Whether the scores of nodes are learned. Else those within a cluster stay Seaway's own, and what is learned is
        when to wait, and what figures count by which clusters differ.
    packings
        Of how many instances it learns from packings first: from the best that is found with all jobs known. It needs
        OR-Tools.
    packing_s
        How long each of them is searched, seconds of CPU or so.
    """

    width: int = 16
    heads: int = 2
    pairs: int = 12
    batch: int = 24
    spread: float = 1.0
    rate: float = 0.5
    average: float = 0.9
    judged: int = 4
    scores: bool = True
    packings: int = 0
    packing_s: float = 8.0
