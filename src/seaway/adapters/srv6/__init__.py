"""Linux machines as gateways: reads and changes of their configuration over netlink."""
