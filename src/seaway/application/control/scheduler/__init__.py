"""The scheduling step of the control loop: pending jobs in, placements out."""
