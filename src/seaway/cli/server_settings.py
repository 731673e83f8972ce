"""`seaway config show --server`: the settings that `seaway up` would use, and where each comes from."""

from __future__ import annotations

import os
import re
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seaway.cli.output import Output, show

if TYPE_CHECKING:
    from rich.console import RenderableType

PASSWORD = re.compile(r"(://[^:/@\s]*:).*@")
"""In a URL, up to the last @: who did not write a password's own as %40 does not want it shown either."""
PASSWORD_PARAMETER = re.compile(r"((?:password|passwd|secret|token)=)[^&\s]*", re.IGNORECASE)


def show_server_settings(output: Output, config: Path | None, data: Path | None) -> None:
    """Print every setting, its value, and whether that is a default or stands in the file or the environment.

    Raises
    ------
    RejectedError
        When settings are wrong, as `seaway up` would say.
    """
    from seaway.bootstrap.settings import KINDS, trace_settings
    from seaway.client.where import data_folder

    settings, sources = trace_settings(config, os.environ, {})
    folder = (data or data_folder()).absolute()
    rows: list[dict[str, Any]] = []
    for section, names in KINDS.items():
        for name in names:
            value = attrgetter(f"{section}.{name}")(settings)
            source = sources.get((section, name), "default")
            rows.append({"name": f"{section}.{name}", "value": without_passwords(value), "from": source})
    for row in rows:
        if row["name"] == "database.url" and not row["value"]:
            row["value"] = f"sqlite:///{folder / 'seaway.db'}"
    body = {"data": str(folder), "settings": rows}
    show(output, body, lambda _: _picture(rows), lambda: [row["name"] for row in rows])


def without_passwords(value: object) -> object:
    """Hide passwords of URLs.

    Examples
    --------
    >>> without_passwords("postgresql://seaway:s3cret@db/seaway?sslpassword=x")
    'postgresql://seaway:***@db/seaway?sslpassword=***'
    """
    if not isinstance(value, str):
        return value
    return PASSWORD_PARAMETER.sub(r"\1***", PASSWORD.sub(r"\1***@", value))


def _picture(rows: list[dict[str, Any]]) -> RenderableType:
    from seaway.terminal.columns import Column, Rows

    columns = (
        Column("SETTING", lambda each: each["name"]),
        Column("VALUE", lambda each: _written(each["value"])),
        Column("FROM", lambda each: each["from"], cut=True),
    )
    return Rows(columns, rows)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value in ("", {}) else str(value)
