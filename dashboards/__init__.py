"""Dashboards for Grafana, built by code; needs nothing of Seaway, and is loaded by `script/dashboards` alone."""
