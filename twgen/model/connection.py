"""How workers reach Temporal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Kubernetes Secret."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Connection:
    """A Temporal server's address and the names of the Secrets that hold a worker's credentials."""

    name: str
    host_port: str
    tls_server_name: str = ""
    mutual_tls_secret: str = ""
    api_key_secret: SecretKey | None = None

    @property
    def needs_credentials(self) -> bool:
        """Plain text without credentials will not do."""
        return bool(self.secret_name or self.tls_server_name)

    @property
    def secret_name(self) -> str:
        """The Secret that a worker needs; empty: none."""
        if self.mutual_tls_secret:
            return self.mutual_tls_secret
        return self.api_key_secret.name if self.api_key_secret else ""
