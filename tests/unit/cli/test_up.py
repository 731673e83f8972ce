import pytest

from seaway.cli.main import main
from seaway.cli.up import telling
from seaway.domain.explanation import Candidate, Explanation, Refusal


@pytest.mark.slow
def test_up_once_compares_two_policies_and_explains(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer sees two policies side by side, where one job could go, and why another could not."""
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as done:
        main(["up", "--once"])
    assert not done.value.code
    out = capsys.readouterr().out
    assert out.startswith("3 clusters with 112 GPUs, 4 gateways, 300 jobs")
    assert "decisions a second" in out
    assert "was placed" in out
    assert "→ cluster-" in out
    assert "was refused: 0 of" in out


def test_the_explanation_with_the_most_rules_is_told() -> None:
    """Of the jobs that were placed, or not, the one shows most on which most rules had a say."""
    few = Explanation("few", 3, (Refusal("A", "a", 3),))
    many = Explanation("many", 3, (Refusal("A", "a", 2), Refusal("B", "b", 1)))
    placed = Explanation("placed", 3, candidates=(Candidate("c", "n", {}, 0),))
    assert telling([few, many, placed], fits=False) is many
    assert telling([few, many, placed], fits=True) is placed
    assert telling([few], fits=True) is None
