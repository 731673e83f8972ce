"""Pages about policies and their comparisons."""
