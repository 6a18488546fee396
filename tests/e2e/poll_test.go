package e2e_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/e2e/app"
)

// The deployed binaries also serve a hub outside Lambda, with queues that have no mapping to a function. The binaries
// find the hub by its name and exit cleanly on SIGTERM.
func TestPoll_processesOutsideLambda_runTheHub(t *testing.T) {
	shortrun.Skip(t)
	pollOnlyHub(t, "laptop")
	p, err := dynamo.Open(t.Context(), "laptop")
	if err != nil {
		t.Fatal(err)
	}
	functions := "./app/functions/"
	processes := exec.CommandContext(t.Context(), hub.perdure, "worker", "--hub", "laptop", functions+"orchestrator",
		functions+"worker", functions+"renewer")
	printed := &strings.Builder{}
	processes.Stdout, processes.Stderr = printed, printed
	if err := processes.Start(); err != nil {
		t.Fatal(err)
	}
	laptop := client.New(p)
	for n, start := range []struct {
		name  string
		input any
	}{
		{"naps", app.Naps{Count: 5, Each: 100 * time.Millisecond}},
		{"hello", "world"},
		{"timer", 2 * time.Second},
		{"fails", struct{}{}},
	} {
		if _, err := laptop.Start(t.Context(), start.name, start.input, client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []client.RuntimeStatus{
		client.StatusCompleted, client.StatusCompleted, client.StatusCompleted, client.StatusFailed,
	} {
		s, err := laptop.Wait(t.Context(), id(t, n))
		if err != nil {
			t.Fatal(err)
		}
		if s.Status != want {
			t.Errorf("instance %d: got status %s, want %s", n, s.Status, want)
		}
		valid(t, laptop, id(t, n))
	}
	wantQueriesInProcess(t, laptop, client.New(p, client.WithQuerier(ownOrchestrator(t, "laptop"))))
	if err := processes.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := processes.Wait(); err != nil {
		t.Errorf("processes: got error %v", err)
	}
	for _, line := range []string{
		"orchestrator | ", "worker | ", "renewer | ", "queue=inbox", "queue=default", "event=renewer.serving",
		"event=process.stopped",
	} {
		if !strings.Contains(printed.String(), line) {
			t.Errorf("want %q in the output", line)
		}
	}
	if t.Failed() {
		t.Log(printed.String())
	}
}

// pollOnlyHub creates a hub with its own queues and the table of the deployed hub.
func pollOnlyHub(t *testing.T, name string) {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deployed, err := dynamo.Open(t.Context(), "e2e")
	if err != nil {
		t.Fatal(err)
	}
	queues := sqs.NewFromConfig(cfg)
	create := func(queue string, attributes map[string]string) string {
		out, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{
			QueueName: aws.String(name + "-" + queue), Attributes: attributes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.QueueUrl
	}
	fifo := map[string]string{"FifoQueue": "true"}
	h := dynamo.HubConfig{
		Name: name, Table: deployed.Config().Table, TimerMode: dynamo.TimersRequeue,
		InboxURL: create("inbox.fifo", fifo), TimersURL: create("timers", nil),
		WorkQueues: map[string]string{"default": create("default", nil)},
		DeadLetters: map[string]string{
			provider.QueueInbox: create("inbox-dead.fifo", fifo), provider.QueueTimers: create("timers-dead", nil),
			"default": create("default-dead", nil),
		},
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ssm.NewFromConfig(cfg).PutParameter(t.Context(), &ssm.PutParameterInput{
		Name: aws.String(dynamo.ParameterName(name)), Value: aws.String(string(b)), Type: ssmtypes.ParameterTypeString,
		Overwrite: aws.Bool(true), // the SDK repeats a request whose response is lost
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownOrchestrator runs queries with the code of the application in this process. It receives no messages.
func ownOrchestrator(t *testing.T, name string) provider.Querier {
	t.Helper()
	f, err := lambdahandler.NewOrchestrator(t.Context(), app.Registry(nil),
		lambdahandler.WithEnvironment(func(variable string) string {
			if variable == "PERDURE_HUB" {
				return name
			}
			return ""
		}))
	if err != nil {
		t.Fatal(err)
	}
	return f.Querier()
}

// wantQueriesInProcess checks that a hub without functions supports queries only for a client that has the code.
func wantQueriesInProcess(t *testing.T, without, with *client.Client) {
	t.Helper()
	instance := t.Name() + "-asked"
	if _, err := without.Start(t.Context(), "Queries", 1, client.WithInstanceID(instance)); err != nil {
		t.Fatal(err)
	}
	if _, err := without.Query(t.Context(), instance, "steps", 7); !errors.Is(err, client.ErrQueriesUnsupported) {
		t.Errorf("query without a function: got error %v", err)
	}
	if err := without.RaiseEvent(t.Context(), instance, "next", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if _, err := without.Wait(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	if callResponse, err := with.Query(t.Context(), instance, "steps", 7); err != nil || string(callResponse) != "8" {
		t.Errorf("query to a process with the code: got %s, error %v", callResponse, err)
	}
}
