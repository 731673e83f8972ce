"""Properties of jobs from their templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.adapters.kubernetes.templates.catalog import TemplateCatalog
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec, Run

OWN = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: ${name}
  annotations: {seaway.io/single-cluster: "true", seaway.io/restarts: "true"}
spec:
  parallelism: ${replicas}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: main:1}]
"""


@pytest.mark.parametrize(
    ("template", "together", "returns"),
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
def test_templates_settle_what_a_job_is(tmp_path: Path, template: str, together: bool, returns: bool) -> None:
    """For every submitter, the scheduler gets the gang, and the control loop the restart policy."""
    (tmp_path / "own.yaml").write_text(OWN)
    with_template_traits = TemplateCatalog(tmp_path).with_template_traits(
        JobSpec("train", Demand(ResourceRequest()), 2, template=template)
    )
    assert (with_template_traits.single_cluster, with_template_traits.restarts) == (together, returns)
    seen = with_template_traits.job("x")
    assert (seen.gang, seen.single_cluster) == (together, together)


def test_another_template_settles_again() -> None:
    """The earlier template's properties are dropped; the user's own stay."""
    offer, gang = TemplateCatalog(), JobSpec("train", Demand(ResourceRequest()), 2, gang=True, template="raycluster")
    with_template_traits = offer.with_template_traits(gang)
    again = offer.with_template_traits(
        JobSpec("train", with_template_traits.demand, 2, gang=with_template_traits.gang, template="job")
    )
    assert (again.gang, again.single_cluster, again.restarts) == (True, False, False)


def test_what_karmada_would_undo_is_refused_at_admission() -> None:
    """Workloads that change in their cluster, as with Kueue, cannot go through Karmada; all others can."""
    through, straight = TemplateCatalog(through_karmada=True), TemplateCatalog()
    run = Run(image="main:1", command=("main",))
    refused = []
    for name in through.templates:
        spec = JobSpec("job", Demand(ResourceRequest()), run=run, template=name)
        assert straight.problems(spec) == []
        refused += [each.message for each in through.problems(spec)]
    assert refused == ["a kueue must be sent directly to its cluster: Karmada would undo what is changed there"]
