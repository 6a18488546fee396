// Command infra is the CDK app of the team: its own stack, with a hub in it.
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

// addStack adds what the team deploys. The binaries of the functions are in a folder, each in one of its own.
func addStack(app awscdk.App, binaries string) {
	stack := awscdk.NewStack(app, jsii.String("Subscriptions"), nil)
	pager := awssns.NewTopic(stack, jsii.String("Pager"), &awssns.TopicProps{EnforceSSL: jsii.Bool(true)})
	hub := cdk.NewTaskHub(stack, "Hub", cdk.TaskHubProps{
		HubName:        "subscriptions",
		FunctionsDir:   binaries,
		WorkQueues:     []string{"default", subscriptions.QueuePayments},
		WorkQueueProps: map[string]cdk.WorkQueueProps{subscriptions.QueuePayments: {Concurrency: 5, BatchSize: 1}}, // what the bank bears
		Canary:         &cdk.Canary{Shift: awscodedeploy.LambdaDeploymentConfig_LINEAR_10PERCENT_EVERY_1MINUTE()},
		AlarmTopic:     pager,
	})

	// What touches money has rights that the other activities lack.
	ledger := awsdynamodb.NewTable(stack, jsii.String("Ledger"), &awsdynamodb.TableProps{
		PartitionKey: &awsdynamodb.Attribute{Name: jsii.String("key"), Type: awsdynamodb.AttributeType_STRING},
		BillingMode:  awsdynamodb.BillingMode_PAY_PER_REQUEST,
	})
	ledger.GrantReadWriteData(hub.WorkQueues[1].Worker)

	// The shop begins subscriptions, and the support ends them.
	hub.GrantStart(role(stack, "Shop"))
	hub.GrantTell(role(stack, "Support"))
}

func role(stack awscdk.Stack, name string) awsiam.Role {
	return awsiam.NewRole(stack, jsii.String(name), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil)})
}
