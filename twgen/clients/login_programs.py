"""Running the login program that a kubeconfig names (exec).

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
"""Of what it prints."""
_CHUNK = 2**12
_LEAST_SECRET = 8
_NAMES_SECRET = re.compile("secret|token|password|key|credential", re.IGNORECASE)
_NEVER = "0001-01-01T00:00:00+00:00"
"""When a credential ends that does not end: the zero time of Go."""
_MARGIN = 30.0
"""Seconds before its end at which a credential is renewed: the request must arrive with it."""
_PART_OF_MARGIN = 0.1
"""The margin of a credential that is valid for a short time, as a part of that time."""
_PIPES_STAY_OPEN = 1.0
"""Seconds for the rest of its output after it has ended: a process that it left may hold the pipes."""
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
    """The proof of the account; empty: none is sent."""

    token: str = ""
    username: str = ""
    password: str = ""
    certificate: bytes = b""
    """As PEM, as is the key."""
    key: bytes = b""
    ends: float = inf
    """When it must be renewed, by `monotonic`."""


def renewal(end: float) -> float:
    """When a credential must be renewed that ends at this moment, in seconds since 1970."""
    # the server's clock is unknown, so this machine's clock is used
    left = end - datetime.now(UTC).timestamp()  # noqa: TID251
    return monotonic() + left - min(_MARGIN, max(0, left) * _PART_OF_MARGIN)


async def run_login_program(context: Context, seconds: float, *, asks: bool) -> Credential:
    """The credential that the program prints: a token, a certificate with its key, or both.

    If it may ask, a person at the terminal may take as long as they need. Otherwise, the program and its
    children are stopped after these seconds, and OutOfTime is raised. Raises Unusable if it fails, or prints
    no credential. It gets the terminal as its input, and never the input of twgen.
    """
    program = context.user.fields["exec"]
    terminal = _terminal() if asks else None
    if terminal is None and program.get("interactiveMode") == "Always":
        raise Unusable("its login program asks a person (interactiveMode: Always), and there is no terminal")
    is_interactive = terminal is not None and program.get("interactiveMode") != "Never"
    try:
        process = _start(context, program, terminal, is_interactive=is_interactive)
    finally:
        if terminal is not None:
            os.close(terminal)
    # not `with process`, which waits for a program of another user that nothing here can stop
    with _Output(process, is_shown=terminal is not None) as output:
        try:
            async with asyncio.timeout(seconds if terminal is None else None):
                await in_thread(process.wait)
        except TimeoutError:
            raise OutOfTime(
                f"the login program {_name(program)} did not end within {seconds:g} s: run it once at a"
                " terminal, or raise --timeout"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    if terminal is None:  # with its children
                        os.killpg(process.pid, signal.SIGKILL)
                    else:
                        process.kill()
        await output.rest()
    if len(output.printed) > _MOST_BYTES:
        raise Unusable(f"its login program {_name(program)} prints more than {_MOST_BYTES} bytes")
    if process.returncode:
        lines = output.errors.decode(errors="replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), "it says nothing")
        why = said(last, _secrets(program))
        raise Unusable(f"its login program {_name(program)} ended with {process.returncode} ({why})")
    return _credential(program, bytes(output.printed))


def _start(
    context: Context, program: Mapping[str, Any], terminal: int | None, *, is_interactive: bool
) -> "subprocess.Popen[bytes]":
    command = program["command"]
    # a relative path starts at the kubeconfig; a bare name is looked for on our PATH, not on its own
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
            # a group of its own can be stopped as a whole; but only the group of twgen may use the terminal
            start_new_session=terminal is None,
        )
    except (OSError, ValueError) as error:
        hint = said(program.get("installHint") or "") if isinstance(error, FileNotFoundError) else ""
        why = error.strerror if isinstance(error, OSError) else "its arguments or variables cannot be passed"
        raise Unusable(f"its login program {_name(program)} cannot be started ({hint or why})") from None


class _Output:
    """The output of a process, read by the event loop while this context lasts; then its pipes are closed."""

    def __init__(self, process: "subprocess.Popen[bytes]", *, is_shown: bool) -> None:
        """`is_shown`: its errors are shown at once, since they may ask the person something."""
        assert process.stdout  # noqa: S101 - for mypy, as below
        assert process.stderr  # noqa: S101
        self._printing, self._complaining = process.stdout, process.stderr
        self._open = {process.stdout.fileno(), process.stderr.fileno()}
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._is_shown = is_shown
        self.printed = bytearray()
        """At most one byte more than is accepted."""
        self.errors = bytearray()
        """Their end."""

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
        """Wait until its pipes are closed, but only a moment: a process that it left may hold them."""
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
    """The terminal, opened, if a person can answer there: twgen is in the foreground; None: nobody can."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return None
    with suppress(OSError):
        # a program in the background would be stopped as soon as it reads
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
    return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(request)}  # noqa: TID251 - it is handed on


def _described(cluster: Entry) -> dict[str, Any]:
    """The cluster, in the form that a login program expects."""
    names = "server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url"
    described = {name: cluster.fields[name] for name in names if name in cluster.fields}
    if authority := cluster.content("certificate-authority"):
        described["certificate-authority-data"] = b64encode(authority).decode()
    for extension in cluster.fields.get("extensions") or ():
        if extension.get("name") == _EXTENSION:
            described["config"] = extension.get("extension")
    return described


def _credential(program: Mapping[str, Any], printed: bytes) -> Credential:
    """Nothing of what it printed is shown: it may be the credential."""
    failed = f"its login program {_name(program)} printed no credential"
    answer = json_of(printed, Budget())
    if not isinstance(answer, dict):
        raise Unusable(f"{failed}: its output is not a JSON object")
    findings = Findings()
    _CREDENTIAL.read(answer, None, findings)
    for problem in findings.problems[:1]:
        raise Unusable(f"{failed}: {problem.path} is not right")
    if answer["apiVersion"] != program["apiVersion"]:
        raise Unusable(f"{failed}: its apiVersion is not {program['apiVersion']}")
    status: Mapping[str, Any] = answer["status"]
    try:
        end = datetime.fromisoformat(status.get("expirationTimestamp") or _NEVER)
    except ValueError:
        end = None
    if not end or not end.tzinfo:
        raise Unusable(f"{failed}: status.expirationTimestamp is not right")
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
    """The name of the program, for people."""
    return said(os.path.basename(program["command"]))  # noqa: PTH119 - importing pathlib is not needed here


def _secrets(program: Mapping[str, Any]) -> tuple[str, ...]:
    """What may be a secret of what it is given: every value, except short ones of other options."""
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
