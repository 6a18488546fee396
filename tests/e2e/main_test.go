// Package e2e runs real function binaries on a local AWS. It deploys the template of the stack with short timeouts.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/awscheck"
	"github.com/perdure/perdure/tests/e2e/app"
	"github.com/perdure/perdure/tests/localcloud"
)

// hub is the deployed task hub that all tests share.
var hub struct {
	cloud  *awscheck.Cloud
	client *client.Client
	admin  *admin.Client
	// encrypting is a client with the codec of the functions.
	encrypting *client.Client
	api        string
	// perdure is the command-line tool, built from this checkout.
	perdure string
}

func TestMain(m *testing.M) {
	code, err := withHub(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// onLocalStack reports whether the local cloud is LocalStack, where `make test-localstack` runs some of the tests.
// LocalStack does not fire schedules, so timers hop between queue delays. It does not enforce IAM.
var onLocalStack = strings.HasPrefix(os.Getenv("CLOUD"), "localstack")

// up deploys the test application as a hub in its own local cloud, whose requests are checked.
func up(ctx context.Context, name string, options ...string) (*awscheck.Cloud, error) {
	args := []string{"--app", "tests/e2e/app", "--hub", name, "--port", "0"}
	if !onLocalStack {
		args = append(args, "--enforce-iam")
	}
	return awscheck.Start(ctx, "up", append(args, options...)...)
}

// withHub deploys the hub, runs f and deletes the deployment. The visibility timeout is short, because a crash is
// noticed when it ends. The longest timer delay is short, so that short timers need a schedule.
func withHub(f func() int) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), localcloud.SetUpLimit)
	defer cancel()
	cloud, err := up(ctx, "e2e",
		"--param", "InboxTimeout=3", "--param", "InboxVisibility=3", "--param", "WorkTimeout=8", "--param",
		"LockTimeout=5", "--param", "LockRenewalBuffer=2",
		"--param", "TimerLongestDelay=2", "--param", "ScheduleLead=1", "--param", "MaxAttempts=1")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cloud.Stop()) }()
	for name, value := range cloud.Env {
		os.Setenv(name, value)
	}
	os.Setenv(client.EndpointVariable, cloud.API) // commands call the API
	p, err := dynamo.Open(ctx, "e2e")
	if err != nil {
		return 1, err
	}
	bin, err := os.MkdirTemp("", "perdure-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(bin)
	hub.admin = admin.New(p)
	hub.cloud, hub.client, hub.encrypting, hub.api, hub.perdure = cloud, client.New(p),
		client.New(p, client.WithCodec(app.Codec())), cloud.API, filepath.Join(bin, "perdure")
	if err := goBuild(ctx, hub.perdure, "../../cmd/perdure"); err != nil {
		return 1, err
	}
	return f(), nil
}
