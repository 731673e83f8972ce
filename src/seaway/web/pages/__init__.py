"""Modules of the pages, one for each page or group. Each has `build`, which `seaway.web.mount` registers."""
