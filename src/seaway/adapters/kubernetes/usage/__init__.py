"""What is really used of devices: read from HAMi's monitors and DCGM exporters, through API servers' proxies."""
