"""Self-attention over a batch of few small tokens, there and back, for training.

Batches of matrices of some 17 x 4 are too small for what multiplies large ones. Here one instruction serves as many
samples as it has lanes: within a tile of `LANES` samples, a number of all samples lies side by side.

Letters: B samples, T tokens of each, F figures of a token, L lanes. `projection` holds, in this order, what makes
queries, keys and values of tokens: shape (3F, F), and (3F,) what is added.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.state import Float32

LANES = 64
LOG2_E = np.float32(1.4426950408889634)
LEAST = np.float32(-126.0)  # of the exponents of ordinary numbers
HALF = np.float32(0.5)


@compiled
def load_tile(rows: Float32, first: int, out: Float32) -> int:
    """Write samples from `first` on into (T, F, L), a sample a lane, and return how many there were."""
    count, figures, lanes = out.shape
    filled = min(lanes, rows.shape[0] - first)
    for lane in range(filled):
        for t in range(count):
            for f in range(figures):
                out[t, f, lane] = rows[first + lane, t * figures + f]
    return filled


@compiled
def project(tokens: Float32, projection: Float32, added: Float32, out: Float32) -> None:
    """Write queries, keys and values of the tokens, (T, 3F, L)."""
    count, figures, _ = tokens.shape
    for t in range(count):
        for row in range(3 * figures):
            for lane in range(LANES):
                out[t, row, lane] = added[row]
            for f in range(figures):
                factor = projection[row, f]
                for lane in range(LANES):
                    out[t, row, lane] += factor * tokens[t, f, lane]


@compiled
def raise_e(whole: Float32, bits: np.ndarray, power: Float32, out: Float32) -> None:
    """Write e to the power of `whole` (T, L), none above 0.

    As 2 ** (n + r) with n whole and abs(r) <= 1/2: a polynomial for r, the bits of a float for n. `bits` (int32) and
    `power` (float32) are the same memory.

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
def score(made: Float32, i: int, out: Float32) -> None:
    """Write how well the key of each token answers the query of token `i`, less the best of them, (T, L)."""
    count, figures = made.shape[0], made.shape[1] // 3
    most = np.full(LANES, np.float32(-np.inf))
    root = np.float32(1.0 / np.sqrt(figures))
    for t in range(count):
        for lane in range(LANES):
            out[t, lane] = made[i, 0, lane] * made[t, figures, lane]
        for f in range(1, figures):
            for lane in range(LANES):
                out[t, lane] += made[i, f, lane] * made[t, figures + f, lane]
        for lane in range(LANES):
            out[t, lane] *= root
            most[lane] = max(most[lane], out[t, lane])
    for t in range(count):
        for lane in range(LANES):
            out[t, lane] -= most[lane]


@compiled
def gather(made: Float32, shares: Float32, out: Float32) -> None:
    """Make `shares` (T, L) sum to 1 and write the mean of the values that they weigh, (F, L)."""
    count, figures = made.shape[0], made.shape[1] // 3
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
        for f in range(figures):
            for lane in range(LANES):
                out[f, lane] += shares[t, lane] * made[t, 2 * figures + f, lane]


@compiled
def attend(rows: Float32, projection: Float32, added: Float32, shares: Float32, out: Float32) -> None:
    """Add to each token the mean of all tokens' values, weighed by how well their keys answer its query.

    Parameters
    ----------
    rows
        Samples, shape (B, T * F), token after token.
    projection, added
        Shapes (3F, F) and (3F,).
    shares
        Filled with the weights, for the way back: shape (tiles of `LANES` samples, T, T, LANES).
    out
        Filled, shape (B, T * F).
    """
    figures = projection.shape[1]
    count = out.shape[1] // figures
    tokens, made = np.zeros((count, figures, LANES), np.float32), np.empty((count, 3 * figures, LANES), np.float32)
    scores, found = np.empty((count, LANES), np.float32), np.empty((figures, LANES), np.float32)
    bits = np.empty((count, LANES), np.int32)
    power = bits.view(np.float32)
    for tile in range(shares.shape[0]):
        first = tile * LANES
        filled = load_tile(rows, first, tokens)
        project(tokens, projection, added, made)
        for i in range(count):
            score(made, i, scores)
            raise_e(scores, bits, power, shares[tile, i])
            gather(made, shares[tile, i], found)
            for lane in range(filled):
                for f in range(figures):
                    out[first + lane, i * figures + f] = tokens[i, f, lane] + found[f, lane]


@compiled
def lead_back(made: Float32, shares: Float32, i: int, gradient: Float32, out: Float32) -> None:
    """Add to `out` (T, 3F, L), the slopes of queries, keys and values, what token `i` of `gradient` (T, F, L) gives."""
    count, figures = made.shape[0], made.shape[1] // 3
    root = np.float32(1.0 / np.sqrt(figures))
    slopes, mean = np.empty((count, LANES), np.float32), np.zeros(LANES, np.float32)
    for t in range(count):
        for lane in range(LANES):
            slopes[t, lane] = gradient[i, 0, lane] * made[t, 2 * figures, lane]
        for f in range(1, figures):
            for lane in range(LANES):
                slopes[t, lane] += gradient[i, f, lane] * made[t, 2 * figures + f, lane]
        for lane in range(LANES):
            mean[lane] += slopes[t, lane] * shares[t, lane]
    for t in range(count):
        for lane in range(LANES):
            slopes[t, lane] = (slopes[t, lane] - mean[lane]) * shares[t, lane] * root
        for f in range(figures):
            for lane in range(LANES):
                out[i, f, lane] += slopes[t, lane] * made[t, figures + f, lane]
            for lane in range(LANES):
                out[t, figures + f, lane] += slopes[t, lane] * made[i, f, lane]
            for lane in range(LANES):
                out[t, 2 * figures + f, lane] += shares[t, lane] * gradient[i, f, lane]


@compiled
def attend_back(
    rows: Float32,
    projection: Float32,
    added: Float32,
    shares: Float32,
    gradient: Float32,
    slope: Float32,
    slope_added: Float32,
) -> None:
    """Write the gradients of `projection` and `added` where `gradient` (B, T * F) is that of what `attend` wrote.

    Parameters
    ----------
    rows, projection, added, shares
        As `attend` took and left them.
    gradient
        Shape (B, T * F).
    slope, slope_added
        Filled, shapes (3F, F) and (3F,).
    """
    figures = projection.shape[1]
    count = gradient.shape[1] // figures
    tokens, made = np.zeros((count, figures, LANES), np.float32), np.empty((count, 3 * figures, LANES), np.float32)
    after, before = np.empty((count, figures, LANES), np.float32), np.empty((count, 3 * figures, LANES), np.float32)
    sums, sums_added = np.zeros((3 * figures, figures, LANES), np.float32), np.zeros((3 * figures, LANES), np.float32)
    for tile in range(shares.shape[0]):
        first = tile * LANES
        load_tile(rows, first, tokens)
        after[:] = np.float32(0.0)
        load_tile(gradient, first, after)
        project(tokens, projection, added, made)
        before[:] = np.float32(0.0)
        for i in range(count):
            lead_back(made, shares[tile, i], i, after, before)
        for t in range(count):
            for row in range(3 * figures):
                for lane in range(LANES):
                    sums_added[row, lane] += before[t, row, lane]
                for f in range(figures):
                    for lane in range(LANES):
                        sums[row, f, lane] += before[t, row, lane] * tokens[t, f, lane]
    for row in range(3 * figures):
        slope_added[row] = sums_added[row].sum()
        for f in range(figures):
            slope[row, f] = sums[row, f].sum()
