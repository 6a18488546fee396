package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	lambdaservice "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/e2e/app"
)

const (
	upgradeHub = "upgrade"
	// stackInUse is the template of a deployed stack. A test in infra/cdk checks statically that it can be updated.
	stackInUse = "infra/cdk/testdata/upgrade/template.2555cb9.json"
	// startEvery is the interval between starts during the update.
	startEvery = 50 * time.Millisecond
)

// functionNames are the functions of a hub.
var functionNames = []string{"orchestrator", "worker", "renewer", "api"}

// buildBinaries builds the functions of the test application. Builds with different IDs have different code.
func buildBinaries(t *testing.T, buildID string) (dir string) {
	t.Helper()
	return buildBinariesOf(t, ".", buildID)
}

// buildBinariesOf builds the functions of the test application in the folder of these tests in a checkout.
func buildBinariesOf(t *testing.T, source, buildID string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range functionNames {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -buildid="+buildID, "-o", filepath.Join(dir, name, "bootstrap"), "./app/functions/"+name)
		cmd.Dir = source
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}

// deployStack creates or updates the stack of a separate hub in the shared local cloud, and opens the hub.
func deployStack(t *testing.T, name, binaries string, options ...string) *dynamo.Provider {
	t.Helper()
	args := append([]string{
		filepath.Join("localstack", "deploy.py"), "--endpoint", hub.cloud.Env["AWS_ENDPOINT_URL"], "--hub", name,
		"--binaries", binaries,
		"--param", "InboxTimeout=3", "--param", "InboxVisibility=3", "--param", "WorkTimeout=8", "--param",
		"LockTimeout=5",
		"--param", "LockRenewalBuffer=2", "--param", "TimerLongestDelay=2", "--param", "ScheduleLead=1",
	}, options...)
	cmd := exec.CommandContext(t.Context(), "python3", args...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("deploy: %v\n%s", err, out)
	}
	p, err := dynamo.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// started is a started instance and its expected output.
type started struct {
	instance string
	output   string // JSON
}

// startAll starts instances that wait for an event, for a timer with a schedule, or for activities. One activity runs.
func startAll(t *testing.T, c *client.Client) (waiting, others []started) {
	t.Helper()
	for i := range 5 {
		n := strconv.Itoa(i)
		for _, s := range []struct {
			orchestration, output string
			input                 any
		}{
			{"echo", `"go at last"`, nil},
			{"timer", "", 8 * time.Second},
			{"naps", "6", app.Naps{Count: 6, Each: time.Second}},
		} {
			instance, err := c.Start(t.Context(), s.orchestration, s.input,
				client.WithInstanceID(s.orchestration+"-"+n))
			if err != nil {
				t.Fatal(err)
			}
			if s.orchestration == "echo" {
				waiting = append(waiting, started{instance, s.output})
				continue
			}
			others = append(others, started{instance, s.output})
		}
	}
	return waiting, others
}

// keepStarting starts instances until ctx ends, and returns them.
func keepStarting(ctx context.Context, c *client.Client) (all []started, err error) {
	tick := time.NewTicker(startEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all, nil
		case <-tick.C:
		}
		instance, err := c.Start(context.WithoutCancel(ctx), "hello", strconv.Itoa(len(all)))
		if err != nil {
			return all, err
		}
		all = append(all, started{instance, `"hello, ` + strconv.Itoa(len(all)) + `"`})
	}
}

// A deployed stack is updated to the current template and new code. Instances that wait, sleep, work or start during
// the update complete.
func TestUpgrade_stackWithInstancesInFlight_completesThem(t *testing.T) {
	old, renewed := buildBinaries(t, "old"), buildBinaries(t, "new")
	before := deployStack(t, upgradeHub, old, "--template", stackInUse)
	c := client.New(before)
	waiting, others := startAll(t, c)

	ctx, stop := context.WithCancel(t.Context())
	starting := make(chan error)
	var meanwhile []started
	go func() {
		var err error
		meanwhile, err = keepStarting(ctx, c)
		starting <- err
	}()
	after := deployStack(t, upgradeHub, renewed)
	stop()
	if err := <-starting; err != nil {
		t.Fatalf("start during the update: %v", err)
	}
	t.Logf("%d instances were started during the update", len(meanwhile))

	if !reflect.DeepEqual(before.Config(), after.Config()) {
		t.Errorf("configuration of the hub: got %+[2]v, want %+[1]v", before.Config(), after.Config())
	}
	if got := variableOf(t, "perdure-"+upgradeHub+"-api", "PERDURE_API_AUTHORIZATION"); got != "iam" {
		t.Errorf("PERDURE_API_AUTHORIZATION: got %q, want iam after the update of the stack", got)
	}
	raiseAll(t, c, waiting)
	for _, all := range [][]started{waiting, others, meanwhile} {
		for _, s := range all {
			complete(t, c, s)
		}
	}
}

// raiseAll raises the event for which instances wait.
func raiseAll(t *testing.T, c *client.Client, waiting []started) {
	t.Helper()
	for _, s := range waiting {
		if err := c.RaiseEvent(t.Context(), s.instance, "word", "go"); err != nil {
			t.Fatal(err)
		}
	}
}

// complete waits for an instance, which must complete with its output.
func complete(t *testing.T, c *client.Client, s started) {
	t.Helper()
	got, err := c.Wait(t.Context(), s.instance)
	if err != nil {
		t.Fatalf("%s: got error %v", s.instance, err)
	}
	if got.Status != client.StatusCompleted || s.output != "" && !bytes.Equal(got.Output, []byte(s.output)) {
		t.Errorf("%s: got %s %s, want Completed %s", s.instance, got.Status, got.Output, s.output)
	}
}

// variableOf returns an environment variable of a function.
func variableOf(t *testing.T, function, name string) string {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := lambdaservice.NewFromConfig(cfg).GetFunctionConfiguration(t.Context(),
		&lambdaservice.GetFunctionConfigurationInput{FunctionName: &function})
	if err == nil && out.Environment == nil {
		err = errors.New("it has no environment")
	}
	if err != nil {
		t.Fatalf("function %s: %v", function, err)
	}
	return out.Environment.Variables[name]
}
