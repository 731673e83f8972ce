"""The scheduling step of the control loop: from pending jobs to placements."""
