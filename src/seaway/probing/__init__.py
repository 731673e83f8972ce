"""What probes say: packets as bytes, rounds as figures, figures smoothed. No socket, no clock."""
