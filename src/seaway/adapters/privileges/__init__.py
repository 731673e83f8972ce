"""Giving up what a process may do once it has opened what takes a privilege. Linux only."""
