"""Which credentials go where: each profile to its own address and namespace, and nowhere else."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from twgen.clients.profiles import Profile, Profiles, load_profiles
from twgen.errors import StateUnavailable
from twgen.model.spec import Connection, SecretKey
from twgen.versioning.names import API_KEY_FILE

FILE = """
[profile.payments]
address = "temporal.example:7233"
namespace = "payments"
api_key = "the-key-of-payments"

[profile.shop]
address = "temporal.example:7233"
api_key = "the-key-of-shop"

[profile.nowhere]
namespace = "payments"
api_key = "the-key-of-nobody"
"""
HERE = Connection("here", "temporal.example:7233")
WORKER = "default/pay of specs/pay.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "temporal.toml"
    path.write_text(FILE)
    return path


def load(file: Path | str, *, environment: bool = True, **variables: str) -> tuple[Profile, ...]:
    named: Mapping[str, str] = {"TEMPORAL_CONFIG_FILE": str(file)} if file else {}
    return load_profiles({**named, **variables}, use_environment=environment)


def key_for(profiles: Profiles, connection: Connection, namespace: str) -> object:
    profile = profiles.of(connection, namespace, WORKER)
    return profile.connect_options()["api_key"] if profile else None


def test_connection_gets_the_profile_of_its_address_and_namespace(file: Path) -> None:
    profiles = Profiles(load(file))
    assert key_for(profiles, HERE, "payments") == "the-key-of-payments"
    assert key_for(profiles, HERE, "default") == "the-key-of-shop"


@pytest.mark.parametrize(
    ("connection", "namespace"),
    [
        (HERE, "billing"),
        (Connection("there", "temporal.example:7234"), "payments"),
        (Connection("evil", "temporal.example.evil.example:7233"), "payments"),
    ],
    ids=["another namespace", "another port", "another host"],
)
def test_credentials_go_to_no_other_place(file: Path, connection: Connection, namespace: str) -> None:
    with pytest.raises(StateUnavailable, match="no Temporal profile matches"):
        Profiles(load(file)).of(connection, namespace, WORKER)
    assert Profiles(load(file), allow_unlisted=True).of(connection, namespace, WORKER) is None


def test_connection_that_matches_no_profile_may_have_a_wrong_address(file: Path) -> None:
    with pytest.raises(StateUnavailable) as refused:
        Profiles(load(file)).of(Connection("there", "temporal.example:7234"), "payments", WORKER)
    assert str(refused.value).endswith(
        "no Temporal profile matches connection 'there': correct address 'temporal.example:7234' and"
        " namespace 'payments', or ask the operator to add a profile for them or set"
        " TWGEN_ALLOW_UNLISTED_CONNECTIONS"
    )


def test_profile_without_an_address_is_for_no_place(file: Path) -> None:
    profiles = Profiles(load(file))
    assert [profile.name for profile in profiles.all] == ["nowhere", "payments", "shop"]
    with pytest.raises(StateUnavailable, match="no Temporal profile matches"):
        profiles.of(Connection("none", ""), "payments", WORKER)


def test_key_without_an_address_is_told_with_the_worker_and_what_to_set() -> None:
    cloud = Connection("cloud", "temporal.example:7233", api_key_secret=SecretKey("key", "token"))
    profiles = Profiles(load("", TEMPORAL_API_KEY="the-key"), allow_unlisted=True, of_person=True)
    with pytest.raises(StateUnavailable) as refused:
        profiles.of(cloud, "payments", WORKER)
    assert str(refused.value) == (
        "Temporal at temporal.example:7233, namespace 'payments' (for default/pay of specs/pay.yaml):"
        " connection 'cloud' needs TLS or credentials, and profile 'default' has no address:"
        " set TEMPORAL_ADDRESS=temporal.example:7233 and TEMPORAL_NAMESPACE=payments to say which"
        " server its credentials are for"
    )


def test_two_profiles_for_one_place_are_refused(file: Path) -> None:
    file.write_text(
        FILE + '[profile.again]\naddress = "temporal.example:7233"\nnamespace = "payments"\napi_key = "b"\n'
    )
    with pytest.raises(StateUnavailable, match="'again' and 'payments' all match: keep only one"):
        Profiles(load(file)).of(HERE, "payments", WORKER)


def test_profile_that_the_project_may_not_use_is_refused_by_name(file: Path) -> None:
    whose, granted_in = "Argo CD project 'eu'", "temporal.profiles of /etc/twgen/operator.yaml"
    profiles = Profiles(
        load(file), lambda name: name == "shop", allow_unlisted=True, subject=whose, granted_in=granted_in
    )
    with pytest.raises(StateUnavailable) as refused:
        profiles.of(HERE, "payments", WORKER)
    assert str(refused.value).endswith(
        "Argo CD project 'eu' may not use profile 'payments': the operator must list the project there,"
        " in temporal.profiles of /etc/twgen/operator.yaml"
    )
    assert key_for(profiles, HERE, "default") == "the-key-of-shop"


@pytest.mark.parametrize(
    "connection",
    [
        Connection("cloud", "127.0.0.1:1", tls_server_name="temporal.example"),
        Connection("cloud", "127.0.0.1:1", mutual_tls_secret="certificate"),  # noqa: S106 - the name of a Secret
        Connection("cloud", "127.0.0.1:1", api_key_secret=SecretKey("key", "token")),
    ],
)
def test_connection_that_needs_credentials_is_never_used_without(connection: Connection) -> None:
    with pytest.raises(StateUnavailable, match="needs TLS or credentials"):
        Profiles(allow_unlisted=True, of_person=True).of(connection, "default", WORKER)


def test_connection_that_must_be_listed_is_refused_without_a_profile_although_it_needs_none() -> None:
    connection = Connection("temporal", "127.0.0.1:1")
    with pytest.raises(StateUnavailable, match="'temporal' must be listed, and no Temporal profile"):
        Profiles(allow_unlisted=False, of_person=True).of(connection, "default", WORKER)


def test_variables_of_temporal_are_a_profile_at_a_terminal() -> None:
    variables = {"TEMPORAL_ADDRESS": "localhost:7233", "TEMPORAL_API_KEY": "k", "TEMPORAL_NAMESPACE": "mine"}
    profiles = Profiles(load("", **variables))
    assert key_for(profiles, Connection("local", "localhost:7233"), "mine") == "k"
    assert load("", environment=False, **variables) == ()


def test_key_in_a_file_is_that_of_the_variables_and_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "key"
    variables = {"TEMPORAL_ADDRESS": "localhost:7233", API_KEY_FILE: str(file)}
    local = Connection("local", "localhost:7233")
    for key in ("old", "new"):
        file.write_text(f"{key}\n")
        assert key_for(Profiles(load("", **variables)), local, "default") == key
    assert load("", environment=False, **variables) == ()
    file.write_bytes(b"\xff")
    with pytest.raises(StateUnavailable, match=r"key: the API key cannot be read \(it is not text\)$"):
        load("", **variables)
    file.unlink()
    with pytest.raises(StateUnavailable, match=r"key: the API key cannot be read \(No such file"):
        load("", **variables)


def test_variables_that_are_no_text_are_nobodys_concern() -> None:
    (profile,) = load("", TEMPORAL_ADDRESS="temporal:7233", LESS="\udcff", TEMPORAL_NAMESPACE="a\udcff")
    assert (profile.address, profile.namespace) == ("temporal:7233", "a?")


def test_variables_of_temporal_change_the_chosen_profile_only(file: Path) -> None:
    variables = {"TEMPORAL_PROFILE": "payments", "TEMPORAL_API_KEY": "fresh"}
    profiles = Profiles(load(file, **variables))
    assert key_for(profiles, HERE, "payments") == "fresh"
    assert key_for(profiles, HERE, "default") == "the-key-of-shop"


def test_api_key_means_tls_unless_the_profile_says_otherwise(file: Path) -> None:
    [_, payments, _] = load(file)
    assert payments.connect_options()["tls"] is True
    file.write_text(FILE.replace('"the-key-of-payments"', '"k"\n[profile.payments.tls]\ndisabled = true'))
    [_, payments, _] = load(file)
    assert payments.connect_options()["tls"] is False


def test_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateUnavailable, match=r"absent\.toml: no such file"):
        load(tmp_path / "absent.toml")


def test_file_that_is_not_toml_is_told_by_its_line_and_never_quoted(file: Path) -> None:
    file.write_text(FILE.replace('"the-key-of-payments"', '"the-key-of-payments'))
    with pytest.raises(
        StateUnavailable, match=r"temporal\.toml is not TOML, or does not contain valid profiles: see line 5"
    ) as refused:
        load(file)
    assert "the-key" not in str(refused.value)


def test_variables_that_contradict_each_other_are_an_error() -> None:
    variables = {
        "TEMPORAL_ADDRESS": "localhost:7233",
        "TEMPORAL_TLS_CLIENT_CERT_DATA": "secret",
        "TEMPORAL_TLS_CLIENT_CERT_PATH": "file",
    }
    with pytest.raises(StateUnavailable, match="the environment has no profile") as refused:
        load("", **variables)
    assert "secret" not in str(refused.value)


def test_certificate_that_cannot_be_read_is_named(file: Path) -> None:
    file.write_text(FILE + '[profile.payments.tls]\nclient_cert_path = "/absent/tls.crt"\n')
    profile = Profiles(load(file)).of(HERE, "payments", WORKER)
    assert profile
    with pytest.raises(StateUnavailable, match=r"Temporal profile 'payments': /absent/tls\.crt cannot be"):
        profile.connect_options()


def test_no_key_is_in_what_a_profile_prints(file: Path) -> None:
    assert "the-key" not in repr(load(file))


@pytest.mark.parametrize("setting", ["server_ca_cert_path", "client_cert_path", "client_key_path"])
def test_repository_gives_no_file_that_a_profile_names(file: Path, setting: str) -> None:
    file.write_text(FILE + f'[profile.payments.tls]\n{setting} = "ca.pem"\n')
    with pytest.raises(StateUnavailable) as refused:
        load_profiles({}, str(file), use_environment=False, in_repository=True)
    assert str(refused.value) == (
        f"Temporal profile 'payments': {setting} must be an absolute path, such as /etc/twgen/temporal/ca.pem"
    )
    file.write_text(FILE + f'[profile.payments.tls]\n{setting} = "/etc/twgen/ca.pem"\n')
    assert len(load_profiles({}, str(file), use_environment=False, in_repository=True)) == 3


def test_repository_gives_no_file_of_profiles(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    variables = {"TEMPORAL_CONFIG_FILE": file.name}
    assert len(load_profiles(variables, use_environment=False)) == 3
    with pytest.raises(
        StateUnavailable, match=r"'temporal\.toml', must be an absolute path, such as /etc/twgen"
    ):
        load_profiles(variables, use_environment=False, in_repository=True)


def test_file_that_a_profile_names_is_taken_from_the_working_directory_at_a_terminal(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(FILE + '[profile.payments.tls]\nserver_ca_cert_path = "ca.pem"\n')
    here = tmp_path / "elsewhere"
    here.mkdir()
    monkeypatch.chdir(here)
    profile = Profiles(load(file)).of(HERE, "payments", WORKER)
    assert profile
    with pytest.raises(StateUnavailable) as refused:
        profile.connect_options()
    assert f": {here}/ca.pem cannot be read (No such file" in str(refused.value)
    (here / "ca.pem").write_bytes(b"whom to trust")
    assert profile.connect_options()["tls"].server_root_ca_cert == b"whom to trust"
