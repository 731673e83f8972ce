import numpy as np
import pytest

from seaway.scheduling.kernels.attention import LANES, attend, attend_back

SIZES = [
    pytest.param(1, 3, 4, 2, id="one"),
    pytest.param(LANES, 3, 4, 1, id="tile"),
    pytest.param(LANES + 6, 2, 8, 3, id="more"),
]


def twin(rows: np.ndarray, places: np.ndarray, asked: np.ndarray, heads: int) -> np.ndarray:
    """Compute attention for one head of one sample at a time, in double precision."""
    width = asked.shape[1] // heads
    out = np.zeros_like(asked, dtype=np.float64)
    for sample, row in enumerate(rows.astype(np.float64)):
        tokens = np.zeros((len(places), width))
        tokens[:-1, :-3] = row.reshape(-1, width - 3)
        tokens[:, -3:] = [[place, place**2, float(t == len(places) - 1)] for t, place in enumerate(places)]
        found = []
        for head in asked[sample].astype(np.float64).reshape(heads, width):
            scores = tokens @ head
            powers = np.exp(scores - scores.max())
            found.append(powers / powers.sum() @ tokens)
        out[sample] = np.concatenate(found)
    return out


def drawn(samples: int, tokens: int, figures: int, heads: int) -> tuple[np.ndarray, ...]:
    """Generate rows within longer ones, places, queries, and room for shares."""
    rng = np.random.default_rng(0)
    size = (tokens - 1) * figures
    rows = rng.random((samples, size + 5), dtype=np.float32)[:, :size]
    places = np.linspace(-0.9, 0.9, tokens, dtype=np.float32)
    asked = rng.standard_normal((samples, heads * (figures + 3))).astype(np.float32)
    return rows, places, asked, np.zeros((-(-samples // LANES), heads, tokens, LANES), np.float32)


@pytest.mark.parametrize(("samples", "tokens", "figures", "heads"), SIZES)
def test_attention_equals_the_reference(samples: int, tokens: int, figures: int, heads: int) -> None:
    """Full and partial tiles agree with a loop over heads and samples."""
    rows, places, asked, shares = drawn(samples, tokens, figures, heads)
    out = np.zeros_like(asked)

    attend(rows, places, asked, shares, out)

    assert np.allclose(out, twin(rows, places, asked, heads), rtol=1e-4, atol=1e-5)


def test_distant_scores_stay_finite() -> None:
    """With differences of hundreds the best has all weight: e to such powers is 0, without overflow."""
    rows, places, asked, shares = drawn(2, 3, 4, 2)
    asked *= 500
    out = np.zeros_like(asked)

    attend(rows, places, asked, shares, out)

    assert np.allclose(out, twin(rows, places, asked, 2), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("samples", "tokens", "figures", "heads"), SIZES)
def test_gradients_equal_finite_differences(samples: int, tokens: int, figures: int, heads: int) -> None:
    """The backward pass agrees with the reference's change after a small change of a query."""
    rows, places, asked, shares = drawn(samples, tokens, figures, heads)
    gradient = np.random.default_rng(1).standard_normal(asked.shape).astype(np.float32)
    slope = np.zeros_like(asked)
    attend(rows, places, asked, shares, np.zeros_like(asked))

    attend_back(rows, places, shares, gradient, slope)

    for at in range(asked.shape[1]):
        change = np.zeros(asked.shape)
        change[:, at] = 1e-5
        up, down = (twin(rows, places, each, heads) for each in (asked + change, asked - change))
        assert np.allclose(slope[:, at], ((up - down) * gradient).sum(axis=1) / 2e-5, rtol=1e-3, atol=1e-4)
