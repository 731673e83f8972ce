"""Tools for developers: the documentation site and releases."""
