"""A Temporal worker for twgen. Its environment sets the version and the server.

In a pod, twgen sets these variables. To run it yourself, start
`temporal server start-dev`, run `pip install temporalio`, and then:

    export TEMPORAL_ADDRESS=localhost:7233
    export TEMPORAL_DEPLOYMENT_NAME=shop/payments
    TEMPORAL_WORKER_BUILD_ID=dev python worker.py
"""

import asyncio
import os
import signal
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker, WorkerDeploymentConfig

TASK_QUEUE = "payments"


@activity.defn
async def charge(order: str) -> str:
    """Charge the customer of an order."""
    return f"charged {order}"


@workflow.defn
class PaymentWorkflow:
    """It is pinned to the version that it starts on: see main()."""

    @workflow.run
    async def run(self, order: str) -> str:
        """Pay for an order."""
        return await workflow.execute_activity(
            charge,
            order,
            start_to_close_timeout=timedelta(seconds=10),
        )


async def main() -> None:
    """Poll until Kubernetes stops the pod."""
    # This reads TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and
    # the TEMPORAL_TLS variables.
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    worker = Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[PaymentWorkflow],
        activities=[charge],
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(
                deployment_name=os.environ["TEMPORAL_DEPLOYMENT_NAME"],
                build_id=os.environ["TEMPORAL_WORKER_BUILD_ID"],
            ),
            use_worker_versioning=True,
            default_versioning_behavior=VersioningBehavior.PINNED,
        ),
        graceful_shutdown_timeout=timedelta(seconds=20),
    )
    async with worker:
        await stopped.wait()
    print("stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
