"""Queues: replays of logs of batch systems, with reference start times."""
