"""Methods of both clients: each makes a described call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from seaway.client.call import Call, Paged, as_method
from seaway.client.calls import fleet as fleet_calls
from seaway.client.calls import jobs as job_calls
from seaway.client.calls import joins as join_calls
from seaway.client.calls import network as network_calls
from seaway.client.calls import notifications as notification_calls
from seaway.client.calls import policies as policy_calls
from seaway.client.calls import queues as queue_calls
from seaway.client.calls import service as service_calls
from seaway.client.calls import tenancy as tenancy_calls
from seaway.client.calls import workdirs as workdir_calls

P = ParamSpec("P")
T = TypeVar("T")
Answer_co = TypeVar("Answer_co", covariant=True)


class Sender(Protocol):
    """Client that waits for answers."""

    def send(self, call: Call[T]) -> T:
        """Make a call, and read its answer."""

    def each(self, paged: Paged[T]) -> Iterator[T]:
        """Iterate over a list, page by page, up to its limit."""


class AsyncSender(Protocol):
    """Client with answers to await."""

    async def send(self, call: Call[T]) -> T:
        """Make a call, and read its answer."""

    def each(self, paged: Paged[T]) -> AsyncIterator[T]:
        """Iterate over a list, page by page, up to its limit."""


class Method(Protocol[P, Answer_co]):
    """Method for one answer."""

    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[P, Answer_co]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, Coroutine[Any, Any, Answer_co]]: ...


class PagesMethod(Protocol[P, Answer_co]):
    """Method for a list."""

    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[P, Iterator[Answer_co]]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, AsyncIterator[Answer_co]]: ...


def verb(describe: Callable[P, Call[T]]) -> Method[P, T]:
    """Return a method that makes a described call: it returns the answer, or a coroutine with an `AsyncSender`."""

    def method(self: Sender, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(describe(*args, **kwargs))

    return cast("Method[P, T]", as_method(method, describe))


def pages(describe: Callable[P, Paged[T]]) -> PagesMethod[P, T]:
    """Return a method that iterates over a described list, and fetches pages as needed."""

    def method(self: Sender, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.each(describe(*args, **kwargs))

    return cast("PagesMethod[P, T]", as_method(method, describe))


class Methods:
    """Methods that both clients have, by the resource that they serve."""

    # Jobs
    submit = verb(job_calls.submit)
    dry_run = verb(job_calls.dry_run)
    job = verb(job_calls.job)
    jobs = pages(job_calls.jobs)
    submit_batch = verb(job_calls.submit_batch)
    dry_run_batch = verb(job_calls.dry_run_batch)
    workflow = verb(job_calls.workflow)
    tasks = pages(job_calls.tasks)
    retry = verb(job_calls.retry)
    count = verb(job_calls.count)
    groups = verb(job_calls.groups)
    unused_gpus = verb(job_calls.unused_gpus)
    saved_filters = verb(job_calls.saved_filters)
    put_saved_filter = verb(job_calls.put_saved_filter)
    delete_saved_filter = verb(job_calls.delete_saved_filter)
    update = verb(job_calls.update)
    cancel = verb(job_calls.cancel)
    suspend = verb(job_calls.suspend)
    resume = verb(job_calls.resume)
    failover = verb(job_calls.failover)
    renew = verb(job_calls.renew)
    delete = verb(job_calls.delete)
    explain = verb(job_calls.explain)
    events = pages(job_calls.events)
    attempts = verb(job_calls.attempts)
    manifest = verb(job_calls.manifest)
    cost = verb(job_calls.cost)
    gpu_use = verb(job_calls.gpu_use)
    logs = verb(job_calls.logs)
    normalised = verb(job_calls.normalised)
    workdirs = verb(workdir_calls.workdirs)
    complete_workdir = verb(workdir_calls.complete_workdir)
    send_workdir_part = verb(workdir_calls.send_workdir_part)
    get_workdir = verb(workdir_calls.get_workdir)
    delete_workdir = verb(workdir_calls.delete_workdir)

    # Fleet
    clusters = verb(fleet_calls.clusters)
    cluster = verb(fleet_calls.cluster)
    set_cluster = verb(fleet_calls.set_cluster)
    remove_cluster = verb(fleet_calls.remove_cluster)
    nodes = pages(fleet_calls.nodes)
    devices = pages(fleet_calls.devices)
    slices = pages(fleet_calls.slices)
    fleet_map = verb(fleet_calls.fleet_map)
    metrics = verb(fleet_calls.metrics)
    links = verb(fleet_calls.links)
    measured_links = verb(fleet_calls.measured_links)
    gateways = verb(fleet_calls.gateways)
    cluster_history = pages(fleet_calls.cluster_history)
    fleet_events = verb(fleet_calls.fleet_events)
    usage_history = verb(fleet_calls.usage_history)
    link_history = pages(fleet_calls.link_history)
    link_steps = verb(fleet_calls.link_steps)
    cordons = verb(fleet_calls.cordons)
    cordon = verb(fleet_calls.cordon)
    drain = verb(fleet_calls.drain)
    uncordon = verb(fleet_calls.uncordon)
    orphans = verb(fleet_calls.orphans)
    remove_orphans = verb(fleet_calls.remove_orphans)

    # Network
    network = verb(network_calls.network)
    put_network = verb(network_calls.put_network)
    delete_network = verb(network_calls.delete_network)
    agents = verb(network_calls.agents)

    # Queues, pools, tenants, policies
    queues = verb(queue_calls.queues)
    queue = verb(queue_calls.queue)
    put_queue = verb(queue_calls.put_queue)
    delete_queue = verb(queue_calls.delete_queue)
    queue_usage = verb(queue_calls.queue_usage)
    waiting = pages(queue_calls.waiting)
    schedule = verb(queue_calls.schedule)
    pools = verb(tenancy_calls.pools)
    pool = verb(tenancy_calls.pool)
    put_pool = verb(tenancy_calls.put_pool)
    reservations = verb(tenancy_calls.reservations)
    create_reservation = verb(tenancy_calls.create_reservation)
    put_reservation = verb(tenancy_calls.put_reservation)
    delete_reservation = verb(tenancy_calls.delete_reservation)
    delete_pool = verb(tenancy_calls.delete_pool)
    tenants = verb(tenancy_calls.tenants)
    tenant = verb(tenancy_calls.tenant)
    put_tenant = verb(tenancy_calls.put_tenant)
    delete_tenant = verb(tenancy_calls.delete_tenant)
    policies = verb(policy_calls.policies)
    policy = verb(policy_calls.policy)
    import_policy = verb(policy_calls.import_policy)
    export_policy = verb(policy_calls.export_policy)
    evaluations = verb(policy_calls.evaluations)
    evaluation = verb(policy_calls.evaluation)
    put_evaluation = verb(policy_calls.put_evaluation)
    delete_evaluation = verb(policy_calls.delete_evaluation)
    delete_policy = verb(policy_calls.delete_policy)
    activate_policy = verb(policy_calls.activate_policy)
    shadows = pages(queue_calls.shadows)

    # Joins of clusters
    joins = verb(join_calls.joins)
    join = verb(join_calls.join)
    begin_join = verb(join_calls.begin_join)
    finish_join = verb(join_calls.finish_join)
    drop_join = verb(join_calls.drop_join)
    leave_cluster = verb(join_calls.leave_cluster)

    # Notifications
    notifications = verb(notification_calls.notifications)
    notification = verb(notification_calls.notification)
    put_notification = verb(notification_calls.put_notification)
    delete_notification = verb(notification_calls.delete_notification)
    try_notification = verb(notification_calls.try_notification)
    deliveries = pages(notification_calls.deliveries)
    resend = verb(notification_calls.resend)
    drop_deliveries = verb(notification_calls.drop_deliveries)

    # Access
    me = verb(service_calls.me)
    tokens = verb(service_calls.tokens)
    create_token = verb(service_calls.create_token)
    revoke_token = verb(service_calls.revoke_token)
    audit = pages(service_calls.audit)
    users = verb(service_calls.users)
    identity_provider = verb(service_calls.identity_provider)

    # Service
    health = verb(service_calls.health)
    ready = verb(service_calls.ready)
    alerts = verb(service_calls.alerts)
    acknowledge = verb(service_calls.acknowledge)
    whatif = verb(service_calls.whatif)
    move_jobs = verb(service_calls.move_jobs)
