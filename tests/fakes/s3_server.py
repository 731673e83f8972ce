"""Store with the part of the S3 API that presigned URLs need; it checks signatures, sizes and checksums itself."""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, urlsplit

ACCESS_KEY, SECRET_KEY = "AKSEAWAY", "a secret"
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
LEAST_BYTES = 5 << 20
"""Minimum size of all parts of an object but the last one."""


class S3Server(ThreadingHTTPServer):
    """Objects by path, and the credentials of the only account."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        """Parts by number, of each upload."""
        self.breaks_after = -1
        """Number of further objects and parts that are stored before connections break; negative for never."""
        self.refused: list[str] = []
        """Reasons of refused requests."""

    @property
    def url(self) -> str:
        """URL of the store."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a store on this machine."""
    server = S3Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: S3Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def do_PUT(self) -> None:
        """Store an object whose size and checksum are those of the signature."""
        content = self.rfile.read(int(self.headers["content-length"]))
        checksum, query = b64encode(hashlib.sha256(content).digest()).decode(), self._query()
        if not self._admitted({"content-length"} | ({"x-amz-checksum-sha256"} if "uploadId" not in query else set())):
            return
        self.server.breaks_after -= 1
        if self.server.breaks_after == -1:
            self.server.breaks_after = 0
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif "uploadId" in query:
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = content
            self._reply(200)
        elif self.headers["x-amz-checksum-sha256"] != checksum:
            self._refuse(400, "BadDigest")
        else:
            self.server.objects[urlsplit(self.path).path] = content
            self._reply(200)

    def do_POST(self) -> None:
        """Begin an upload, or join its parts."""
        content, query = self.rfile.read(int(self.headers["content-length"] or 0)), self._query()
        if not self._admitted(set()):
            return
        if "uploads" in query:
            name = f"upload/{len(self.server.uploads)}+"
            self.server.uploads[name] = {}
            self._reply(200, f"<Begun {NAMESPACE}><UploadId>{name}</UploadId></Begun>".encode())
            return
        parts = self.server.uploads.pop(query["uploadId"])
        chosen = [int(each) for each in re.findall(rb"<PartNumber>(\d+)<", content)]
        if any(len(parts[number]) < LEAST_BYTES for number in chosen[:-1]):
            self._reply(200, b"<Error><Code>EntityTooSmall</Code></Error>")
            return
        self.server.objects[urlsplit(self.path).path] = b"".join(parts[number] for number in chosen)
        self._reply(200, f"<Done {NAMESPACE}/>".encode())

    def do_GET(self) -> None:
        """Return an object, or list the parts of an upload, one at a time."""
        query = self._query()
        if not self._admitted(set()):
            return
        if "uploadId" in query:
            parts = self.server.uploads.get(query["uploadId"])
            numbers = sorted(each for each in parts or () if each > int(query["part-number-marker"]))
            more, tags = "true" if len(numbers) > 1 else "false", ("PartNumber", "Size", "ETag")
            text = f"<IsTruncated>{more}</IsTruncated>"
            for number in numbers[:1]:
                values = (number, len((parts or {})[number]), f'"{number}"')
                shown = "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(tags, values, strict=True))
                text += f"<NextPartNumberMarker>{number}</NextPartNumberMarker><Part>{shown}</Part>"
            self._reply(404 if parts is None else 200, f"<Parts {NAMESPACE}>{text}</Parts>".encode())
        else:
            found = self.server.objects.get(urlsplit(self.path).path)
            self._reply(404 if found is None else 200, found or b"")

    do_HEAD = do_GET  # noqa: N815  # a name of http.server

    def do_DELETE(self) -> None:
        """Remove an object, or an upload."""
        query = self._query()
        if self._admitted(set()):
            if "uploadId" in query:
                self.server.uploads.pop(query["uploadId"], None)
            else:
                self.server.objects.pop(urlsplit(self.path).path, None)
            self._reply(204)

    def _query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))

    def _admitted(self, must_sign: set[str]) -> bool:
        parts = urlsplit(self.path)
        query = self._query()
        if self.headers["authorization"]:
            return self._refuse(400, "OnlyOneAuthMechanism")
        given, signed = query.pop("X-Amz-Signature", ""), query.get("X-Amz-SignedHeaders", "").split(";")
        begun = datetime.strptime(query.get("X-Amz-Date", "20000101T000000Z"), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if datetime.now(UTC) > begun + timedelta(seconds=int(query.get("X-Amz-Expires", "0"))):
            return self._refuse(403, "AccessDenied")
        if not must_sign <= set(signed):
            return self._refuse(403, "UnsignedHeaders")
        pairs = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in query.items())
        text = "&".join(f"{name}={value}" for name, value in pairs)
        headers = "".join(f"{name}:{' '.join((self.headers[name] or '').split())}\n" for name in signed)
        canonical = "\n".join((self.command, parts.path, text, headers, ";".join(signed), "UNSIGNED-PAYLOAD"))
        access, day, region, *_ = query.get("X-Amz-Credential", "///").split("/")
        scope = f"{day}/{region}/s3/aws4_request"
        lines = ("AWS4-HMAC-SHA256", query.get("X-Amz-Date", ""), scope, hashlib.sha256(canonical.encode()).hexdigest())
        key = f"AWS4{SECRET_KEY}".encode()
        for each in scope.split("/"):
            key = hmac.digest(key, each.encode(), "sha256")
        right = hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).hexdigest()
        if access != ACCESS_KEY or not hmac.compare_digest(right, given):
            return self._refuse(403, "SignatureDoesNotMatch")
        return True

    def _refuse(self, status: int, code: str) -> bool:
        self.server.refused.append(code)
        self._reply(status, f"<Error><Code>{code}</Code></Error>".encode())
        return False

    def _reply(self, status: int, content: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
