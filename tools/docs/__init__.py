"""The documentation site: pages gathered, reference generated, links checked."""
