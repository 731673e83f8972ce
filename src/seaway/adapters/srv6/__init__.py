"""A Linux machine as a gateway: what it has is read, and changes are made, over netlink."""
