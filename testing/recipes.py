"""The servers for the tests: their versions and sources."""

from dataclasses import dataclass
from enum import Enum


class Source(Enum):
    """The source of a program that is missing on the machine."""

    GO_MODULE = "built by Go from its published module"
    KUBERNETES = "built by Go from testing/kubernetes/servers"
    ARGO_CD = "built by Go from testing/argocd/servers"
    WORKER_CONTROLLER = "built by Go from testing/worker_controller/servers"
    DEBIAN = "Debian's package"


@dataclass(frozen=True, slots=True)
class Server:
    """A program, the package that it comes from, and the environment variable that names another one.

    The variable names the program itself or a folder that may hold it. The seconds are its part, by CPU time,
    of an installation that took 19 minutes on two quiet cores. Its place in `SERVERS` matters: Go uses the
    compiled packages of earlier programs again.
    """

    name: str
    version: str
    program: str
    package: str
    source: Source
    variable: str = ""
    needs_go: tuple[int, ...] = (1, 26)
    seconds: float = 12.0


TEMPORAL_CLI = Server(
    name="temporal-cli",
    version="1.5.1",
    program="temporal",
    package="github.com/temporalio/cli/cmd/temporal",
    source=Source.GO_MODULE,
    variable="TEMPORAL_CLI",
    seconds=160,
)
"""The Temporal CLI with development server 1.29.1, the oldest supported version."""

TEMPORAL_SERVER = Server(
    name="temporal-server",
    version="1.32.2",
    program="server",
    package="go.temporal.io/server/cmd/server",
    source=Source.GO_MODULE,
    variable="TEMPORAL_SERVER",
    needs_go=(1, 26, 10),
    seconds=150,
)
"""The newest Temporal server."""


def _kubernetes(program: str, seconds: float) -> Server:
    return Server(
        name=program,
        version="1.36.1",
        program=program,
        package=f"k8s.io/kubernetes/cmd/{program}",
        source=Source.KUBERNETES,
        variable="KUBEBUILDER_ASSETS",
        seconds=seconds,
    )


KUBE_APISERVER = _kubernetes("kube-apiserver", 175)
"""The Kubernetes API server."""

KUBE_CONTROLLER_MANAGER = _kubernetes("kube-controller-manager", 45)
"""The controllers, which create the Pods of Deployments and Jobs."""

KUBECTL = _kubernetes("kubectl", 20)
"""The Kubernetes command line."""

HELM = Server(
    name="helm",
    version="3.18.4",
    program="helm",
    package="helm.sh/helm/v3/cmd/helm",
    source=Source.GO_MODULE,
    variable="HELM",
    seconds=60,
)
"""Helm, in the version of Argo CD's image. `make bench` compares with it."""

KUSTOMIZE = Server(
    name="kustomize",
    version="5.7.0",
    program="kustomize",
    package="sigs.k8s.io/kustomize/kustomize/v5",
    source=Source.GO_MODULE,
    variable="KUSTOMIZE",
    seconds=10,
)
"""Kustomize, in the version of Argo CD's image."""


def _argo_cd(version: str, needs_go: tuple[int, ...], seconds: float) -> Server:
    return Server(
        name="argocd",
        version=version,
        program="argocd",
        package="github.com/argoproj/argo-cd/v3/cmd",
        source=Source.ARGO_CD,
        needs_go=needs_go,
        seconds=seconds,
    )


ARGO_CD = _argo_cd("3.6.1", (1, 27), 200)
"""All servers of Argo CD; ARGOCD_BINARY_NAME selects one. Its kinds are in the folder `crds` next to it."""

ARGO_CD_3_2 = _argo_cd("3.2.6", (1, 26), 165)
"""An older Argo CD for tests of hooks: it assesses health differently while a hook waits."""

WORKER_CONTROLLER = Server(
    name="temporal-worker-controller",
    version="1.8.1",
    program="cmd",
    package="github.com/temporalio/temporal-worker-controller/cmd",
    source=Source.WORKER_CONTROLLER,
    seconds=65,
)
"""The Temporal Worker Controller, for tests of moving to twgen and back. Its kinds are in `crds` next to
it."""

ETCD = Server("etcd", "3.4", "etcd", "etcd-server", Source.DEBIAN, "KUBEBUILDER_ASSETS")
"""The store of the Kubernetes API server."""

REDIS = Server("redis", "7", "redis-server", "redis-server", Source.DEBIAN)
"""The cache of Argo CD."""

PROMTOOL = Server("promtool", "2.42", "promtool", "prometheus", Source.DEBIAN)
"""Tests alert rules. It comes from Debian, because building it with Go would take too long."""

PROMETHEUS = Server("prometheus", "2.42", "prometheus", "prometheus", Source.DEBIAN)
"""The Prometheus server, for queries of metrics."""

DEBOOTSTRAP = Server("debootstrap", "1.0", "debootstrap", "debootstrap", Source.DEBIAN)
"""Creates the Debian base of the image."""

BUILDAH = Server("buildah", "1.28", "buildah", "buildah", Source.DEBIAN)
"""Builds the image without a daemon."""

CHROMEDRIVER = Server("chromedriver", "140", "chromedriver", "chromium-driver", Source.DEBIAN)
"""Controls Debian's Chromium, which is installed with it."""

ACTIONLINT = Server(
    name="actionlint",
    version="1.7.12",
    program="actionlint",
    package="github.com/rhysd/actionlint/cmd/actionlint",
    source=Source.GO_MODULE,
    needs_go=(1, 25),
)
"""Checks the workflows in .github."""

SERVERS = (
    ETCD,
    REDIS,
    PROMTOOL,
    PROMETHEUS,
    DEBOOTSTRAP,
    BUILDAH,
    CHROMEDRIVER,
    ACTIONLINT,
    TEMPORAL_CLI,
    TEMPORAL_SERVER,
    KUBE_APISERVER,
    KUBE_CONTROLLER_MANAGER,
    KUBECTL,
    HELM,
    KUSTOMIZE,
    ARGO_CD,
    ARGO_CD_3_2,
    WORKER_CONTROLLER,
)
"""All servers for the tests; the ones that install fastest come first."""

VERSIONED = frozenset(
    {ACTIONLINT, TEMPORAL_CLI, TEMPORAL_SERVER, HELM, KUSTOMIZE, ARGO_CD, ARGO_CD_3_2, WORKER_CONTROLLER}
)
"""Servers whose version matters to the tests, so that another version on PATH is not used."""
