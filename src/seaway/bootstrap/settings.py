"""Settings from flags, the environment, a TOML file and defaults, in this order of precedence.

A file has a table for each section, and the environment a variable for each setting::

    [server]                      SEAWAY_SERVER_PORT=9090
    port = 9090

    [database]                    SEAWAY_DATABASE_URL=postgresql://...
    url = "postgresql://seaway@localhost/seaway"

    [clusters.karmada]            SEAWAY_CLUSTERS_KARMADA_KUBECONFIG=...
    kubeconfig = "karmada.config"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from ipaddress import ip_network
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

from seaway.application.agent.settings import AgentSettings
from seaway.application.control.settings import ControlSettings, Drift, SchedulerSettings
from seaway.bootstrap.bandwidth import NetworkSettings, network_setting_errors
from seaway.bootstrap.notifications import NotificationSettings, notification_errors
from seaway.bootstrap.scaling import ScalingSettings, scaling_setting_errors
from seaway.bootstrap.workdirs import LARGEST_MIB, WorkdirSettings, bucket_name
from seaway.domain.errors import RejectedError
from seaway.domain.facts import Facts
from seaway.domain.job_spec import RING_TYPES, Expose, ServiceType
from seaway.scheduling.queueing.registry import queue_discipline_names

PREFIX = "SEAWAY_"

_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_RESOURCE = re.compile(_OBJECT.pattern + r"/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""Names of Kubernetes objects and resources."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """REST API and web pages."""

    host: str = "127.0.0.1"
    """Address to listen on. Flag `--host`."""
    port: int = 8080
    """Port to listen on; 0 selects a free port. Flag `--port`."""
    tls_certificate: str = ""
    """Path of the certificate, PEM. With it the server uses HTTPS. Requires `tls_key`. Flag `--tls-certificate`."""
    tls_key: str = ""
    """Path of the private key of the certificate, PEM. Flag `--tls-key`."""
    no_auth: bool = False
    """Disable authentication: every request has the admin role.

    Allowed only on loopback addresses. Flag `--no-auth`.
    """
    body_limit_bytes: int = 1_048_576
    """Maximum size of a request body, bytes."""
    max_connections: int = 8192
    """Maximum number of open connections; less if the process may open fewer files. A new connection replaces the
    oldest one without a request. If all have requests, the new one is closed.
    """
    max_connections_per_address: int = 1024
    """The same for one address, or one IPv6 network of 64 bits. Does not apply to trusted proxies."""
    web: bool = True
    """Serve the web pages in addition to the API."""
    currency: str = ""
    """Currency of all prices and costs, a code of ISO 4217 such as `EUR`, which pages show. Empty for none; prices of
    the fleet `demo` are in `USD`.
    """
    public_url: str = ""
    """URL that users open, if it is the URL of a proxy: scheme, host and port without a path."""
    trusted_proxies: str = ""
    """Addresses and networks of trusted proxies, separated by commas, such as `10.0.0.0/8, 192.0.2.7`. Their
    `X-Forwarded-For` and `X-Forwarded-Proto` headers are used.
    """


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The database, retention and backups."""

    url: str = ""
    """URL of the database. Empty for SQLite, `seaway.db` in the data folder. Flag `--database`."""
    job_retention_days: int = 30
    """Days after which finished jobs are removed, with their attempts and events."""
    audit_retention_days: int = 365
    """Days after which entries of the audit log are removed."""
    sample_retention_days: int = 30
    """Days after which samples of the fleet, of links and of policy comparisons are removed."""
    idempotency_key_retention_days: int = 2
    """Days after which idempotency keys are removed. A request can be repeated until then."""
    stored_logs_mib: int = 256
    """Maximum size of the compressed logs of ended jobs in `logs/` of the data folder, MiB; 0 stores none. The oldest
    are removed first.
    """
    prune_interval_h: int = 1
    """Hours between two removals of old rows; 0 disables them. The first removal is one minute after the start."""
    backup_interval_h: int = 24
    """Maximum age of the newest backup in `backups/` of the data folder, hours; 0 disables backups. A failed backup is
    repeated after a minute, with a back-off of up to an hour.
    """
    backup_retention_count: int = 7
    """Number of backups to keep; 0 keeps all."""


@dataclass(frozen=True, slots=True)
class KarmadaSettings:
    """A Karmada control plane."""

    kubeconfig: str = ""
    """Path of the kubeconfig of a Karmada control plane; its current context is used.

    The members of Karmada are the clusters. Takes precedence over `kubeconfig_dir`.
    """


@dataclass(frozen=True, slots=True)
class HamiSettings:
    """Resource names of HAMi, for other names than the defaults of its Helm chart.

    They are the same in all clusters.
    """

    resource_name: str = "nvidia.com/gpu"
    """Resource for the number of NVIDIA devices: `resourceName` of the chart."""
    resource_mem: str = "nvidia.com/gpumem"
    """Resource for device memory: `resourceMem` of the chart."""
    resource_mem_percentage: str = "nvidia.com/gpumem-percentage"
    """Resource for device memory in percent: `resourceMemPercentage` of the chart."""
    resource_cores: str = "nvidia.com/gpucores"
    """Resource for device cores: `resourceCores` of the chart."""


@dataclass(frozen=True, slots=True)
class UsageSettings:
    """Measured use of devices."""

    interval_s: float = 60
    """Seconds between two scrapes of each exporter; 0 disables them.

    A value expires after three intervals. Requires an additional permission in the clusters; without it, nothing is
    read, and the next try is ten intervals later.
    """
    exporters: str = (
        "app.kubernetes.io/component=hami-device-plugin:9394@kube-system; "
        "app.kubernetes.io/name=dcgm-exporter:9400@gpu-operator; app=nvidia-dcgm-exporter:9400@gpu-operator"
    )
    """Pods that export the use, separated by semicolons: `LABEL=VALUE:PORT@NAMESPACE`. Jobs may have the same labels,
    but not run in these namespaces. If two pods of a node report the same device, the first entry takes precedence.
    """


@dataclass(frozen=True, slots=True)
class ExposeSettings:
    """Ways in which clients outside real clusters reach the ports of jobs."""

    types: str = "ClusterIP, NodePort, LoadBalancer"
    """Types that jobs may choose in `expose.type`, separated by commas. `Ingress` and `HTTPRoute` are possible too, and
    require additional permissions in the clusters.
    """
    default: str = "ClusterIP"
    """Type of jobs that choose none, unless their template does."""
    domain: str = ""
    """Domain of all host names of jobs, such as `apps.example.com`. Jobs without a host name of their own get their ID
    within it. Empty to allow any host name.
    """
    https: bool = False
    """HTTPS for host names. Ingresses then request the default certificate of their controller.
    Certificates of a Gateway are in its listeners.
    """
    ingress_class: str = ""
    """Class of Ingresses. Empty for the default class of each cluster."""
    gateway: str = ""
    """Gateway of HTTPRoutes in each cluster, `NAMESPACE/NAME`. It must accept routes of the tenants' namespaces."""
    ring: str = "NodePort"
    """Address of rank 0 for other clusters: `NodePort`, `LoadBalancer`, or `Pod` where networks of pods are routed
    between clusters. Empty for none: a ring then has to set `MASTER_ADDR`, and other gangs stay in one cluster.
    """


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Simulated and real clusters."""

    fleet: str = "demo"
    """Simulated clusters: `demo`, or the path of a fleet file. Flag `--fleet`."""
    simulated_url: str = ""
    """URL of simulated clusters in another process (`seaway simulate serve`). Takes precedence over `fleet`. Flag
    `--simulated`.
    """
    start_delay_s: float = 1
    """Start delay of workloads in simulated clusters, seconds."""
    fault_seed: int = 0
    """Seed of random faults in simulated clusters; 0 disables them."""
    kubeconfig_dir: str = ""
    """Folder of kubeconfigs.

    Each context is a cluster; changes are detected. Empty for `kubeconfigs` in the data folder, where `seaway cluster
    join` stores them. Clusters are simulated until the first join.
    """
    karmada: KarmadaSettings = field(default_factory=KarmadaSettings)
    """A Karmada control plane."""
    namespace: str = "seaway-{tenant}"
    """Namespace of each tenant's jobs in real clusters, with `{tenant}` for the name of the tenant.

    A missing namespace is created. Without `{tenant}`, all tenants share one namespace and are not isolated.
    """
    former_namespaces: str = ""
    """Earlier values of `namespace`, separated by commas. Jobs there continue and are removed there when they end.

    Empty for `seaway`, the namespace of earlier versions, if `namespace` has `{tenant}`.
    """
    tenants_dir: str = ""
    """Folder with manifests of ResourceQuotas, LimitRanges and NetworkPolicies for the tenants' namespaces: `_all.yaml`
    for every tenant, and `TENANT.yaml` for one, which replaces objects of equal kind and name. Empty for none.
    """
    network_policies: bool = True
    """Isolate the pods of each tenant by NetworkPolicies in its namespace."""
    egress: str = ""
    """Networks that pods of tenants may connect to, separated by commas, such as `0.0.0.0/0, ::/0`. DNS and pods of the
    same tenant are always allowed. Metadata services of clouds are left out of larger networks.
    """
    pod_security: str = ""
    """Pod Security Standard that namespaces created by Seaway enforce: `privileged`, `baseline` or `restricted`.

    Empty for `restricted`, or `baseline` if one of your own templates loosens its pods.
    """
    request_timeout_s: float = 10
    """Timeout of a request to the API server of a real cluster, seconds."""
    unschedulable_timeout_s: float = 5
    """Seconds after which a pod that the cluster's scheduler cannot schedule counts as rejected. The job is then placed
    elsewhere. Increase it for slow schedulers.
    """
    pod_start_timeout_s: float = 300
    """Seconds after which an attempt fails if its pods hold devices and cannot start.

    Examples are an image that cannot be pulled, a missing volume, or an incomplete preemption. The same applies if the
    cluster creates no pods, or if a Kueue queue is missing, stopped or too small.
    """
    hami_scheduler: str = ""
    """Name of HAMi's scheduler, set on pods with HAMi devices so that they wait for it while HAMi's webhook is down.

    With an empty name, the webhook sets it.
    """
    hami: HamiSettings = field(default_factory=HamiSettings)
    """Resource names of HAMi."""
    volcano_memory_factor: int = 1
    """MiB in one unit of `volcano.sh/vgpu-memory`, the `--gpu-memory-factor` of Volcano's device plugin; at least 1."""
    default_image: str = ""
    """Image of jobs that specify none. If empty, such jobs are rejected."""
    pull_secrets: str = ""
    """Image pull secrets, separated by commas, added to every pod of every template.

    Each tenant's namespace must have them.
    """
    csi_drivers: str = ""
    """CSI drivers for inline volumes that jobs may mount, read-only, separated by commas. Allow only drivers whose
    attributes give no access to data of others. Empty for none.
    """
    local_queue: str = ""
    """Kueue LocalQueue of jobs with the template `kueue`. Empty for the name of the job's queue."""
    volcano_queue: str = ""
    """Volcano Queue of jobs with the template `volcanojob`. Empty for Volcano's default queue."""
    run_as_user: int = 1000
    """User and group ID of containers, unless a custom template has its own. 0 for the user of the image. An image
    that runs as root is then rejected by its node.
    """
    templates_dir: str = ""
    """Folder with custom templates, one YAML file each. Empty for none."""
    usage: UsageSettings = field(default_factory=UsageSettings)
    """Measured use of devices."""
    expose: ExposeSettings = field(default_factory=ExposeSettings)
    """Addresses for clients outside a cluster."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts of real clusters by name, such as `[clusters.facts.gpu-east]` with `region`, `zones`, `provider`,
    `location`, `hardware`, `price_per_gpu_hour`, `spot_price_per_gpu_hour` and `labels`. They precede what the clusters
    report, and what `seaway cluster set` sets precedes them. Only in the settings file.
    """


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """An OpenID Connect provider, whose tokens are accepted in addition to Seaway's own. Disabled without an issuer."""

    issuer: str = ""
    """Expected `iss` of a token."""
    audience: str = ""
    """Expected `aud` of a token."""
    jwks: str = ""
    """Keys of the provider: an `https://` URL or the path of a file."""
    name_claim: str = "sub"
    """Claim with the name of the user."""
    role_claim: str = "seaway_role"
    """Claim with the role, or with a list of roles. The most powerful role applies."""
    tenant_claim: str = "seaway_tenant"
    """Claim with the tenant."""
    roles: dict[str, str] = field(default_factory=dict)
    """Seaway role by role name of the provider, such as `{admins = "admin"}`.

    Empty for equal names. Only in the settings file.
    """
    leeway_s: int = 30
    """Tolerated clock difference, seconds; at most 300."""
    client_id: str = ""
    """Client ID of Seaway at the provider, for login to the web pages. Empty for login only with tokens."""
    client_secret: str = ""
    """Client secret. Empty for a public client."""
    redirect: str = ""
    """Redirect URL registered at the provider: `/login/callback` of this server.

    Empty for that path of `server.public_url`.
    """
    scopes: str = "openid profile"
    """Requested scopes."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Trained policies and profile files."""

    trusted_keys: str = ""
    """Path of a file with public keys, one per line as in OpenSSH's `.pub` files.

    An imported policy must have a signature by one of them. Empty accepts every valid policy. Policies shipped with
    Seaway are always accepted.
    """
    shadow_jobs: int = 100
    """Number of jobs that a trained policy decides as the shadow policy of a queue before it can be activated for that
    queue; 0 for none.
    """
    fallback: str = "seaway"
    """Policy that decides if a trained policy does not. It must consist of plugins."""
    budget_ms: float = 5
    """Time limit of a decision by a trained policy, milliseconds; 0 disables it."""
    failure_threshold: int = 5
    """Consecutive slow or failed decisions after which a trained policy is suspended."""
    cooldown_s: float = 30
    """Duration of the suspension, seconds."""
    profiles_dir: str = ""
    """Folder of profile files (`.toml`), each a policy that queues can select by its name. Empty for none. Read at the
    start.
    """


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Leader election between several processes on one database. Disabled without a lease."""

    lease: str = ""
    """Name of the Kubernetes Lease."""
    namespace: str = ""
    """Namespace of the Lease. Empty for the namespace of the pod, or `seaway` outside a pod."""
    kubeconfig: str = ""
    """Path of the kubeconfig of the cluster with the Lease; its current context is used.

    Empty for the service account of the pod.
    """
    pod: str = ""
    """Name of this pod. The leader has the label `seaway.io/leads`, which a Service can select. Empty for no label."""
    lease_duration_s: int = 15
    """Seconds after which a Lease without renewal expires. Another process can lead afterwards."""
    renew_deadline_s: float = 10
    """Seconds after the last renewal until the leader stops; less than `lease_duration_s`."""
    retry_period_s: float = 2
    """Seconds between two tries to acquire or renew the Lease; less than `renew_deadline_s`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

    server: ServerSettings = field(default_factory=ServerSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    clusters: ClusterSettings = field(default_factory=ClusterSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    control: ControlSettings = field(default_factory=ControlSettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    scaling: ScalingSettings = field(default_factory=ScalingSettings)
    policies: PolicySettings = field(default_factory=PolicySettings)
    oidc: IdentitySettings = field(default_factory=IdentitySettings)
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    workdirs: WorkdirSettings = field(default_factory=WorkdirSettings)
    leader: LeaderSettings = field(default_factory=LeaderSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)

    @property
    def body_limit_bytes(self) -> int:
        """Maximum size of a request body, bytes."""
        return self.server.body_limit_bytes


SECTIONS: dict[str, type[Any]] = get_type_hints(Settings)


def kinds(section: type[Any]) -> dict[str, type[Any]]:
    """Return the type of each setting of a section by name; ``table.name`` for a nested table."""
    found: dict[str, type[Any]] = {}
    for name, kind in get_type_hints(section).items():
        if isinstance(kind, type) and is_dataclass(kind):
            found |= {f"{name}.{each}": of for each, of in kinds(kind).items()}
        else:
            found[name] = kind
    return found


KINDS = {section: kinds(kind) for section, kind in SECTIONS.items()}
"""Type of every setting, by section and name."""


GENERAL = {"SEAWAY_SERVER": ("agent", "server")}
"""Variables of commands without settings, used as defaults of these settings. Other variables take precedence."""


def variable(section: str, name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{section}_{name}".upper().replace(".", "_")


def load_settings(
    path: Path | None, environment: Mapping[str, str], flags: Mapping[tuple[str, str], object]
) -> Settings:
    """Return the combined settings.

    Parameters
    ----------
    path
        A TOML file; None for none.
    environment
        Environment variables. Those with `PREFIX` and the name of a section are used.
    flags
        Command-line flags by section and name; None for an absent flag.

    Raises
    ------
    RejectedError
        With all errors: unknown names, and values of the wrong type or out of range.
    """
    return trace_settings(path, environment, flags)[0]


def trace_settings(
    path: Path | None, environment: Mapping[str, str], flags: Mapping[tuple[str, str], object]
) -> tuple[Settings, dict[tuple[str, str], str]]:
    """Return the combined settings as `load_settings` does, with the source of each setting that is not a default."""
    sources: dict[tuple[str, str], str] = {}
    problems: list[RejectedError] = []
    given = [*_from_file(path, problems), *_from_environment(environment, problems)]
    given += [(section, name, value, f"--{name}") for (section, name), value in flags.items() if value is not None]
    settings = Settings()
    for section, name, value, where in given:
        try:
            right = _as(KINDS[section][name], value)
        except ValueError as error:
            problems.append(RejectedError(str(error), where=where))
            continue
        settings = _put(settings, f"{section}.{name}", right)
        sources[section, name] = where
    written = {f"[{section}] {name}": where for (section, name), where in sources.items() if not where.startswith("--")}
    problems += [
        RejectedError(each.message, where=written.get(each.where, each.where)) for each in _out_of_range(settings)
    ]
    if problems:
        raise RejectedError(problems[0].message, where=problems[0].where, also=tuple(problems[1:]))
    return settings, sources


T = TypeVar("T")

Given = tuple[str, str, object, str]
"""Section, name, value and source."""


def _put(values: T, name: str, value: object) -> T:
    """Return settings with one value replaced."""
    first, _, rest = name.partition(".")
    changed: T = replace(values, **{first: _put(getattr(values, first), rest, value) if rest else value})  # type: ignore[type-var]  # all are dataclasses
    return changed


def _from_file(path: Path | None, problems: list[RejectedError]) -> list[Given]:
    if path is None:
        return []
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        problems.append(RejectedError(why, where=str(path)))
        return []
    given: list[Given] = []
    for section, table in content.items():
        if not _known(section, SECTIONS, "section", f"{path}", problems):
            continue
        if not isinstance(table, dict):
            problems.append(RejectedError(f"[{section}] must be a table", where=str(path)))
            continue
        for name, value in _flat(table, KINDS[section]):
            if _known(name, KINDS[section], "setting", f"{path}: [{section}]", problems):
                given.append((section, name, value, f"{path}: [{section}] {name}"))
    return given


def _flat(table: Mapping[str, object], names: Iterable[str]) -> Iterator[tuple[str, object]]:
    """Yield the settings of a section; those of a nested table as ``table.name``."""
    for name, value in table.items():
        if isinstance(value, dict) and name not in names:
            yield from ((f"{name}.{each}", inner) for each, inner in value.items())
        else:
            yield name, value


def _from_environment(environment: Mapping[str, str], problems: list[RejectedError]) -> list[Given]:
    given: list[Given] = [(*known, environment[each], each) for each, known in GENERAL.items() if environment.get(each)]
    for each, value in sorted(environment.items()):
        for section in SECTIONS:
            start = f"{PREFIX}{section.upper()}_"
            names = {variable(section, name).removeprefix(start).lower(): name for name in KINDS[section]}
            if each.startswith(start):
                name = each.removeprefix(start).lower()
                if _known(name, names, "setting", each, problems):
                    given.append((section, names[name], value, each))
        name = each.removeprefix(PREFIX).lower()
        if each.startswith(PREFIX) and name in KINDS["server"] and "://" not in value:  # Kubernetes sets such URLs
            problems.append(RejectedError(f"unknown variable; did you mean {variable('server', name)}?", where=each))
    return given


def _known(name: str, names: Mapping[str, object], kind: str, where: str, problems: list[RejectedError]) -> bool:
    if name in names:
        return True
    near = get_close_matches(name, list(names), 1)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(names)}"
    problems.append(RejectedError(f"unknown {kind} {name!r}; {hint}", where=where))
    return False


def _as(kind: type[Any], value: object) -> object:
    """Convert a value to the type of a setting. Text from the environment is parsed."""
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} must be true or false")
        return value
    if kind in {int, float}:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{value!r} must be a number")
        try:
            return kind(value) if not (kind is int and isinstance(value, float)) else _whole(value)
        except ValueError:
            raise ValueError(f"{value!r} must be a {'whole ' if kind is int else ''}number") from None
    if kind is str and not isinstance(value, str):
        raise ValueError(f"{value!r} must be text")
    if kind is not str and not isinstance(value, dict):
        raise ValueError(f"{value!r} must be a table")
    return value


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError("not whole")
    return int(value)


def _out_of_range(settings: Settings) -> list[RejectedError]:
    """Return the errors of values out of range."""
    problems = []
    for section, names in KINDS.items():
        for name in names:
            value = attrgetter(name)(getattr(settings, section))
            if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value < 2**53:
                said = f"{value} is out of range; it must be 0 or more, and less than 2^53"
                problems.append(RejectedError(said, where=f"[{section}] {name}"))
    control = settings.control
    problems += [
        RejectedError("must be more than 0", where=f"[server] {name}")
        for name in ("max_connections", "max_connections_per_address")
        if not getattr(settings.server, name)
    ]
    problems += [
        RejectedError("must be more than 0", where=f"[control] {name}")
        for name in (
            "batch_size",
            "max_tried_per_cycle",
            "assume_timeout_s",
            "poll_interval_s",
            "grace_period_s",
            "stale_after_s",
            "sample_interval_s",
            "slo_violation_s",
            "scale_interval_s",
        )
        if not getattr(control, name)
    ]
    problems += [
        RejectedError("must be more than 0", where=f"[agent] {name}")
        for name in ("refresh_s", "queue_rounds", "queue_mib", "request_timeout_s")
        if not getattr(settings.agent, name)
    ]
    if control.queue_discipline not in (known := queue_discipline_names()):
        why = f"queue discipline {control.queue_discipline!r} not found; available: {', '.join(known)}"
        problems.append(RejectedError(why, where="[control] queue_discipline"))
    if control.drift not in tuple(Drift):
        problems.append(RejectedError(f"must be one of {', '.join(Drift)}", where="[control] drift"))
    try:
        control.weights()
    except RejectedError as error:
        problems.append(error)
    if control.grace_period_s < control.stale_after_s:
        problems.append(RejectedError("must be at least stale_after_s", where="[control] grace_period_s"))
    if not 0 < control.unhealthy_cluster_threshold <= 1:
        problems.append(
            RejectedError("must be more than 0 and at most 1", where="[control] unhealthy_cluster_threshold")
        )
    return [
        *problems,
        *_server_errors(settings.server),
        *_cluster_errors(settings.clusters),
        *network_setting_errors(settings.network),
        *notification_errors(settings.notifications),
        *scaling_setting_errors(settings.scaling),
        *_workdir_errors(settings.workdirs),
        *_leader_errors(settings),
    ]


def _server_errors(server: ServerSettings) -> list[RejectedError]:
    """Return the errors of the server settings."""
    problems = []
    if not 0 <= server.port <= 65_535:
        problems.append(RejectedError(f"{server.port} is not a port", where="[server] port"))
    if bool(server.tls_certificate) != bool(server.tls_key):
        problems.append(RejectedError("a certificate and a key require each other", where="[server] tls_key"))
    if server.public_url and not _is_origin(server.public_url):
        text = f"{server.public_url!r} is not an address like https://seaway.example.com, without a path"
        problems.append(RejectedError(text, where="[server] public_url"))
    if server.currency and not re.fullmatch("[A-Z]{3}", server.currency):
        text = f"{server.currency!r} is not a code of three capital letters, like EUR"
        problems.append(RejectedError(text, where="[server] currency"))
    for each in names_in(server.trusted_proxies):
        try:
            ip_network(each)
        except ValueError:
            text = f"{each!r} is not an address or network, like 10.1.2.3 or 10.0.0.0/8"
            problems.append(RejectedError(text, where="[server] trusted_proxies"))
    if server.no_auth and (server.public_url or server.trusted_proxies):
        text = "everybody who can reach the proxy would be an admin: keep tokens on"
        problems.append(RejectedError(text, where="[server] no_auth"))
    return problems


def _workdir_errors(workdirs: WorkdirSettings) -> list[RejectedError]:
    """Return the errors of the settings of working directories."""
    problems = []
    if workdirs.url and not _is_origin(workdirs.url):
        text = f"{workdirs.url!r} is not an address like https://seaway.example.com, without a path"
        problems.append(RejectedError(text, where="[workdirs] url"))
    if workdirs.bucket:
        try:
            bucket_name(workdirs.bucket)
        except RejectedError as error:
            problems.append(error)
        if workdirs.limit_mib > LARGEST_MIB:
            problems.append(RejectedError(f"must be at most {LARGEST_MIB} with a bucket", where="[workdirs] limit_mib"))
    if workdirs.endpoint and not _is_origin(workdirs.endpoint):
        text = f"{workdirs.endpoint!r} is not an address like https://s3.example.com, without a path"
        problems.append(RejectedError(text, where="[workdirs] endpoint"))
    if workdirs.limit_mib > workdirs.quota_mib:
        problems.append(RejectedError("must be at most quota_mib", where="[workdirs] limit_mib"))
    return problems


def _is_origin(url: str) -> bool:
    """Report whether a URL is an origin: a scheme, a host and optionally a port."""
    try:
        parts = urlsplit(url)
        return url.rstrip("/") == f"{parts.scheme}://{parts.netloc}" and bool(
            parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
        )
    except ValueError:
        return False


MAX_USER_ID = 2**31 - 1


def cluster_facts(clusters: ClusterSettings) -> dict[str, Facts]:
    """Return the facts of clusters in the settings, by name.

    Raises
    ------
    RejectedError
        With all errors.
    """
    if not clusters.facts:
        return {}
    from seaway.wire.facts import FactsIn
    from seaway.wire.reading import read_value

    found: dict[str, Facts] = {}
    problems: list[RejectedError] = []
    for name, table in clusters.facts.items():
        try:
            found[name] = read_value(FactsIn, table).facts()
        except RejectedError as error:
            where = f"[clusters.facts.{name}]"
            problems += [RejectedError(each.message, where=f"{where} {each.where}") for each in (error, *error.also)]
    if problems:
        raise RejectedError(problems[0].message, where=problems[0].where, also=tuple(problems[1:]))
    return found


def _cluster_errors(clusters: ClusterSettings) -> list[RejectedError]:
    """Return the errors of cluster settings, such as names that real clusters would reject."""
    problems = [
        RejectedError(
            f"{name!r} is not a name of a resource, like nvidia.com/gpu", where=f"[clusters] hami.{each.name}"
        )
        for each in fields(clusters.hami)
        if not _RESOURCE.fullmatch(name := getattr(clusters.hami, each.name))
    ]
    if not clusters.volcano_memory_factor:
        problems.append(RejectedError("must be more than 0", where="[clusters] volcano_memory_factor"))
    if clusters.run_as_user > MAX_USER_ID:
        problems.append(RejectedError(f"must be at most {MAX_USER_ID}", where="[clusters] run_as_user"))
    if clusters.pod_security not in ("", *POD_SECURITY):
        problems.append(RejectedError(f"must be one of {', '.join(POD_SECURITY)}", where="[clusters] pod_security"))
    for each in names_in(clusters.egress):
        try:
            ip_network(each)
        except ValueError as error:
            problems.append(RejectedError(str(error), where="[clusters] egress"))
    named = {each: names_in(getattr(clusters, each)) for each in ("pull_secrets", "csi_drivers")}
    named |= {each: (name,) for each in ("local_queue", "volcano_queue") if (name := getattr(clusters, each))}
    problems += [
        RejectedError(f"{name!r} is not a name of an object", where=f"[clusters] {each}")
        for each, names in named.items()
        for name in names
        if not _OBJECT.fullmatch(name)
    ]
    problems += _expose_errors(clusters.expose)
    try:
        cluster_facts(clusters)
    except RejectedError as error:
        problems += [error, *error.also]
    return problems


def _expose_errors(expose: ExposeSettings) -> Iterator[RejectedError]:
    """Yield the errors of the addresses for clients outside a cluster."""
    known, types = ", ".join(ServiceType), names_in(expose.types)
    for each in types:
        if each not in tuple(ServiceType):
            yield RejectedError(f"{each!r} is not a type; use {known}", where="[clusters] expose.types")
    if expose.default not in types:
        text = f"is {expose.default!r}, which is not one of expose.types"
        yield RejectedError(text, where="[clusters] expose.default")
    elif ServiceType(expose.default).by_host and not expose.domain:
        text = f"is {expose.default}, for which expose.domain is needed"
        yield RejectedError(text, where="[clusters] expose.default")
    if expose.ring and expose.ring not in RING_TYPES:
        text = f"is {expose.ring!r}; use {', '.join(RING_TYPES)}, or leave it empty"
        yield RejectedError(text, where="[clusters] expose.ring")
    namespace, _, gateway = expose.gateway.partition("/")
    if (expose.gateway or ServiceType.HTTP_ROUTE in types) and not all(map(_OBJECT.fullmatch, (namespace, gateway))):
        text = "must be the NAMESPACE/NAME of a Gateway, for the type HTTPRoute"
        yield RejectedError(text, where="[clusters] expose.gateway")
    try:
        Expose(ServiceType.INGRESS, expose.domain)
    except RejectedError as error:
        yield RejectedError(error.message, where="[clusters] expose.domain")


POD_SECURITY = ("privileged", "baseline", "restricted")
"""Levels of the Pod Security Standards."""


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a setting, separated by ``,``."""
    return tuple(name for each in text.split(",") if (name := each.strip()))


def _leader_errors(settings: Settings) -> list[RejectedError]:
    """Return the errors of the settings of leader election."""
    leader, database = settings.leader, settings.database.url
    problems = []
    if leader.lease and database.partition(":")[0].partition("+")[0] in ("", "sqlite"):
        text = "a lease is for several processes on one database: set url to MariaDB's, MySQL's or PostgreSQL's"
        problems.append(RejectedError(text, where="[database] url"))
    if not 0 < leader.retry_period_s < leader.renew_deadline_s < leader.lease_duration_s:
        problems.append(
            RejectedError(
                "must be more than 0 and less than renew_deadline_s, which must be less than lease_duration_s",
                where="[leader] retry_period_s",
            )
        )
    return problems
