"""Attention for training, forward and backward: a batch of queries, each over few small tokens.

Batches of matrices of about 17 x 7 are too small for libraries for large matrices. Here each instruction processes one
sample per lane: within a tile of `LANES` samples, the same number of all samples is contiguous.

Dimensions: B samples, T tokens per sample, F features of a token in an observation, D = F + 3 features here, H heads, L
lanes. The tokens are C clusters and a last one for waiting, which has no features in the observation. After its F
features, each token has its position, the square of its position, and 1 if it is the one for waiting; see
`write_positions`.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Float32
from seaway.scheduling.kernels.compile import compiled

LANES = 64
LOG2_E = np.float32(1.4426950408889634)
MIN_EXPONENT = np.float32(-126.0)  # of normal numbers
HALF = np.float32(0.5)


@compiled
def load_tile(rows: Float32, first: int, out: Float32) -> int:
    """Write samples from `first` on to (T, F, L), one sample per lane. Return their number."""
    count, features, lanes = out.shape
    filled = min(lanes, rows.shape[0] - first)
    for lane in range(filled):
        for t in range(count):
            for f in range(features):
                out[t, f, lane] = rows[first + lane, t * features + f]
    return filled


@compiled
def exp_nonpositive(values: Float32, bits: np.ndarray, power: Float32, out: Float32) -> None:
    """Write the exponential of `values` (T, L), whose values are at most 0.

    It is computed as 2 ** (n + r) with integer n and abs(r) <= 1/2: a polynomial for r, and the exponent bits of a
    float for n. `bits` (int32) and `power` (float32) share memory.

    References
    ----------
    Cephes Math Library, exp2f.c: the polynomial.
    """
    for t in range(values.shape[0]):
        for lane in range(LANES):
            exponent = max(values[t, lane] * LOG2_E, MIN_EXPONENT)
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
    for t in range(values.shape[0]):
        for lane in range(LANES):
            out[t, lane] *= power[t, lane]


@compiled
def write_positions(positions: Float32, out: Float32) -> None:
    """Write the last three features of tokens (T, D, L), which are equal for all samples, and zeros for the others.

    A query for the position p is -(position - p)^2, which is linear in the position and its square. A head can
    therefore attend to the cluster of an action.

    Parameters
    ----------
    positions
        Action of each token, -1 to 1, shape (T,).
    """
    count, width, _ = out.shape
    out[:] = np.float32(0.0)
    for t in range(count):
        out[t, width - 3] = positions[t]
        out[t, width - 2] = positions[t] * positions[t]
    out[count - 1, width - 1] = np.float32(1.0)


@compiled
def load_tokens(rows: Float32, first: int, out: Float32) -> int:
    """Write the clusters' features of samples from `first` on to tokens (T, D, L). Return the number of samples."""
    count, width, lanes = out.shape
    features = width - 3
    filled = min(lanes, rows.shape[0] - first)
    for lane in range(filled):
        for t in range(count - 1):
            for f in range(features):
                out[t, f, lane] = rows[first + lane, t * features + f]
    return filled


@compiled
def score(queries: Float32, tokens: Float32, out: Float32) -> None:
    """Write the scores (T, L) of tokens (T, D, L) for the queries (D, L) of one head, minus their maximum."""
    count, width, _ = tokens.shape
    maxima = np.full(LANES, np.float32(-np.inf))
    for t in range(count):
        for lane in range(LANES):
            out[t, lane] = queries[0, lane] * tokens[t, 0, lane]
        for d in range(1, width):
            for lane in range(LANES):
                out[t, lane] += queries[d, lane] * tokens[t, d, lane]
        for lane in range(LANES):
            maxima[lane] = max(maxima[lane], out[t, lane])
    for t in range(count):
        for lane in range(LANES):
            out[t, lane] -= maxima[lane]


@compiled
def average(tokens: Float32, weights: Float32, out: Float32) -> None:
    """Normalise `weights` (T, L) to a sum of 1 and write the weighted mean (D, L) of the tokens (T, D, L)."""
    count, width, _ = tokens.shape
    totals = np.zeros(LANES, np.float32)
    for t in range(count):
        for lane in range(LANES):
            totals[lane] += weights[t, lane]
    for lane in range(LANES):
        totals[lane] = np.float32(1.0) / totals[lane]
    out[:] = np.float32(0.0)
    for t in range(count):
        for lane in range(LANES):
            weights[t, lane] *= totals[lane]
        for d in range(width):
            for lane in range(LANES):
                out[d, lane] += weights[t, lane] * tokens[t, d, lane]


@compiled
def attend(rows: Float32, positions: Float32, queries: Float32, weights: Float32, out: Float32) -> None:
    """Compute attention: for each head, the mean of the tokens with softmax weights of their scores.

    Parameters
    ----------
    rows
        Samples, shape (B, at least C * F), cluster after cluster.
    positions
        Action of each token, shape (T,), see `write_positions`.
    queries
        Queries, shape (B, H * D).
    weights
        Softmax weights, needed by `attend_backward`, shape (tiles of `LANES` samples, H, T, LANES); output.
    out
        Result, shape (B, H * D); output.
    """
    heads, count = weights.shape[1:3]
    width = queries.shape[1] // heads
    tokens = np.empty((count, width, LANES), np.float32)
    write_positions(positions, tokens)
    query_tile, mean = np.zeros((heads, width, LANES), np.float32), np.empty((width, LANES), np.float32)
    scores, bits = np.empty((count, LANES), np.float32), np.empty((count, LANES), np.int32)
    power = bits.view(np.float32)
    for tile in range(weights.shape[0]):
        first = tile * LANES
        load_tokens(rows, first, tokens)
        filled = load_tile(queries, first, query_tile)
        for h in range(heads):
            score(query_tile[h], tokens, scores)
            exp_nonpositive(scores, bits, power, weights[tile, h])
            average(tokens, weights[tile, h], mean)
            for lane in range(filled):
                for d in range(width):
                    out[first + lane, h * width + d] = mean[d, lane]


@compiled
def attend_backward(rows: Float32, positions: Float32, weights: Float32, gradient: Float32, out: Float32) -> None:
    """Compute the gradient of the queries from `gradient` (B, H * D), the gradient of the output of `attend`.

    Parameters
    ----------
    rows, positions, weights
        Arguments of `attend`, with its weights.
    out
        Result, shape (B, H * D); output.
    """
    heads, count = weights.shape[1:3]
    width = gradient.shape[1] // heads
    tokens = np.empty((count, width, LANES), np.float32)
    write_positions(positions, tokens)
    output_gradient, query_gradient = np.zeros((heads, width, LANES), np.float32), np.empty((width, LANES), np.float32)
    score_gradient, mean = np.empty((count, LANES), np.float32), np.empty(LANES, np.float32)
    for tile in range(weights.shape[0]):
        first = tile * LANES
        load_tokens(rows, first, tokens)
        filled = load_tile(gradient, first, output_gradient)
        for h in range(heads):
            mean[:] = np.float32(0.0)
            query_gradient[:] = np.float32(0.0)
            for t in range(count):
                for lane in range(LANES):
                    score_gradient[t, lane] = output_gradient[h, 0, lane] * tokens[t, 0, lane]
                for d in range(1, width):
                    for lane in range(LANES):
                        score_gradient[t, lane] += output_gradient[h, d, lane] * tokens[t, d, lane]
                for lane in range(LANES):
                    mean[lane] += score_gradient[t, lane] * weights[tile, h, t, lane]
            for t in range(count):
                for lane in range(LANES):
                    score_gradient[t, lane] = (score_gradient[t, lane] - mean[lane]) * weights[tile, h, t, lane]
                for d in range(width):
                    for lane in range(LANES):
                        query_gradient[d, lane] += score_gradient[t, lane] * tokens[t, d, lane]
            for lane in range(filled):
                for d in range(width):
                    out[first + lane, h * width + d] = query_gradient[d, lane]
