"""Settings: defaults, then a TOML file, then the environment, then flags; read once, every mistake told together.

A file has a table for each concern, and the environment a variable for each setting::

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
from seaway.application.control.settings import ControlSettings
from seaway.bootstrap.bandwidth import NetworkSettings, wrong_network
from seaway.domain.errors import RejectedError

PREFIX = "SEAWAY_"

_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_RESOURCE = re.compile(_OBJECT.pattern + r"/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""What Kubernetes takes for names of objects and of resources."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The REST API.

    Attributes
    ----------
    host, port
        Where it listens.
    tls_certificate, tls_key
        Paths of PEM files; both or neither.
    no_auth
        Whether everybody is an admin; only on loopback.
    body_limit_bytes
        The largest body of a request.
    web
        Whether pages for people are served beside the API.
    public_url
        Where people reach it, when that is not where it listens: a proxy's address; empty for none.
    trusted_proxies
        Addresses and networks of proxies that are believed from where, and by which scheme, a request came to them;
        with ``,`` between.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tls_certificate: str = ""
    tls_key: str = ""
    no_auth: bool = False
    body_limit_bytes: int = 1_048_576
    web: bool = True
    public_url: str = ""
    trusted_proxies: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where everything is kept, and for how long.

    Attributes
    ----------
    url
        The database; empty for SQLite in the data folder.
    keep_jobs_days, keep_audit_days, keep_samples_days, keep_keys_days
        After how many days jobs that are over, audit entries, samples and idempotency keys are removed.
    prune_every_h
        How often that is looked after; 0 for never.
    backup_every_h
        How old the newest backup in the data folder grows before another is written there; 0 for never.
    backups_kept
        How many of those are kept; 0 for all.
    """

    url: str = ""
    keep_jobs_days: int = 30
    keep_audit_days: int = 365
    keep_samples_days: int = 30
    keep_keys_days: int = 2
    prune_every_h: int = 1
    backup_every_h: int = 24
    backups_kept: int = 7


@dataclass(frozen=True, slots=True)
class KarmadaSettings:
    """A Karmada control plane.

    Attributes
    ----------
    kubeconfig
        Of the control plane, its current context; empty for none.
    """

    kubeconfig: str = ""


@dataclass(frozen=True, slots=True)
class HamiSettings:
    """What HAMi calls the resources of NVIDIA's cards, where its Helm chart was told other names than usual.

    Attributes
    ----------
    resource_name, resource_mem, resource_mem_percentage, resource_cores
        As the chart's values ``resourceName``, ``resourceMem``, ``resourceMemPercentage`` and ``resourceCores``.
    """

    resource_name: str = "nvidia.com/gpu"
    resource_mem: str = "nvidia.com/gpumem"
    resource_mem_percentage: str = "nvidia.com/gpumem-percentage"
    resource_cores: str = "nvidia.com/gpucores"


@dataclass(frozen=True, slots=True)
class UsageSettings:
    """What is really used of devices.

    Attributes
    ----------
    every_s
        How often that is read; 0 for never.
    exporters
        Which pods tell it: labels and port, and a namespace where it is known; several with ``;`` between.
    """

    every_s: float = 0
    exporters: str = (
        "app.kubernetes.io/component=hami-device-plugin:9394; app.kubernetes.io/name=dcgm-exporter:9400; "
        "app=nvidia-dcgm-exporter:9400"
    )


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The clusters.

    Attributes
    ----------
    fleet
        Simulated clusters: ``demo``, or the path of a fleet file.
    simulated_url
        Simulated clusters of another process, instead; see `seaway simulate serve`.
    start_delay_s
        How long a copy takes to start in a simulated cluster.
    fault_seed
        With which seed things go wrong at random in simulated clusters; 0 for never.
    kubeconfig_dir
        Real clusters: a folder of kubeconfigs. Empty for ``kubeconfigs`` in the data folder, where
        `seaway cluster join` puts them; simulated clusters where none was ever joined.
    karmada
        Real clusters: the members of a Karmada control plane.
    namespace
        Where Seaway's objects go in real clusters.
    call_s
        How long a call to a real cluster's API server may take.
    refused_s
        How long no node of a real cluster takes a pod before that counts as a refusal.
    stuck_s
        How long a pod may hold devices that cannot start until somebody mends it, as when its image cannot be
        pulled, before its attempt fails.
    hami_scheduler
        Name of HAMi's scheduler in real clusters, to be set on pods with its devices; empty leaves that to HAMi's
        webhook.
    hami
        What HAMi calls its resources in real clusters.
    volcano_memory_factor
        MiB in one unit of device memory of Volcano's vGPU in real clusters.
    default_image
        For jobs that name none; without it those are rejected.
    pull_secrets
        Secrets in the namespace by which real clusters pull images, with ``,`` between.
    local_queue
        Kueue's LocalQueue for all jobs of the template ``kueue``; empty for one named like the job's queue.
    volcano_queue
        Volcano's Queue for all jobs of the template ``volcanojob``; empty for its default.
    templates_dir
        A folder of your own templates; empty for none.
    usage
        What is really used of devices in real clusters.
    """

    fleet: str = "demo"
    simulated_url: str = ""
    start_delay_s: float = 1
    fault_seed: int = 0
    kubeconfig_dir: str = ""
    karmada: KarmadaSettings = field(default_factory=KarmadaSettings)
    namespace: str = "seaway"
    call_s: float = 10
    refused_s: float = 5
    stuck_s: float = 300
    hami_scheduler: str = ""
    hami: HamiSettings = field(default_factory=HamiSettings)
    volcano_memory_factor: int = 1
    default_image: str = ""
    pull_secrets: str = ""
    local_queue: str = ""
    volcano_queue: str = ""
    templates_dir: str = ""
    usage: UsageSettings = field(default_factory=UsageSettings)


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """Bearer tokens of an OpenID Connect provider; off without an issuer.

    Attributes
    ----------
    issuer, audience, jwks, name_claim, role_claim, tenant_claim, roles, leeway_s
        As in `seaway.adapters.oidc.OidcSettings`.
    client_id, client_secret, redirect, scopes
        As in `seaway.web.provider.ProviderSettings`; without a client nobody logs in there.
    """

    issuer: str = ""
    audience: str = ""
    jwks: str = ""
    name_claim: str = "sub"
    role_claim: str = "seaway_role"
    tenant_claim: str = "seaway_tenant"
    roles: dict[str, str] = field(default_factory=dict)
    leeway_s: int = 30
    client_id: str = ""
    client_secret: str = ""
    redirect: str = ""
    scopes: str = "openid profile"


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Trained policies.

    Attributes
    ----------
    trusted_keys
        A file of public keys, one a line, by which brought policies have to be signed; empty takes every policy.
    shadow_jobs
        So many jobs a trained policy decides in a queue's shadow before it may decide for the queue; 0 for none.
    fall_back
        The policy that decides where a trained one does not.
    budget_ms
        How long a trained policy may take for a decision; 0 for any time.
    strikes, set_aside_s
        After how many slow or failed decisions in a row it is not asked any more, and for how long.
    profiles_dir
        A folder of profile files, each a policy that queues may have; empty for none.
    """

    trusted_keys: str = ""
    shadow_jobs: int = 100
    fall_back: str = "seaway"
    budget_ms: float = 5
    strikes: int = 5
    set_aside_s: float = 30
    profiles_dir: str = ""


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Which of several processes on one database runs the control plane; off without a lease.

    Attributes
    ----------
    lease
        Name of the Lease that says it.
    namespace
        Where it is; empty for the namespace of the pod, or ``seaway`` outside of one.
    kubeconfig
        Of the cluster where it is; empty for the service account of the pod.
    pod
        Name of the pod that this runs in, in that namespace, to be marked while it leads; empty for none.
    lease_s
        How long a Lease holds that nobody renews.
    renew_s
        How long after its last renewal the leader stops; less than `lease_s`.
    retry_s
        Pause between two tries to get or renew it.
    """

    lease: str = ""
    namespace: str = ""
    kubeconfig: str = ""
    pod: str = ""
    lease_s: int = 15
    renew_s: float = 10
    retry_s: float = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    server: ServerSettings = field(default_factory=ServerSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    clusters: ClusterSettings = field(default_factory=ClusterSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    control: ControlSettings = field(default_factory=ControlSettings)
    policies: PolicySettings = field(default_factory=PolicySettings)
    oidc: IdentitySettings = field(default_factory=IdentitySettings)
    leader: LeaderSettings = field(default_factory=LeaderSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)

    @property
    def body_limit_bytes(self) -> int:
        """The largest body of a request."""
        return self.server.body_limit_bytes


SECTIONS: dict[str, type[Any]] = get_type_hints(Settings)


def kinds(section: type[Any]) -> dict[str, type[Any]]:
    """Return the type of each setting of a section by its name, which is ``table.name`` in a table of the section."""
    found: dict[str, type[Any]] = {}
    for name, kind in get_type_hints(section).items():
        if isinstance(kind, type) and is_dataclass(kind):
            found |= {f"{name}.{each}": of for each, of in kinds(kind).items()}
        else:
            found[name] = kind
    return found


KINDS = {section: kinds(kind) for section, kind in SECTIONS.items()}
"""The type of every setting, by section and name."""


GENERAL = {"SEAWAY_SERVER": ("agent", "server")}
"""Variables of commands that have no settings: what they are for those that have, when nothing more special is set."""


def variable(section: str, name: str) -> str:
    """Return what a setting is called in the environment."""
    return f"{PREFIX}{section}_{name}".upper().replace(".", "_")


def load_settings(
    path: Path | None, environment: Mapping[str, str], flags: Mapping[tuple[str, str], object]
) -> Settings:
    """Put settings together.

    Parameters
    ----------
    path
        A TOML file; None for none.
    environment
        Variables, of which those are read that begin with `PREFIX` and a section's name.
    flags
        What was given on the command line, by section and name; None there was not given.

    Raises
    ------
    RejectedError
        With every mistake: unknown names, values of the wrong kind or out of range.
    """
    return trace_settings(path, environment, flags)[0]


def trace_settings(
    path: Path | None, environment: Mapping[str, str], flags: Mapping[tuple[str, str], object]
) -> tuple[Settings, dict[tuple[str, str], str]]:
    """Put settings together like `load_settings`; say too where each comes from that is not a default."""
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
    problems += _out_of_range(settings)
    if problems:
        raise RejectedError(problems[0].message, where=problems[0].where, also=tuple(problems[1:]))
    return settings, sources


T = TypeVar("T")

Given = tuple[str, str, object, str]
"""Section, name, value, and where it stands."""


def _put(values: T, name: str, value: object) -> T:
    """Replace one setting."""
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
            problems.append(RejectedError(f"[{section}] has to be a table", where=str(path)))
            continue
        for name, value in _flat(table, KINDS[section]):
            if _known(name, KINDS[section], "setting", f"{path}: [{section}]", problems):
                given.append((section, name, value, f"{path}: [{section}] {name}"))
    return given


def _flat(table: Mapping[str, object], names: Iterable[str]) -> Iterator[tuple[str, object]]:
    """Yield what a section has; what is in a table within it as ``table.name``."""
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
    return given


def _known(name: str, names: Mapping[str, object], kind: str, where: str, problems: list[RejectedError]) -> bool:
    if name in names:
        return True
    near = get_close_matches(name, list(names), 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
    problems.append(RejectedError(f"unknown {kind} {name!r}; {hint}", where=where))
    return False


def _as(kind: type[Any], value: object) -> object:
    """Read a value as a setting's type; text, as the environment has it, is read the way TOML would."""
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} has to be true or false")
        return value
    if kind in {int, float}:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{value!r} has to be a number")
        try:
            return kind(value) if not (kind is int and isinstance(value, float)) else _whole(value)
        except ValueError:
            raise ValueError(f"{value!r} has to be a {'whole ' if kind is int else ''}number") from None
    if kind is str and not isinstance(value, str):
        raise ValueError(f"{value!r} has to be text")
    if kind is not str and not isinstance(value, dict):
        raise ValueError(f"{value!r} has to be a table")
    return value


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError("not whole")
    return int(value)


def _out_of_range(settings: Settings) -> list[RejectedError]:
    """Find figures that make no sense."""
    problems = []
    for section, names in KINDS.items():
        for name in names:
            value = attrgetter(name)(getattr(settings, section))
            if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value < 2**53:
                problems.append(RejectedError(f"{value} is out of range", where=f"[{section}] {name}"))
    control = settings.control
    problems += [
        RejectedError("has to be more than 0", where=f"[control] {name}")
        for name in ("batch", "most_tried", "assume_s", "poll_s", "grace_s", "stale_s", "sample_s", "network_breach_s")
        if not getattr(control, name)
    ]
    problems += [
        RejectedError("has to be more than 0", where=f"[agent] {name}")
        for name in ("refresh_s", "queue_rounds", "queue_mib", "call_s")
        if not getattr(settings.agent, name)
    ]
    if control.grace_s < control.stale_s:
        problems.append(RejectedError("has to be at least stale_s", where="[control] grace_s"))
    if not 0 < control.halt_share <= 1:
        problems.append(RejectedError("has to be more than 0 and at most 1", where="[control] halt_share"))
    return [
        *problems,
        *_wrong_server(settings.server),
        *_wrong_clusters(settings.clusters),
        *wrong_network(settings.network),
        *_wrong_leader(settings),
    ]


def _wrong_server(server: ServerSettings) -> list[RejectedError]:
    """Find what nobody could reach, or what too many could."""
    problems = []
    if not 0 <= server.port <= 65_535:
        problems.append(RejectedError(f"{server.port} is no port", where="[server] port"))
    if bool(server.tls_certificate) != bool(server.tls_key):
        problems.append(RejectedError("a certificate and its key go together", where="[server] tls_key"))
    if server.public_url and not _is_origin(server.public_url):
        text = f"{server.public_url!r} is no address like https://seaway.example.com, without a path"
        problems.append(RejectedError(text, where="[server] public_url"))
    for each in names_in(server.trusted_proxies):
        try:
            ip_network(each)
        except ValueError:
            text = f"{each!r} is no address or network, like 10.1.2.3 or 10.0.0.0/8"
            problems.append(RejectedError(text, where="[server] trusted_proxies"))
    if server.no_auth and (server.public_url or server.trusted_proxies):
        text = "everybody who reaches the proxy would be an admin: leave tokens on"
        problems.append(RejectedError(text, where="[server] no_auth"))
    return problems


def _is_origin(url: str) -> bool:
    """Tell whether a URL has a scheme, a host, perhaps a port, and nothing more."""
    try:
        parts = urlsplit(url)
        return url.rstrip("/") == f"{parts.scheme}://{parts.netloc}" and bool(
            parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
        )
    except ValueError:
        return False


def _wrong_clusters(clusters: ClusterSettings) -> list[RejectedError]:
    """Find what real clusters would not take."""
    problems = [
        RejectedError(f"{name!r} is no name of a resource, like nvidia.com/gpu", where=f"[clusters] hami.{each.name}")
        for each in fields(clusters.hami)
        if not _RESOURCE.fullmatch(name := getattr(clusters.hami, each.name))
    ]
    if not clusters.volcano_memory_factor:
        problems.append(RejectedError("has to be more than 0", where="[clusters] volcano_memory_factor"))
    named = {"pull_secrets": names_in(clusters.pull_secrets)}
    named |= {each: (name,) for each in ("local_queue", "volcano_queue") if (name := getattr(clusters, each))}
    problems += [
        RejectedError(f"{name!r} is no name of an object", where=f"[clusters] {each}")
        for each, names in named.items()
        for name in names
        if not _OBJECT.fullmatch(name)
    ]
    return problems


def names_in(text: str) -> tuple[str, ...]:
    """Return the names of a setting that has several, with ``,`` between."""
    return tuple(name for each in text.split(",") if (name := each.strip()))


def _wrong_leader(settings: Settings) -> list[RejectedError]:
    """Find what would keep processes from taking turns."""
    leader, database = settings.leader, settings.database.url
    problems = []
    if leader.lease and database.partition(":")[0].partition("+")[0] in ("", "sqlite"):
        text = "a lease is for several processes on one database: set url to MariaDB's, MySQL's or PostgreSQL's"
        problems.append(RejectedError(text, where="[database] url"))
    if not 0 < leader.retry_s < leader.renew_s < leader.lease_s:
        problems.append(
            RejectedError("has to be above 0, below renew_s, and that below lease_s", where="[leader] retry_s")
        )
    return problems
