// A Temporal worker for twgen. Its environment sets the version and the server.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const taskQueue = "payments"

// Charge charges the customer of an order.
func Charge(_ context.Context, order string) (string, error) {
	return "charged " + order, nil
}

// PaymentWorkflow is pinned to the version that it starts on: see main.
func PaymentWorkflow(ctx workflow.Context, order string) (string, error) {
	options := workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second}
	ctx = workflow.WithActivityOptions(ctx, options)
	var receipt string
	err := workflow.ExecuteActivity(ctx, Charge, order).Get(ctx, &receipt)
	return receipt, err
}

func main() {
	// This reads TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and
	// the TEMPORAL_TLS variables.
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		log.Fatalln("The environment does not say how to reach Temporal:", err)
	}
	temporal, err := client.Dial(options)
	if err != nil {
		log.Fatalln("Temporal cannot be reached:", err)
	}
	defer temporal.Close()

	payments := worker.New(temporal, taskQueue, worker.Options{
		DeploymentOptions: worker.DeploymentOptions{
			UseVersioning: true,
			Version: worker.WorkerDeploymentVersion{
				DeploymentName: os.Getenv("TEMPORAL_DEPLOYMENT_NAME"),
				BuildID:        os.Getenv("TEMPORAL_WORKER_BUILD_ID"),
			},
			DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		},
		WorkerStopTimeout: 20 * time.Second,
	})
	payments.RegisterWorkflow(PaymentWorkflow)
	payments.RegisterActivity(Charge)
	if err := payments.Run(worker.InterruptCh()); err != nil {
		log.Fatalln("The worker failed:", err)
	}
	log.Println("stopped")
}
