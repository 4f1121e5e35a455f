"""What a credential looks like in the output of a program, and that it is found there."""

import base64
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from testing.credentials import Authority, KeyIssuer
from testing.leaks import credential, leaks, leaks_below


@pytest.fixture(scope="module")
def api_key() -> str:
    return KeyIssuer().api_key(["default:write"])


@pytest.fixture(scope="module")
def private_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    return Authority(tmp_path_factory.mktemp("authority"), "authority").client().key.read_text()


def test_credential_is_found_whole_in_part_and_in_base64(api_key: str, private_key: str) -> None:
    _, _, signature = api_key.split(".")
    [line, *_] = [line for line in private_key.splitlines() if "-----" not in line]
    shown = [
        f'level=info msg="asked with {api_key}"',
        f"Authorization: Bearer ...{signature[-40:]}",
        json.dumps({"key": private_key}),
        line,
        *(base64.b64encode(f"{'x' * before}{api_key}".encode()).decode() for before in range(3)),
        base64.b64encode(private_key.encode()).decode(),
    ]
    assert [text for text in shown if not leaks(text.encode())] == []


def test_short_credential_is_found() -> None:
    password = credential("Kq3-vG8sTz0pLw1n")
    assert leaks(f"login with {password}!".encode()) == {password}


def test_what_is_no_credential_is_none(api_key: str, tmp_path: Path) -> None:
    claims, _, _ = api_key.rpartition(".")
    certificate = Authority(tmp_path, "other").client().certificate.read_text()
    for text in (
        f"unsigned {claims}.",
        certificate,
        "sha256:" + "0123456789abcdef" * 4,
    ):
        assert leaks(text.encode()) == set()


def test_every_log_below_a_folder_is_looked_at(api_key: str) -> None:
    # not where logs are looked at after all tests
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pods").mkdir()
        (folder / "pods" / "main.log").write_text(f"key {api_key}")
        (folder / "fine.log").write_text("started")
        (folder / "temporal.toml").write_text(f'api_key = "{api_key}"')
        assert list(leaks_below(folder)) == [str(folder / "pods" / "main.log")]
