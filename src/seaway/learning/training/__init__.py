"""Runs: an algorithm that learns on instances, in a folder that keeps what it learned and how."""
