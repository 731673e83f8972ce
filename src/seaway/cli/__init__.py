"""The command line: a thin face over what the packages below do."""
