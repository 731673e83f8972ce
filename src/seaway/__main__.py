"""Run the command line as ``python -m seaway``."""

from seaway.cli.main import main

if __name__ == "__main__":
    main()
