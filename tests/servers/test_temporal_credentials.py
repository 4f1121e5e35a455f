"""Servers that ask for credentials: the right ones work, and no byte of wrong ones is ever shown."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from testing.asking import succeeds
from testing.credentials import SERVER_NAME, Authority, Certificate, KeyIssuer
from testing.processes import eventually
from testing.security import Credentials, Security
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker, credential_variables
from tests.servers.live import SLACK, Ended, connection_document, run, worker_document
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

UNAVAILABLE = 3
TIMEOUT = 20.0
OPTIONS = ("--no-cluster", "-q", "--timeout", f"{TIMEOUT:g}s")
SECRETS: Mapping[Security, dict[str, dict[str, str]]] = {
    Security.TLS: {},
    Security.MUTUAL_TLS: {"mutualTLSSecretRef": {"name": "certificate"}},
    Security.API_KEY: {"apiKeySecretRef": {"name": "key", "key": "token"}},
}

Servers = Mapping[Security, TemporalServer]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A server of each security on which the worker `secured` has its version `v1` as the current one."""
    with ExitStack() as stack:

        def started(security: Security) -> TemporalServer:
            server = temporal_server(tmp_path_factory.mktemp(security.name), NEWEST, security=security)
            return stack.enter_context(server)

        def settled(server: TemporalServer) -> None:
            worker = DeployedWorker(server, "live/secured", "secured")
            stack.enter_context(worker.version("v1"))
            eventually(lambda: succeeds(lambda: worker.set_current("v1")))

        found = {security: started(security) for security in SECRETS}
        with ThreadPoolExecutor(len(found)) as pool:
            list(pool.map(settled, found.values()))
        yield found


def tls(authority: Authority, client: Certificate | None = None, **more: str) -> dict[str, str]:
    settings = {"server_ca_cert_path": str(authority.file), **more}
    if client:
        settings |= {"client_cert_path": str(client.certificate), "client_key_path": str(client.key)}
    return settings


def profile(server: TemporalServer, tls_settings: Mapping[str, str], api_key: str = "") -> str:
    lines = ["[profile.ours]", f'address = "{server.address}"', 'namespace = "default"']
    lines += [f'api_key = "{api_key}"'] if api_key else []
    lines += ["[profile.ours.tls]", *(f'{key} = "{value}"' for key, value in tls_settings.items())]
    return "\n".join(lines)


def right_profile(server: TemporalServer) -> str:
    given = server.credentials
    client = given.client if server.security is Security.MUTUAL_TLS else None
    key = given.issuer.api_key(["default:read"]) if server.security is Security.API_KEY else ""
    return profile(server, tls(given.authority, client), key)


def run_with(
    profiles: str,
    server: TemporalServer,
    folder: Path,
    *command: str,
    namespace: str = "default",
    options: Sequence[str] = OPTIONS,
) -> Ended:
    specs = write_secured_specs(folder, server, namespace)
    file = folder / "temporal.toml"
    file.write_text(profiles)
    ended = run(specs, *command, options=options, variables={"TEMPORAL_CONFIG_FILE": str(file)})
    assert_no_secret_is_shown(ended, profiles)
    return ended


def write_secured_specs(
    folder: Path, server: TemporalServer, namespace: str = "default", address: str = ""
) -> Path:
    specs = folder / "specs"
    specs.mkdir()
    secrets = SECRETS.get(server.security, {})
    connection = connection_document(address or server.address, **secrets)
    worker = worker_document("secured", "v1", temporal_namespace=namespace)
    (specs / "specs.yaml").write_text(write_documents([connection, worker]))
    return specs


def assert_no_secret_is_shown(ended: Ended, profiles: str) -> None:
    shown = ended.stdout + ended.stderr
    values = dict(line.split(" = ") for line in profiles.splitlines() if " = " in line)
    key = values.get("api_key", "").strip('"')
    file = Path(values.get("client_key_path", "").strip('"'))
    private = file.read_text().splitlines() if file.is_file() else []
    for secret in filter(None, (key, *key.split("."), *private)):
        assert secret not in shown


def refused(ended: Ended, server: TemporalServer, namespace: str = "default") -> str:
    """The one line that says why."""
    assert (ended.code, ended.stdout) == (UNAVAILABLE, ""), ended
    assert ended.seconds < TIMEOUT + SLACK
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"twgen: Temporal at {server.address}, namespace {namespace!r}")
    return line


@pytest.mark.parametrize("command", [("render",), ("plan", "-o", "json"), ("snapshot", "-o", "json")])
@pytest.mark.parametrize("security", SECRETS)
def test_right_credentials_work(
    servers: Servers, security: Security, command: Sequence[str], tmp_path: Path
) -> None:
    ended = run_with(right_profile(servers[security]), servers[security], tmp_path, *command)
    assert (ended.code, ended.stderr) == (0, "")
    if command[0] == "snapshot":
        [worker] = json.loads(ended.stdout)["workers"]
        assert worker["temporal"]["routing"]["current"]["buildID"] == "v1"


def trusting(server: TemporalServer, folder: Path, profiles: str, *more: str) -> Ended:
    """A plan of a worker whose Connection says whom it trusts, with a profile that does not."""
    specs = write_secured_specs(folder, server)
    trusted = {"tls": {"caCertSecretRef": {"name": "authority"}}}
    connection = connection_document(server.address, **SECRETS[server.security], **trusted)
    (specs / "specs.yaml").write_text(write_documents([connection, worker_document("secured", "v1")]))
    file = folder / "temporal.toml"
    file.write_text(profiles)
    variables = {"TEMPORAL_CONFIG_FILE": str(file)}
    return run(specs, "plan", options=(*OPTIONS, *more), variables=variables)


@pytest.mark.parametrize("security", [Security.TLS, Security.API_KEY])
def test_certificates_that_a_connection_trusts_are_those_of_a_file(
    servers: Servers, security: Security, tmp_path: Path
) -> None:
    server = servers[security]
    key = server.credentials.issuer.api_key(["default:read"]) if security is Security.API_KEY else ""
    # a server that asks for TLS alone needs no profile then
    profiles = profile(server, {}, key) if key else ""
    given = f"authority={server.credentials.authority.file}"
    ended = trusting(server, tmp_path, profiles, "--ca-file", given)
    assert (ended.code, ended.stderr) == (0, "")


def test_certificates_that_nobody_gives_are_told_with_their_secret(servers: Servers, tmp_path: Path) -> None:
    server = servers[Security.API_KEY]
    key = server.credentials.issuer.api_key(["default:read"])
    line = refused(trusting(server, tmp_path, profile(server, {}, key)), server)
    assert "has a certificate that is not trusted: check server_ca_cert_path" in line
    assert "or pass --ca-file authority=FILE with the certificates that its Connection trusts" in line


def test_connection_that_says_whom_to_trust_and_no_profile_say_what_is_missing(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers[Security.TLS]
    line = refused(trusting(server, tmp_path, ""), server)
    assert line.endswith(", or give only --ca-file authority=FILE")


def test_file_of_certificates_that_cannot_be_read_is_named(servers: Servers, tmp_path: Path) -> None:
    ended = trusting(servers[Security.TLS], tmp_path, "", "--ca-file", "authority=/nowhere/ca.crt")
    assert (ended.code, ended.stdout) == (UNAVAILABLE, "")
    assert ended.stderr == (
        "twgen: /nowhere/ca.crt: cannot read the trusted certificates (No such file or directory)\n"
    )


@pytest.mark.parametrize("security", SECRETS)
def test_credentials_of_the_environment_work(servers: Servers, security: Security, tmp_path: Path) -> None:
    server = servers[security]
    variables = {
        "TEMPORAL_ADDRESS": server.address,
        "TEMPORAL_NAMESPACE": "default",
        **credential_variables(server, "default"),
    }
    specs = write_secured_specs(tmp_path, server)
    ended = run(specs, "render", options=OPTIONS, variables=variables)
    assert (ended.code, ended.stderr) == (0, "")
    assert "name: secured-v1" in ended.stdout


@pytest.mark.parametrize("security", SECRETS)
def test_server_name_of_the_certificate_may_be_given(
    servers: Servers, security: Security, tmp_path: Path
) -> None:
    named = right_profile(servers[security]) + f'\nserver_name = "{SERVER_NAME}"'
    assert run_with(named, servers[security], tmp_path, "render").code == 0


@pytest.mark.parametrize("security", SECRETS)
def test_certificate_for_another_name_is_refused(
    servers: Servers, security: Security, tmp_path: Path
) -> None:
    named = right_profile(servers[security]) + '\nserver_name = "elsewhere.example"'
    line = refused(run_with(named, servers[security], tmp_path, "render"), servers[security])
    assert "not trusted: check server_ca_cert_path and server_name of profile 'ours'" in line


@pytest.mark.parametrize("security", SECRETS)
def test_server_of_another_authority_is_refused(servers: Servers, security: Security, tmp_path: Path) -> None:
    server = servers[security]
    other = right_profile(server).replace(
        str(server.credentials.authority.file), str(Authority(tmp_path, "other").file)
    )
    line = refused(run_with(other, server, tmp_path, "render"), server)
    assert "not trusted: check server_ca_cert_path" in line


def test_secured_server_is_not_read_in_plain_text(servers: Servers, tmp_path: Path) -> None:
    server = servers[Security.TLS]
    refused(run_with("", server, tmp_path, "render"), server)


def test_key_for_a_server_that_speaks_no_tls_is_not_sent_and_the_remedy_is_told(
    newest_temporal: TemporalServer, tmp_path: Path
) -> None:
    key = KeyIssuer().api_key(["default:read"])
    profiles = profile(newest_temporal, {}, key).replace("[profile.ours.tls]", "")
    line = refused(run_with(profiles, newest_temporal, tmp_path, "render"), newest_temporal)
    file = tmp_path / "specs" / "specs.yaml"
    assert line.endswith(
        f" (for live/secured of {file}) does not use TLS, but profile 'ours' requires it: correct the"
        " address; if the server is meant to run without TLS, remove the key and tls from profile 'ours'"
    )


@pytest.mark.parametrize(
    ("address", "code"), [(f"{SERVER_NAME}:7233", 0), ("elsewhere.example:7233", UNAVAILABLE)]
)
def test_certificate_behind_a_port_forward_must_be_that_of_the_connections_address(
    servers: Servers, address: str, code: int, tmp_path: Path
) -> None:
    server = servers[Security.MUTUAL_TLS]
    profiles = right_profile(server).replace(server.address, address)
    specs = tmp_path / "specs"
    write_secured_specs(tmp_path, server, address=address)
    (tmp_path / "temporal.toml").write_text(profiles)
    variables = {
        "TEMPORAL_CONFIG_FILE": str(tmp_path / "temporal.toml"),
        "TWGEN_VIA": f"{address}={server.address}",
    }
    ended = run(specs, "render", options=OPTIONS, variables=variables)
    assert ended.code == code, ended.stderr
    if code:
        assert f"Temporal at {address} via {server.address}, " in ended.stderr
        assert "certificate that is not trusted" in ended.stderr


def test_port_forward_gives_credentials_to_no_address_that_no_profile_is_for(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers[Security.API_KEY]
    write_secured_specs(tmp_path, server, address="temporal.prod.svc:7233")
    (tmp_path / "temporal.toml").write_text(right_profile(server))
    before = server.calls()["DescribeWorkerDeployment"]
    ended = run(
        tmp_path / "specs",
        "render",
        options=(*OPTIONS, "--via", f"temporal.prod.svc:7233={server.address}"),
        variables={"TEMPORAL_CONFIG_FILE": str(tmp_path / "temporal.toml")},
    )
    assert ended.code == UNAVAILABLE
    assert "no Temporal profile matches" in ended.stderr
    assert server.calls()["DescribeWorkerDeployment"] == before


def wrong_certificates(given: Credentials, folder: Path) -> Mapping[str, Certificate | None]:
    stranger = Authority(folder, "stranger").client("stranger")
    missing = Certificate(given.client.certificate, folder / "missing.key")
    return {
        "none": None,
        "of another authority": stranger,
        "expired": given.authority.client("expired", expired=True),
        "with the key of another": Certificate(given.client.certificate, stranger.key),
        "without a key": missing,
        "no certificate at all": Certificate(given.client.key, given.client.key),
    }


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("none", "certificate"),
        ("of another authority", "certificate"),
        ("expired", "certificate"),
        ("with the key of another", "client_cert_path and client_key_path"),
        ("no certificate at all", "certificate"),
    ],
)
def test_wrong_client_certificate_is_refused(
    servers: Servers, wrong: str, advice: str, tmp_path: Path
) -> None:
    server = servers[Security.MUTUAL_TLS]
    given = server.credentials
    client = wrong_certificates(given, tmp_path)[wrong]
    line = refused(
        run_with(profile(server, tls(given.authority, client)), server, tmp_path, "render"), server
    )
    assert advice in line


def test_missing_client_key_is_named(servers: Servers, tmp_path: Path) -> None:
    server = servers[Security.MUTUAL_TLS]
    client = wrong_certificates(server.credentials, tmp_path)["without a key"]
    wrong = profile(server, tls(server.credentials.authority, client))
    ended = run_with(wrong, server, tmp_path, "render")
    assert (ended.code, ended.stdout) == (UNAVAILABLE, "")
    [line] = ended.stderr.splitlines()
    assert str(tmp_path / "missing.key") in line


def wrong_keys(issuer: KeyIssuer) -> Mapping[str, str]:
    return {
        "none": "",
        "nonsense": "not-a-key-of-anybody",
        "of another issuer": KeyIssuer().api_key(["default:read"]),
        "expired": issuer.api_key(["default:read"], expired=True),
        "for another namespace": issuer.api_key(["payments:admin"]),
        "without permissions": issuer.api_key([]),
    }


@pytest.mark.parametrize("command", ["render", "plan"])
@pytest.mark.parametrize("wrong", wrong_keys(KeyIssuer()))
def test_wrong_key_is_refused(servers: Servers, wrong: str, command: str, tmp_path: Path) -> None:
    server = servers[Security.API_KEY]
    key = wrong_keys(server.credentials.issuer)[wrong]
    profiles = profile(server, tls(server.credentials.authority), key)
    line = refused(run_with(profiles, server, tmp_path, command), server)
    assert "check the credentials" in line


def test_key_is_not_used_for_another_namespace(servers: Servers, tmp_path: Path) -> None:
    server = servers[Security.API_KEY]
    before = server.calls()
    ended = run_with(right_profile(server), server, tmp_path, "render", namespace="payments")
    assert "no Temporal profile matches" in refused(ended, server, "payments")
    # its worker polls meanwhile
    assert {call for call in server.calls() - before if not call.startswith("Poll")} == set()


def test_key_that_may_only_read_moves_nothing_and_the_rollout_says_that_it_cannot_become_the_manager(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers[Security.API_KEY]
    specs = write_secured_specs(tmp_path, server)
    (specs / "specs.yaml").write_text((specs / "specs.yaml").read_text().replace("ID: v1", "ID: v2"))
    (tmp_path / "temporal.toml").write_text(right_profile(server))
    variables = {"TEMPORAL_CONFIG_FILE": str(tmp_path / "temporal.toml")}
    worker = DeployedWorker(server, "live/secured", "secured")
    with worker.version("v2"):

        def is_refused() -> bool:
            ended = run(specs, "rollout", "--once", "--identity", "me", options=OPTIONS, variables=variables)
            told = f"twgen/me could not become the manager: Temporal at {server.address}"
            assert told in ended.stderr, ended
            assert (ended.code, "does not permit this call: check the credentials" in ended.stderr) == (
                3,
                True,
            )
            return True

        assert eventually(is_refused)
