"""Nodes and devices of pods, for every device plugin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins import vendors
from seaway.adapters.kubernetes.device_plugins.views import Access, CoreUnit, DeviceResources
from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.registry import render
from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import DeviceRules, GpuTopology, NodeRules, ResourceRequest
from seaway.domain.node import TaintEffect, Toleration
from seaway.domain.placement import DeviceSlice
from tests.unit.adapters.kubernetes.templates import sample
from tests.unit.adapters.kubernetes.templates.sample import container, deployment, many, options, share


def first_job(options: TemplateOptions, *slices: DeviceSlice, request: ResourceRequest | None = None) -> dict[str, Any]:
    """Render a job of one replica."""
    return many(render(deployment(placed=[("node-0", slices)], request=request), options), "Job")[0]


def limits(job: dict[str, Any]) -> dict[str, str]:
    """Return the device limits of a job's container."""
    return {key: value for key, value in container(job)["resources"]["limits"].items() if "/" in key}


def chosen(job: dict[str, Any]) -> dict[str, str]:
    """Return the annotations of a job's pods but Seaway's own."""
    found = job["spec"]["template"]["metadata"]["annotations"]
    return {key: value for key, value in found.items() if not key.startswith("seaway.io/")}


def test_hami_gets_exactly_the_devices_and_amounts() -> None:
    """Under HAMi a pod names its devices, and requests memory and cores of each, always both."""
    job = first_job(options(), share("GPU-b", 4_000, 305), share("GPU-a", 4_000, 305))
    assert chosen(job) == {"nvidia.com/use-gpuuuid": "GPU-a,GPU-b"}
    assert limits(job) == {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "31"}


def test_cores_that_no_one_asked_for_are_sent_as_none() -> None:
    """A slice without cores requests 0, so that a webhook adds no default."""
    assert limits(first_job(options(), share("GPU-a", 4_000, 0)))["nvidia.com/gpucores"] == "0"


def test_a_whole_device_is_all_memory_and_all_cores() -> None:
    """A whole device is requested with all its memory and 100 points, also if its cores are scaled up."""
    wanted = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "81920", "nvidia.com/gpucores": "100"}
    assert limits(first_job(options(), share("GPU-a", 81_920, 1_000))) == wanted
    assert limits(first_job(options(), share("GPU-a", 81_920, 2_000))) == wanted


def test_an_instance_is_asked_for_by_its_profile_s_memory() -> None:
    """In MIG mode memory is the profile's, so that the smallest profile fits; cores are those of the request."""
    request = ResourceRequest(1_000, 1_024, 1, 4_000)
    job = first_job(options(), share("GPU-a", 4_864, 150, "1g.5gb", 3), request=request)
    assert limits(job) == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4864", "nvidia.com/gpucores": "0"}
    assert chosen(job) == {"nvidia.com/use-gpuuuid": "GPU-a", "nvidia.com/vgpu-mode": "mig"}


def test_several_instances_of_a_card_name_it_once() -> None:
    """A replica with two instances of one card requests two, of that card."""
    request = ResourceRequest(1_000, 1_024, 2, 4_000)
    job = first_job(
        options(), share("GPU-a", 4_864, 150, "1g.5gb"), share("GPU-a", 9_984, 290, "2g.10gb"), request=request
    )
    assert limits(job) == {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "4864", "nvidia.com/gpucores": "0"}
    assert chosen(job)["nvidia.com/use-gpuuuid"] == "GPU-a"


def test_devices_of_two_sizes_are_asked_for_in_percent() -> None:
    """A share of devices that differ in size is one percentage, as one amount cannot express it."""
    request = ResourceRequest(1_000, 1_024, 2)
    job = first_job(options(), share("GPU-a", 40_960, 1_000), share("GPU-b", 81_920, 1_000), request=request)
    assert limits(job) == {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "100", "nvidia.com/gpucores": "100"}


def test_amounts_that_nothing_explains_are_a_bug() -> None:
    """Unequal amounts for a request of one amount raise an error."""
    request = ResourceRequest(1_000, 1_024, 2, 4_000)
    with pytest.raises(InvariantError, match="4000"):
        first_job(options(), share("GPU-a", 4_000), share("GPU-b", 5_000), request=request)


def test_volcano_has_words_of_its_own() -> None:
    """Volcano's vGPU has its own resources, annotations and scheduler."""
    job = first_job(options(sample.VOLCANO), share("GPU-a", 4_864, 150, "1g.5gb"))
    assert limits(job) == {
        "volcano.sh/vgpu-number": "1",
        "volcano.sh/vgpu-memory": "4864",
        "volcano.sh/vgpu-cores": "0",
    }
    assert chosen(job) == {"volcano.sh/vgpu-use-gpuuuid": "GPU-a", "volcano.sh/vgpu-mode": "mig"}
    assert job["spec"]["template"]["spec"]["schedulerName"] == "volcano"


def test_a_device_plugin_counts_and_no_more() -> None:
    """NVIDIA's plugin without HAMi gets numbers of cards or of each MIG profile; allocations are in annotations."""
    job = first_job(options(sample.PLUGIN), share("cluster/node-0/0"), share("cluster/node-0/1"))
    assert limits(job) == {"nvidia.com/gpu": "2"}
    assert chosen(job) == {}
    notes = job["spec"]["template"]["metadata"]["annotations"]
    assert notes["seaway.io/devices"] == "cluster/node-0/0,cluster/node-0/1"
    small = DeviceResources(sample.PLUGIN.plugin, "NVIDIA", "nvidia.com/mig-1g.5gb")
    mixed = TemplateOptions(lambda node, uuid: sample.speak(small if uuid == "s" else sample.PLUGIN)(node, uuid))
    assert limits(first_job(mixed, share("s"), share("w"))) == {"nvidia.com/mig-1g.5gb": "1", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("terms", "memory", "cores", "wanted", "pin"),
    [
        (
            vendors.DCU,
            4_000,
            300,
            {"hygon.com/dcunum": "1", "hygon.com/dcumem": "4000", "hygon.com/dcucores": "30"},
            "hygon.com/use-gpuuuid",
        ),
        (vendors.AMD, 4_000, 0, {"amd.com/gpu": "1", "amd.com/gpumem": "4000"}, "amd.com/use-gpu-uuid"),
        (vendors.BIREN, 4_000, 1_000, {"birentech.com/gpu": "1"}, "birentech.com/use-gpuuuid"),
        (
            vendors.iluvatar("MR-V100"),
            4_000,
            300,
            {"iluvatar.ai/MR-V100-vgpu": "1", "iluvatar.ai/MR-V100.vMem": "16", "iluvatar.ai/MR-V100.vCore": "30"},
            "hami.io/use-MR-V100-uuid",
        ),
        (
            vendors.METAX_SLICES,
            4_096,
            300,
            {"metax-tech.com/sgpu": "1", "metax-tech.com/vmemory": "4", "metax-tech.com/vcore": "30"},
            "metax-tech.com/use-gpuuuid",
        ),
        (
            vendors.ENFLAME_SLICES,
            4_096,
            300,
            {"enflame.com/gcu-memory": "4", "enflame.com/gcu-core": "30"},
            "enflame.com/use-gpuuuid",
        ),
    ],
)
def test_each_vendor_is_asked_in_its_own_units(
    terms: DeviceResources, memory: int, cores: int, wanted: dict[str, str], pin: str
) -> None:
    """HAMi's other vendors have resources, units and annotations of their own."""
    job = first_job(options(terms), share("card-1", memory, cores))
    assert limits(job) == wanted
    assert chosen(job) == {pin: "card-1"}


def test_some_vendors_are_asked_for_sums() -> None:
    """Moore Threads' cards are requested by their total memory and cores."""
    asked = TemplateOptions(sample.speak(sample.MTHREADS, cores=16))
    job = first_job(asked, share("a", 49_152, 1_000), share("b", 49_152, 1_000))
    assert limits(job) == {"mthreads.com/vgpu": "2", "mthreads.com/sgpu-memory": "192", "mthreads.com/sgpu-core": "32"}


def test_neuron_is_asked_for_cards_or_cores() -> None:
    """AWS's cards are requested by number or by cores, never by both."""
    asked = TemplateOptions(sample.speak(sample.NEURON, cores=2, core_unit=CoreUnit.BITS))
    assert limits(first_job(asked, share("a", 0, 1_000), share("b", 0, 1_000))) == {"aws.amazon.com/neuron": "2"}
    assert limits(first_job(asked, share("a", 0, 500))) == {"aws.amazon.com/neuroncore": "1"}


def test_devices_are_named_as_their_dialect_names_them() -> None:
    """A device plugin gets its own id of a device, if it has one."""
    known = TemplateOptions(lambda _, uuid: Access(uuid, "node-0-mlu-3", sample.HAMI))
    assert chosen(first_job(known, share("alpha/node-0-mlu-3"))) == {"nvidia.com/use-gpuuuid": "node-0-mlu-3"}


def test_what_cannot_be_asked_at_once_is_rejected() -> None:
    """A replica cannot use devices of two plugins, nor a missing one."""
    mixed = TemplateOptions(lambda node, uuid: sample.speak(sample.HAMI if uuid == "a" else vendors.DCU)(node, uuid))
    with pytest.raises(RejectedError, match="different ways"):
        first_job(mixed, share("a"), share("b"))
    with pytest.raises(RejectedError, match="device 'a' any more"):
        first_job(TemplateOptions(lambda *_: None), share("a"))


@pytest.mark.parametrize(
    ("terms", "known", "taken", "wanted", "selector"),
    [
        (
            sample.NVIDIA_DRA,
            {},
            share("GPU-a"),
            {"deviceClassName": "gpu.nvidia.com"},
            'device.attributes["gpu.nvidia.com"].uuid == "GPU-a"',
        ),
        (
            sample.NVIDIA_DRA,
            {"parts": sample.INSTANCE},
            share("MIG-a", profile="1g.5gb"),
            {"deviceClassName": "mig.nvidia.com"},
            'device.attributes["gpu.nvidia.com"].uuid == "MIG-a"',
        ),
        (
            sample.NVIDIA_DRA,
            {"parts": sample.CUT_AT_WILL},
            share("GPU-a", profile="1g.5gb"),
            {"deviceClassName": "mig.nvidia.com"},
            'device.attributes["gpu.nvidia.com"].parentUUID == "GPU-a"'
            ' && device.attributes["gpu.nvidia.com"].profile == "1g.5gb"',
        ),
        (
            sample.NVIDIA_DRA,
            {"parts": sample.CUT_AT_WILL},
            share("GPU-a", profile="full"),
            {"deviceClassName": "gpu.nvidia.com"},
            'device.attributes["gpu.nvidia.com"].uuid == "GPU-a"',
        ),
        (
            sample.NVIDIA_DRA,
            {"parts": sample.CUT_AT_WILL},
            share("alpha/node-0/gpu-0", profile="1g.5gb"),
            {"deviceClassName": "mig.nvidia.com"},
            'device.attributes["gpu.nvidia.com"].profile == "1g.5gb"',
        ),
        (
            sample.HAMI_DRA,
            {"shared": True},
            share('GPU-"a', 8_192, 305),
            {
                "deviceClassName": "hami-core-gpu.project-hami.io",
                "capacity": {"requests": {"cores": "31", "memory": "8192Mi"}},
            },
            'device.attributes["hami-core-gpu.project-hami.io"].uuid == "GPU-\\"a"',
        ),
    ],
)
def test_claims_name_one_device_each(
    terms: DeviceResources, known: dict[str, Any], taken: DeviceSlice, wanted: dict[str, Any], selector: str
) -> None:
    """With dynamic resource allocation a claim requests each device, by class, amounts and a selector."""
    manifests = render(deployment(placed=[("node-0", (taken,))]), TemplateOptions(sample.speak(terms, **known)))
    claim, job = sample.one(manifests, "ResourceClaimTemplate"), sample.one(manifests, "Job")
    (asked,) = claim.body["spec"]["spec"]["devices"]["requests"]
    assert asked == {"name": "device-0", "exactly": wanted}
    (said,) = claim.pinned()["spec"]["spec"]["devices"]["requests"]
    assert said["exactly"]["selectors"] == [{"cel": {"expression": selector}}]
    pod = job.pinned()["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "devices", "resourceClaimTemplateName": claim.name}]
    assert pod["containers"][0]["resources"]["claims"] == [{"name": "devices"}]
    assert limits(job.pinned()) == {}
    assert manifests.index(claim) < manifests.index(job)


def test_a_pod_is_tied_to_its_node_by_label() -> None:
    """The node is selected by its label, which may differ from its name, beside the job's own selectors."""
    made = deployment(placed=[("node-0", ())], nodes=NodeRules((("zone", "a"),)))
    manifest = sample.one(render(made, options(hostname=lambda node: f"{node}.local")), "Job")
    pod = manifest.pinned()["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"zone": "a", "kubernetes.io/hostname": "node-0.local"}
    assert "nodeName" not in pod
    assert manifest.body["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}


def test_cpu_and_memory_are_requests_and_limits() -> None:
    """Requests equal limits; resources that the job does not request are left out."""
    job = many(render(deployment(placed=[("n", ())], request=ResourceRequest(500, 64)), options()), "Job")[0]
    both = {"cpu": "500m", "memory": "64Mi"}
    assert container(job)["resources"] == {"limits": both, "requests": both}
    job = many(render(deployment(placed=[("n", ())], request=ResourceRequest()), options()), "Job")[0]
    assert "resources" not in container(job)


def test_tolerations_are_passed_on() -> None:
    """Pods have the tolerations of their job."""
    given = (Toleration(), Toleration("a", "b", TaintEffect.NO_EXECUTE), Toleration("c"), Toleration("d", ""))
    job = many(render(deployment(nodes=NodeRules(tolerations=given)), options()), "Job")[0]
    assert job["spec"]["template"]["spec"]["tolerations"] == [
        {"operator": "Exists"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "Equal", "value": ""},
    ]


def test_hami_s_scheduler_may_be_named() -> None:
    """Pods with HAMi's devices can name its scheduler, in case its webhook is down; others never do."""
    named = options(hami_scheduler="hami-scheduler")
    job = many(render(deployment(), named), "Job")[0]
    assert job["spec"]["template"]["spec"]["schedulerName"] == "hami-scheduler"
    plain = many(render(deployment(placed=[("n", ())]), named), "Job")[0]
    assert "schedulerName" not in plain["spec"]["template"]["spec"]


@pytest.mark.parametrize(("terms", "annotated"), [(sample.HAMI, True), (sample.VOLCANO, False), (vendors.DCU, False)])
@pytest.mark.parametrize("topology", list(GpuTopology))
def test_topology_is_passed_on_to_hami(terms: DeviceResources, annotated: bool, topology: GpuTopology) -> None:
    """HAMi chooses NVIDIA cards by their connections, if the job needs or prefers that."""
    given = deployment(placed=[("node-0", (share("GPU-a"), share("GPU-b")))])
    rules = replace(given.spec.demand, devices=DeviceRules(topology=topology))
    job = many(render(replace(given, spec=replace(given.spec, demand=rules)), options(terms)), "Job")[0]
    found = chosen(job).get("hami.io/gpu-scheduler-policy")
    assert found == ("topology-aware" if annotated and topology is not GpuTopology.ANY else None)
