"""Command line of `script/dashboards`, which writes dashboards as files for Grafana."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dashboards.language import Language
from seaway.cli.main import run
from seaway.cli.output import console
from seaway.domain.errors import RejectedError

CHART = Path(__file__).resolve().parents[1] / "deploy" / "helm" / "seaway" / "dashboards"
"""Folder of the chart's dashboards, which Git ignores."""


def write(
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write into; it is made.", show_default=False)
    ] = None,
    language: Annotated[
        list[Language] | None,
        typer.Option("--language", "-l", help="In which language; may be repeated. Both without it."),
    ] = None,
    config_maps: Annotated[
        bool,
        typer.Option("--config-maps", help="As ConfigMaps for the sidecar of kube-prometheus-stack, and no folders."),
    ] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of the ConfigMaps.")] = "monitoring",
    chart: Annotated[bool, typer.Option("--chart", help="Into the Helm chart of this clone, without --out.")] = False,
) -> None:
    """Write dashboards for Grafana: the fleet, devices, vGPUs, the network, the scheduler, jobs.

    Each language has its own folder. deploy/grafana describes the setup of Grafana, step by step.

      [cyan]script/dashboards --out dashboards[/cyan]
      [cyan]script/dashboards --out dashboards --language zh[/cyan]
      [cyan]script/dashboards --out dashboards --config-maps -n monitoring[/cyan]
      [cyan]script/dashboards --chart[/cyan]
    """
    if find_spec("grafana_foundation_sdk") is None:
        raise RejectedError("dashboards need the package grafana-foundation-sdk: script/bootstrap --with grafana")
    if chart == bool(out) or (chart and config_maps):
        raise RejectedError("give a folder, or --chart alone", where="--out")
    from dashboards.files import write_chart_files, write_config_maps, write_folders

    languages, out = list(dict.fromkeys(language or Language)), out or CHART
    try:
        if chart:
            written = write_chart_files(out, languages)
        else:
            written = write_config_maps(out, languages, namespace) if config_maps else write_folders(out, languages)
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(error.filename or out)) from None
    out_loud = console()
    for path in written:
        out_loud.print(str(path), style="dim", highlight=False, soft_wrap=True)
    out_loud.print(f"{len(written)} files; deploy/grafana/README.md says what to do with them", highlight=False)


def make_app() -> typer.Typer:
    """Return the command line of `script/dashboards`."""
    app = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.command()(write)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `script/dashboards`; without arguments, with those of the process."""
    run(make_app(), sys.argv[1:] if arguments is None else arguments, "script/dashboards")


if __name__ == "__main__":
    main()
