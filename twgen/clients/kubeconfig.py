"""Which cluster, and as whom: what a kubeconfig or the Pod's own account says."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from twgen.errors import StateUnavailable
from twgen.model.values import dataclass

if TYPE_CHECKING:
    from kubernetes.client import Configuration
    from urllib3 import PoolManager


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A kubeconfig and one of its contexts, or the account of the Pod that this runs in."""

    kubeconfig: str = ""
    """Files joined by `:`, as KUBECONFIG has them; empty: the Pod's own account."""
    context: str = ""
    """Empty: the current one."""

    @property
    def described(self) -> str:
        """The cluster, for people."""
        if not self.kubeconfig:
            return "the cluster of this Pod"
        return f"context {self.context!r} of {self.kubeconfig}" if self.context else self.kubeconfig


class Session(NamedTuple):
    """An API server, and how it is reached."""

    configuration: "Configuration"
    pool: "PoolManager"

    @property
    def host(self) -> str:
        """Its address, with a path where it is served under one."""
        return str(self.configuration.host).rstrip("/")

    def authorization(self) -> Mapping[str, str]:
        """The header that says who asks, with a token that is renewed where that is due.

        Raises StateUnavailable when it cannot be.
        """
        from kubernetes.config import ConfigException

        try:
            told = self.configuration.auth_settings().get("BearerToken")
        except (ConfigException, OSError) as error:
            raise StateUnavailable(f"the token for {self.host} cannot be renewed: {_reason(error)}") from None
        return {"Authorization": told["value"]} if told and told["value"] else {}


def open_session(access: ClusterAccess, folder: str) -> Session:
    """The way to an API server, as `_configuration` below has it; raises alike."""
    from kubernetes.client.rest import RESTClientObject

    configuration = _configuration(access, folder)
    return Session(configuration, RESTClientObject(configuration).pool_manager)


def _configuration(access: ClusterAccess, folder: str) -> "Configuration":
    """The settings of the Kubernetes client; raises StateUnavailable when they are not there or wrong.

    Runs the login program that a kubeconfig may name. Certificates and keys that stand in the kubeconfig
    itself are written to files in the folder, where the TLS library wants them.
    """
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
    from yaml import YAMLError

    configuration = Configuration()
    try:
        with _failed_login_raised():
            if access.kubeconfig:
                load_kube_config(
                    access.kubeconfig,
                    access.context or None,
                    client_configuration=configuration,
                    persist_config=False,
                    temp_file_path=folder,
                )
            else:
                load_incluster_config(client_configuration=configuration)
    except (ConfigException, YAMLError, OSError, TypeError, AttributeError) as error:
        raise StateUnavailable(
            f"Kubernetes ({access.described}) is not configured: {_reason(error)}; "
            "correct it, or pass --no-cluster"
        ) from None
    return configuration


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def _failed_login_raised() -> Iterator[None]:
    # the Kubernetes client logs that a login failed, and goes on as nobody
    from kubernetes.config import ConfigException

    errors = _Errors()
    logging.root.addHandler(errors)
    try:
        yield
    finally:
        logging.root.removeHandler(errors)
    if errors.messages:
        raise ConfigException(f"its login failed ({errors.messages[0]})")


def _reason(error: Exception) -> str:
    from yaml import YAMLError

    # the parser quotes the line that it cannot read, and that may be a token
    if isinstance(error, YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"not YAML at line {mark.line + 1}" if mark else "not YAML"
    if isinstance(error, TypeError | AttributeError):
        return "not a kubeconfig"
    return " ".join(str(error).split())
