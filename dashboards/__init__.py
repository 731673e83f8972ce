"""Grafana dashboards built by code, independent of Seaway; only `script/dashboards` imports them."""
