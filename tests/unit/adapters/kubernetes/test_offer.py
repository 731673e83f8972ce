"""What templates say of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.adapters.kubernetes.templates.catalog import Offer
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec, Run

OWN = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: ${name}
  annotations: {seaway.io/together: "true", seaway.io/comes-back: "true"}
spec:
  parallelism: ${replicas}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: main:1}]
"""


@pytest.mark.parametrize(
    ("template", "together", "comes_back"),
    [
        ("job", False, False),
        ("deployment", False, True),
        ("torchrun", False, False),
        ("pytorchjob", True, False),
        ("raycluster", True, True),
        ("rayjob", True, False),
        ("own", True, True),
        ("not-there", False, False),
    ],
)
def test_templates_settle_what_a_job_is(tmp_path: Path, template: str, together: bool, comes_back: bool) -> None:
    """The scheduler sees a gang of one cluster, and the control loop what is started again, whoever submits it."""
    (tmp_path / "own.yaml").write_text(OWN)
    settled = Offer(tmp_path).settled(JobSpec("train", Demand(ResourceRequest()), 2, template=template))
    assert (settled.together, settled.comes_back) == (together, comes_back)
    seen = settled.job("x")
    assert (seen.gang, seen.together) == (together, together)


def test_another_template_settles_anew() -> None:
    """What the one before said is forgotten; what people asked for stays."""
    offer, gang = Offer(), JobSpec("train", Demand(ResourceRequest()), 2, gang=True, template="raycluster")
    settled = offer.settled(gang)
    again = offer.settled(JobSpec("train", settled.demand, 2, gang=settled.gang, template="job"))
    assert (again.gang, again.together, again.comes_back) == (True, False, False)


def test_what_karmada_would_undo_is_refused_at_the_door() -> None:
    """What is changed in its cluster, as Kueue lets a Job in, cannot go through Karmada; all else can."""
    through, straight = Offer(through_karmada=True), Offer()
    run = Run(image="main:1", command=("main",))
    refused = []
    for name in through.templates:
        spec = JobSpec("job", Demand(ResourceRequest()), run=run, template=name)
        assert straight.problems(spec) == []
        refused += [each.message for each in through.problems(spec)]
    assert refused == ["a kueue has to go straight into its cluster: Karmada would undo what is changed there"]
