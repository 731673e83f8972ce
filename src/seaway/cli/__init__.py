"""Command line: commands that call the lower packages and print results."""
