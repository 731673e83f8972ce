"""Commands that show and operate the fleet."""
