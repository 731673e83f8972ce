"""Accuracy of agents, measured in a lab against its emulator and packet captures."""
