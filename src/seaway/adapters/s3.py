"""Bucket of an object store with the S3 API, by presigned URLs.

References
----------
Amazon S3 API Reference: "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)";
"CreateMultipartUpload", "UploadPart", "ListParts", "CompleteMultipartUpload", "AbortMultipartUpload".
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError, SubElement, fromstring, tostring

from seaway.application.ports.buckets import StoredPart, Upload
from seaway.domain.errors import RejectedError, UnavailableError

VALID_S = 3600
"""Time for which a URL is valid, seconds."""

TIMEOUT_S = 10.0
JOIN_S = 120.0
"""Time limit for storing an object from its parts, seconds."""
RETRY_S = 5


class S3Bucket:
    """`seaway.application.ports.buckets.Bucket` of a store with the S3 API.

    Credentials are found as by all SDKs: environment, profile, web identity of a service account, role of the machine.

    Parameters
    ----------
    bucket, prefix
        Name of the bucket, and begin of the names of its objects without a slash at the end; empty for none.
    endpoint
        URL of the store; empty for that of AWS in the region.
    ca_file
        Certificate authorities of the store; empty for the usual ones.

    Raises
    ------
    RejectedError
        If the extra ``s3`` is not installed, or the certificates cannot be read.
    """

    def __init__(self, bucket: str, prefix: str, endpoint: str, region: str, ca_file: str = "") -> None:
        try:
            from awscrt.auth import AwsCredentialsProvider
        except ImportError:
            said = "needs the extra s3: pip install 'seaway[s3]'"
            raise RejectedError(said, where="[workdirs] bucket") from None
        import httpx

        self.address = f"s3://{bucket}/{prefix}".rstrip("/")
        self.endpoint = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        self._host = httpx.URL(self.endpoint).netloc.decode()  # as httpx and others send it, without a default port
        self._inside, self._region = f"/{bucket}/{prefix}".rstrip("/"), region
        self._credentials: Any = AwsCredentialsProvider.new_default_chain()
        try:
            self._trusted = ssl.create_default_context(cafile=ca_file) if ca_file else True
        except OSError as error:
            raise RejectedError(f"cannot be read as certificates: {error}", where="[workdirs] ca") from None

    def upload(self, name: str, sha256: bytes, size_bytes: int) -> Upload:
        """Return the request that stores an object."""
        headers = {"content-length": str(size_bytes), "x-amz-checksum-sha256": b64encode(sha256).decode()}
        return Upload(self._signed("PUT", name, headers), headers, size_bytes)

    def begin(self, name: str) -> str:
        """Begin to store an object in parts; return the ID of this upload."""
        return _text(_xml(self._ask("POST", name, {"uploads": ""}).content), "UploadId")

    def upload_part(self, name: str, upload: str, number: int, offset_bytes: int, size_bytes: int) -> Upload:
        """Return the request that stores a part."""
        headers = {"content-length": str(size_bytes)}
        url = self._signed("PUT", name, headers, {"partNumber": str(number), "uploadId": upload})
        return Upload(url, headers, size_bytes, offset_bytes)

    def parts(self, name: str, upload: str) -> dict[int, StoredPart] | None:
        """Return the parts of an upload that the bucket has; None if it does not know the upload."""
        found: dict[int, StoredPart] = {}
        after = "0"
        while after:
            reply = self._ask("GET", name, {"uploadId": upload, "part-number-marker": after})
            if reply.status_code == 404:
                return None
            page = _xml(reply.content)
            for each in page.iterfind("{*}Part"):
                tag = StoredPart(int(_text(each, "Size")), _text(each, "ETag"))
                found[int(_text(each, "PartNumber"))] = tag
            after = _text(page, "NextPartNumberMarker") if _text(page, "IsTruncated") == "true" else ""
        return found

    def join(self, name: str, upload: str, parts: Mapping[int, StoredPart]) -> None:
        """Store an object from its parts."""
        whole = Element("CompleteMultipartUpload")
        for number in sorted(parts):
            part = SubElement(whole, "Part")
            SubElement(part, "PartNumber").text = str(number)
            SubElement(part, "ETag").text = parts[number].tag
        reply = self._ask("POST", name, {"uploadId": upload}, tostring(whole), timeout_s=JOIN_S)
        if reply.status_code == 404 or _xml(reply.content).tag.endswith("Error"):  # with status 200 after a long time
            said = f"the bucket {self.address} could not join the parts of an archive: {reply.text[:200]}"
            raise UnavailableError(said, retry_after_s=RETRY_S)

    def abort(self, name: str, upload: str) -> None:
        """Remove an upload with its parts, if there is one."""
        self._ask("DELETE", name, {"uploadId": upload})

    def url(self, name: str) -> str:
        """Return a URL from which an object can be fetched."""
        return self._signed("GET", name)

    def size(self, name: str) -> int | None:
        """Return the size of an object, bytes; None if there is none."""
        reply = self._ask("HEAD", name)
        return None if reply.status_code == 404 else int(reply.headers.get("content-length", 0))

    def delete(self, name: str) -> None:
        """Remove an object, if there is one."""
        self._ask("DELETE", name)

    def _ask(
        self,
        method: str,
        name: str,
        query: Mapping[str, str] | None = None,
        content: bytes = b"",
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Any:  # noqa: ANN401  # httpx is imported when it is needed
        import httpx

        url = self._signed(method, name, query=query)
        try:
            reply = httpx.request(method, url, content=content, timeout=timeout_s, verify=self._trusted)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self.endpoint} did not respond: {error}", retry_after_s=RETRY_S) from None
        if reply.is_success or reply.status_code == 404:
            return reply
        code = reply.status_code
        why = (
            "check its credentials, and that they may get, put, list and delete objects" if code == 403 else reply.text
        )
        said = f"the bucket {self.address} refuses {method} with HTTP {code}: {why[:200] or reply.reason_phrase}"
        raise UnavailableError(said, retry_after_s=RETRY_S)

    def _signed(
        self,
        method: str,
        name: str,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> str:
        from awscrt.auth import AwsSignatureType, AwsSigningConfig, aws_sign_request
        from awscrt.exceptions import AwsCrtError
        from awscrt.http import HttpHeaders, HttpRequest

        settings = AwsSigningConfig(
            signature_type=AwsSignatureType.HTTP_REQUEST_QUERY_PARAMS,
            credentials_provider=self._credentials,
            region=self._region,
            service="s3",
            use_double_uri_encode=False,
            should_normalize_uri_path=False,
            signed_body_value="UNSIGNED-PAYLOAD",
            expiration_in_seconds=VALID_S,
        )
        sent = [("host", self._host), *(headers or {}).items()]
        asked = "&".join(f"{key}={quote(value, safe='')}" for key, value in (query or {}).items())
        path = f"{self._inside}/{quote(name)}"
        request = HttpRequest(method, f"{path}?{asked}" if asked else path, HttpHeaders(sent))
        try:
            return f"{self.endpoint}{aws_sign_request(request, settings).result(TIMEOUT_S).path}"
        except (AwsCrtError, TimeoutError) as error:
            said = f"no credentials for the bucket {self.address}: {error}; set AWS_ACCESS_KEY_ID"
            raise UnavailableError(said, retry_after_s=RETRY_S) from None


def _xml(content: bytes) -> Element:
    """Return the root of an answer of the bucket."""
    try:
        return fromstring(content)
    except ParseError:
        said = f"the bucket answers with something else than XML: {content[:100]!r}"
        raise UnavailableError(said, retry_after_s=RETRY_S) from None


def _text(element: Element, name: str) -> str:
    """Return the text of a part of an answer, in any namespace; empty if there is none."""
    return (element.findtext(f"{{*}}{name}") or "").strip()
