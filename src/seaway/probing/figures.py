"""Figures of a link from a round of probes."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.network import PPM


@dataclass(frozen=True, slots=True)
class Round:
    """Result of one round of probes to one target.

    Attributes
    ----------
    sent
        Number of sent probes.
    rtts_ns
        Round-trip time of each answered probe, nanoseconds, in the order of sending.
    discarded
        Answers with an impossible time, for example after a clock change; they count neither as sent nor as answered.
    """

    sent: int
    rtts_ns: tuple[int, ...]
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a link from a round.

    Attributes
    ----------
    latency_ns
        Mean round-trip time, nanoseconds; None without answers.
    jitter_ns
        Largest deviation from the mean, nanoseconds; 0 without answers.
    loss_ppm
        Share of probes without an answer, parts per million.
    """

    latency_ns: int | None
    jitter_ns: int
    loss_ppm: int


def figures(measured: Round) -> Figures:
    """Work out latency, jitter and loss of a round that sent something.

    Raises
    ------
    ValueError
        When nothing was sent, or more was answered than sent.
    """
    rtts, sent = measured.rtts_ns, measured.sent
    if sent < 1 or len(rtts) > sent:
        raise ValueError(f"{len(rtts)} answers to {sent} probes")
    loss_ppm = (sent - len(rtts)) * PPM // sent
    if not rtts:
        return Figures(None, 0, loss_ppm)
    mean = round(sum(rtts) / len(rtts))
    return Figures(mean, max(max(rtts) - mean, mean - min(rtts)), loss_ppm)
