import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.agents.passes import Adam  # noqa: E402  # where torch is


def test_steps_are_those_of_torch() -> None:
    """Ten steps leave the same weights, to the bit, as torch's own optimiser."""
    rng = torch.Generator().manual_seed(0)
    ours = torch.nn.Parameter(torch.randn(100, generator=rng))
    theirs = torch.nn.Parameter(ours.detach().clone())
    steps, optimiser = Adam(ours, 1e-2), torch.optim.Adam([theirs], 1e-2, fused=True)

    for _ in range(10):
        ours.grad = torch.randn(100, generator=rng)
        theirs.grad = ours.grad.clone()
        with torch.no_grad():
            steps.step()
        optimiser.step()

    assert torch.equal(ours, theirs)
