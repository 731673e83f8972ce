"""Policy files in the package."""
