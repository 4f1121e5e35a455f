"""Runs the credential plugin from a kubeconfig's `exec` field.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOENT
from math import inf
from typing import Any, NamedTuple, Self

from twgen.clients.deadline import in_thread, monotonic
from twgen.clients.http import json_of
from twgen.clients.kubeconfig import Context, Entry, Unusable
from twgen.clients.programs import program_on_path
from twgen.errors import OutOfTime
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import TEXT, Findings, constant
from twgen.reporting.printable import said
from twgen.yaml.source import Budget

_EXTENSION = "client.authentication.k8s.io/exec"
_MOST_BYTES = 2**20
"""A credential plugin can print at most this many bytes."""
_CHUNK = 2**12
_LEAST_SECRET = 8
_NAMES_SECRET = re.compile("secret|token|password|key|credential", re.IGNORECASE)
_NEVER = "0001-01-01T00:00:00+00:00"
"""The expiry time of a credential that never expires: Go's zero time."""
_MARGIN = 30.0
"""A credential is renewed this many seconds before it expires, so that it is still valid when a request
arrives."""
_PART_OF_MARGIN = 0.1
"""The margin for short-lived credentials, as a fraction of the remaining time."""
_PIPES_STAY_OPEN = 1.0
"""After the plugin has ended, twgen waits at most this many seconds for the rest of the output, because a
child process may still keep the pipes open."""
_CREDENTIAL = excerpt(
    Field("apiVersion", TEXT, required=True),
    Field("kind", constant("ExecCredential")),
    Field(
        "status",
        excerpt("token", "clientCertificateData", "clientKeyData", "expirationTimestamp"),
        required=True,
    ),
)


class Credential(NamedTuple):
    """An account's proof of identity. If all fields are empty, no credential is sent."""

    token: str = ""
    username: str = ""
    password: str = ""
    certificate: bytes = b""
    """In PEM."""
    key: bytes = b""
    """In PEM."""
    ends: float = inf
    """When to renew the credential, on the clock of `monotonic`."""


def renewal(end: float) -> float:
    """When to renew a credential that expires at `end` (seconds since 1970), on the clock of `monotonic`."""
    # the server's clock is unknown, so this uses the machine's clock
    left = end - datetime.now(UTC).timestamp()  # noqa: TID251
    return monotonic() + left - min(_MARGIN, max(0, left) * _PART_OF_MARGIN)


async def run_credential_plugin(context: Context, seconds: float, *, asks: bool) -> Credential:
    """The credential that the credential plugin prints: a token, a certificate with its key, or both.

    A plugin that can prompt a user at the terminal has no time limit. Otherwise, twgen stops the plugin and
    its children after `seconds`, and raises OutOfTime. Raises Unusable if the plugin fails or prints no
    credential. The plugin reads from the terminal, never from twgen's own input.
    """
    program = context.user.fields["exec"]
    terminal = _terminal() if asks else None
    if terminal is None and program.get("interactiveMode") == "Always":
        raise Unusable("its credential plugin needs a terminal (interactiveMode: Always), and there is none")
    is_interactive = terminal is not None and program.get("interactiveMode") != "Never"
    try:
        process = _start(context, program, terminal, is_interactive=is_interactive)
    finally:
        if terminal is not None:
            os.close(terminal)
    # `with process` would wait for a program that runs as another user, which twgen cannot stop
    with _Output(process, is_shown=terminal is not None) as output:
        try:
            async with asyncio.timeout(seconds if terminal is None else None):
                await in_thread(process.wait)
        except TimeoutError:
            raise OutOfTime(
                f"the credential plugin {_name(program)} did not finish within {seconds:g} s: run it once at"
                " a terminal, or raise --timeout"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    if terminal is None:  # stop its children too
                        os.killpg(process.pid, signal.SIGKILL)
                    else:
                        process.kill()
        await output.rest()
    if len(output.printed) > _MOST_BYTES:
        raise Unusable(f"its credential plugin {_name(program)} printed more than {_MOST_BYTES} bytes")
    if process.returncode:
        lines = output.errors.decode(errors="replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), "it printed no error")
        why = said(last, _secrets(program))
        raise Unusable(f"its credential plugin {_name(program)} exited with {process.returncode} ({why})")
    return _credential(program, bytes(output.printed))


def _start(
    context: Context, program: Mapping[str, Any], terminal: int | None, *, is_interactive: bool
) -> "subprocess.Popen[bytes]":
    command = program["command"]
    # a relative path is relative to the kubeconfig; a bare name is looked up in twgen's own PATH, not in the
    # PATH from `env`
    file = str(context.user.folder / command) if os.sep in command else program_on_path(command)
    try:
        if not file:
            raise FileNotFoundError(ENOENT, "it is not on PATH")
        return subprocess.Popen(  # noqa: S603 - the kubeconfig is the person's own
            [file, *(program.get("args") or ())],
            stdin=terminal if is_interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(context, program, is_interactive=is_interactive),
            # a separate process group can be stopped as a whole, but only twgen's own group may use the
            # terminal
            start_new_session=terminal is None,
        )
    except (OSError, ValueError) as error:
        hint = said(program.get("installHint") or "") if isinstance(error, FileNotFoundError) else ""
        why = error.strerror if isinstance(error, OSError) else "its arguments or variables cannot be passed"
        raise Unusable(f"its credential plugin {_name(program)} cannot be started ({hint or why})") from None


class _Output:
    """The output of a process, as a context manager.

    Within the context, the event loop reads the output. Leaving the context closes the pipes.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", *, is_shown: bool) -> None:
        """With `is_shown`, standard error is printed immediately, because the plugin may prompt the user."""
        assert process.stdout  # noqa: S101 - for mypy
        assert process.stderr  # noqa: S101
        self._printing, self._complaining = process.stdout, process.stderr
        self._open = {process.stdout.fileno(), process.stderr.fileno()}
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._is_shown = is_shown
        self.printed = bytearray()
        """The standard output, which is cut one byte after the limit."""
        self.errors = bytearray()
        """The last part of the standard error."""

    def __enter__(self) -> Self:
        for pipe in self._open:
            self._loop.add_reader(pipe, self._read, pipe)
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._open:
            self._loop.remove_reader(pipe)
        self._printing.close()
        self._complaining.close()

    async def rest(self) -> None:
        """Wait until the pipes are closed, but not for long: a child process may keep them open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PIPES_STAY_OPEN):
                await self._ended.wait()

    def _read(self, pipe: int) -> None:
        data = os.read(pipe, _CHUNK)
        if not data:
            self._loop.remove_reader(pipe)
            self._open.remove(pipe)
            if not self._open:
                self._ended.set()
        elif pipe == self._printing.fileno():
            self.printed += data[: _MOST_BYTES + 1 - len(self.printed)]
        else:
            self.errors = (self.errors + data)[-_CHUNK:]
            if self._is_shown:
                sys.stderr.buffer.write(data)
                sys.stderr.flush()


def _terminal() -> int | None:
    """The opened terminal, or None if twgen does not run in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return None
    with suppress(OSError):
        # the system would stop a background program that reads from the terminal
        if os.tcgetpgrp(terminal) == os.getpgrp():
            return terminal
    os.close(terminal)
    return None


def _environment(context: Context, program: Mapping[str, Any], *, is_interactive: bool) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": is_interactive}
    if program.get("provideClusterInfo"):
        spec["cluster"] = _described(context.cluster)
    request = {"apiVersion": program["apiVersion"], "kind": "ExecCredential", "spec": spec}
    own = {item["name"]: item.get("value") or "" for item in program.get("env") or ()}
    return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(request)}  # noqa: TID251 - passed on to the program


def _described(cluster: Entry) -> dict[str, Any]:
    """The cluster in the form that credential plugins expect."""
    names = "server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url"
    described = {name: cluster.fields[name] for name in names if name in cluster.fields}
    if authority := cluster.content("certificate-authority"):
        described["certificate-authority-data"] = b64encode(authority).decode()
    for extension in cluster.fields.get("extensions") or ():
        if extension.get("name") == _EXTENSION:
            described["config"] = extension.get("extension")
    return described


def _credential(program: Mapping[str, Any], printed: bytes) -> Credential:
    """Parse the output. Errors never quote the output, because it may contain the credential."""
    failed = f"its credential plugin {_name(program)} printed no credential"
    answer = json_of(printed, Budget())
    if not isinstance(answer, dict):
        raise Unusable(f"{failed}: its output is not a JSON object")
    findings = Findings()
    _CREDENTIAL.read(answer, None, findings)
    for problem in findings.problems[:1]:
        raise Unusable(f"{failed}: {problem.path} is invalid")
    if answer["apiVersion"] != program["apiVersion"]:
        raise Unusable(f"{failed}: its apiVersion is not {program['apiVersion']}")
    status: Mapping[str, Any] = answer["status"]
    try:
        end = datetime.fromisoformat(status.get("expirationTimestamp") or _NEVER)
    except ValueError:
        end = None
    if not end or not end.tzinfo:
        raise Unusable(f"{failed}: status.expirationTimestamp is invalid")
    has_certificate = bool(status.get("clientCertificateData"))
    if has_certificate != bool(status.get("clientKeyData")):
        raise Unusable(f"{failed}: it needs both clientCertificateData and clientKeyData")
    if not has_certificate and not status.get("token"):
        raise Unusable(f"{failed}: its status has no token and no certificate")
    return Credential(
        token=status.get("token") or "",
        certificate=(status.get("clientCertificateData") or "").encode(),
        key=(status.get("clientKeyData") or "").encode(),
        ends=inf if end.year == 1 else renewal(end.timestamp()),
    )


def _name(program: Mapping[str, Any]) -> str:
    return said(os.path.basename(program["command"]))  # noqa: PTH119 - saves importing pathlib


def _secrets(program: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments and variables that may be secret: all except short values with harmless names."""
    named = [(item["name"], item.get("value") or "") for item in program.get("env") or ()]
    option = ""
    for argument in program.get("args") or ():
        is_option = argument.startswith("-")
        name, _, value = argument.partition("=") if is_option else (option, "", argument)
        named += [(name, value), (name, value.rpartition("=")[2])]
        option = argument if is_option else ""
    return tuple(
        value
        for name, value in named
        if value and (len(value) >= _LEAST_SECRET or _NAMES_SECRET.search(name))
    )
