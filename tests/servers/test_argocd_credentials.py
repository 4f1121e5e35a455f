"""Workers whose Temporal asks for credentials, rolled out by Argo CD; nothing that is written shows one."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from testing.argocd.argocd import IMAGE, ArgoCD
from testing.credentials import Certificate
from testing.leaks import leaks_below
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.security import Security
from testing.servers import NEWEST, TemporalServer, temporal_server
from tests.servers.gitops import SOON, ApplicationStory, new_story
from tests.servers.live import Document, connection_document, in_namespace, worker_container, worker_document
from tests.servers.pods import config_map
from tests.servers.side_by_side import Told, given, side_by_side, told_side_by_side
from tests.servers.test_temporal_credentials import SECRETS

SECURED = (Security.API_KEY, Security.MUTUAL_TLS)
GATED: Document = {"strategy": "AllAtOnce", "gate": {"workflowType": "GateWorkflow"}}
pytestmark = pytest.mark.server

Servers = Mapping[Security, TemporalServer]


@dataclass(frozen=True, slots=True)
class Secured:
    """A worker in Git, whose server asks for credentials."""

    gitops: ApplicationStory
    servers: Servers

    @property
    def server(self) -> TemporalServer:
        return self.gitops.temporal

    @property
    def trusts_by_connection(self) -> bool:
        """Its Connection names the Secret with the certificates to trust, for workers and Jobs alike."""
        return self.server.security is Security.API_KEY

    def commit(self, build_id: str) -> str:
        """Describe the worker at this version, as a team does it that has its own authority."""
        story, secrets = self.gitops, SECRETS[self.server.security]
        worker = worker_document(story.worker_name, build_id, steps=())
        trust = {
            "name": "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
            "value": str(self.server.credentials.authority.file),
        }
        by_hand = [] if self.trusts_by_connection else [trust]
        worker["spec"]["template"]["spec"]["containers"] = [
            worker_container(build_id, story.task_queue, *by_hand)
        ]
        worker["spec"]["rollout"] = GATED
        if self.trusts_by_connection:
            secrets = {**secrets, "tls": {"caCertSecretRef": {"name": "authority"}}}
        connection = connection_document(self.server.address, **secrets)
        documents = in_namespace(story.namespace, connection, worker)
        return story.commit_documents(f"{story.worker_name} {build_id}", *documents)

    def give(self, key: str, client: Certificate) -> None:
        """Make the Secrets that the Connection names, and tell Jobs whom to trust."""
        certificate = {"tls.crt": client.certificate.read_text(), "tls.key": client.key.read_text()}
        authority = {"ca.crt": self.server.credentials.authority.file.read_text()}
        # what the operator gives all Jobs is another one's where the Connection says whom to trust
        bundle = {"ca.crt": client.certificate.read_text()} if self.trusts_by_connection else authority
        namespace = self.gitops.namespace
        self.gitops.cluster.apply(
            [
                config_map(namespace, "temporal-ca", bundle),
                config_map(namespace, "authority", authority, "Secret"),
                config_map(namespace, "key", {"token": key}, "Secret"),
                config_map(namespace, "certificate", certificate, "Secret"),
            ]
        )

    def logs_of_jobs(self) -> str:
        """What its rollouts have written."""
        namespace = self.gitops.namespace
        pods = self.gitops.cluster.list("pods", namespace, "twgen.io/rollout=greeter")
        return "".join(self.gitops.node.logs(namespace, pod["metadata"]["name"]) for pod in pods)

    def take_from_plugin(self) -> None:
        """Give the plugin what its server has ceased to accept."""
        folder, given = self.gitops.argo.sidecar.folder / "twgen-temporal", self.server.credentials
        number = SECURED.index(self.server.security)
        if self.server.security is Security.API_KEY:
            profiles = (folder / "temporal.toml").read_text()
            old = given.issuer.api_key(["default:read"], expired=True)
            lines = re.sub('(?<=^api_key = ").*(?="$)', old, profiles, flags=re.MULTILINE)
            (folder / "temporal.toml").write_text(lines)
        else:
            other = expired(self.server)
            shutil.copy(other.certificate, folder / f"{number}-client.crt")
            shutil.copy(other.key, folder / f"{number}-client.key")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as running:
        yield {
            security: running.enter_context(
                temporal_server(tmp_path_factory.mktemp(security.name), NEWEST, security=security)
            )
            for security in SECURED
        }


@pytest.fixture(scope="module")
def told_stories(
    request: pytest.FixtureRequest, argo: ArgoCD, node: LocalNode, servers: Servers
) -> Iterator[Told]:
    """One story for each kind of credentials, side by side."""
    rollout = {"image": IMAGE, "caBundle": {"configMap": "temporal-ca"}}
    argo.configure([], list(servers.values()), rollout=rollout)

    def begin(test: pytest.Function, tell: Callable[..., None]) -> None:
        with new_story(argo, node, servers[given(test)["security"]]) as story:
            tell(Secured(story, servers))

    with told_side_by_side(request, begin, len(servers)) as told:
        yield told


@pytest.mark.parametrize("security", SECURED, ids=lambda security: security.name)
@side_by_side
def test_credentials_carry_a_rollout_to_its_end_and_are_shown_nowhere(
    story: Secured, security: Security
) -> None:
    gitops, given = story.gitops, story.server.credentials
    assert story.server.security is security
    writes = given.issuer.api_key(["default:write"])
    story.give(writes, given.client)
    commit = story.commit("v1")
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.application.synced(commit)

    # wrong ones move no traffic, and are told of in the log of the Job, which waits for better ones
    story.give(given.issuer.api_key(["default:read"]), expired(story.server))
    story.commit("v2")
    gitops.application.refresh()
    told = "does not accept the client certificate" if security is Security.MUTUAL_TLS else "target v2"
    eventually(lambda: told in story.logs_of_jobs(), SOON)
    assert gitops.share("v1") == 100
    story.give(writes, given.client)
    story.commit("v3")
    gitops.application.refresh()
    gitops.stands("Settled", "v3")

    # what the plugin is refused is told to everybody who sees the application
    story.take_from_plugin()

    def is_told() -> bool:
        # on a busy machine a look that had begun before may end what was asked for
        gitops.application.refresh("hard")
        return f"Temporal at {story.server.address}" in " ".join(gitops.application.errors())

    eventually(is_told, SOON)

    folder = gitops.cluster.folder
    assert leaks_below(folder) == {}
    assert leaks_below(gitops.argo.folder) == {}
    audited = (folder / "audit.log").read_text()
    for told in ('"kind":"Event"', "greeter-rollout-status", '"kind":"Job"', '"kind":"Application"'):
        assert told in audited, "it would be found there"


def expired(server: TemporalServer) -> Certificate:
    return server.credentials.authority.client("expired", expired=True)
