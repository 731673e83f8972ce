"""Anything that people write, and what is wrong with it."""

from __future__ import annotations

import orjson
import pytest

from seaway.adapters.sqlalchemy.codec import read_spec, spec_text
from seaway.domain.device import DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.job import ResourceRequest
from seaway.domain.job_spec import Expose, JobSpec, ServiceType, Standby, StandbyMode
from seaway.domain.network import NetworkNeed
from seaway.domain.node import TaintEffect, Toleration
from seaway.domain.notifications import Notify, Occasion
from seaway.domain.runtime import NO_RUNTIME, Volume, VolumeKind
from seaway.wire.job_in import EXAMPLES, JobIn
from seaway.wire.job_text import job_text
from seaway.wire.reading import read_json, read_value, read_yaml_message

NESTED = b'{"name":"a","labels":' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}"


def test_amounts_are_read_with_their_units() -> None:
    """Each amount becomes the integer that its unit says."""
    spec = read_value(
        JobIn,
        {
            "name": "a",
            "gateway": "site",
            "resources": {"cpu": "500m", "memory": "16Gi", "gpus": 2, "gpu_memory": "24GB", "gpu_cores": "30%"},
            "network": {"max_latency": "20ms", "max_jitter": "5ms", "max_loss": "0.1%", "min_bandwidth": "10Gbps"},
            "expected_duration": "10m",
            "time_limit": "1h30m",
        },
    ).spec()
    assert spec.demand.request == ResourceRequest(500, 16_384, 2, 22_889, 0, 300)
    assert spec.demand.network == NetworkNeed(20_000_000, 5_000_000, 1000, 10_000)
    assert (spec.expected_duration_s, spec.time_limit_s) == (600, 5400)


def test_gpu_memory_may_be_a_share() -> None:
    """A percentage of a device's memory stays a percentage, for devices differ."""
    spec = read_value(JobIn, {"name": "a", "resources": {"gpus": 1, "gpu_memory": "50%"}}).spec()
    assert spec.demand.request == ResourceRequest(gpus=1, gpu_memory_percent=50)


@pytest.mark.parametrize(("gang", "together", "one_by_one"), [(True, True, False), (False, False, True), (None,) * 3])
def test_replicas_start_together_one_by_one_or_at_once(
    gang: bool | None, together: bool | None, one_by_one: bool | None
) -> None:
    """Only an explicit false lets replicas start one by one, and each value survives a round trip."""
    spec = read_value(JobIn, {"name": "a", "replicas": 2} | ({} if gang is None else {"gang": gang})).spec()
    assert (spec.gang, spec.one_by_one) == (bool(together), bool(one_by_one))
    assert spec.starts_in_part == bool(one_by_one)
    assert JobIn.of(spec).spec() == spec
    assert JobIn.of(spec).gang is gang


def test_a_text_in_place_of_a_list_is_shown_as_a_list() -> None:
    """The error for a command in one text shows the list of its words."""
    with pytest.raises(RejectedError, match=r'must be a list, such as \["sleep", "60"\]') as caught:
        read_value(JobIn, {"name": "a", "run": {"command": "sleep 60"}})
    assert caught.value.where == "run.command"


def test_replicas_may_form_a_ring_over_clusters() -> None:
    """They start together, and are written as they were read."""
    text = {"name": "train", "replicas": 4, "spread": "clusters", "between_replicas": {"min_bandwidth": "1Gbps"}}
    spec = JobIn.model_validate(text).spec()
    job = spec.job("id")
    assert (spec.ring, job.ring, job.gang, spec.starts_in_part) == (True, True, True, False)
    assert job_text(spec)["spread"] == "clusters"
    assert JobIn.of(spec).spec() == spec
    assert not JobIn.model_validate({"name": "train", "replicas": 4}).spec().ring


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"replicas": 1}, "needs 2 replicas or more"),
        ({"replicas": 2, "gang": False}, "starts all replicas together, so gang cannot be false"),
    ],
)
def test_a_ring_that_cannot_be_is_refused(given: dict[str, object], says: str) -> None:
    """One replica has no next one, and replicas that start one by one do not meet."""
    with pytest.raises(RejectedError, match=says) as caught:
        JobIn.model_validate({"name": "train", "spread": "clusters", **given}).spec()
    assert caught.value.where == "spread"


@pytest.mark.parametrize("kind", ServiceType)
def test_a_job_may_fix_its_ports_of_nodes(kind: ServiceType) -> None:
    """In the order of its ports; only where nodes have ports, each once, and not more than it has ports."""

    def read(*node_ports: int) -> JobSpec:
        given = {"name": "a", "run": {"ports": [80, 90]}, "expose": {"type": kind.value, "node_ports": [*node_ports]}}
        return read_value(JobIn, given).spec()

    if kind not in (ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER):
        with pytest.raises(RejectedError, match="is only for the types NodePort and LoadBalancer"):
            read(30080)
        return
    spec = read(30080)
    assert spec.expose == Expose(kind, node_ports=(30080,))
    assert JobIn.of(spec).spec() == spec
    for wrong, said in (
        ((30080, 30080), "has a port twice"),
        ((1, 2, 3), "has more ports than run.ports"),
        ((0,), "1"),
    ):
        with pytest.raises(RejectedError, match=said) as error:
            read(*wrong)
        assert error.value.where.startswith("expose.node_ports")


@pytest.mark.parametrize("kind", ServiceType)
def test_ports_may_be_exposed_in_every_way(kind: ServiceType) -> None:
    """The type and the host name survive a round trip; without a port there is nothing to expose."""
    host = "chat.example.com" if kind.by_host else ""
    given = {"name": "a", "run": {"ports": [80]}, "expose": {"type": kind.value, "host": host}}
    spec = read_value(JobIn, given).spec()
    assert spec.expose == Expose(kind, host)
    assert JobIn.of(spec).spec() == spec
    with pytest.raises(RejectedError) as error:
        read_value(JobIn, {**given, "run": {}}).spec()
    assert (error.value.message, error.value.where) == ("needs a port: set run.ports", "expose.type")


VOLUMES = [
    "imagenet:/data:ro",
    {"path": "/scratch", "empty_dir": "10Gi"},
    {"path": "/etc/app.toml", "config_map": "settings", "sub_path": "app.toml"},
    {"path": "/s3", "csi": {"driver": "s3.example", "attributes": {"bucket": "b"}, "secret": "s3"}},
    "secret=hf:/hf",
]


def test_volumes_and_variables_of_objects_survive_a_round_trip() -> None:
    """A short text is a volume too, and volumes of Secrets, ConfigMaps and object stores are read-only."""
    given = {
        "name": "a",
        "run": {"env_from_secret": {"TOKEN": "hf/token"}, "env_from_config_map": {"LEVEL": "settings/level"}},
        "resources": {"memory": "8Gi", "shm_size": "2Gi"},
        "volumes": VOLUMES,
    }
    spec = read_value(JobIn, given).spec()
    claim, scratch, *others = spec.runtime.volumes
    assert (claim, scratch.size_mib) == (Volume("/data", VolumeKind.CLAIM, "imagenet", read_only=True), 10_240)
    assert all(each.read_only for each in others)
    assert not scratch.read_only
    assert spec.runtime.shm_mib == 2048
    assert JobIn.of(spec).spec() == spec
    assert read_spec(spec_text(spec)) == spec


CONTAINERS = {
    "init_containers": [
        {"name": "fetch", "image": "curl:1", "command": ["curl"], "env": {"A": "b"}},
        {"name": "proxy", "restart_policy": "Always", "cpu": 1, "memory": "1Gi"},
    ],
    "containers": [{"name": "log", "cpu": "500m", "memory": "1Gi", "env_from_secret": {"KEY": "log/key"}}],
}
LOG = {"name": "log", "cpu": 1, "memory": "1Gi"}
PROGRAM = {"resources": {"cpu": 4, "memory": "8Gi"}, "run": {"command": ["train"]}}


@pytest.mark.parametrize(
    "given",
    [
        CONTAINERS,
        {
            "containers": [
                {
                    "name": "log",
                    "cpu": 1,
                    "memory": "1Gi",
                    "ports": [
                        9100,
                        {"name": "metrics", "port": 9101},
                        {"port": 514, "protocol": "UDP"},
                    ],
                }
            ]
        },
        {"setup": "pip install x\nexport A=1"},
        {"setup": ["pip install x", "export A=1"], "time_limit": "1h", "time_limit_warning": "USR1@300"},
        {"time_limit": "1h", "time_limit_warning": {"signal": "SIGINT", "before": "10m"}},
        {"time_limit": "1h", "time_limit_warning": "USR1@60", "restart_policy": "OnFailure"},
        {"workdir": "sha256:" + "0a" * 32, "volumes": ["data:/workdir/data"]},
        {"restart_policy": "OnFailure", "max_restarts": 0},
        {"restart_policy": "OnFailure"},
    ],
)
def test_containers_setup_restarts_and_warnings_survive_a_round_trip(given: dict[str, object]) -> None:
    """Each is stored and written as it was read."""
    spec = read_value(JobIn, {"name": "a", **PROGRAM, **given}).spec()
    assert spec.runtime != NO_RUNTIME
    assert JobIn.of(spec).spec() == spec
    assert read_spec(spec_text(spec)) == spec


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"run": {"ports": [80]}, "containers": [{**LOG, "ports": [80]}]}, "containers[0].ports[0].port"),
        ({"containers": [{**LOG, "ports": [80, {"port": 80, "name": "b"}]}]}, "containers[0].ports[1].port"),
        (
            {"containers": [{**LOG, "ports": [{"port": 1, "name": "b"}, {"port": 2, "name": "b"}]}]},
            "containers[0].ports[1].name",
        ),
        ({"containers": [{**LOG, "ports": [{"port": 80, "name": "No name"}]}]}, "containers[0].ports[0].name"),
        ({"containers": [{"name": "main", "cpu": 1, "memory": "1Gi"}]}, "containers[0].name"),
        ({"containers": [{"name": "a_b", "cpu": 1, "memory": "1Gi"}]}, "containers[0].name"),
        ({"containers": [{"name": "log", "memory": "1Gi"}]}, "containers[0].cpu"),
        ({"containers": [{"name": "log", "cpu": 4, "memory": "1Gi"}]}, "containers[0].cpu"),
        ({"init_containers": [{"name": "fetch", "memory": "9Gi"}]}, "init_containers[0].memory"),
        ({"containers": [{"name": "log", "env_from_secret": {"A": "b"}}]}, "containers[0].env_from_secret.A"),
        ({"setup": "true", "run": {}}, "run.command"),
        ({"time_limit_warning": "USR1@300"}, "time_limit_warning.before"),
        ({"time_limit": "5m", "time_limit_warning": "USR1@300"}, "time_limit_warning.before"),
        ({"time_limit": "5m", "time_limit_warning": "KILL@30"}, "time_limit_warning.signal"),
        ({"workdir": "."}, "workdir"),
        ({"workdir": "sha256:" + "0" * 64, "volumes": ["data:/workdir/"]}, "volumes[0].path"),
        ({"volumes": ["data:/etc/seaway/hostfile"]}, "volumes[0].path"),
        ({"restart_policy": "Always"}, "restart_policy"),
    ],
)
def test_an_environment_that_cannot_be_is_refused(given: dict[str, object], where: str) -> None:
    """Containers leave a part to the program, a shell needs a command, and a warning a limit."""
    with pytest.raises(RejectedError) as error:
        read_value(JobIn, {"name": "a", **PROGRAM, **given}).spec()
    assert error.value.where == where


@pytest.mark.parametrize(("restarts", "given"), [(False, {"max_restarts": 3}), (True, {"restart_policy": "OnFailure"})])
def test_restarts_in_place_agree_with_the_template(restarts: bool, given: dict[str, object]) -> None:
    """A service always restarts, and may have a maximum; another job needs a policy for it."""
    spec = read_value(JobIn, {"name": "a", **given}).spec()
    with pytest.raises(RejectedError) as error:
        spec.with_template_traits(single_cluster=False, restarts=restarts)
    assert error.value.where == next(iter(given))
    service = read_value(JobIn, {"name": "a", "max_restarts": 3}).spec()
    assert service.with_template_traits(single_cluster=False, restarts=True).runtime.max_restarts == 3


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"volumes": ["imagenet"]}, "volumes[0]"),
        ({"volumes": [{"path": "/data"}]}, "volumes[0]"),
        ({"volumes": [{"path": "/data", "claim": "a", "secret": "b"}]}, "volumes[0]"),
        ({"volumes": [{"path": "/data", "host_path": "/"}]}, "volumes[0].host_path"),
        ({"volumes": ["a:/data", "b:/data/"]}, "volumes[1].path"),
        ({"volumes": ["a:/"]}, "volumes[0].path"),
        ({"volumes": ["a:/data/../../etc"]}, "volumes[0].path"),
        ({"volumes": ["a:/dev/shm"]}, "volumes[0].path"),
        ({"volumes": ["config_map=a:/etc/ld.so.preload"]}, "volumes[0].path"),
        ({"volumes": ["config_map=a:/etc/./ld.so.preload"]}, "volumes[0].path"),
        ({"volumes": ["a:/./dev"]}, "volumes[0].path"),
        ({"volumes": ["a:/.//proc"]}, "volumes[0].path"),
        ({"volumes": ["a://sys"]}, "volumes[0].path"),
        ({"volumes": ["a:/usr/local/./vgpu"]}, "volumes[0].path"),
        ({"volumes": ["a:/run/./seaway"]}, "volumes[0].path"),
        ({"volumes": ["a:/."]}, "volumes[0].path"),
        ({"volumes": ["a:/./"]}, "volumes[0].path"),
        ({"volumes": ["a:/data", "b:/./data"]}, "volumes[1].path"),
        ({"volumes": ["../other/claim:/data"]}, "volumes[0].claim"),
        ({"volumes": [{"path": "/data", "claim": "a", "sub_path": "../b"}]}, "volumes[0].sub_path"),
        ({"run": {"env_from_secret": {"TOKEN": "hf"}}}, "run.env_from_secret.TOKEN"),
        ({"run": {"env_from_secret": {"TOKEN": "other/hf/token"}}}, "run.env_from_secret.TOKEN"),
        ({"run": {"env": {"A": "b"}, "env_from_secret": {"A": "hf/token"}}}, "run.env_from_secret.A"),
        ({"resources": {"memory": "1GB", "shm_size": "2GB"}}, "resources.shm_size"),
    ],
)
def test_a_volume_that_cannot_be_is_refused(given: dict[str, object], where: str) -> None:
    """A volume has one source, its own path, and nothing of nodes, devices or other namespaces."""
    with pytest.raises(RejectedError) as error:
        read_value(JobIn, {"name": "a", **given}).spec()
    assert error.value.where == where


def test_paths_of_volumes_have_one_form() -> None:
    """Manifests have the path that container runtimes use, so that no other form of it is possible."""
    volume = {"path": "//data/./sets//", "claim": "a", "sub_path": "./b/./c"}
    (read,) = read_value(JobIn, {"name": "a", "volumes": [volume]}).spec("default").runtime.volumes
    assert (read.path, read.sub_path) == ("/data/sets", "b/c")


@pytest.mark.parametrize(
    ("given", "mode"),
    [({}, StandbyMode.WARM), ({"clusters": 1}, StandbyMode.WARM), ({"mode": "cold"}, StandbyMode.COLD)],
)
def test_a_standby_is_warm_unless_it_says_cold(given: dict[str, object], mode: StandbyMode) -> None:
    """An empty mapping is a warm standby, and both modes survive a round trip."""
    spec = read_value(JobIn, {"name": "a", "standby": given}).spec()
    assert spec.standby == Standby(mode)
    assert JobIn.of(spec).spec() == spec
    assert read_value(JobIn, {"name": "a"}).spec().standby is None


@pytest.mark.parametrize(("given", "where"), [({"clusters": 2}, "standby.clusters"), ({"mode": "hot"}, "standby.mode")])
def test_a_service_has_one_standby_of_a_known_mode(given: dict[str, object], where: str) -> None:
    """Other numbers and modes are rejected, with the field."""
    with pytest.raises(RejectedError) as error:
        read_value(JobIn, {"name": "a", "standby": given})
    assert error.value.where == where


def test_a_list_may_be_written_as_its_one_text() -> None:
    """Models, vendors and modes may be one text or several."""
    spec = read_value(
        JobIn, {"name": "a", "resources": {"gpus": 1, "gpu_model": "L4", "gpu_vendor": ["NVIDIA"], "gpu_mode": "mig"}}
    ).spec()
    rules = spec.demand.devices
    assert (rules.models, rules.vendors, rules.modes) == (
        frozenset({"L4"}),
        frozenset({"NVIDIA"}),
        frozenset({DeviceMode.MIG}),
    )


@pytest.mark.parametrize("mode", DeviceMode)
def test_every_way_of_sharing_may_be_asked_for(mode: DeviceMode) -> None:
    """Anything that devices show as their mode is a word for jobs, too."""
    spec = read_value(JobIn, {"name": "a", "resources": {"gpus": 1, "gpu_mode": mode.value}}).spec()
    assert spec.demand.devices.modes == {mode}


def test_rules_for_nodes_are_carried_over() -> None:
    """Labels, taints, clusters, regions and hardware reach the scheduler as written."""
    spec = read_value(
        JobIn,
        {
            "name": "a",
            "resources": {"gpus": 1},
            "placement": {
                "clusters": ["c1"],
                "regions": ["eu"],
                "hardware": ["rdma"],
                "cluster_labels": {"team": "a"},
                "max_price_per_gpu_hour": "2.50",
                "node_labels": {"z": "1", "a": "2"},
                "tolerations": [{"key": "gpu", "effect": "NoExecute"}],
            },
        },
    ).spec()
    nodes = spec.demand.nodes
    assert nodes.node_labels == (("a", "2"), ("z", "1"))
    assert nodes.tolerations == (Toleration("gpu", None, TaintEffect.NO_EXECUTE),)
    assert (nodes.clusters, nodes.regions, nodes.hardware) == (
        frozenset({"c1"}),
        frozenset({"eu"}),
        frozenset({"rdma"}),
    )
    assert (nodes.cluster_labels, nodes.max_microprice) == ((("team", "a"),), 2_500_000)
    assert job_text(spec)["placement"]["max_price_per_gpu_hour"] == "2.50"


@pytest.mark.parametrize(
    ("price", "gpus"), [("much", 1), (-1, 1), ("2.50", 0)], ids=["no number", "negative", "without GPUs"]
)
def test_a_maximum_price_is_a_price_of_gpus(price: object, gpus: int) -> None:
    """Others are refused at their field."""
    fields = {"name": "a", "resources": {"gpus": gpus}, "placement": {"max_price_per_gpu_hour": price}}
    with pytest.raises(RejectedError) as refused:
        read_value(JobIn, fields).spec()
    assert refused.value.where == "placement.max_price_per_gpu_hour"


def test_a_job_is_its_tenant_s() -> None:
    """A user who does not say whose a job is means his own tenant."""
    assert read_value(JobIn, {"name": "a"}).spec("team").tenant == "team"
    assert read_value(JobIn, {"name": "a", "tenant": "other"}).spec("team").tenant == "other"


def test_the_examples_can_be_submitted() -> None:
    """Anything that the description shows as an example is one."""
    for example in EXAMPLES:
        assert read_value(JobIn, example).spec().name == example["name"]


def test_yaml_and_json_say_the_same() -> None:
    """A job in YAML is read as the same job in JSON."""
    text = "name: a\nresources:\n  gpus: 1\n  gpu_memory: 24GB\nrun:\n  args: [--lr, '0.1']\n"
    same = {"name": "a", "resources": {"gpus": 1, "gpu_memory": "24GB"}, "run": {"args": ["--lr", "0.1"]}}
    assert read_yaml_message(JobIn, text) == read_json(JobIn, orjson.dumps(same))


BAD: list[tuple[object, str, str]] = [
    ({}, "name", "missing"),
    ({"name": "A"}, "name", "1 to 63 of a-z"),
    ({"name": "a\n"}, "name", "1 to 63 of a-z"),
    ({"name": "a" * 64}, "name", "63"),
    ({"name": 5}, "name", "text"),
    ({"name": "a", "priorty": 1}, "priorty", "did you mean 'priority'?"),
    ({"name": "a", "resources": {"gpu_mem": "1GB"}}, "resources.gpu_mem", "did you mean 'gpu_memory'?"),
    ({"name": "a", "zzz": 1}, "zzz", "available: name"),
    ({"name": "a", "timeLimit": 1}, "timeLimit", "did you mean 'time_limit'?"),
    ({"name": "a", "image": "b"}, "image", "it belongs in 'run.image'"),
    ({"name": "a", "resources": {"env": {}}}, "resources.env", "it belongs in 'run.env'"),
    ({"name": "a", "run": {"volumes": []}}, "run.volumes", "it belongs in 'volumes'"),
    ({"name": "a", "max_loss": 1}, "max_loss", "it belongs in 'network.max_loss' or 'between_replicas.max_loss'"),
    ({"name": "a", "nodeLabels": {}}, "nodeLabels", "it belongs in 'placement.node_labels'"),
    ({"name": "a", "gpu_memry": "1GB"}, "gpu_memry", "did you mean 'resources.gpu_memory'?"),
    ({"name": "a", "nodeSelector": {}}, "nodeSelector", "it belongs in 'placement.node_labels'"),
    ({"name": "a", "resources": {"limits": {}}}, "resources.limits", "'resources.memory' or 'resources.gpus'"),
    ({"name": "a", "volumes": [{"path": "/a", "size": 1}]}, "volumes[0].size", "available: path, claim"),
    ({"name": "a", "run": {"imag\u0000e": ""}}, "run.imag\\x00e", "unknown field"),
    ({"name": "a", "replicas": 0}, "replicas", "at least 1"),
    ({"name": "a", "replicas": 10_001}, "replicas", "10000"),
    ({"name": "a", "replicas": "3"}, "replicas", "whole number"),
    ({"name": "a", "replicas": 1.5}, "replicas", "whole number"),
    ({"name": "a", "replicas": True}, "replicas", "whole number"),
    ({"name": "a", "replicas": None}, "replicas", "whole number"),
    ({"name": "a", "priority": 10**12}, "priority", "1000000000"),
    ({"name": "a", "gang": "yes"}, "gang", "true or false"),
    ({"name": "a", "retries": -1}, "retries", "at least 0"),
    ({"name": "a", "resources": []}, "resources", "mapping"),
    ({"name": "a", "resources": {"memory": 24}}, "resources.memory", "with its unit"),
    ({"name": "a", "resources": {"memory": "9999PB"}}, "resources.memory", "is too large"),
    ({"name": "a", "resources": {"cpu": -1}}, "resources.cpu", "cores"),
    ({"name": "a", "resources": {"cpu": True}}, "resources.cpu", "cores"),
    ({"name": "a", "resources": {"cpu": {}}}, "resources.cpu", "cores"),
    ({"name": "a", "resources": {"gpus": 1025}}, "resources.gpus", "1024"),
    ({"name": "a", "resources": {"gpus": 1, "gpu_memory": "101%"}}, "resources.gpu_memory", "100%"),
    ({"name": "a", "resources": {"gpus": 1, "gpu_memory": 0}}, "resources.gpu_memory", "omit gpu_memory"),
    ({"name": "a", "resources": {"gpus": 1, "gpu_cores": 30}}, "resources.gpu_cores", "30% perhaps"),
    ({"name": "a", "resources": {"gpu_mode": "mag"}}, "resources.gpu_mode[0]", "'mps', 'whole' or 'shared'"),
    ({"name": "a", "resources": {"gpus": 1, "mig": "3g"}}, "resources.mig", "is not a MIG profile like 3g.40gb"),
    ({"name": "a", "resources": {"gpus": 1, "mig": "5g.40gb"}}, "resources.mig", "is not a MIG profile like 3g.40gb"),
    ({"name": "a", "resources": {"gpus": 1, "mig": 3}}, "resources.mig", "text"),
    ({"name": "a", "resources": {"gpu_topology": "ring"}}, "resources.gpu_topology", "'same-island' or 'best-effort'"),
    ({"name": "a", "resources": {"gpu_model": [5]}}, "resources.gpu_model[0]", "text"),
    ({"name": "a", "resources": {"gpu_uuids": ["a"] * 257}}, "resources.gpu_uuids", "256"),
    ({"name": "a", "network": {"max_latency": 20}}, "network.max_latency", "with its unit"),
    ({"name": "a", "network": {"max_latency": "2h"}}, "network.max_latency", "is too large"),
    ({"name": "a", "network": {"max_loss": 0}}, "network.max_loss", "sets no bound"),
    ({"name": "a", "expected_duration": "1e3s"}, "expected_duration", "a time"),
    ({"name": "a", "time_limit": 0}, "time_limit", "omit it"),
    ({"name": "a", "labels": {"x!": ""}}, "labels.x!", "label key"),
    ({"name": "a", "labels": {"x": "-"}}, "labels.x", "label's value"),
    ({"name": "a", "run": {"env": {"1A": ""}}}, "run.env.1A", "no digit first"),
    ({"name": "a", "run": {"env": {"A": "\u0000"}}}, "run.env.A", "control characters"),
    ({"name": "a", "run": {"image": "a\nb"}}, "run.image", "control characters"),
    ({"name": "a", "run": {"ports": [0]}}, "run.ports[0]", "at least 1"),
    ({"name": "a", "run": {"args": ["x" * 4097]}}, "run.args[0]", "4096"),
    ({"name": "a", "placement": {"tolerations": [{"effect": "No"}]}}, "placement.tolerations[0].effect", "NoSchedule"),
    ({"name": "a", "placement": {"tolerations": [{"efect": ""}]}}, "placement.tolerations[0].efect", "'effect'?"),
    ([], "", "mapping"),
    (None, "", "mapping"),
]


@pytest.mark.parametrize(("body", "where", "says"), BAD)
def test_what_is_wrong_is_reported_with_its_place(body: object, where: str, says: str) -> None:
    """An error names the field and says how to mend it."""
    with pytest.raises(RejectedError) as caught:
        read_json(JobIn, orjson.dumps(body))
    assert caught.value.where == where
    assert says in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b'{"name":"a"',
        b'{"name":"\\ud800"}',
        b'{"name":"a","replicas":' + b"9" * 5000 + b"}",
        b'{"name":"a","resources":{"cpu":NaN}}',
        b'{"name":"a","resources":{"cpu":Infinity}}',
        b'{"name":"a","replicas":1e999}',
        b"[" * 100_000,
        NESTED,
    ],
    ids=["empty", "not utf-8", "cut", "half a letter", "huge", "nan", "infinity", "overflow", "open lists", "nested"],
)
def test_bodies_that_are_no_json_are_refused(body: bytes) -> None:
    """Whatever the bytes, an error returns that says what is wrong."""
    with pytest.raises(RejectedError):
        read_json(JobIn, body)


def test_several_mistakes_are_reported_together() -> None:
    """Anyone who made three mistakes observes of all three at once."""
    with pytest.raises(RejectedError) as caught:
        read_json(JobIn, b'{"name":"A","replicas":0,"x":1}')
    assert [each.where for each in caught.value.also] == ["replicas", "x"]


def test_mistakes_beyond_number_are_cut() -> None:
    """A message full of mistakes gets an answer of bounded size."""
    with pytest.raises(RejectedError) as caught:
        read_json(JobIn, orjson.dumps({"name": "a"} | {f"x{at}": 1 for at in range(1000)}))
    assert len(caught.value.also) == 49


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"resources": {"gpu_memory": "1GB"}}, "resources.gpu_memory"),
        ({"resources": {"gpu_cores": "10%"}}, "resources.gpu_cores"),
        ({"resources": {"mig": "1g.5gb"}}, "resources.mig"),
        ({"resources": {"gpus": 1, "gpu_topology": "best-effort"}}, "resources.gpu_topology"),
        ({"resources": {"gpus": 2, "gpu_topology": "same-island", "same_numa": True}}, "resources.gpu_topology"),
        ({"resources": {"gpus": 1, "mig": "1g.5gb", "gpu_memory": "5GB"}}, "resources.gpu_memory"),
        ({"resources": {"gpus": 1, "mig": "1g.5gb", "gpu_cores": "10%"}}, "resources.gpu_cores"),
        ({"resources": {"gpus": 1, "mig": "1g.5gb", "gpu_mode": "mps"}}, "resources.gpu_mode"),
        ({"network": {"max_latency": "1ms"}}, "gateway"),
        ({"notify": ["ops", "Ops"]}, "notify[1].to"),
        ({"notify": "ada@exa mple.com"}, "notify[0].to"),
        ({"notify": {"to": "ops", "when": []}}, "notify[0].when"),
        ({"notify": ["ops", "ops=failed"]}, "notify"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(given: dict[str, object], where: str) -> None:
    """Shares of no device and bounds without a gateway are reported with their field."""
    job = read_value(JobIn, {"name": "a", **given})
    with pytest.raises(RejectedError) as caught:
        job.spec()
    assert caught.value.where == where


@pytest.mark.parametrize(
    "given",
    [
        "ops=started,failed",
        ["ops=failed, started"],
        {"to": "ops", "when": ["failed", "started"]},
        [{"to": "ops", "when": ["started", "failed"]}],
    ],
)
def test_a_receiver_of_messages_may_be_a_text(given: object) -> None:
    """All forms are the same job, which is written with the occasions in their order."""
    spec = read_value(JobIn, {"name": "a", "notify": given}).spec()
    assert spec.notify == (Notify("ops", (Occasion.STARTED, Occasion.FAILED)),)
    assert job_text(spec)["notify"] == [{"to": "ops", "when": ["started", "failed"]}]
    assert JobIn.of(spec).spec() == spec


@pytest.mark.parametrize("name", ["1g.10gb+me", "MIG-1g.10gb.me", " 1G.10GB+ME "])
def test_mig_profiles_are_read_in_the_forms_of_nvidia(name: str) -> None:
    """A profile is written as tools or as node resources write it, and shown as NVIDIA's tools do."""
    spec = read_value(JobIn, {"name": "a", "resources": {"gpus": 2, "mig": name}}).spec()
    assert (spec.demand.request.gpus, spec.demand.request.mig) == (2, "1g.10gb+me")
    assert JobIn.of(spec).resources.mig == "1g.10gb+me"
    assert JobIn.of(spec).spec() == spec


CHAT = {"name": "chat", "template": "deployment", "replicas": {"min": 0, "max": 8}, "run": {"ports": [80]}}
WINDOW = {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "timezone": "Europe/Berlin", "replicas": 6}


def test_triggers_have_targets_in_the_units_of_their_metrics() -> None:
    """They are written as they are read, and the job starts with its minimum, at least 1."""
    triggers = [
        {"metric": "requests", "target": 2.5},
        {"metric": "latency", "target": "200ms"},
        {"metric": "utilization", "target": "70%", "shrink_after": "1m"},
        {"metric": "queue_depth", "target": 5},
        {"metric": "query", "target": 4, "query": "sum(x)"},
        WINDOW,
    ]
    spec = read_value(JobIn, {**CHAT, "scale": triggers}).spec()
    assert [each.target_milli for each in spec.scale] == [2500, 200, 700, 5000, 4000, 0]
    assert (spec.replicas, spec.least_replicas, spec.scale[2].shrink_after_s) == (1, 1, 60)
    written = job_text(spec)
    assert (written["scale"], written["replicas"]) == (triggers, {"min": 0, "max": 8})
    assert JobIn.of(spec).spec() == spec
    assert read_value(JobIn, {**CHAT, "scale": triggers[0]}).spec().scale == spec.scale[:1]


@pytest.mark.parametrize(
    ("trigger", "where", "said"),
    [
        ({"metric": "latency", "target": "70%"}, "scale.target", "70%"),
        ({"metric": "utilization", "target": "20ms"}, "scale.target", "20ms"),
        ({"metric": "requests", "target": "many"}, "scale.target", "a number like 20 or 0.5"),
        ({"metric": "requests"}, "scale.target", "more than 0"),
        ({"metric": "query", "target": 1}, "scale.query", "with the metric query"),
        ({**WINDOW, "metric": "requests", "target": 1}, "scale", "use two triggers"),
        ({"start": "0 8 * * *", "replicas": 2}, "scale", "needs metric and target, or start, end and replicas"),
        ({**WINDOW, "start": "every day"}, "scale.start", "not a cron expression"),
        ({**WINDOW, "start": "0 0 31 2 *"}, "scale.start", "not a cron expression that is ever due"),
        ({**WINDOW, "end": "* 0 0 1 1 *"}, "scale.end", "use minute, hour"),
        ({**WINDOW, "timezone": "Europe/Atlantis"}, "scale.timezone", "like Europe/Berlin"),
        ({**WINDOW, "replicas": 9}, "scale.replicas", "at most 8"),
    ],
)
def test_a_trigger_that_makes_no_sense_is_rejected(trigger: dict[str, object], where: str, said: str) -> None:
    """The error has the place and what to write instead."""
    with pytest.raises(RejectedError, match=said) as error:
        read_value(JobIn, {**CHAT, "scale": trigger}).spec()
    assert error.value.where == where
