"""`seaway dashboards`: write the dashboards for Grafana that the package has."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from seaway.cli.output import console
from seaway.domain.errors import RejectedError

STORED = files("seaway") / "dashboards"
"""Folder of the dashboards, by language. The build of the wheel writes it, so a clone has none."""


def dashboards(
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path("dashboards"),
) -> None:
    """Write the dashboards for Grafana: the fleet, devices, vGPUs, the network, the scheduler, jobs.

    English and Chinese have a folder each. Files there are replaced. Grafana 11.6 or later reads them from a folder by
    its provisioning, or from ConfigMaps by its sidecar.

      [cyan]seaway dashboards --out /var/lib/grafana/dashboards/seaway[/cyan]
      [cyan]kubectl create configmap seaway-dashboards --from-file dashboards/Seaway[/cyan]
    """
    if not STORED.is_dir():
        raise RejectedError("this is a clone of Seaway, not an installed wheel: script/dashboards --out DIR")
    count = 0
    try:
        for language in STORED.iterdir():
            (out / language.name).mkdir(parents=True, exist_ok=True)
            for file in language.iterdir():
                (out / language.name / file.name).write_bytes(file.read_bytes())
                count += 1
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(error.filename or out)) from None
    console().print(f"{count} dashboards in {out}", highlight=False, soft_wrap=True)
