import math

import numpy as np
import pytest

from seaway.scheduling.kernels.attention import LANES, attend, attend_back

SIZES = [
    pytest.param(1, 3, 4, id="one"),
    pytest.param(LANES, 3, 4, id="tile"),
    pytest.param(LANES + 6, 2, 8, id="more"),
]


def twin(rows: np.ndarray, projection: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Attend, a token of a sample at a time, in double precision."""
    figures = projection.shape[1]
    out = np.zeros_like(rows, dtype=np.float64)
    for sample, row in enumerate(rows.astype(np.float64)):
        tokens = row.reshape(-1, figures)
        made = [projection.astype(np.float64) @ token + added for token in tokens]
        found = []
        for token, of_token in zip(tokens, made, strict=True):
            scores = [of_token[:figures] @ each[figures:-figures] / math.sqrt(figures) for each in made]
            powers = [math.exp(score - max(scores)) for score in scores]
            values = [power * each[-figures:] for power, each in zip(powers, made, strict=True)]
            found.append(token + sum(values) / sum(powers))
        out[sample] = np.concatenate(found)
    return out


def drawn(samples: int, tokens: int, figures: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows within longer ones, weights, and room for shares."""
    rng = np.random.default_rng(0)
    rows = rng.random((samples, tokens * figures + 5), dtype=np.float32)[:, : tokens * figures]
    projection = rng.standard_normal((3 * figures, figures)).astype(np.float32)
    added = rng.standard_normal(3 * figures).astype(np.float32)
    return rows, projection, added, np.zeros((-(-samples // LANES), tokens, tokens, LANES), np.float32)


@pytest.mark.parametrize(("samples", "tokens", "figures"), SIZES)
def test_attention_is_that_of_its_twin(samples: int, tokens: int, figures: int) -> None:
    """Tiles, full or not, give what one token after the other gives."""
    rows, projection, added, shares = drawn(samples, tokens, figures)
    out = np.zeros((samples, tokens * figures), np.float32)

    attend(rows, projection, added, shares, out)

    assert np.allclose(out, twin(rows, projection, added), rtol=1e-4, atol=1e-5)


def test_far_scores_stay_finite() -> None:
    """Scores that differ by hundreds leave all to the best: e to such powers is 0, not an overflow."""
    rows, projection, added, shares = drawn(2, 3, 4)
    out = np.zeros((2, 12), np.float32)

    attend(rows, projection * 30, added, shares, out)

    assert np.allclose(out, twin(rows, projection * 30, added), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("samples", "tokens", "figures"), SIZES)
def test_gradients_are_those_of_small_changes(samples: int, tokens: int, figures: int) -> None:
    """The way back gives what the twin's result changes by when a weight is changed a little."""
    rows, projection, added, shares = drawn(samples, tokens, figures)
    gradient = np.random.default_rng(1).standard_normal((samples, tokens * figures)).astype(np.float32)
    slope, slope_added = np.zeros_like(projection), np.zeros_like(added)
    attend(rows, projection, added, shares, np.zeros_like(gradient))

    attend_back(rows, projection, added, shares, gradient, slope, slope_added)

    packed = np.concatenate([projection.ravel(), added]).astype(np.float64)
    wanted = np.zeros_like(packed)
    for at in range(len(packed)):
        change = np.zeros_like(packed)
        change[at] = 1e-5
        up, down = (
            twin(rows, weights[: projection.size].reshape(projection.shape), weights[projection.size :])
            for weights in (packed + change, packed - change)
        )
        wanted[at] = ((up - down) * gradient).sum() / 2e-5
    assert np.allclose(np.concatenate([slope.ravel(), slope_added]), wanted, rtol=1e-3, atol=1e-3)
