"""Run the command line, as ``seaway`` or ``python -m seaway``."""

import signal

from seaway.cli import exit_interrupted


def main() -> None:
    """Run the command line. Ctrl-C before the command runs ends it without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell ignores it for background jobs
        signal.signal(signal.SIGINT, exit_interrupted)
    from seaway.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
