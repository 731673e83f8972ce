"""Modules of the Python API reference, which mkdocstrings fills in."""

from __future__ import annotations

PAGES = {
    "client": (
        "Python client",
        "`from seaway import Client, AsyncClient`. [The Python client](../../docs/client.md) has examples.",
        ("seaway.client.sync.Client", "seaway.client.aio.AsyncClient", "seaway.client.errors"),
    ),
    "plugins": (
        "Plugin framework",
        "The extension points of the scheduler. [Add a plugin](../../contributing/add-a-plugin.md) is the guide.",
        ("seaway.scheduling.framework", "seaway.scheduling.profile"),
    ),
    "testing": (
        "Test suites",
        "Conformance suites for packages of plugins and backends.",
        ("seaway.testing.plugins", "seaway.testing.backends", "seaway.testing.clocks"),
    ),
}
"""Title, introduction and names of each page."""


def python_pages() -> dict[str, str]:
    """Return the pages by name."""
    return {
        name: f"# {title}\n\n{introduction}\n\n"
        + "\n".join(f"::: {each}\n    options:\n      inherited_members: true\n" for each in names)
        for name, (title, introduction, names) in PAGES.items()
    }
