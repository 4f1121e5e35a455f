"""Logs in to an API server with a kubeconfig, or with a Pod's service account.

twgen chooses the context, the user and the login in the same way as kubectl. The Kubernetes client derives
the TLS settings and the Authorization header from this one checked context.
"""

import asyncio
import re
import ssl
import sys
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from math import inf, isfinite
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from twgen.clients.credential_plugins import Credential, renewal, run_credential_plugin
from twgen.clients.deadline import in_thread, monotonic
from twgen.clients.http import TOKEN, json_of, pool_to, tls_context
from twgen.clients.kubeconfig import ClusterAccess, Context, Unusable, context_of_files, context_of_pod
from twgen.errors import StateUnavailable
from twgen.yaml.source import Budget

if TYPE_CHECKING:
    from kubernetes.client import Configuration
    from urllib3 import PoolManager

Headers = Mapping[str, str | tuple[str, ...]]

_FILES_ARE_READ_AGAIN_AFTER = 60.0
_REFUSED_AGAIN_AFTER = 10.0
"""After a rejected login, another rejection within this many seconds does not start a new login."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_OPEN_FILES = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_LEGAL_IN_NAMES = "!#$&'*+-.^_`|~"
"""Characters that a header name may contain in addition to letters and digits."""
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class Session(NamedTuple):
    """An API server, with connections and credentials for it."""

    context: Context
    pool: "PoolManager"
    headers: Headers
    """The Authorization header and the impersonation headers."""
    credential: Credential
    made_of: tuple[Any, ...]
    """The pool's settings. The pool is reused until its settings change."""
    files_are_read_at: float

    @property
    def server(self) -> str:
        """The server's address."""
        return self.context.server

    @property
    def ends(self) -> float:
        """When to renew the session, on the clock of `monotonic`."""
        return min(self.credential.ends, self.files_are_read_at)


class Login:
    """Keeps the session with one API server.

    A session is renewed before its credential expires, within a minute after one of its files has changed,
    and after the server has rejected the session.
    """

    def __init__(self, access: ClusterAccess, *, asks: bool) -> None:
        self.access = access
        """Once a login has succeeded, twgen contacts only that server, even if the context later names a
        different server."""
        self._asks = asks
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._refused_at = -inf

    def close(self) -> None:
        """Close the connections to the server."""
        if self._session:
            self._session.pool.clear()

    async def session(self, seconds: float, refused: Session | None = None) -> Session:
        """The current session, renewed if necessary, for example because the server has `refused` it.

        `seconds` is the time limit of a credential plugin. Raises StateUnavailable or OutOfTime if the login
        fails. After a failed login, the next call tries again.
        """
        session = self._session
        if session and session is not refused and monotonic() < session.ends:
            return session
        if not self._opening or self._opening.done():
            if refused:
                if monotonic() < self._refused_at + _REFUSED_AGAIN_AFTER:
                    return refused
                self._refused_at = monotonic()
            self._opening = asyncio.create_task(self._renewed(seconds, is_refused=refused is not None))
        # if one read is cancelled, the login continues, because other reads wait for it
        return await asyncio.shield(self._opening)

    async def _renewed(self, seconds: float, *, is_refused: bool) -> Session:
        before = self._session
        try:
            self._session = await self._opened(before, seconds, is_refused=is_refused)
        except (Unusable, OSError) as error:
            why = str(error) if isinstance(error, Unusable) else error.strerror
            if before and not is_refused and monotonic() < before.credential.ends:
                # the file is probably being replaced; the server still accepts the previous credential
                self._session = before._replace(files_are_read_at=monotonic() + _FILES_ARE_READ_AGAIN_AFTER)
                return self._session
            server = f"Kubernetes ({self.access.described})"
            remedy = f"correct it{self.access.or_without}"
            raise StateUnavailable(f"{server} cannot be used: {why}; {remedy}") from None
        context = self._session.context
        self.access = replace(self.access, context=context.name, server=context.server)
        if before and before.pool is not self._session.pool:
            before.pool.clear()  # requests in progress keep their connections
        return self._session

    async def _opened(self, before: Session | None, seconds: float, *, is_refused: bool) -> Session:
        def read() -> tuple[Context, Credential | None]:
            access = self.access
            context = (
                context_of_pod()
                if not access.kubeconfig
                else context_of_files(access.kubeconfig, access.context)
            )
            if access.kubeconfig and access.server not in {"", context.server}:
                raise Unusable(f"context {context.name!r} now names another server: restart twgen")
            return context, _credential(context, before)

        try:
            async with asyncio.timeout(seconds):
                context, credential = await in_thread(read)
        except TimeoutError:
            raise Unusable(f"its files cannot be read within {seconds:g} s") from None
        if credential is None:
            is_same_user = before and before.context.user == context.user
            if before and is_same_user and not is_refused and monotonic() < before.credential.ends:
                credential = before.credential
            else:
                credential = await run_credential_plugin(context, seconds, asks=self._asks)
        # in a thread, because importing the Kubernetes client takes a third of a second
        return await in_thread(lambda: _open(context, credential, before))


def _credential(context: Context, before: Session | None) -> Credential | None:
    """The user's credential, or None if only a credential plugin can provide a credential."""
    user = context.user
    if not context.is_secure:
        return Credential()
    credential = Credential(certificate=user.pem("client-certificate"), key=user.pem("client-key"))
    if user.text("tokenFile"):
        return credential._replace(token=_token_of_file(context, before))
    if token := user.text("token"):
        return credential._replace(token=token)
    if username := user.text("username"):
        return credential._replace(username=username, password=user.text("password"))
    if (provider := user.fields.get("auth-provider")) is not None:
        if provider.get("name") != "oidc":
            name = provider.get("name")
            raise Unusable(f"auth-provider {name!r} is not supported: use a credential plugin (exec)")
        token = (provider.get("config") or {}).get("id-token") or ""
        ends = renewal(_end_of(token)) if token else 0.0
        if ends <= monotonic():
            # a refresh token works only once, and only kubectl saves the next one
            raise Unusable("its OIDC token has expired: run kubectl once, which renews and saves it")
        return credential._replace(token=token, ends=ends)
    if credential.certificate:
        return credential
    if user.fields.get("exec"):
        return None
    raise user.wrong("it has no token, password, certificate or credential plugin")


def _token_of_file(context: Context, before: Session | None) -> str:
    user = context.user
    try:
        token = user.read("tokenFile").decode().strip()
    except Unusable:
        # the first login may use the kubeconfig's token; later, the last token from the file is newer
        if before is None and (token := user.text("token")):
            return token
        raise
    except UnicodeDecodeError:
        token = ""
    if not token:
        raise user.wrong("tokenFile has no token")
    return token


def _end_of(id_token: str) -> float:
    """When a JSON Web Token expires, in seconds since 1970, or infinity if it contains no expiry time."""
    try:
        _, claims, _ = id_token.split(".")
        document = json_of(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)), Budget())
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unusable("its OIDC id-token is not a JSON Web Token")
    end = document.get("exp")
    return float(end) if isinstance(end, int | float) and isfinite(end) else inf


def _open(context: Context, credential: Credential, before: Session | None) -> Session:
    cluster = context.cluster
    is_verified = not cluster.fields.get("insecure-skip-tls-verify")
    authority = b"\n".join(_CERTIFICATE.findall(cluster.content("certificate-authority")))
    if not authority and cluster.has("certificate-authority"):
        raise cluster.wrong("certificate-authority has no PEM certificate")
    settings = cluster.text("tls-server-name"), cluster.text("proxy-url"), is_verified
    made_of = (context.server, *settings, authority, credential.certificate, credential.key)
    with ExitStack() as files:
        configuration = _configuration(context, credential, authority, files)
        is_same = before and before.made_of == made_of
        pool = before.pool if before and is_same else _pool(context, configuration)
    names_files = any(entry.text(name) for entry in (cluster, context.user) for name in _FILES)
    return Session(
        context,
        pool,
        {**_authorization(configuration), **_impersonation(context)},
        credential,
        made_of,
        monotonic() + _FILES_ARE_READ_AGAIN_AFTER if names_files else inf,
    )


def _configuration(
    context: Context, credential: Credential, authority: bytes, files: ExitStack
) -> "Configuration":
    """The settings that the Kubernetes client derives from a context.

    The client reads certificates and keys only from files. twgen writes them to unnamed temporary files, so
    that nothing remains on disk even if the program crashes.

    twgen does not use the client's own support for credential plugins and OIDC: after a failed login, the
    client continues without a credential, and its errors quote credentials.
    """
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_kube_config_from_dict

    def file(name: str, content: bytes) -> dict[str, str]:
        if not content:
            return {}
        unnamed = files.enter_context(TemporaryFile())  # noqa: SIM115 - the stack closes it
        unnamed.write(content)
        unnamed.seek(0)
        return {name: f"{_OPEN_FILES}/{unnamed.fileno()}"}

    cluster = {
        "server": context.server,
        "insecure-skip-tls-verify": bool(context.cluster.fields.get("insecure-skip-tls-verify")),
        **file("certificate-authority", authority),
    }
    if server_name := context.cluster.text("tls-server-name"):
        cluster["tls-server-name"] = server_name
    user = {**file("client-certificate", credential.certificate), **file("client-key", credential.key)}
    if credential.token:
        user["token"] = credential.token
    elif credential.username:
        # the client encodes user name and password as Latin-1, but kubectl encodes both as UTF-8
        user |= {"username": _as_utf8(credential.username), "password": _as_utf8(credential.password)}
    document = {
        "current-context": "context",
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
    }
    configuration = Configuration(proxy="", no_proxy="")
    try:
        load_kube_config_from_dict(document, client_configuration=configuration, persist_config=False)
    except ConfigException:
        # the error's text quotes the context
        raise Unusable("the Kubernetes client cannot use the context") from None
    return configuration


def _as_utf8(text: str) -> str:
    return text.encode().decode("latin-1")


def _pool(context: Context, configuration: "Configuration") -> "PoolManager":
    if not context.is_secure:
        return pool_to(context.server, None, proxy=context.cluster.text("proxy-url"))
    try:
        tls = tls_context(configuration.ssl_ca_cert or "", is_verified=configuration.verify_ssl)
    except ssl.SSLError:
        raise context.cluster.wrong("certificate-authority has a certificate that cannot be read") from None
    if not configuration.verify_ssl:
        from urllib3 import disable_warnings
        from urllib3.exceptions import InsecureRequestWarning

        disable_warnings(InsecureRequestWarning)  # the kubeconfig turns verification off
    if configuration.cert_file:
        try:
            # without this argument, the library would prompt for a password at the terminal
            tls.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
        except ssl.SSLError:
            raise context.user.wrong(
                "its client certificate and key cannot be used: they must be PEM, without a password, and"
                " belong together"
            ) from None
    return pool_to(
        context.server,
        tls,
        server_name=configuration.tls_server_name or "",
        proxy=context.cluster.text("proxy-url"),
    )


def _authorization(configuration: "Configuration") -> dict[str, str]:
    """The Authorization header, or empty without a token or password."""
    scheme, _, proof = configuration.api_key.get("BearerToken", "").partition(" ")
    if scheme and not TOKEN.fullmatch(proof.strip()):
        raise Unusable("its token contains a character that is not allowed in an HTTP header")
    return {"Authorization": f"{scheme} {proof.strip()}"} if scheme else {}


def _impersonation(context: Context) -> Headers:
    """The impersonation headers, or empty if the user does not impersonate another account."""
    user = context.user
    if not user.text("as"):
        return {}
    values: dict[str, tuple[str, ...]] = {"Impersonate-User": (user.text("as").strip(" \t"),)}
    if uid := user.text("as-uid"):
        values["Impersonate-Uid"] = (uid,)
    if groups := user.fields.get("as-groups"):
        values["Impersonate-Group"] = tuple(groups)
    for key, texts in (user.fields.get("as-user-extra") or {}).items():
        values[f"Impersonate-Extra-{quote(key, safe=_LEGAL_IN_NAMES)}"] = tuple(texts)
    if any(_CONTROL.search(text) for texts in values.values() for text in texts):
        raise user.wrong(
            "as, or a field that starts with as-, contains a character that is not allowed in an HTTP header"
        )
    return {name: tuple(map(_as_utf8, texts)) for name, texts in values.items()}
