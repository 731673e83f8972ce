"""Command line: commands that call the packages below, and print results."""
