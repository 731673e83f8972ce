"""`seaway trace`: public traces of jobs, and their conversion for `seaway replay`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.output import Output, OutputOption, show
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.simulation.trace import Trace

OPENB_NODES, OPENB_JOBS = "openb_node_list_gpu_node.csv", "openb_pod_list_{}.csv"
"""Names of the files of openb; that of the jobs with its variant."""

app = typer.Typer(rich_markup_mode="rich")


@dataclass(frozen=True, slots=True)
class Source:
    """A public collection of traces.

    Attributes
    ----------
    address
        Page that describes it.
    get, convert
        Commands that download and convert it.
    """

    name: str
    content: str
    address: str
    get: str
    convert: str


SOURCES = (
    Source(
        "openb",
        "1,213 GPU nodes with 6,212 GPUs of Alibaba, and 8,152 jobs, with other mixes of jobs",
        "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023",
        "git clone --depth 1 https://github.com/alibaba/clusterdata",
        "seaway trace convert clusterdata/cluster-trace-gpu-v2023/csv --out openb --order-seed 42",
    ),
    Source(
        "swf",
        "logs of batch systems in the Standard Workload Format: the Parallel Workloads Archive",
        "https://www.cs.huji.ac.il/labs/parallel/workload/logs.html",
        "save a log of that page, such as NASA-iPSC-1993-3.1-cln.swf.gz",
        "seaway trace convert NASA-iPSC-1993-3.1-cln.swf.gz --out nasa",
    ),
)


@app.callback(invoke_without_command=True)
def trace(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List public traces with their addresses, and convert them for [bold]seaway replay[/bold].

    [bold]Examples[/bold]

      [cyan]seaway trace[/cyan]
      [cyan]seaway trace convert clusterdata/cluster-trace-gpu-v2023/csv --out openb --order-seed 42[/cyan]
      [cyan]seaway replay --nodes openb/nodes.csv --jobs openb/jobs.csv --policy seaway,fgd,bestfit[/cyan]
    """
    if context.invoked_subcommand:
        return
    from rich.console import Group
    from rich.text import Text

    lines = [
        Text.assemble((each.name, "bold"), f": {each.content}\n  {each.address}\n  {each.get}\n  {each.convert}")
        for each in SOURCES
    ]
    body = {"traces": [asdict(each) for each in SOURCES]}
    show(output, body, lambda _: Group(*lines), lambda: (each.name for each in SOURCES))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="DIR|LOG", help="Folder of openb's CSV files, or an SWF log.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for nodes.csv and jobs.csv.")],
    variant: Annotated[
        str, typer.Option(help="Mix of jobs of openb: default, multigpu20, gpushare40, gpuspec10, cpu050 or another.")
    ] = "default",
    order_seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Put nodes and jobs in a random order, and repeat jobs until they request 130 % of the GPU cores, "
            "as in published runs of openb. Default: the order of the files.",
        ),
    ] = None,
    processors: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of processors of a log. Default: its header.")
    ] = None,
) -> None:
    """Convert a public trace into the files that [bold]seaway replay[/bold] and [bold]seaway evaluate[/bold] read.

    A log becomes a fleet of nodes with one GPU each. A job of size s is a gang of s replicas with one GPU.
    """
    from seaway.cli.learning.replay import read_log
    from seaway.simulation.trace import shuffled, write_trace

    if source.is_dir():
        if processors:
            raise RejectedError("is for logs", where="--processors")
        made = _openb(source, variant)
    else:
        made = read_log(source, processors)
    if order_seed is not None:
        made = shuffled(made, order_seed)
    nodes, jobs = write_trace(made, out)
    count, gpus = sum(len(each.nodes) for each in made.fleet.clusters), len(tuple(made.fleet.devices))
    typer.echo(f"{nodes}: {count:,} nodes with {gpus:,} GPUs; {jobs}: {len(made.jobs):,} jobs")
    ends = "" if source.is_dir() else " --departures"
    typer.echo(f"next: seaway replay --nodes {nodes} --jobs {jobs} --policy seaway,fgd,bestfit{ends}")


def _openb(folder: Path, variant: str) -> Trace:
    from seaway.simulation.trace import TraceFiles, read_trace

    head, tail = OPENB_JOBS.split("{}")
    known = sorted(each.name[len(head) : -len(tail)] for each in folder.glob(OPENB_JOBS.format("*")))
    if not known or not (folder / OPENB_NODES).is_file():
        missing = OPENB_JOBS.format("default") if (folder / OPENB_NODES).is_file() else OPENB_NODES
        raise RejectedError(f"has no {missing}; see `seaway trace`", where=str(folder))
    if variant not in known:
        raise RejectedError(f"{variant!r} is not there; available: {', '.join(known)}", where="--variant")
    return read_trace(TraceFiles(folder / OPENB_NODES, folder / OPENB_JOBS.format(variant)))
