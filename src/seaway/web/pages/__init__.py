"""Modules for pages, one for each page or group; each has `build`, which `seaway.web.mount` registers."""
