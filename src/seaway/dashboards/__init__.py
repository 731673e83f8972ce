"""Dashboards for Grafana, built by code; needs nothing of Seaway, and is loaded by `seaway grafana` alone."""
