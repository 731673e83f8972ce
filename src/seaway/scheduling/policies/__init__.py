"""Built-in policies, with their plugins and kernels."""
