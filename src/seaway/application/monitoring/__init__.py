"""Counters, histograms and alerts for monitoring."""
