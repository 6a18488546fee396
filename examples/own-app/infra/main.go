// Command infra is the CDK app of the team. Its stack has a hub.
package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"

	"example.com/subscriptions"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	addStack(app, "../dist")
	app.Synth(nil)
}

// addStack adds the stack of the team. The directory binaries has one subdirectory per function.
func addStack(app awscdk.App, binaries string) {
	stack := awscdk.NewStack(app, jsii.String("Subscriptions"), nil)
	pager := awssns.NewTopic(stack, jsii.String("Pager"), &awssns.TopicProps{EnforceSSL: jsii.Bool(true)})
	hub := cdk.NewTaskHub(stack, "Hub", cdk.TaskHubProps{
		HubName:      "subscriptions",
		FunctionsDir: binaries,
		WorkQueues:   []string{"default", subscriptions.QueuePayments},
		WorkQueueProps: map[string]cdk.WorkQueueProps{
			subscriptions.QueuePayments: {Concurrency: 5, BatchSize: 1}, // the limit of the bank
		},
		Canary: &cdk.Canary{
			DeploymentConfig: awscodedeploy.LambdaDeploymentConfig_LINEAR_10PERCENT_EVERY_1MINUTE(),
		},
		AlarmTopic: pager,
	})

	// Only the worker of the queue payments has access to the ledger.
	ledger := awsdynamodb.NewTable(stack, jsii.String("Ledger"), &awsdynamodb.TableProps{
		PartitionKey: &awsdynamodb.Attribute{Name: jsii.String("key"), Type: awsdynamodb.AttributeType_STRING},
		BillingMode:  awsdynamodb.BillingMode_PAY_PER_REQUEST,
	})
	ledger.GrantReadWriteData(hub.WorkQueues[1].Worker)

	// The shop starts subscriptions, and the support team ends them.
	hub.GrantStart(role(stack, "Shop"))
	hub.GrantControl(role(stack, "Support"))
}

func role(stack awscdk.Stack, name string) awsiam.Role {
	return awsiam.NewRole(stack, jsii.String(name), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
	})
}
