"""Credentials that are renewed while a rollout goes on: what it connected with is forgotten in time."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from testing.faults import Trouble, forwarding
from testing.processes import eventually
from testing.security import Security
from testing.servers import NEWEST, TemporalServer, temporal_server
from twgen.cli.settings import clock
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles, load_profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.spec import Connection, NamedWorker

pytestmark = pytest.mark.server

SOON = 240.0


@contextmanager
def asking(address: str, profile: Path) -> Iterator[Callable[..., str]]:
    """What asks the server at an address again and again, over connections that are kept.

    A busy machine may take long to answer; what never is answered takes as long as is waited for.
    """
    worker = NamedWorker("live/nobody", "default", Connection("here", address))
    named = {"deployment_name": worker.worker_deployment}
    call: Call[str] = Call(worker, "DescribeWorkerDeployment", named, str, may_be_absent=True)
    clients = TemporalClients(lambda: Profiles(load_profiles({}, str(profile), use_environment=False)), {})

    def ask(within: float = SOON) -> str:
        try:
            return runner.run(clients.ask(call, Deadline(within)))
        except (StateUnavailable, OutOfTime) as error:
            return str(error)

    with asyncio.Runner() as runner:
        yield ask


def write_profile(file: Path, address: str, key: str, authority: Path, *more: str) -> None:
    lines = ["[profile.ours]", f'address = "{address}"', 'namespace = "default"']
    lines += [f'api_key = "{key}"'] if key else []
    lines += ["[profile.ours.tls]", f'server_ca_cert_path = "{authority}"', *more]
    (new := file.with_suffix(".new")).write_text("\n".join(lines))
    new.replace(file)


def is_answered(answer: str) -> bool:
    return answer == "None"


def test_key_that_was_renewed_is_used_once_the_server_refuses_the_old_one(tmp_path: Path) -> None:
    with temporal_server(tmp_path, NEWEST, security=Security.API_KEY) as server:
        issuer, authority = server.credentials.issuer, server.credentials.authority.file
        profile, ends = tmp_path / "temporal.toml", clock() + timedelta(seconds=20)
        key = issuer.api_key(["default:read"], until=ends)
        write_profile(profile, server.address, key, authority)
        with asking(server.address, profile) as ask:
            assert is_answered(ask())
            eventually(lambda: "check the credentials" in ask(), SOON)
            write_profile(profile, server.address, issuer.api_key(["default:read"]), authority)
            ask()
            assert is_answered(ask())


def test_certificates_that_were_renewed_are_used_once_the_server_asks_for_them(tmp_path: Path) -> None:
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        folder.mkdir()
    mutual = Security.MUTUAL_TLS
    with (
        temporal_server(folders[0], NEWEST, security=mutual) as before,
        temporal_server(folders[1], NEWEST, security=mutual) as after,
        forwarding(before.address, Trouble()) as way,
    ):
        profile, mounted = tmp_path / "temporal.toml", tmp_path / "mounted"
        mounted.mkdir()
        mount(before, mounted)
        client = (f'client_cert_path = "{mounted}/tls.crt"', f'client_key_path = "{mounted}/tls.key"')
        write_profile(profile, way.address, "", mounted / "ca.crt", *client)
        with asking(way.address, profile) as ask:
            assert is_answered(ask())
            way.turn(after.address)
            assert not is_answered(ask(within=5)), "its certificate is that of the other server"
            mount(after, mounted)
            eventually(lambda: is_answered(ask(within=5)), SOON)


def mount(server: TemporalServer, folder: Path) -> None:
    """What a Secret of the server's clients holds, as files."""
    given = server.credentials
    names = {"ca.crt": given.authority.file, "tls.crt": given.client.certificate, "tls.key": given.client.key}
    for name, file in names.items():
        shutil.copy(file, folder / name)
