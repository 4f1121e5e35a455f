"""The cluster and the account: from the contexts of kubeconfig files, or from this Pod."""

import os
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from twgen.model.values import dataclass

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Unusable(Exception):
    """A kubeconfig or a login that cannot be used; the message quotes no credential."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A kubeconfig and one of its contexts, or the account of this Pod."""

    kubeconfig: str = ""
    """Files joined by `:`, as in KUBECONFIG; empty: the Pod's own account."""
    context: str = ""
    """Empty: the current one."""

    @property
    def described(self) -> str:
        """The cluster, for people."""
        if not self.kubeconfig:
            return "the cluster of this Pod"
        return f"context {self.context!r} of {self.kubeconfig}" if self.context else self.kubeconfig


class Entry(NamedTuple):
    """The fields of a cluster or a user, and the folder that relative paths in it start from."""

    fields: Mapping[str, Any]
    folder: Path

    def content(self, name: str) -> bytes:
        """The field `<name>-data`, else the content of the file that `name` names; empty without both."""
        if data := self.fields.get(f"{name}-data"):
            return b64decode(data)
        path = self.path(name)
        return path.read_bytes() if path else b""

    def path(self, name: str) -> Path | None:
        """The file that a field names."""
        file = self.fields.get(name)
        return self.folder / Path(file).expanduser() if file else None


class Context(NamedTuple):
    """An API server, and the user."""

    cluster: Entry
    user: Entry


def context_of_pod() -> Context:
    """The API server of this Pod's cluster, and the account of this Pod."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))  # noqa: TID251 - a Pod has no other way to say it
    if not host or not port:
        raise Unusable("this is not a Pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Context(
        Entry({"server": server, "certificate-authority": "ca.crt"}, _ACCOUNT),
        Entry({"tokenFile": "token"}, _ACCOUNT),
    )


def context_of_files(paths: str, name: str) -> Context:
    """A context of files that are joined by `:`; without a name the current one.

    The first file that has an entry, or a current context, decides; missing files are skipped.
    """
    documents = list(_documents(paths))
    if not documents:
        raise Unusable("there is no such file")
    try:
        current = (
            str(document["current-context"]) for document, _ in documents if document.get("current-context")
        )
        if not (context_name := name or next(current, "")):
            raise Unusable("it has no current-context: give --context")
        context = _entry(documents, "context", context_name).fields
        user = context.get("user")
        users = (item["name"] for document, _ in documents for item in document.get("users") or ())
        return Context(
            _entry(documents, "cluster", context.get("cluster")),
            _entry(documents, "user", user) if user and user in users else Entry({}, Path()),
        )
    except (TypeError, KeyError, AttributeError):
        raise Unusable("not a kubeconfig") from None


def _documents(paths: str) -> Iterator[tuple[Mapping[str, Any], Path]]:
    from yaml import YAMLError, safe_load

    for file in filter(None, paths.split(os.pathsep)):
        path = Path(file).expanduser()
        try:
            document = safe_load(path.read_bytes())
        except FileNotFoundError:
            continue
        except YAMLError as error:
            # the parser quotes the line that it cannot read, and that may be a token
            mark = getattr(error, "problem_mark", None)
            raise Unusable(f"not YAML at line {mark.line + 1}" if mark else "not YAML") from None
        if not isinstance(document, dict):
            raise Unusable("not a kubeconfig")
        yield document, path.absolute().parent


def _entry(documents: list[tuple[Mapping[str, Any], Path]], kind: str, name: Any) -> Entry:
    for document, folder in documents:
        for item in document.get(f"{kind}s") or ():
            if item["name"] == name:
                return Entry(item.get(kind) or {}, folder)
    raise Unusable(f"no {kind} has the name {name}")
