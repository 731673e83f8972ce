from importlib.metadata import version

import seaway


def test_version_agrees_with_installed_metadata() -> None:
    """The package and its installed metadata have the same version."""
    assert seaway.__version__ == version("seaway")
