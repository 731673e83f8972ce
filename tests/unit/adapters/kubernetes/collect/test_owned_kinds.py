"""The watched kinds follow from the kinds that templates write."""

from __future__ import annotations

import pytest

from seaway.adapters.kubernetes.collect.owned import ALWAYS_WRITTEN, PASSIVE_KINDS, kinds_of, leftover_kinds
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, KindName, render
from seaway.adapters.kubernetes.templates.safety import KINDS, Rules
from seaway.adapters.kubernetes.templates.user import read_template
from tests.unit.adapters.kubernetes.templates.sample import HAMI, NVIDIA_DRA, deployment, options
from tests.unit.adapters.kubernetes.templates.test_user import SERVE


@pytest.mark.parametrize("template", BUILT_IN)
def test_built_in_templates_write_what_they_say(template: str) -> None:
    """Every object of a job has a watched kind, and all declared kinds are written."""
    written = {
        KindName(each.body["apiVersion"], each.kind)
        for terms in (HAMI, NVIDIA_DRA)
        for each in render(deployment(template, gang=True), options(terms))
    }
    assert set(BUILT_IN[template].writes) <= written <= {*BUILT_IN[template].writes, *ALWAYS_WRITTEN}


def test_templates_of_people_bring_their_kinds() -> None:
    """All manifests of a file count; kinds without a template may remain from deleted files."""
    own = read_template("own", SERVE.replace("kind: Deployment", "kind: StatefulSet"), Rules())
    assert own.writes == (KindName("v1", "ConfigMap"), KindName("apps/v1", "StatefulSet"))
    kinds = kinds_of({**BUILT_IN, "own": own})
    assert {*own.writes, *ALWAYS_WRITTEN} <= set(kinds)
    assert len(set(kinds)) == len(kinds)
    left = leftover_kinds(kinds)
    assert not {"ConfigMap", "StatefulSet.apps", "Job.batch", "Service"} & set(left)
    assert {"PersistentVolumeClaim", "JobSet.jobset.x-k8s.io"} <= set(left) <= KINDS


def test_kinds_that_run_nothing_are_no_workloads() -> None:
    """A template cannot have any of them as its workload."""
    assert not {kind.qualified for kind in kinds_of(BUILT_IN)} & PASSIVE_KINDS - {
        each.qualified for each in ALWAYS_WRITTEN
    }
