"""Health check of the container.

It connects to its own process only, so it accepts any certificate. It imports nothing of Seaway, to start fast.
"""

# ruff: noqa: INP001  # a standalone script

from __future__ import annotations

import http.client
import os
import ssl
import sys

TIMEOUT_S = 2


def healthy(port: int) -> bool:
    """Report whether Seaway on this machine is healthy, with or without TLS."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    plain = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    secret = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=anybody)
    for each in (plain, secret):
        try:
            each.request("GET", "/healthz")
            return each.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            continue
        finally:
            each.close()
    return False


if __name__ == "__main__":
    sys.exit(not healthy(int(os.environ.get("SEAWAY_SERVER_PORT", "8080"))))
