import numpy as np
import pytest

from seaway.scheduling.kernels.attention import LANES, attend, attend_backward

SIZES = [
    pytest.param(1, 3, 4, 2, id="one"),
    pytest.param(LANES, 3, 4, 1, id="tile"),
    pytest.param(LANES + 6, 2, 8, 3, id="more"),
]


def reference(rows: np.ndarray, positions: np.ndarray, queries: np.ndarray, heads: int) -> np.ndarray:
    """Compute attention for one head of one sample at a time, in double precision."""
    width = queries.shape[1] // heads
    out = np.zeros_like(queries, dtype=np.float64)
    for sample, row in enumerate(rows.astype(np.float64)):
        tokens = np.zeros((len(positions), width))
        tokens[:-1, :-3] = row.reshape(-1, width - 3)
        tokens[:, -3:] = [
            [position, position**2, float(t == len(positions) - 1)] for t, position in enumerate(positions)
        ]
        means = []
        for head in queries[sample].astype(np.float64).reshape(heads, width):
            scores = tokens @ head
            exponentials = np.exp(scores - scores.max())
            means.append(exponentials / exponentials.sum() @ tokens)
        out[sample] = np.concatenate(means)
    return out


def drawn(samples: int, tokens: int, features: int, heads: int) -> tuple[np.ndarray, ...]:
    """Generate rows within longer ones, positions, queries, and memory for softmax weights."""
    rng = np.random.default_rng(0)
    size = (tokens - 1) * features
    rows = rng.random((samples, size + 5), dtype=np.float32)[:, :size]
    positions = np.linspace(-0.9, 0.9, tokens, dtype=np.float32)
    queries = rng.standard_normal((samples, heads * (features + 3))).astype(np.float32)
    return rows, positions, queries, np.zeros((-(-samples // LANES), heads, tokens, LANES), np.float32)


@pytest.mark.parametrize(("samples", "tokens", "features", "heads"), SIZES)
def test_attention_equals_the_reference(samples: int, tokens: int, features: int, heads: int) -> None:
    """Full and partial tiles agree with a loop over heads and samples."""
    rows, positions, queries, weights = drawn(samples, tokens, features, heads)
    out = np.zeros_like(queries)

    attend(rows, positions, queries, weights, out)

    assert np.allclose(out, reference(rows, positions, queries, heads), rtol=1e-4, atol=1e-5)


def test_distant_scores_stay_finite() -> None:
    """With differences of hundreds, the best token has all weight, without overflow."""
    rows, positions, queries, weights = drawn(2, 3, 4, 2)
    queries *= 500
    out = np.zeros_like(queries)

    attend(rows, positions, queries, weights, out)

    assert np.allclose(out, reference(rows, positions, queries, 2), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("samples", "tokens", "features", "heads"), SIZES)
def test_gradients_equal_finite_differences(samples: int, tokens: int, features: int, heads: int) -> None:
    """The backward pass agrees with the reference's change after a small change of a query."""
    rows, positions, queries, weights = drawn(samples, tokens, features, heads)
    gradient = np.random.default_rng(1).standard_normal(queries.shape).astype(np.float32)
    result = np.zeros_like(queries)
    attend(rows, positions, queries, weights, np.zeros_like(queries))

    attend_backward(rows, positions, weights, gradient, result)

    for at in range(queries.shape[1]):
        change = np.zeros(queries.shape)
        change[:, at] = 1e-5
        up, down = (reference(rows, positions, each, heads) for each in (queries + change, queries - change))
        assert np.allclose(result[:, at], ((up - down) * gradient).sum(axis=1) / 2e-5, rtol=1e-3, atol=1e-4)
