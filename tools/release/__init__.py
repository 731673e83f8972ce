"""Build, check and try a release; see contributing/release.md."""
