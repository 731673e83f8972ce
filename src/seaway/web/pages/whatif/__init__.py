"""What-if page."""
