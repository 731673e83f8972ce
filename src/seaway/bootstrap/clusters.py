"""Factory of the configured clusters, simulated or real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.application.clusters import ClusterNames
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.backend import Backends
from seaway.application.ports.clock import Clock
from seaway.application.ports.templates import NO_DELIVERY, Delivery, PlainTemplates, Templates, Traits
from seaway.bootstrap.settings import ClusterSettings, cluster_facts, names_in
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import ServiceType

if TYPE_CHECKING:
    from seaway.adapters.simulated.backends import SimulatedBackends
    from seaway.adapters.simulated.client import RemoteSimulatedBackends

KUBECONFIGS = "kubeconfigs"
"""Subfolder of the data folder with kubeconfigs of `seaway cluster join`; created by the first join."""

STALE_S = ControlSettings().stale_after_s


class Kind(StrEnum):
    """Kinds of clusters."""

    SIMULATED = "simulated"
    JOINED = "joined"
    """Clusters of `seaway cluster join`."""

    SET = "set"
    """Clusters named in the settings."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters and their workload templates.

    Attributes
    ----------
    kind
        Kind of the clusters.
    close
        Releases the resources.
    """

    kind: Kind
    backends: Backends
    templates: Templates
    close: Callable[[], None]


def make_clusters(  # wiring
    settings: ClusterSettings,
    clock: Clock,
    data: Path,
    names: ClusterNames,
    stale_after_s: float = STALE_S,
    delivery: Delivery = NO_DELIVERY,
) -> Clusters:
    """Create the configured clusters.

    Parameters
    ----------
    data
        Data folder. Its kubeconfigs are used if the settings name no other clusters.
    names
        Names of real clusters.
    stale_after_s
        Seconds after which an unreachable cluster gets no new jobs. A real cluster reports the reason earlier.
    delivery
        Way in which pods of real clusters get working directories.

    Raises
    ------
    RejectedError
        If the fleet file is invalid, the journal of the clusters belongs to another fleet, the folder of kubeconfigs or
        of templates cannot be read, or a setting of real clusters is invalid.
    """
    kind = kind_of(settings, data)
    if kind is not Kind.SIMULATED:
        folder = data / KUBECONFIGS if kind is Kind.JOINED else Path(settings.kubeconfig_dir)
        return _real(settings, kind, folder, names, stale_after_s, delivery)
    from seaway.adapters.kubernetes.templates.registry import BUILT_IN

    made = _simulated(settings, clock, data)
    default = bool(settings.default_image)
    kinds = {
        name: Traits(each.purpose, each.single_cluster, each.restarts, each.ranks, each.restarts and not default)
        for name, each in BUILT_IN.items()
    }
    return Clusters(kind, made, PlainTemplates(kinds), made.close)


def kind_of(settings: ClusterSettings, data: Path) -> Kind:
    """Return the kind of clusters: those in the settings, else joined ones, else simulated ones.

    After the first join, clusters are never simulated, even if all clusters left.
    """
    if settings.karmada.kubeconfig or settings.kubeconfig_dir:
        return Kind.SET
    simulated = settings.simulated_url or settings.fleet != ClusterSettings().fleet
    return Kind.JOINED if not simulated and (data / KUBECONFIGS).is_dir() else Kind.SIMULATED


def _simulated(settings: ClusterSettings, clock: Clock, data: Path) -> SimulatedBackends | RemoteSimulatedBackends:
    if settings.simulated_url:
        from seaway.adapters.simulated.client import RemoteSimulatedBackends

        return RemoteSimulatedBackends(settings.simulated_url)
    from seaway.adapters.simulated.backends import SimulatedBackends
    from seaway.adapters.simulated.faults import Options

    faults = make_faults(settings.fault_seed) if settings.fault_seed else NO_FAULTS
    journals = data / "clusters"
    journals.mkdir(parents=True, exist_ok=True)
    options = Options(faults=faults, start_delay_s=settings.start_delay_s, measures=True)
    return SimulatedBackends(read_fleet(settings.fleet), clock, options, journals)


def _real(
    settings: ClusterSettings,
    kind: Kind,
    folder: Path,
    names: ClusterNames,
    stale_after_s: float,
    delivery: Delivery,
) -> Clusters:
    from seaway.adapters.kubernetes.backends import KubernetesBackends
    from seaway.adapters.kubernetes.cluster import ClusterOptions
    from seaway.adapters.kubernetes.collect.changes import Limits
    from seaway.adapters.kubernetes.connection.credentials import load_library
    from seaway.adapters.kubernetes.device_plugins.views import PluginOptions as Named
    from seaway.adapters.kubernetes.karmada import KarmadaBackends
    from seaway.adapters.kubernetes.templates.catalog import TemplateCatalog
    from seaway.adapters.kubernetes.templates.context import Exposure
    from seaway.adapters.kubernetes.templates.namespace_objects import (
        BASELINE,
        RESTRICTED,
        NamespaceOptions,
        read_tenants,
    )
    from seaway.adapters.kubernetes.templates.namespaces import PLACEHOLDER, Namespaces
    from seaway.adapters.kubernetes.templates.runtime import Mounting
    from seaway.adapters.kubernetes.templates.safety import Rules
    from seaway.adapters.kubernetes.usage.measured import WHERE as EXPORTERS
    from seaway.adapters.kubernetes.usage.measured import read_exporters
    from seaway.adapters.kubernetes.usage.scraping import Scraping

    load_library()
    own = Path(settings.templates_dir) if settings.templates_dir else None
    namespaces = Namespaces(settings.namespace, names_in(settings.former_namespaces) or None)
    rules = Rules(namespaces=frozenset(namespaces.templates))
    given = settings.expose
    exposure = Exposure(
        tuple(map(ServiceType, names_in(given.types))),
        ServiceType(given.default),
        given.domain,
        given.https,
        given.ingress_class,
        given.gateway,
        given.ring,
    )
    mounting = Mounting(names_in(settings.csi_drivers), PLACEHOLDER not in settings.namespace, delivery)
    offer = TemplateCatalog(
        own,
        rules,
        through_karmada=bool(settings.karmada.kubeconfig),
        default_image=settings.default_image,
        exposure=exposure,
        mounting=mounting,
    )
    hami = settings.hami
    exporters = read_exporters(settings.usage.exporters)
    if taken := sorted({each.namespace for each in exporters if namespaces.matches(each.namespace)}):
        raise RejectedError(f"jobs run in namespace {taken[0]!r}, whose pods are not to be trusted", where=EXPORTERS)
    loose = any(each.loosens_pods for each in offer.templates.values())
    namespace_options = NamespaceOptions(
        settings.pod_security or (BASELINE if loose else RESTRICTED),
        settings.network_policies,
        (
            *(ip_network(each) for each in names_in(settings.egress)),
            *addresses_of(delivery.url),
            *addresses_of(delivery.bucket_url),
        ),
        read_tenants(Path(settings.tenants_dir)) if settings.tenants_dir else {},
    )
    cluster_options = ClusterOptions(
        namespaces,
        settings.request_timeout_s,
        templates=offer.templates,
        default_image=settings.default_image,
        pull_secrets=names_in(settings.pull_secrets),
        hami_scheduler=settings.hami_scheduler,
        local_queue=settings.local_queue,
        volcano_queue=settings.volcano_queue,
        run_as_user=settings.run_as_user,
        plugin_options=Named(
            hami.resource_name,
            hami.resource_mem,
            hami.resource_mem_percentage,
            hami.resource_cores,
            settings.volcano_memory_factor,
        ),
        limits=Limits.within(
            stale_after_s,
            pod_start_timeout_s=settings.pod_start_timeout_s,
            unschedulable_timeout_s=settings.unschedulable_timeout_s,
        ),
        known=cluster_facts(settings),
        scraping=Scraping(settings.usage.interval_s, exporters),
        namespace_options=namespace_options,
        exposure=exposure,
        mounting=mounting,
    )
    made: KarmadaBackends | KubernetesBackends
    if settings.karmada.kubeconfig:
        made = KarmadaBackends(Path(settings.karmada.kubeconfig), cluster_options)
    else:
        made = KubernetesBackends(folder, cluster_options, names=names)
    return Clusters(kind, made, offer, made.close)


def addresses_of(url: str) -> list[IPv4Network | IPv6Network]:
    """Return the address of a URL as a network, which pods may then connect to; none for a host name."""
    try:
        return [ip_network(urlsplit(url).hostname or "")]
    except ValueError:
        return []


def make_faults(seed: int) -> Faults:
    """Return fault rates at which each kind of fault occurs within an hour and jobs still complete."""
    return Faults(
        seed=seed,
        refused=0.01,
        slow=0.05,
        slow_s=20,
        start_fails=0.01,
        run_fails=0.02,
        vanishes=0.01,
        request_lost=0.01,
        answer_lost=0.01,
        node_failures_per_h=0.05,
        device_failures_per_h=0.02,
        outages_per_h=0.5,
    )


def read_fleet(text: str) -> Fleet:
    """Return a fleet by name: ``demo``, or the path of a file.

    Raises
    ------
    RejectedError
        If the file is missing or invalid; names the position.
    """
    if text == "demo":
        from seaway.simulation.demo import demo_fleet

        return demo_fleet()
    from seaway.wire.fleet_yaml import read_fleet_yaml

    return read_fleet_yaml(Path(text))
