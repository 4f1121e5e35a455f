"""Creates certificates and API keys for test servers."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from testing.leaks import credential

SERVER_NAME = "temporal.example"
"""The name in the certificates of servers, in addition to their address."""

_PAST, _FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_EXPIRED = datetime(2021, 1, 1, tzinfo=UTC)
_KEY_ID = "testing"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The PEM files of a certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority, with its files in the folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._issue(self._name, self._key.public_key(), constraint, _FUTURE)
        self.file = _write(folder / f"{name}.crt", certificate.public_bytes(Encoding.PEM))

    def server(self) -> Certificate:
        """A certificate for SERVER_NAME and 127.0.0.1."""
        names = [x509.DNSName(SERVER_NAME), x509.IPAddress(ip_address("127.0.0.1"))]
        return self._files("server", x509.SubjectAlternativeName(names), _FUTURE)

    def client(self, name: str = "client", *, expired: bool = False) -> Certificate:
        """A client certificate. If `expired`, its validity ended years ago."""
        alternative = x509.SubjectAlternativeName([x509.DNSName(name)])
        return self._files(name, alternative, _EXPIRED if expired else _FUTURE)

    def _files(self, name: str, extension: x509.ExtensionType, until: datetime) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._issue(_name(name), key.public_key(), extension, until)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _, first, second, *_ = secret.decode().splitlines()
        # only the private number: the rest is also in certificates
        credential(f"{first[48:]}\n{second[:26]}")
        return Certificate(
            _write(self._folder / f"{name}.crt", certificate.public_bytes(Encoding.PEM)),
            _write(self._folder / f"{name}.key", secret),
        )

    def _issue(
        self,
        subject: x509.Name,
        public_key: ec.EllipticCurvePublicKey,
        extension: x509.ExtensionType,
        until: datetime,
    ) -> x509.Certificate:
        builder = x509.CertificateBuilder(self._name, subject, public_key, x509.random_serial_number())
        builder = builder.not_valid_before(_PAST).not_valid_after(until)
        return builder.add_extension(extension, critical=False).sign(self._key, hashes.SHA256())


class KeyIssuer:
    """Signs API keys for Temporal's default authorization: JSON Web Tokens with permissions."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def published(self) -> str:
        """The key set with which a server verifies this issuer's keys."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID}
        return json.dumps({"keys": [{**key, "n": _number(numbers.n), "e": _number(numbers.e)}]})

    def api_key(self, permissions: Sequence[str], *, expired: bool = False, until: datetime = _FUTURE) -> str:
        """A key with permissions such as `payments:read`; `temporal-system:admin` permits everything."""
        header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        until = _EXPIRED if expired else until
        claims = {"sub": "testing", "permissions": list(permissions), "exp": int(until.timestamp())}
        signed = f"{_encoded(json.dumps(header).encode())}.{_encoded(json.dumps(claims).encode())}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return credential(f"{signed}.{_encoded(signature)}")


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _write(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
