"""Anything that files say is what the fleet and the jobs become; what they say wrongly is rejected in one line."""

from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.network import NetworkNeed
from seaway.simulation.swf import read_swf
from seaway.simulation.trace import Trace, TraceFiles, read_trace, requested_milli, shuffled, write_trace
from seaway.wire.whatif_trace import trace_of

NODES = """cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib
east,n0,32000,131072,2,L4,24576
west,n0,16000,65536,1,T4,15360
"""
JOBS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib,user_gateway,max_latency_us,max_loss
serve,2000,4096,1,300,8192,gw-3,20000,0.01
build,8000,8192,0,0,0,,0,0
"""
LINKS = """source,target,latency_us,jitter_us,loss,bandwidth_mbps
gw-1,gw-2,9000,100,0,10000
gw-3,gw-1,5000,200,0.002,1000
gw-2,gw-3,40000,300,0.01,500
"""
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,G2\nn1,64000,262144,2,P100\n"
OPENB_JOBS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time
a,12000,16384,1,460,,100,160,110
b,4000,8192,2,1000,G2|P100,50,90,
c,4000,8192,0,0,,70,,
"""


def trace(tmp_path: Path, **texts: str) -> Trace:
    """Write files and read them as a trace."""
    files = {}
    for name, text in texts.items():
        files[name] = tmp_path / f"{name}.csv"
        files[name].write_text(text)
    return read_trace(TraceFiles(**files))


def said(tmp_path: Path, **texts: str) -> str:
    """Return the line with which a trace is rejected, without the folder."""
    with pytest.raises(RejectedError) as caught:
        trace(tmp_path, **texts)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_the_columns_of_openb_make_one_cluster_where_cores_stand_for_memory(tmp_path: Path) -> None:
    """Where a trace gives thousandths of a device alone, they count as its memory too."""
    openb = trace(tmp_path, nodes=OPENB_NODES, jobs=OPENB_JOBS)
    (cluster,) = openb.fleet.clusters
    device = cluster.nodes[1].devices[1]
    assert (device.uuid, device.model, device.memory_mib, device.core_milli) == ("n1/1", "P100", 1000, 1000)
    request = openb.jobs[0].demand.request
    assert (request.gpus, request.gpu_milli, request.gpu_memory_mib) == (1, 460, 460)
    assert openb.jobs[1].demand.devices.models == {"G2", "P100"}
    assert openb.mix == openb.jobs


def test_a_job_runs_from_when_it_was_scheduled_until_it_was_deleted(tmp_path: Path) -> None:
    """Times of openb become arrival and duration, waiting left out; without an end a job stays."""
    jobs = trace(tmp_path, nodes=OPENB_NODES, jobs=OPENB_JOBS).jobs
    assert [(job.arrives_s, job.expected_duration_s) for job in jobs] == [(100, 50), (50, 40), (70, None)]


def test_clusters_stand_behind_gateways_by_their_number(tmp_path: Path) -> None:
    """The k-th cluster is behind gw-k, and a link counts both ways."""
    fleet = trace(tmp_path, nodes=NODES, jobs=JOBS, links=LINKS).fleet
    assert [(cluster.name, cluster.gateway) for cluster in fleet.clusters] == [
        ("east", "gw-1"),
        ("west", "gw-2"),
    ]
    ways = {(link.source, link.target): link for link in fleet.links}
    assert len(ways) == 6
    assert ways["gw-1", "gw-3"].latency_ns == ways["gw-3", "gw-1"].latency_ns == 5_000_000
    assert ways["gw-3", "gw-1"].loss_ppm == 2_000


def test_the_way_back_may_differ(tmp_path: Path) -> None:
    """A link given in both directions keeps what each line says."""
    fleet = trace(tmp_path, nodes=NODES, jobs=JOBS, links=LINKS + "gw-1,gw-3,7000,0,0,10\n").fleet
    ways = {(link.source, link.target): link.latency_ns for link in fleet.links}
    assert (ways["gw-3", "gw-1"], ways["gw-1", "gw-3"]) == (5_000_000, 7_000_000)


def test_a_column_overrides_the_rule_for_gateways(tmp_path: Path) -> None:
    """Nodes may name their cluster's gateway; an empty cell means that there is none."""
    nodes = "cluster,node,cpu_milli,memory_mib,gpu,gpu_memory_mib,gateway\ne,n0,1,1,1,9,gw-3\nw,n0,1,1,1,9,\n"
    fleet = trace(tmp_path, nodes=nodes, jobs=JOBS, links=LINKS).fleet
    assert [cluster.gateway for cluster in fleet.clusters] == ["gw-3", ""]


def test_network_needs_come_with_units(tmp_path: Path) -> None:
    """Microseconds become nanoseconds and fractions parts per million; 0 sets no bound."""
    serve, build = trace(tmp_path, nodes=NODES, jobs=JOBS, links=LINKS).jobs
    assert serve.demand.network == NetworkNeed(max_latency_ns=20_000_000, max_loss_ppm=10_000)
    assert (serve.demand.gateway, build.demand.gateway) == ("gw-3", "")


def test_devices_of_equally_named_nodes_are_distinguished(tmp_path: Path) -> None:
    """Two clusters may each have a node n0; their devices differ."""
    fleet = trace(tmp_path, nodes=NODES, jobs=JOBS, links=LINKS).fleet
    assert [device.uuid for device in fleet.devices] == ["east/n0/0", "east/n0/1", "west/n0/0"]


def test_orders_rank_nodes_and_copy_jobs(tmp_path: Path) -> None:
    """Nodes stand by rank; a job that comes again is another copy, and one that does not come stays away."""
    ordered = trace(
        tmp_path,
        nodes=OPENB_NODES,
        jobs=OPENB_JOBS,
        node_order="sn\nn1\nn0\n",
        job_order="name\nb\na\nb\n",
    )
    assert [node.name for _, node in ordered.fleet.nodes] == ["n1", "n0"]
    assert [job.name for job in ordered.jobs] == ["b", "a", "b#2"]
    assert [job.name for job in ordered.mix] == ["a", "b", "c"]


def test_the_mix_may_come_from_elsewhere(tmp_path: Path) -> None:
    """Jobs of the past are read from their own file when there is one."""
    past = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nold,1,1,1,500\n"
    assert [job.name for job in trace(tmp_path, nodes=OPENB_NODES, jobs=OPENB_JOBS, mix=past).mix] == ["old"]


def test_replicas_gangs_and_times_may_be_given(tmp_path: Path) -> None:
    """Columns of our own say how many replicas run together, how urgent a job is, and when it runs."""
    jobs = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,replicas,gang,priority,arrives_s,expected_duration_s\n"
        "a,1,1,1,500,4,true,9,30,60\nb,1,1,1,500,,,,,\n"
    )
    first, second = trace(tmp_path, nodes=OPENB_NODES, jobs=jobs).jobs
    assert (first.replicas, first.gang, first.priority, first.arrives_s, first.expected_duration_s) == (
        4,
        True,
        9,
        30,
        60,
    )
    assert (second.replicas, second.gang, second.priority, second.arrives_s, second.expected_duration_s) == (
        1,
        False,
        0,
        0,
        None,
    )


def test_elastic_jobs_may_be_given(tmp_path: Path) -> None:
    """A maximum of replicas makes a job elastic, also in a what-if question. One below the minimum is refused."""
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,replicas,arrives_s,max_replicas", "a,1,1,1,1000,2,0,8"]
    elastic, rigid = trace(tmp_path, nodes=OPENB_NODES, jobs="\n".join([*lines, "b,1,1,1,1000,2,5,"])).jobs
    assert [(each.replicas, each.max_replicas, each.elastic) for each in (elastic, rigid)] == [
        (2, 8, True),
        (2, 0, False),
    ]
    kinds = [each["replicas"] for each in trace_of([elastic, rigid])["kinds"]]
    assert kinds == [{"min": 2, "max": 8}, 2]
    with pytest.raises(RejectedError, match=r"max_replicas.*1 is not between replicas, 2, and 10000"):
        trace(tmp_path, nodes=OPENB_NODES, jobs="\n".join([*lines, "b,1,1,1,1000,2,5,1"]))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("jobs", "1,460,", "1,-460,"), "jobs.csv:2:gpu_milli: -460 is negative"),
        (("jobs", "12000", "much"), "jobs.csv:2:cpu_milli: 'much' is not a number"),
        (("jobs", "\nb,", "\na,"), "jobs.csv:3:name: 'a' appears more than once"),
        (
            ("jobs", "0,0,,70", "0,100,,70"),
            "jobs.csv:4:gpu_milli: requests 100 of each device, but num_gpu is 0",
        ),
        (("jobs", "1,460,", "1,0,"), "jobs.csv:2:gpu_milli: is 0, but num_gpu requests a device"),
        (
            ("jobs", "1,460,", "1,1460,"),
            "jobs.csv:2:gpu_milli: 1460 is more than one device has; request more devices with num_gpu",
        ),
        (
            ("jobs", "100,160,110", "100,105,110"),
            "jobs.csv:2:deletion_time: 105 is before scheduled_time 110",
        ),
        (
            ("jobs", "num_gpu", "gpus"),
            "jobs.csv:1:num_gpu: the column is missing; the header has: name, cpu_milli, memory_mib, gpus, "
            "gpu_milli, gpu_spec, creation_time, deletion_time, scheduled_time",
        ),
        (("nodes", "\nn1", "\nn0"), "nodes.csv:3:sn: 'n0' appears more than once"),
        (("nodes", "8,G2", "-8,G2"), "nodes.csv:2:gpu: -8 is negative"),
        (
            ("nodes", "8,G2", "8000,G2"),
            "nodes.csv:2:gpu: 8000 devices on one node; at most 1024 can be right",
        ),
        (
            ("nodes", "sn,", "host,"),
            "nodes.csv:1:node: the column (or 'sn') is missing; the header has: "
            "host, cpu_milli, memory_mib, gpu, model",
        ),
        (
            ("job_order", "\nb", "\nx"),
            "job_order.csv:3:name: unknown job 'x'; the file of jobs does not have it",
        ),
        (("node_order", "\nn1", "\nx"), "node_order.csv:2:sn: unknown node 'x'; nodes.csv does not have it"),
        (("node_order", "\nn0", "\nn1"), "node_order.csv:3:sn: 'n1' appears more than once"),
        (
            ("node_order", "\nn0", ""),
            "node_order.csv:3:sn: node 'n0' is not there; every node needs its place",
        ),
    ],
)
def test_bad_input_of_a_trace_gets_one_line(tmp_path: Path, change: tuple[str, str, str], line: str) -> None:
    """Anything that is wrong is reported with file, line and column, and how to mend it where that is not plain."""
    texts = {
        "nodes": OPENB_NODES,
        "jobs": OPENB_JOBS,
        "node_order": "sn\nn1\nn0\n",
        "job_order": "name\na\nb\n",
    }
    file, old, new = change
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new, 1)
    assert said(tmp_path, **texts) == line


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            ("links", "gw-2", "gw-9"),
            "nodes.csv:3:gateway: links do not name 'gw-2'; add this column to name each cluster's own",
        ),
        (("links", "0.01,", "1.01,"), "links.csv:4:loss: 1.01 is more than 1, which is all"),
        (
            ("links", "gw-2,gw-3", "gw-1,gw-2"),
            "links.csv:4:target: 'gw-1 to gw-2' appears more than once",
        ),
        (("links", "1000\n", "fast\n"), "links.csv:3:bandwidth_mbps: 'fast' is not a number"),
        (
            ("jobs", "gw-3", "gw-7"),
            "jobs.csv:2:user_gateway: unknown gateway 'gw-7'; available: gw-1, gw-2, gw-3",
        ),
        (
            ("jobs", "gw-3", ""),
            "jobs.csv:2:user_gateway: is empty, but bounds on the network are measured from it",
        ),
        (
            ("nodes", ",gpu_memory_mib", ",gpu_mib"),
            "nodes.csv:1:gpu_memory_mib: the column is missing, but jobs request memory of devices; "
            "the header has: cluster, node, cpu_milli, memory_mib, gpu, model, gpu_mib",
        ),
        (("nodes", "L4,24576", "L4,"), "nodes.csv:2:gpu_memory_mib: is empty, but a number is needed"),
        (("nodes", "west", ""), "nodes.csv:3:cluster: is empty, but a name is needed"),
    ],
)
def test_bad_input_of_a_network_gets_one_line(tmp_path: Path, change: tuple[str, str, str], line: str) -> None:
    """Links, gateways and memory are checked like the rest."""
    texts = {"nodes": NODES, "jobs": JOBS, "links": LINKS}
    file, old, new = change
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new)
    assert said(tmp_path, **texts) == line


def test_bounds_on_the_network_need_links(tmp_path: Path) -> None:
    """Without links nothing is known of the network, so a job that minds it is rejected at once."""
    assert said(tmp_path, nodes=NODES, jobs=JOBS) == (
        "jobs.csv:2:user_gateway: unknown gateway 'gw-3'; available: none; give the file of links too"
    )


def test_a_written_trace_is_read_as_it_was(tmp_path: Path) -> None:
    """Nodes and jobs keep their amounts, models, priorities and times; existing files are not replaced."""
    classes = ("qos", "LS", "BE", "BE")
    lines = [f"{line},{qos}" for line, qos in zip(OPENB_JOBS.splitlines(), classes, strict=True)]
    made = trace(tmp_path, nodes=OPENB_NODES, jobs="\n".join(lines))
    nodes_file, jobs_file = write_trace(made, tmp_path / "new")
    again = read_trace(TraceFiles(nodes_file, jobs_file))
    assert again.jobs == made.jobs
    assert [job.priority for job in made.jobs] == [1, 0, 0]
    assert [(node.name, node.cpu_milli, node.memory_mib) for _, node in again.fleet.nodes] == [
        ("n0", 96000, 393216),
        ("n1", 64000, 262144),
    ]
    assert [device.model for device in again.fleet.devices] == [device.model for device in made.fleet.devices]
    with pytest.raises(RejectedError, match="exists"):
        write_trace(made, tmp_path / "new")


def test_a_written_log_has_its_gangs(tmp_path: Path) -> None:
    """Jobs of several replicas stay gangs, of their users and queues."""
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 5 -1 60 2 -1 -1 -1 -1 -1 1 7 -1 -1 3 -1 -1 -1\n")
    found = read_swf(log)
    again = read_trace(TraceFiles(*write_trace(Trace(found.fleet, found.jobs, ()), tmp_path / "new")))
    (job,) = again.jobs
    assert (job.name, job.replicas, job.gang, job.tenant, job.queue) == ("1", 2, True, "user-7", "queue-3")
    assert (job.arrives_s, job.expected_duration_s, requested_milli(job)) == (5, 60, 2000)
    assert [len(node.devices) for _, node in again.fleet.nodes] == [1] * 4


def test_a_shuffled_trace_requests_the_published_load(tmp_path: Path) -> None:
    """Nodes and jobs are in an order of the seed, and jobs repeat until they request 130 % of the GPU cores."""
    made = trace(tmp_path, nodes=OPENB_NODES, jobs=OPENB_JOBS)
    one, same, other = (shuffled(made, seed) for seed in (1, 1, 2))
    assert one == same
    assert one.jobs != other.jobs
    assert sorted(node.name for _, node in one.fleet.nodes) == ["n0", "n1"]
    names = [job.name for job in one.jobs]
    assert len(set(names)) == len(names)
    assert {name.partition("#")[0] for name in names} == {"a", "b", "c"}
    requested = [requested_milli(job) for job in one.jobs]
    assert sum(requested) >= 1.3 * 10_000 > sum(requested[:-1])
    assert one.mix == made.mix


def test_a_trace_without_gpus_is_not_repeated(tmp_path: Path) -> None:
    """Without a request that counts, the load would never be reached."""
    jobs = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n"
    with pytest.raises(RejectedError, match="no GPU"):
        shuffled(trace(tmp_path, nodes=OPENB_NODES, jobs=jobs), 1)
