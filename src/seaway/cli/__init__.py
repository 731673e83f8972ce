"""Command line: commands that call the lower packages and print results."""

import os

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""


def exit_interrupted(*_: object) -> None:
    """Handle SIGINT before a command runs: exit at once. An exception would be a traceback in the imported module."""
    os._exit(INTERRUPTED)
