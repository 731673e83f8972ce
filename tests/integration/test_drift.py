"""Changes of people to running objects, through the control loop: on API servers in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.control_plane import make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.job_state import JobState
from tests.fakes.kubernetes.kinds import DEPLOYMENTS, OVERRIDES, SERVICES, Json
from tests.integration.test_cluster_faults import CONTROL, PATIENT, World

pytestmark = pytest.mark.slow

SPACE = "seaway-default"
WHO = "kubectl-edit"


def serving(folder: Path, *, karmada: bool = False, drift: str = "repair") -> tuple[World, str]:
    """Run a service of two replicas on one node."""
    world = World(folder, karmada=karmada, names=("alpha",), options=PATIENT)
    if drift != "repair":
        world.plane.stop()
        settings = Settings(control=replace(CONTROL, drift=drift))
        world.plane = make_plane(settings, world.store, world.backends, SystemClock())
        world.plane.start()
    job = world.submit(template="deployment", restarts=True, ports=(8080,), replicas=2)
    world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs")
    return world, job


@pytest.fixture
def directly(tmp_path: Path) -> Iterator[tuple[World, str]]:
    """Run a service that is deployed directly."""
    world, job = serving(tmp_path)
    yield world, job
    world.close()


def reported(world: World, job: str) -> list[str]:
    """Return the events on drift of a job."""
    return [each.reason for each in world.store.events(0, 1000, job_id=job) if each.kind == "drift"]


def template(change: Json) -> Json:
    """Return a change of a Deployment's pod template."""
    return {"spec": {"template": change}}


IMAGE = [{"name": "main", "image": "mallory:1"}]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"spec": {"replicas": 0}}, "spec.replicas", lambda body: body["spec"]["replicas"]),
        (
            template({"spec": {"containers": IMAGE}}),
            "spec.template.spec.containers[name=main].image",
            lambda body: body["spec"]["template"]["spec"]["containers"][0]["image"],
        ),
        (
            template({"spec": {"nodeSelector": {"kubernetes.io/hostname": "elsewhere"}}}),
            "spec.template.spec.nodeSelector",
            lambda body: body["spec"]["template"]["spec"]["nodeSelector"],
        ),
        (
            template({"metadata": {"annotations": {"nvidia.com/use-gpuuuid": "GPU-other"}}}),
            "spec.template.metadata.annotations.nvidia.com/use-gpuuuid",
            lambda body: body["spec"]["template"]["metadata"]["annotations"].get("nvidia.com/use-gpuuuid"),
        ),
        (
            template({"metadata": {"annotations": {"nvidia.com/use-gpuuuid": None}}}),
            "spec.template.metadata.annotations.nvidia.com/use-gpuuuid was removed",
            lambda body: body["spec"]["template"]["metadata"]["annotations"].get("nvidia.com/use-gpuuuid"),
        ),
    ],
    ids=["replicas", "image", "node", "device", "no device"],
)
def test_what_a_user_edits_is_reported_and_restored(
    directly: tuple[World, str], change: Json, field: str, value: Callable[[Json], Any]
) -> None:
    """The event names the object, the field and who changed it, and the object is as Seaway wrote it again."""
    world, job = directly
    member = world.members["alpha"]
    (found, *_) = member.list(DEPLOYMENTS, SPACE)
    name, wanted, attempt = found["metadata"]["name"], value(found), world.job(job).attempt
    member.patch(DEPLOYMENTS, SPACE, name, change, manager=WHO)
    world.wait(
        lambda: any(f"deployments/{name}" in each and field in each for each in reported(world, job)), "a report"
    )

    def restored() -> bool:
        now = member.get(DEPLOYMENTS, SPACE, name)
        return now is not None and value(now) == wanted

    world.wait(restored, "the repair")
    world.wait(lambda: world.state(job) is JobState.RUNNING and len(world.pods(job)) == 2, "it runs as before")
    assert world.job(job).attempt == attempt


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_a_deleted_service_is_reported_and_created_again(tmp_path: Path, karmada: bool) -> None:
    """Clients reach the job by the same name again."""
    world, job = serving(tmp_path, karmada=karmada)
    try:
        (server,) = world.writes_to
        (service,) = server.list(SERVICES, SPACE)
        name = service["metadata"]["name"]
        server.delete(SERVICES, SPACE, name)
        world.wait(lambda: any(f"services/{name} was deleted" in each for each in reported(world, job)), "a report")
        world.wait(lambda: server.get(SERVICES, SPACE, name) is not None, "the repair")
        world.wait(lambda: bool(world.members["alpha"].list(SERVICES, SPACE)), "the service in the cluster")
    finally:
        world.close()


def test_an_edited_policy_of_karmada_is_restored(tmp_path: Path) -> None:
    """The pin of a workload is in an OverridePolicy of Karmada's control plane."""
    world, job = serving(tmp_path, karmada=True)
    try:
        (server,) = world.writes_to
        found = server.list(OVERRIDES, SPACE, f"seaway.io/job={job}")[0]
        name = found["metadata"]["name"]
        server.patch(OVERRIDES, SPACE, name, {"spec": {"overrideRules": []}}, manager=WHO)
        world.wait(
            lambda: any(f"Karmada's overridepolicies/{name}" in each for each in reported(world, job)), "a report"
        )

        def restored() -> bool:
            now = server.get(OVERRIDES, SPACE, name)
            return now is not None and now["spec"]["overrideRules"] == found["spec"]["overrideRules"]

        world.wait(restored, "the repair")
    finally:
        world.close()


def test_a_user_who_insists_is_only_reported_in_the_end(directly: tuple[World, str]) -> None:
    """After three repairs of an attempt the change stays, so that Seaway and a controller do not fight for ever."""
    world, job = directly
    member = world.members["alpha"]
    name = member.list(DEPLOYMENTS, SPACE)[0]["metadata"]["name"]
    for times in range(1, 5):
        member.patch(DEPLOYMENTS, SPACE, name, {"spec": {"minReadySeconds": times, "replicas": 3}}, manager=WHO)
        world.wait(lambda least=times: len(reported(world, job)) >= least, "a report")  # type: ignore[misc]
        if times < 4:
            world.wait(lambda: member.get(DEPLOYMENTS, SPACE, name)["spec"]["replicas"] == 2, "the repair")  # type: ignore[index]
    assert reported(world, job)[-1].endswith("it stays, after several repairs")
    assert member.get(DEPLOYMENTS, SPACE, name)["spec"]["replicas"] == 3  # type: ignore[index]


def test_changes_are_only_reported_if_that_is_configured(tmp_path: Path) -> None:
    """With control.drift = report, the change stays, and the job shows it."""
    world, job = serving(tmp_path, drift="report")
    try:
        member = world.members["alpha"]
        name = member.list(DEPLOYMENTS, SPACE)[0]["metadata"]["name"]
        member.patch(DEPLOYMENTS, SPACE, name, {"spec": {"replicas": 3}}, manager=WHO)
        world.wait(lambda: bool(reported(world, job)), "a report")
        assert reported(world, job) == [f"alpha: deployments/{name}: {WHO} changed spec.replicas; it stays"]
        (copy,) = world.plane.overview.workloads(world.job(job))
        assert [each.text for each in copy.drift] == [f"deployments/{name}: {WHO} changed spec.replicas"]
        assert member.get(DEPLOYMENTS, SPACE, name)["spec"]["replicas"] == 3  # type: ignore[index]
    finally:
        world.close()


def test_what_others_add_is_no_drift(directly: tuple[World, str]) -> None:
    """Fields that Seaway does not write, and the status of controllers, are not reported."""
    world, job = directly
    member = world.members["alpha"]
    name = member.list(DEPLOYMENTS, SPACE)[0]["metadata"]["name"]
    member.patch(DEPLOYMENTS, SPACE, name, {"metadata": {"labels": {"team": "a"}}}, manager=WHO)
    member.patch(DEPLOYMENTS, SPACE, name, {"spec": {"replicas": 3}}, manager=WHO)  # seen after the first change
    world.wait(lambda: bool(reported(world, job)), "a report")
    assert not any("team" in each for each in reported(world, job))


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_objects_that_only_controllers_change_do_not_drift(tmp_path: Path, karmada: bool) -> None:
    """Jobs that run, are stopped, run again and end have no such events."""
    world, service = serving(tmp_path, karmada=karmada)
    try:
        jobs = [service, world.submit(), world.submit(ports=(80,), replicas=2)]
        world.wait(lambda: all(world.state(each) is JobState.RUNNING for each in jobs), "all run")
        world.plane.jobs.suspend(service, "ada")
        world.wait(lambda: not world.pods(service), "its pods are gone")
        world.plane.jobs.resume(service, "ada")
        world.finish(jobs[1])
        world.wait(lambda: world.state(jobs[1]) is JobState.COMPLETED, "one has ended")
        world.wait(lambda: world.state(service) is JobState.RUNNING, "the service runs again")
        assert [reported(world, each) for each in jobs] == [[], [], []]
    finally:
        world.close()
