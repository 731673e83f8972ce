"""Policy files that come with the package, and nothing else."""
