"""Pages about queues, pools and tenants."""
