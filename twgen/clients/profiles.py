"""The operator's credentials: Temporal profiles. Each profile is limited to one address and one namespace."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twgen.errors import StateUnavailable
from twgen.model.spec import Connection
from twgen.model.values import dataclass
from twgen.versioning.names import API_KEY_FILE

if TYPE_CHECKING:
    from temporalio.envconfig import ClientConfigProfile

_CONFIG_FILE = "TEMPORAL_CONFIG_FILE"
_ADDRESS = "TEMPORAL_ADDRESS"
_API_KEY = "TEMPORAL_API_KEY"
_PROFILE = "TEMPORAL_PROFILE"
_DEFAULT = "default"
"""The default name of a profile or a namespace, as in Temporal's own tools."""

_FILES = {
    "server_ca_cert_path": "server_root_ca_cert",
    "client_cert_path": "client_cert",
    "client_key_path": "client_private_key",
}
"""The profile settings that contain file names, and the SDK's attributes for them."""
_NOT_WHOLE = "must be an absolute path, such as /etc/twgen/temporal"


@dataclass(frozen=True, slots=True)
class Profile:
    """Credentials, and the only address and namespace to which twgen sends the credentials."""

    name: str
    address: str
    """The server's address. If the address is empty, the credentials are never used."""
    namespace: str
    credentials: "ClientConfigProfile" = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values to redact from messages: the API key, and headers other than address and namespace."""
        values = (self.credentials.api_key or "", *self.credentials.grpc_meta.values())
        tokens = (value.removeprefix("Bearer ") for value in values)
        return tuple(token for token in tokens if token not in {"", self.address, self.namespace})

    def connect_options(self) -> Mapping[str, Any]:
        """Options for `temporalio.service.ConnectConfig`, except the address.

        Reads the files that the profile names.
        """
        try:
            options = self.credentials.to_client_connect_config()
        except OSError as error:
            raise StateUnavailable(
                f"Temporal profile {self.name!r}: {Path(error.filename).absolute()} cannot be read"
                f" ({error.strerror})"
            ) from error
        return {
            "api_key": options.get("api_key"),
            "tls": options.get("tls", False),
            "rpc_metadata": options.get("rpc_metadata", {}),
        }


@dataclass(frozen=True, slots=True)
class Profiles:
    """All of the operator's profiles, and the rule that decides which of them this run may use."""

    all: tuple[Profile, ...] = ()
    may_use: Callable[[str], bool] = lambda _: True
    allow_unlisted: bool = False
    """Whether connections without a profile are allowed, without credentials."""
    of_person: bool = False
    """Whether the user's TEMPORAL_ variables define one of the profiles."""
    subject: str = "the current user"
    """The user or Argo CD project to which `may_use` applies, as text for messages."""
    granted_in: str = ""
    """The setting that permits the use of a profile, as text for messages."""

    def of(self, connection: Connection, namespace: str, worker: str) -> Profile | None:
        """The only profile that matches a connection and a Temporal namespace.

        Returns None if no profile matches, but unlisted connections are allowed. Otherwise, raises
        StateUnavailable unless exactly one matching profile may be used. The message names the `worker`.
        """
        key = (connection.host_port, namespace)
        matching = [
            profile for profile in self.all if profile.address and (profile.address, profile.namespace) == key
        ]
        usable = [profile for profile in matching if self.may_use(profile.name)]
        if len(usable) == 1:
            return usable[0]
        place = f"Temporal at {connection.host_port}, namespace {namespace!r} (for {worker})"
        if usable:
            raise StateUnavailable(f"{place}: profiles {_names(usable)} all match: keep only one of them")
        if matching:
            raise StateUnavailable(
                f"{place}: {self.subject} may not use profile {_names(matching)}: the operator must list"
                f" the project there, in {self.granted_in}"
            )
        if self.allow_unlisted and not connection.needs_credentials:
            return None
        raise StateUnavailable(f"{place}: {self._advice(connection, namespace)}")

    def _advice(self, connection: Connection, namespace: str) -> str:
        place = f"address {connection.host_port!r} and namespace {namespace!r}"
        if not self.of_person:
            unlisted = "" if connection.needs_credentials else " or set TWGEN_ALLOW_UNLISTED_CONNECTIONS"
            return (
                f"no Temporal profile matches connection {connection.name!r}: correct {place}, or"
                f" ask the operator to add a profile for them{unlisted}"
            )
        variables = f"{_ADDRESS}={connection.host_port} and TEMPORAL_NAMESPACE={namespace}"
        why = "needs TLS or credentials" if connection.needs_credentials else "must be listed"
        needs = f"connection {connection.name!r} {why}, and"
        without_address = (profile for profile in self.all if not profile.address)
        if unplaced := [
            profile for profile in without_address if profile.credentials.api_key or profile.credentials.tls
        ]:
            return (
                f"{needs} profile {_names(unplaced)} has no address: set {variables} to say which server"
                " its credentials are for"
            )
        trusts_alone = connection.ca_secret and not connection.secret_name
        trusted = f", or give only --ca-file {connection.ca_secret}=FILE" if trusts_alone else ""
        return (
            f"{needs} no Temporal profile matches: add one with {place} to the file in {_CONFIG_FILE},"
            f" or set {variables} together with the credentials{trusted}"
        )


def load_profiles(
    variables: Mapping[str, str], config_file: str = "", *, use_environment: bool, in_repository: bool = False
) -> tuple[Profile, ...]:
    """Read the profiles in Temporal's TOML file. Raises StateUnavailable if the file cannot be read.

    The file is `config_file`, or else the value of TEMPORAL_CONFIG_FILE, or else Temporal's default file.
    `use_environment` applies the other TEMPORAL_ variables to one profile, as Temporal's own tools do, and
    reads a renewed API key from the file in TWGEN_TEMPORAL_API_KEY_FILE.

    Temporal's tools resolve relative paths in the working directory. In a checkout, the repository could then
    choose which certificates are trusted, so `in_repository` rejects relative paths.
    """
    from temporalio.envconfig import ClientConfig, ClientConfigProfile

    if use_environment and (key_file := variables.get(API_KEY_FILE)):
        try:
            variables = {**variables, _API_KEY: Path(key_file).read_text(encoding="utf-8").strip()}
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise StateUnavailable(f"{key_file}: the API key cannot be read ({why})") from None
    file = config_file or variables.get(_CONFIG_FILE, "")
    source = Path(file) if file else None
    if in_repository and source and not source.is_absolute():
        raise StateUnavailable(f"the file of Temporal profiles, {file!r}, {_NOT_WHOLE}/temporal.toml")
    if source and not source.is_file():
        raise StateUnavailable(f"{file}: no such file; it must contain the Temporal profiles")
    # the SDK crashes on variables that are not UTF-8
    readable = {name: value.encode(errors="replace").decode() for name, value in variables.items()}
    try:
        profiles = dict(ClientConfig.load(config_source=source, override_env_vars=readable).profiles)
        chosen = variables.get(_PROFILE) or _DEFAULT
        if use_environment and (chosen in profiles or variables.get(_ADDRESS) or variables.get(_API_KEY)):
            profiles[chosen] = ClientConfigProfile.load(config_source=source, override_env_vars=readable)
    except RuntimeError as error:
        raise StateUnavailable(_unreadable(file, error)) from None
    for name, profile in sorted(profiles.items()) if in_repository else ():
        for setting, attribute in _FILES.items():
            file_of_setting = getattr(profile.tls, attribute, None)
            if isinstance(file_of_setting, Path) and not file_of_setting.is_absolute():
                place = f"{_NOT_WHOLE}/{file_of_setting.name}"
                raise StateUnavailable(f"Temporal profile {name!r}: {setting} {place}")
    return tuple(
        Profile(name, credentials.address or "", credentials.namespace or _DEFAULT, credentials)
        for name, credentials in sorted(profiles.items())
    )


def usual_profile(profiles: Iterable[Profile], variables: Mapping[str, str]) -> Profile | None:
    """The profile that Temporal's own tools would use, or None if it is missing or has no address."""
    name = variables.get(_PROFILE) or _DEFAULT
    return next((profile for profile in profiles if profile.name == name and profile.address), None)


def _names(profiles: Iterable[Profile]) -> str:
    return " and ".join(repr(profile.name) for profile in profiles)


def _unreadable(file: str, error: RuntimeError) -> str:
    # the parser quotes the invalid line, which may contain the key
    _, is_syntax, place = str(error).partition("\n")[0].partition("TOML parse error ")
    if is_syntax:
        source = f"{file or 'the file of Temporal profiles'} is not TOML, or does not contain valid profiles"
        return f"{source}: see {place.removeprefix('at ')}"
    return f"{file or 'the environment'} has no profile that Temporal can read: check the TEMPORAL_ variables"
