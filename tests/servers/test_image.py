"""The image of the Dockerfile, built for real: what is in it, and what runs in it."""

import ast
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from testing.image import built_image
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.local_node.image import Image
from testing.local_node.volumes import Mount
from testing.processes import eventually, running
from testing.recipes import ARGO_CD
from testing.servers import TemporalServer
from tests.servers.live import TWGEN
from twgen import __version__
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "three-versions"
USER = 999
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0, reason="an image is built by root alone"),
]
Inside = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def image() -> Image:
    return built_image()


@pytest.fixture(scope="module")
def files(image: Image) -> Mapping[str, os.stat_result]:
    return {
        str(path.relative_to(image.root)): path.lstat()
        for path in image.root.rglob("*")
        if not path.is_symlink() and path.is_file()
    }


@pytest.fixture
def inside(image: Image, tmp_path: Path) -> Inside:
    """Runs a command in the image, which sees the example and what is mounted besides."""
    example = Mount(EXAMPLE, "/example", read_only=True)

    def run(
        *command: str, folder: str = "", more: Sequence[Mount] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        entered = image.command(command, tmp_path, [example, *more], folder, variables)
        return subprocess.run(entered, capture_output=True, text=True, check=False, timeout=180)

    return run


def test_image_is_below_250_megabytes_on_a_slim_base(files: Mapping[str, os.stat_result]) -> None:
    distinct = {status.st_ino: status.st_size for status in files.values()}
    assert 100e6 < sum(distinct.values()) < 210e6, "some 200 on Debian's own, so that others have room"


def test_image_runs_twgen_as_999_without_a_shell_or_a_health_check(image: Image) -> None:
    assert image.config["User"] == f"{USER}:{USER}"
    assert image.config["Entrypoint"] == ["twgen"]
    assert not {"Cmd", "Healthcheck", "Volumes", "ExposedPorts"} & {
        key for key, value in image.config.items() if value
    }
    assert image.config["Labels"]["org.opencontainers.image.title"] == "twgen"
    assert [entry for entry in image.config["Env"] if not entry.startswith(("PATH=", "HOME="))] == []


def test_image_has_the_plugin_where_argocd_looks_for_it(image: Image) -> None:
    placed = image.root / "home/argocd/cmp-server/config/plugin.yaml"
    assert placed.read_text() == (ROOT / "plugin.yaml").read_text()
    assert placed.stat().st_uid == 0


def test_image_holds_neither_build_tools_nor_caches(files: Mapping[str, os.stat_result]) -> None:
    tools = re.compile(
        r"(^|/)(pip[\d.]*|uv|gcc|cc|g\+\+|make|ld|hatchling)$|/(pip|hatchling|uv|setuptools)/|\.whl$"
    )
    assert [name for name in files if tools.search(name)] == []
    kept = re.compile(r"^(var/cache|var/lib/apt/lists|var/log|root/\.cache|tmp|build|run)/")
    assert [name for name in files if kept.match(name)] == []


def test_nothing_of_the_machine_that_built_it_is_left(
    image: Image, files: Mapping[str, os.stat_result]
) -> None:
    assert not (image.root / "etc/pip.conf").exists()
    own = [name for name in files if name.startswith(("opt/", "home/", "etc/ssl/"))]
    assert len(own) > 1000
    checkout = str(ROOT).encode()
    assert [name for name in own if checkout in (image.root / name).read_bytes()] == []


def test_nobody_becomes_root_in_it_or_writes_to_it(files: Mapping[str, os.stat_result]) -> None:
    raising = [name for name, status in files.items() if status.st_mode & (stat.S_ISUID | stat.S_ISGID)]
    writable = [
        name for name, status in files.items() if status.st_uid == USER or status.st_mode & stat.S_IWOTH
    ]
    assert (raising, writable) == ([], [])


def test_user_of_the_image_cannot_write_but_to_tmp(inside: Inside) -> None:
    places = "/ /etc /opt/twgen /home/argocd /tmp"
    script = f"id -u; id -g; for f in {places}; do touch $f/x 2>/dev/null && echo $f; done"
    assert inside("sh", "-c", script).stdout.split() == [str(USER), str(USER), "/tmp"]  # noqa: S108


def test_twgen_runs_in_it_and_names_the_version_and_the_commit_of_the_labels(
    image: Image, inside: Inside
) -> None:
    ended = inside("twgen", "version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"twgen {__version__}\n", "")
    labels = image.config["Labels"]
    assert labels["org.opencontainers.image.version"] == __version__
    commit = json.loads(inside("twgen", "version", "-o", "json").stdout)["commit"]
    assert commit == labels["org.opencontainers.image.revision"][:12] != ""


def imported() -> set[str]:
    """The modules that twgen imports anywhere, also where it does so late."""
    found = set()
    for file in (ROOT / "twgen").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                found.add(str(node.module))
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    return found


def test_whatever_twgen_imports_is_in_it(inside: Inside) -> None:
    script = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    ended = inside("/opt/twgen/bin/python", "-c", script, *sorted(imported()))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_git_reads_a_repository_in_it(inside: Inside, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    identity = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com")
    repository.mkdir()
    (repository / "worker.yaml").write_text("{}")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "the first")):
        subprocess.run(["git", *command], cwd=repository, check=True)
    mounted = Mount(repository, "/repository", read_only=True)
    log = ("log", "--follow", "--name-only", "--format=%s", "--", "worker.yaml")
    ended = inside("git", "--git-dir=/repository/.git", *log, more=[mounted])
    assert (ended.stdout.split("\n\n"), ended.stderr) == (["the first", "worker.yaml\n"], "")


def test_sidecar_serves_the_plugin_as_argocd_starts_it(image: Image, tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="twgen-") as plugins:  # the path of a socket is short
        os.chown(plugins, USER, USER)
        mounts = [
            Mount(installed(ARGO_CD).parent, "/var/run/argocd", read_only=True),
            Mount(Path(plugins), "/home/argocd/cmp-server/plugins", read_only=False),
        ]
        role = {"ARGOCD_BINARY_NAME": "argocd-cmp-server"}
        command = image.command(["/var/run/argocd/argocd"], tmp_path, mounts, variables=role)
        log = tmp_path / "log"
        with running(command, log, grace=0):  # it ignores every polite signal
            eventually((Path(plugins) / "twgen.sock").exists)
        assert "twgen" in log.read_text()


def test_render_in_the_image_is_that_of_the_checkout(inside: Inside) -> None:
    command = ("twgen", "render", ".", "--snapshot", "snapshot.yaml", "--operator-config", "operator.yaml")
    for form in ("yaml", "json"):
        asked = (*command, "-o", form)
        here = subprocess.run([TWGEN, *asked[1:]], cwd=EXAMPLE, capture_output=True, text=True, check=True)
        there = inside(*asked, folder="/example")
        assert (there.returncode, there.stderr) == (0, "")
        assert there.stdout == here.stdout


def test_sidecar_renders_with_its_account_and_the_rights_of_the_deployment_files(
    inside: Inside, cluster: Cluster, namespace: str, oldest_temporal: TemporalServer, tmp_path: Path
) -> None:
    """What of the clients is left out of the image is nothing that they need."""
    role = read_documents((ROOT / "deploy" / "in-cluster" / "rbac.yaml").read_text())[0]
    cluster.user("sidecar", role["rules"], namespace)
    account, operator, specs = (tmp_path / name for name in ("account", "operator", "specs"))
    for folder in (account, operator, specs):
        folder.mkdir()
    (account / "token").write_text(cluster.token("sidecar", namespace))
    (account / "namespace").write_text(namespace)
    shutil.copy(cluster.authority, account / "ca.crt")
    [form] = read_documents((ROOT / "deploy" / "twgen-operator.yaml").read_text())
    (operator / "operator.yaml").write_text(form["data"]["operator.yaml"])
    (operator / "temporal.toml").write_text(
        f'[profile.payments]\naddress = "{oldest_temporal.address}"\nnamespace = "default"\n'
    )
    for name in ("worker", "connection"):
        text = (EXAMPLE / f"{name}.yaml").read_text().replace("namespace: shop", f"namespace: {namespace}")
        text = re.sub("(?<=hostPort: ).*", oldest_temporal.address, text)
        (specs / f"{name}.yaml").write_text(text)
    host, port = cluster.address.removeprefix("https://").split(":")
    [plugin] = read_documents((ROOT / "plugin.yaml").read_text())
    ended = inside(
        *plugin["spec"]["generate"]["command"],
        folder="/specs",
        more=[
            Mount(account, "/var/run/secrets/kubernetes.io/serviceaccount", read_only=True),
            Mount(operator, "/etc/twgen/operator", read_only=True),
            Mount(operator, "/etc/twgen/temporal", read_only=True),
            Mount(specs, "/specs", read_only=True),
        ],
        ARGOCD_APP_NAME="shop",
        ARGOCD_APP_PROJECT_NAME="payments",
        ARGOCD_APP_NAMESPACE=namespace,
        TWGEN_OPERATOR_CONFIG="/etc/twgen/operator/operator.yaml",
        KUBERNETES_SERVICE_HOST=host,
        KUBERNETES_SERVICE_PORT=port,
    )
    assert ended.returncode == 0, ended.stderr
    kinds = [item["kind"] for item in json.loads(ended.stdout)["items"]]
    assert kinds.count("Deployment") == 1
    assert "Job" in kinds
