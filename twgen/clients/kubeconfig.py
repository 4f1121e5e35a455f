"""Finds the cluster and the account, from a context in kubeconfig files or from this Pod's service account.

The search follows kubectl's rules: https://pkg.go.dev/k8s.io/client-go/tools/clientcmd
"""

import os
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from twgen.clients.http import NoProxy, address_of, checked_proxy
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import FLAG, TEXT, Findings, Shape, constant, listing, mapping
from twgen.model.values import dataclass

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in a Pod that contains its service account's token and its API server's certificate
authority."""
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""The supported API versions of credential plugins."""
_V1 = API_VERSIONS[0]
_MODES = ("Never", "IfAvailable", "Always")
_IMPERSONATED = ("as-uid", "as-groups", "as-user-extra")
_PEM = b"-----BEGIN "
_LONGEST_PATH = 200
_HOST = re.compile(r"[\w.:*-]*")
_TEXTS = listing(TEXT)
_PROGRAM = excerpt(
    *("apiVersion", "command", "installHint", "interactiveMode"),
    Field("args", _TEXTS),
    Field("env", listing(excerpt(Field("name", TEXT, required=True), "value"))),
    Field("provideClusterInfo", FLAG),
)
_USER = excerpt(
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    *("token", "tokenFile", "username", "password", "as", "as-uid"),
    Field("as-groups", _TEXTS),
    Field("as-user-extra", mapping(_TEXTS)),
    Field("exec", _PROGRAM),
    Field("auth-provider", excerpt("name", Field("config", excerpt("id-token")))),
)
_CLUSTER = excerpt(
    *("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url"),
    Field("insecure-skip-tls-verify", FLAG),
    Field("extensions", listing(excerpt("name"))),
)
_NAME = Field("name", TEXT, required=True)


def _entries(kind: str, shape: Shape) -> Field:
    """The field that lists all entries of a kind. Entries must have unique names."""
    return Field(f"{kind}s", listing(excerpt(_NAME, Field(kind, shape)), itemgetter("name"), kind))


_FILE = excerpt(
    Field("apiVersion", constant("v1")),
    Field("kind", constant("Config")),
    "current-context",
    _entries("cluster", _CLUSTER),
    _entries("user", _USER),
    _entries("context", excerpt("cluster", "user")),
)


class Unusable(Exception):
    """A kubeconfig or a login cannot be used. The message contains no credentials."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A kubeconfig with one of its contexts, or this Pod's service account."""

    kubeconfig: str = ""
    """The kubeconfig files, joined by `:` as in KUBECONFIG, or empty for the Pod's own account."""
    context: str = ""
    """The context's name, or empty for the kubeconfig's current context."""
    is_optional: bool = False
    """Whether the command has the --no-cluster option."""
    server: str = ""
    """The only server that twgen is allowed to contact, or empty for any server."""

    @property
    def or_without(self) -> str:
        """Further advice if the cluster cannot be read, worded as the end of a sentence."""
        return ", or pass --no-cluster" if self.is_optional else ""

    @property
    def described(self) -> str:
        """The cluster, as text for messages."""
        if not self.kubeconfig:
            return "this Pod's cluster"
        return f"context {self.context!r} of {self.kubeconfig}" if self.context else self.kubeconfig


class Entry(NamedTuple):
    """The fields of a cluster or a user, and the folder against which relative paths are resolved."""

    fields: Mapping[str, Any]
    folder: Path
    described: str
    """The entry as text for messages, such as `user 'ana'`."""

    def text(self, name: str) -> str:
        """The text of a field, or empty if the field is missing."""
        return self.fields.get(name) or ""

    def has(self, name: str) -> bool:
        """Whether the field, or `<name>-data`, is set."""
        return bool(self.text(name) or self.text(f"{name}-data"))

    def content(self, name: str) -> bytes:
        """The decoded `<name>-data`, or else the content of the file in field `name`.

        The result is empty if neither field is set.
        """
        if data := self.text(f"{name}-data"):
            try:
                return b64decode("".join(data.split()), validate=True)
            except ValueError:
                raise self.wrong(f"{name}-data is not base64") from None
        return self.read(name) if self.text(name) else b""

    def pem(self, name: str) -> bytes:
        """Same as `content`, but raises Unusable if the content is not PEM.

        A file that another program is still writing may be incomplete.
        """
        content = self.content(name)
        if self.has(name) and _PEM not in content:
            raise self.wrong(f"{name} has no PEM data")
        return content

    def read(self, name: str) -> bytes:
        """The content of the file that a field names. Raises Unusable if it cannot be read."""
        text = self.text(name)
        try:
            return self.path(name).read_bytes()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it contains a null character"
            why = f"{why}; ~ is not expanded" if "~" in text else why
            # do not quote a value that may be a token or a key that was pasted instead of a path
            is_path = os.sep in text and text.isprintable() and len(text) <= _LONGEST_PATH
            raise self.wrong(f"{name}: {text if is_path else 'its file'} cannot be read ({why})") from None

    def path(self, name: str) -> Path:
        """The file that a field names."""
        return self.folder / self.text(name)

    def wrong(self, message: str) -> Unusable:
        """The error for a problem in this entry."""
        return Unusable(f"{self.described}: {message}")


class Context(NamedTuple):
    """An API server, and the user for the login."""

    name: str
    """The context's name, or empty for this Pod's account."""
    server: str
    """The address, including the scheme and the root path, if any."""
    cluster: Entry
    user: Entry

    @property
    def is_secure(self) -> bool:
        """Whether the server uses TLS. twgen sends no credential to a server without TLS."""
        return self.server.startswith("https://")


def context_of_pod() -> Context:
    """The API server of this Pod's cluster, and this Pod's account."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))  # noqa: TID251 - Kubernetes sets them in a Pod
    if not host or not port:
        raise Unusable("this is not a Pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    if not address_of(server):
        raise Unusable("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not a host and a port")
    account = "this Pod's service account"
    return Context(
        "",
        server,
        Entry({"server": server, "certificate-authority": "ca.crt"}, ACCOUNT, account),
        Entry({"tokenFile": "token"}, ACCOUNT, account),
    )


def context_of_files(paths: str, name: str) -> Context:
    """Find a context in kubeconfig files joined by `:`. If `name` is empty, use the current context.

    If several files set the same entry or a current context, the first file takes precedence. Missing and
    empty files are skipped.
    """
    documents = list(_documents(paths))
    current = (document.get("current-context") for document, _ in documents)
    context_name = name or next(filter(None, current), "")
    if not context_name:
        raise Unusable("it has no current-context: give --context")
    context = _entry(documents, "context", context_name)
    cluster = _entry(documents, "cluster", context.text("cluster"))
    user_name = context.text("user")
    no_user = Entry({}, Path(), f"context {context_name!r} without a user")
    user = _entry(documents, "user", user_name) if user_name else no_user
    found = Context(context_name, _server(cluster), cluster, user)
    _check_cluster(cluster)
    _check_user(user, is_secure=found.is_secure)
    return found


def _documents(paths: str) -> Iterator[tuple[Mapping[str, Any], Path]]:
    from twgen.yaml.reader import read_documents
    from twgen.yaml.source import YamlError

    found = False
    for file in filter(None, paths.split(os.pathsep)):
        path = Path(file)
        if not path.exists():
            continue
        found = True
        try:
            documents = read_documents(path.read_bytes())
        except OSError as error:
            raise Unusable(f"{path} cannot be read ({error.strerror})") from None
        except YamlError as error:
            # other messages may quote a part of the line, and that part may be a token
            why = error.message if "appears twice" in error.message else "not YAML"
            raise Unusable(f"{path}: {why}{f' at line {error.line}' if error.line else ''}") from None
        if not documents or documents[0] is None:
            continue
        findings = Findings()
        _FILE.read(documents[0], None, findings)
        for problem in findings.problems[:1]:
            raise Unusable(f"{path}: {problem.path or 'it'}: {problem.message}")
        yield documents[0], path.absolute().parent
    if not found:
        raise Unusable("there is no such file" + ("; ~ is not expanded" if "~" in paths else ""))


def _entry(documents: list[tuple[Mapping[str, Any], Path]], kind: str, name: str) -> Entry:
    for document, folder in documents:
        for item in document.get(f"{kind}s") or ():
            if item["name"] == name:
                return Entry(item.get(kind) or {}, folder, f"{kind} {name!r}")
    raise Unusable(f"no {kind} has the name {name!r}")


def _server(cluster: Entry) -> str:
    # the scheme may be in upper case
    server = re.sub("^[A-Za-z]+(?=://)", lambda scheme: scheme[0].lower(), cluster.text("server"))
    if not server:
        raise cluster.wrong("it has no server")
    if "://" not in server:
        server = f"http://{server}"
    address = address_of(server)
    if (
        address is None
        or address.scheme not in {"https", "http"}
        or address.username is not None
        or not {"?", "#"}.isdisjoint(server)
    ):
        # do not show the address, because it may contain a password
        raise cluster.wrong(
            "server is not an address such as https://kubernetes.example.com:6443, without user or query"
        )
    return server.rstrip("/")


def _check_cluster(cluster: Entry) -> None:
    if cluster.has("certificate-authority") and cluster.fields.get("insecure-skip-tls-verify"):
        raise cluster.wrong("insecure-skip-tls-verify conflicts with certificate-authority: remove one")
    _check_sources(cluster, "certificate-authority")
    if not _HOST.fullmatch(cluster.text("tls-server-name")):
        raise cluster.wrong("tls-server-name is not a valid host name")
    if proxy := cluster.text("proxy-url"):
        try:
            checked_proxy(proxy, "proxy-url")
        except NoProxy as error:
            raise cluster.wrong(str(error)) from None


def _check_sources(entry: Entry, name: str) -> None:
    if entry.text(name) and entry.text(f"{name}-data"):
        raise entry.wrong(f"{name} conflicts with {name}-data: remove one")


def _check_user(user: Entry, *, is_secure: bool) -> None:
    """Reject the combinations that kubectl rejects."""
    impersonates = user.text("as")
    if impersonates and not impersonates.strip():
        raise user.wrong("as is blank")
    if any(user.fields.get(field) for field in _IMPERSONATED) and not impersonates:
        raise user.wrong("as-uid, as-groups and as-user-extra also need the field 'as'")
    if impersonates and not is_secure:
        raise user.wrong(
            "the field 'as' needs a server with https://: twgen does not impersonate without TLS"
        )
    if not is_secure:
        return
    if (user.text("token") or user.text("tokenFile")) and (user.text("username") or user.text("password")):
        raise user.wrong("it has a token and a password: remove one")
    if user.text("password") and not user.text("username"):
        raise user.wrong("it has a password without a username")
    for name in ("client-certificate", "client-key"):
        _check_sources(user, name)
    if user.has("client-certificate") != user.has("client-key"):
        raise user.wrong("it needs both client-certificate and client-key")
    if (program := user.fields.get("exec")) is not None:
        if user.fields.get("auth-provider"):
            raise user.wrong("exec conflicts with auth-provider: remove one")
        _check_program(user, program)


def _check_program(user: Entry, program: Mapping[str, Any]) -> None:
    if not program.get("command"):
        raise user.wrong("exec has no command")
    if (version := program.get("apiVersion")) not in API_VERSIONS:
        raise user.wrong(f"apiVersion of exec is not {' or '.join(API_VERSIONS)}")
    mode = program.get("interactiveMode")
    if mode not in _MODES and (mode or version == _V1):
        raise user.wrong(f"interactiveMode of exec is not one of {', '.join(_MODES)}")
