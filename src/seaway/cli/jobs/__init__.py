"""Commands that submit, show and control jobs."""
