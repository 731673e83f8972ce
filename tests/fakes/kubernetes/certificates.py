"""A certificate authority, a server's certificate for loopback, and a client's, for one test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Certificates:
    """Certificates of a server with TLS and its clients.

    Attributes
    ----------
    authority
        The certificate authority.
    server, client
        The certificates that they present.
    """

    authority: Pair
    server: Pair
    client: Pair

    @classmethod
    def make(cls) -> Certificates:
        """Create all of them, valid for a day."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("testbed-ca")
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        built = _builder(name, name, key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        signed = built.add_extension(usage, critical=True).sign(key, hashes.SHA256())

        def leaf(name: str, purpose: x509.ObjectIdentifier) -> Pair:
            own = ec.generate_private_key(ec.SECP256R1())
            made = _builder(_name(name, "system:masters"), signed.subject, own.public_key())
            places = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
            made = made.add_extension(x509.SubjectAlternativeName(places), critical=False)
            made = made.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            made = made.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
            )
            return _pair(made.sign(key, hashes.SHA256()), own)

        server = leaf("kube-apiserver", ExtendedKeyUsageOID.SERVER_AUTH)
        return cls(_pair(signed, key), server, leaf("system:admin", ExtendedKeyUsageOID.CLIENT_AUTH))

    def write(self, folder: Path) -> tuple[Path, Path, Path]:
        """Write the server's certificate and key, and the authority's certificate; return their paths."""
        paths = (folder / "server.crt", folder / "server.key", folder / "ca.crt")
        texts = (self.server.certificate, self.server.key, self.authority.certificate)
        for path, text in zip(paths, texts, strict=True):
            path.touch(mode=0o600)
            path.write_bytes(text)
        return paths


def _name(name: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organisation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), text)
