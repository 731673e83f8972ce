"""Built-in policies. Each has its plugin and its kernel side by side."""
