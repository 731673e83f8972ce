"""Attention for training, forward and backward: a batch of queries, each over few small tokens.

Batches of matrices of about 17 x 7 are too small for libraries for large matrices. Here each instruction processes one
sample per lane: within a tile of `LANES` samples, the same number of all samples is contiguous.

Dimensions: B samples, T tokens per sample, F features of a token in an observation, D = F + 3 features here, H heads, L
lanes. The tokens are C clusters and a last one for waiting, which has no features in the observation. After its F
features, each token has its position, the square of its position, and 1 if it is the one for waiting; see
`place_tokens`.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Float32
from seaway.scheduling.kernels.compile import compiled

LANES = 64
LOG2_E = np.float32(1.4426950408889634)
LEAST = np.float32(-126.0)  # minimum exponent of normal numbers
HALF = np.float32(0.5)


@compiled
def load_tile(rows: Float32, first: int, out: Float32) -> int:
    """Write samples from `first` on to (T, F, L), one sample per lane. Return their number."""
    count, figures, lanes = out.shape
    filled = min(lanes, rows.shape[0] - first)
    for lane in range(filled):
        for t in range(count):
            for f in range(figures):
                out[t, f, lane] = rows[first + lane, t * figures + f]
    return filled


@compiled
def raise_e(whole: Float32, bits: np.ndarray, power: Float32, out: Float32) -> None:
    """Write the exponential of `whole` (T, L), whose values are at most 0.

    It is computed as 2 ** (n + r) with integer n and abs(r) <= 1/2: a polynomial for r, and the exponent bits of a
    float for n. `bits` (int32) and `power` (float32) share memory.

    References
    ----------
    Cephes Math Library, exp2f.c: the polynomial.
    """
    for t in range(whole.shape[0]):
        for lane in range(LANES):
            exponent = max(whole[t, lane] * LOG2_E, LEAST)
            n = np.floor(exponent + HALF)
            bits[t, lane] = (np.int32(n) + np.int32(127)) << np.int32(23)
            r = exponent - n
            p = np.float32(1.535336188319500e-4)
            p = p * r + np.float32(1.339887440266574e-3)
            p = p * r + np.float32(9.618437357674640e-3)
            p = p * r + np.float32(5.550332471162809e-2)
            p = p * r + np.float32(2.402264791363012e-1)
            p = p * r + np.float32(6.931472028550421e-1)
            out[t, lane] = p * r + np.float32(1.0)
    for t in range(whole.shape[0]):
        for lane in range(LANES):
            out[t, lane] *= power[t, lane]


@compiled
def place_tokens(places: Float32, out: Float32) -> None:
    """Write the last three features of tokens (T, D, L), which are equal for all samples, and zeros for the others.

    A query for the position p is -(position - p)^2, which is linear in the position and its square. A head can
    therefore attend to the cluster of an action.

    Parameters
    ----------
    places
        Action of each token, -1 to 1, shape (T,).
    """
    count, width, _ = out.shape
    out[:] = np.float32(0.0)
    for t in range(count):
        out[t, width - 3] = places[t]
        out[t, width - 2] = places[t] * places[t]
    out[count - 1, width - 1] = np.float32(1.0)


@compiled
def load_clusters(rows: Float32, first: int, out: Float32) -> int:
    """Write the clusters' features of samples from `first` on to tokens (T, D, L). Return the number of samples."""
    count, width, lanes = out.shape
    figures = width - 3
    filled = min(lanes, rows.shape[0] - first)
    for lane in range(filled):
        for t in range(count - 1):
            for f in range(figures):
                out[t, f, lane] = rows[first + lane, t * figures + f]
    return filled


@compiled
def score(asked: Float32, tokens: Float32, out: Float32) -> None:
    """Write the scores (T, L) of tokens (T, D, L) for the queries (D, L) of one head, minus their maximum."""
    count, width, _ = tokens.shape
    most = np.full(LANES, np.float32(-np.inf))
    for t in range(count):
        for lane in range(LANES):
            out[t, lane] = asked[0, lane] * tokens[t, 0, lane]
        for d in range(1, width):
            for lane in range(LANES):
                out[t, lane] += asked[d, lane] * tokens[t, d, lane]
        for lane in range(LANES):
            most[lane] = max(most[lane], out[t, lane])
    for t in range(count):
        for lane in range(LANES):
            out[t, lane] -= most[lane]


@compiled
def gather(tokens: Float32, shares: Float32, out: Float32) -> None:
    """Normalise the weights `shares` (T, L) and write the weighted mean (D, L) of the tokens (T, D, L)."""
    count, width, _ = tokens.shape
    whole = np.zeros(LANES, np.float32)
    for t in range(count):
        for lane in range(LANES):
            whole[lane] += shares[t, lane]
    for lane in range(LANES):
        whole[lane] = np.float32(1.0) / whole[lane]
    out[:] = np.float32(0.0)
    for t in range(count):
        for lane in range(LANES):
            shares[t, lane] *= whole[lane]
        for d in range(width):
            for lane in range(LANES):
                out[d, lane] += shares[t, lane] * tokens[t, d, lane]


@compiled
def attend(rows: Float32, places: Float32, asked: Float32, shares: Float32, out: Float32) -> None:
    """Compute attention: for each head, the mean of the tokens with softmax weights of their scores.

    Parameters
    ----------
    rows
        Samples, shape (B, at least C * F), cluster after cluster.
    places
        Action of each token, shape (T,), see `place_tokens`.
    asked
        Queries, shape (B, H * D).
    shares
        Weights for `attend_back`, shape (tiles of `LANES` samples, H, T, LANES); output.
    out
        Result, shape (B, H * D); output.
    """
    heads, count = shares.shape[1:3]
    width = asked.shape[1] // heads
    tokens = np.empty((count, width, LANES), np.float32)
    place_tokens(places, tokens)
    questions, found = np.zeros((heads, width, LANES), np.float32), np.empty((width, LANES), np.float32)
    scores, bits = np.empty((count, LANES), np.float32), np.empty((count, LANES), np.int32)
    power = bits.view(np.float32)
    for tile in range(shares.shape[0]):
        first = tile * LANES
        load_clusters(rows, first, tokens)
        filled = load_tile(asked, first, questions)
        for h in range(heads):
            score(questions[h], tokens, scores)
            raise_e(scores, bits, power, shares[tile, h])
            gather(tokens, shares[tile, h], found)
            for lane in range(filled):
                for d in range(width):
                    out[first + lane, h * width + d] = found[d, lane]


@compiled
def attend_back(rows: Float32, places: Float32, shares: Float32, gradient: Float32, out: Float32) -> None:
    """Compute the gradient of the queries from `gradient` (B, H * D), the gradient of the output of `attend`.

    Parameters
    ----------
    rows, places, shares
        Arguments of `attend`, with its weights.
    out
        Result, shape (B, H * D); output.
    """
    heads, count = shares.shape[1:3]
    width = gradient.shape[1] // heads
    tokens = np.empty((count, width, LANES), np.float32)
    place_tokens(places, tokens)
    after, before = np.zeros((heads, width, LANES), np.float32), np.empty((width, LANES), np.float32)
    slopes, mean = np.empty((count, LANES), np.float32), np.empty(LANES, np.float32)
    for tile in range(shares.shape[0]):
        first = tile * LANES
        load_clusters(rows, first, tokens)
        filled = load_tile(gradient, first, after)
        for h in range(heads):
            mean[:] = np.float32(0.0)
            before[:] = np.float32(0.0)
            for t in range(count):
                for lane in range(LANES):
                    slopes[t, lane] = after[h, 0, lane] * tokens[t, 0, lane]
                for d in range(1, width):
                    for lane in range(LANES):
                        slopes[t, lane] += after[h, d, lane] * tokens[t, d, lane]
                for lane in range(LANES):
                    mean[lane] += slopes[t, lane] * shares[tile, h, t, lane]
            for t in range(count):
                for lane in range(LANES):
                    slopes[t, lane] = (slopes[t, lane] - mean[lane]) * shares[tile, h, t, lane]
                for d in range(width):
                    for lane in range(LANES):
                        before[d, lane] += slopes[t, lane] * tokens[t, d, lane]
            for lane in range(filled):
                for d in range(width):
                    out[first + lane, h * width + d] = before[d, lane]
