"""A module for each page, or for pages that belong together; each has `build`, which `seaway.web.mount` calls."""
