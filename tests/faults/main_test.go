// Package faults_test injects faults into a local AWS and measures how soon the metric of an alarm changes.
package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/awscheck"
	"github.com/perdure/perdure/tests/localcloud"
)

const hubName = "faults"

// hub is the deployed task hub that all tests share. They run one after another.
var hub struct {
	cloud  *awscheck.Cloud
	client *client.Client
	place  dynamo.HubConfig
	config aws.Config
	queues *sqs.Client
}

func TestMain(m *testing.M) {
	code, err := withHub(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withHub deploys the template, runs f and deletes the deployment. The parameters are also valid on AWS. The sweeper
// runs every minute, the shortest rate of EventBridge. A crash is noticed when the visibility timeout of the message
// ends.
func withHub(f func() int) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), localcloud.SetUpLimit)
	defer cancel()
	hub.cloud, err = awscheck.Start(ctx, "up", "--app", "tests/faults/app", "--hub", hubName, "--port", "0",
		"--enforce-iam",
		"--param", "WatchRate=rate(1 minute)", "--param", "InboxTimeout=3", "--param", "InboxVisibility=3", "--param",
		"WorkTimeout=8",
		"--param", "LockTimeout=5", "--param", "LockRenewalBuffer=2", "--param", "MaxAttempts=1")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, hub.cloud.Stop()) }()
	for name, value := range hub.cloud.Env {
		os.Setenv(name, value)
	}
	p, err := dynamo.Open(ctx, hubName)
	if err != nil {
		return 1, err
	}
	hub.config = localcloud.Config(hub.cloud.Env["AWS_ENDPOINT_URL"])
	hub.client, hub.place, hub.queues = client.New(p), p.Config(), sqs.NewFromConfig(hub.config)
	return f(), nil
}
