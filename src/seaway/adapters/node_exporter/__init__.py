"""What node-exporters on gateways tell of their interfaces."""
