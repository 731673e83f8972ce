"""Options of Kubernetes clusters, with or without Karmada."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import REQUEST_TIMEOUT_S
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.device_plugins.views import Access
from seaway.adapters.kubernetes.device_plugins.views import PluginOptions as Named
from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, Templates
from seaway.adapters.kubernetes.usage.scraping import Scraping
from seaway.domain.cluster import Cluster


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of Kubernetes clusters.

    Attributes
    ----------
    namespace
        Namespace of Seaway's objects.
    request_timeout_s
        Timeout of calls to an API server.
    known
        Configured properties of clusters that clusters do not report, by name: gateway, region, price.
    templates
        Templates of the objects that a job creates.
    default_image, pull_secrets, hami_scheduler, local_queue, volcano_queue
        Values for the objects, as in `TemplateOptions`.
    plugin_options
        Custom names of annotations and labels of vGPU device plugins.
    limits
        Time limits of views.
    scraping
        Settings for reading measured GPU use.
    """

    namespace: str = "seaway"
    request_timeout_s: float = REQUEST_TIMEOUT_S
    known: Mapping[str, Cluster] = field(default_factory=dict)
    templates: Templates = field(default_factory=lambda: BUILT_IN)
    default_image: str = ""
    pull_secrets: tuple[str, ...] = ()
    hami_scheduler: str = ""
    local_queue: str = ""
    volcano_queue: str = ""
    plugin_options: Named = field(default_factory=Named)
    limits: Limits = field(default_factory=Limits)
    scraping: Scraping = field(default_factory=Scraping)

    def cluster(self, name: str, region: str = "") -> Cluster:
        """Return a cluster without its nodes; `region` is the region that the cluster reports."""
        known = self.known.get(name, Cluster(name))
        return replace(known, name=name, region=known.region or region, nodes=())

    def view(self, cluster: Cluster, health: Health, event_loop: EventLoopThread) -> ClusterView:
        """Return an empty view of a cluster."""
        return ClusterView(cluster, health, event_loop.call_later, self.limits, self.namespace, self.plugin_options)

    def template_options(self, view: ClusterView) -> TemplateOptions:
        """Return the template options of a cluster."""

        def access(node: str, uuid: str) -> Access | None:
            known = view.node(node)
            return known.by_uuid.get(uuid) if known else None

        return TemplateOptions(
            access,
            namespace=self.namespace,
            hostname=view.hostname,
            pull_secrets=self.pull_secrets,
            default_image=self.default_image,
            hami_scheduler=self.hami_scheduler,
            local_queue=self.local_queue,
            volcano_queue=self.volcano_queue,
        )
