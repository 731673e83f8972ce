"""Measured use of devices, read from HAMi's monitors and DCGM exporters through the proxies of API servers."""
