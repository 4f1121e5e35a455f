"""A plugin that stands still for half a minute, as that of a node that is short of memory may."""

import asyncio
from datetime import timedelta

import psutil
import pytest

from testing.argocd.argocd import ArgoCD
from testing.argocd.tick import install_account
from testing.local_node.node import LocalNode
from testing.servers import TemporalServer
from tests.servers.gitops import new_story
from tests.servers.rollouts import outlast
from twgen.clients.argocd import ArgoCD as Client
from twgen.clients.argocd import asked_since
from twgen.clients.deadline import Deadline
from twgen.planning.refresh import not_refreshed

pytestmark = pytest.mark.server
A_WHILE = 10.0
FROZEN = 30.0
"""Seconds, longer than gRPC tries to connect: then the repo-server waits until the render is given up."""


def test_application_that_argocd_does_not_look_at_after_its_plugin_was_frozen_goes_on_after_a_restart(
    argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer
) -> None:
    argo.configure([newest_temporal.address])
    account = install_account(argo)
    with argo.server() as server, new_story(argo, node, newest_temporal) as story:
        first = story.commit("v1", steps=())
        story.application.create()
        story.stands("Settled", "v1")
        story.application.synced(first)
        plugin = psutil.Process(argo.plugin.pid)
        plugin.suspend()
        commit = story.commit("v2", steps=())
        story.application.begin_to_refresh()
        outlast(FROZEN)
        plugin.resume()

        looked = story.application.get()["status"]["reconciledAt"]
        outlast(A_WHILE)
        stuck = story.application.get()["status"]
        assert (stuck["sync"]["status"], stuck["sync"]["revision"]) == ("Synced", first)
        assert stuck["reconciledAt"] == looked
        client = Client(server.address, server.token(account))
        told = asyncio.run(client.application(story.application.name, Deadline(60)))
        assert (since := asked_since(told)), told["metadata"]
        assert not_refreshed(since, since + timedelta(minutes=10))

        argo.restart_repo_server()
        story.application.synced(commit)
        story.stands("Settled", "v2")
