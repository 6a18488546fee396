package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/infra/template"
	"github.com/perdure/perdure/provider/dynamo"
)

const (
	// deployedHub is the hub that perdure deploy creates in the shared local cloud.
	deployedHub = "deployed"
	// twoQueues is the template of perdure deploy with a second work queue.
	twoQueues = "../../infra/cdk/testdata/two-queues.standalone.json"
)

// deployment is the --json output of perdure deploy.
type deployment struct {
	Status  string            `json:"status"`
	Changed bool              `json:"changed"`
	Outputs map[string]string `json:"outputs"`
}

// deployCommand returns perdure deploy with short timeouts, like those of the shared hub. Without binaries, it builds
// the functions.
func deployCommand(ctx context.Context, binaries string, options ...string) *exec.Cmd {
	args := []string{"deploy", "--hub", deployedHub, "--json"}
	if binaries != "" {
		args = append(args, "--binaries", binaries)
	}
	for _, parameter := range []string{
		"Architecture=" + architecture(), "InboxTimeout=3", "InboxVisibility=3", "WorkTimeout=8", "LockTimeout=5",
		"LockRenewalBuffer=2", "MaxTimerDelay=2", "ScheduleLead=1",
	} {
		args = append(args, "--parameter", parameter)
	}
	return exec.CommandContext(ctx, hub.perdure, append(args, options...)...)
}

// architecture returns the CPU architecture of this machine, as Lambda names it.
func architecture() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "x86_64"
}

// deploy runs perdure deploy, which must succeed.
func deploy(t *testing.T, binaries string, options ...string) (d deployment) {
	t.Helper()
	cmd := deployCommand(t.Context(), binaries, append(options, "--yes")...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("deploy: %v\n%s", err, complaints.String())
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("deploy printed %s: %v", out, err)
	}
	return d
}

// interrupt runs a command and sends SIGINT when its standard error contains a text. It returns all of it.
func interrupt(t *testing.T, cmd *exec.Cmd, at string) string {
	t.Helper()
	return signalAt(t, cmd, at, syscall.SIGINT)
}

// signalAt runs a command and sends a signal when its standard error contains a text. It returns all of it.
func signalAt(t *testing.T, cmd *exec.Cmd, at string, signal syscall.Signal) string {
	t.Helper()
	stdin, err := cmd.StdinPipe() // stays open, like a terminal
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	sent := false
	reader := bufio.NewReader(stderr)
	for {
		b, err := reader.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text.WriteByte(b)
		if !sent && strings.HasSuffix(text.String(), at) {
			sent = true
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // the text has the error
	if !sent {
		t.Fatalf("standard error lacks %q:\n%s", at, text.String())
	}
	return text.String()
}

// brokenTemplate returns a template with a resource that fails after the functions were updated.
func brokenTemplate(t *testing.T) string {
	t.Helper()
	var parsed map[string]any
	if err := json.Unmarshal(template.JSON, &parsed); err != nil {
		t.Fatal(err)
	}
	resources, _ := parsed["Resources"].(map[string]any)
	var functions []string
	for id, r := range resources {
		if resource, _ := r.(map[string]any); resource["Type"] == "AWS::Lambda::Function" {
			functions = append(functions, id)
		}
	}
	resources["Broken"] = map[string]any{
		"Type": "AWS::Lambda::Url", "DependsOn": functions,
		"Properties": map[string]any{"AuthType": "AWS_IAM", "TargetFunctionArn": "perdure-unknown"},
	}
	raw, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// createInterrupted creates the stack with interruptions: at the prompt, and while CloudFormation creates resources.
func createInterrupted(t *testing.T, binaries string) {
	t.Helper()
	text := interrupt(t, deployCommand(t.Context(), binaries), "continue? [yes/no] ")
	if !strings.Contains(text, "interrupted; this run has not changed stack perdure-deployed") {
		t.Errorf("interrupted at the prompt: %s", text)
	}
	// The creation may end before the signal arrives.
	text = interrupt(t, deployCommand(t.Context(), binaries, "--yes"), "CREATE_COMPLETE")
	t.Logf("interrupted creation: %s", text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:])
	created := deploy(t, binaries)
	if created.Status != "CREATE_COMPLETE" || created.Changed || created.Outputs["TableName"] == "" {
		t.Errorf("repeated creation: got %+v", created)
	}
}

// openDeployed opens the hub that perdure deploy created.
func openDeployed(t *testing.T) *dynamo.Provider {
	t.Helper()
	p, err := dynamo.Open(t.Context(), deployedHub)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A stack is created by perdure deploy, and updated while instances wait, sleep, work and start: new code, other
// memory, an update that fails and is rolled back, and a second work queue. No instance loses or repeats anything.
func TestDeploy_updatesWithInstancesInFlight_loseAndRepeatNothing(t *testing.T) {
	old, renewed := buildBinaries(t, "one"), buildBinaries(t, "two")
	createInterrupted(t, old)
	before := openDeployed(t)
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
	oldBuild := variableOf(t, "perdure-deployed-worker-default", "PERDURE_BUILD_ID")
	if d := deploy(t, renewed); !d.Changed || d.Status != "UPDATE_COMPLETE" {
		t.Errorf("new code: got %+v", d)
	}
	newBuild := variableOf(t, "perdure-deployed-worker-default", "PERDURE_BUILD_ID")
	if newBuild == oldBuild {
		t.Errorf("new code has the build ID %s of the old code", newBuild)
	}
	if d := deploy(t, renewed, "--parameter", "WorkerMemory=512", "--parameter", "OrchestratorMemory=1024"); !d.Changed {
		t.Errorf("other memory: got %+v", d)
	}
	failUpdate(t, old)
	if got := variableOf(t, "perdure-deployed-worker-default", "PERDURE_BUILD_ID"); got != newBuild {
		t.Errorf("after the rollback, the worker has build %s, want %s", got, newBuild)
	}
	if d := deploy(t, renewed); d.Changed {
		t.Errorf("after the rollback, nothing is left to change: got %+v", d)
	}
	if d := deploy(t, "", "--app", "app", "--template", twoQueues); !d.Changed {
		t.Errorf("new queue: got %+v", d)
	}
	stop()
	if err := <-starting; err != nil {
		t.Fatalf("start during the updates: %v", err)
	}
	t.Logf("%d instances were started during the updates", len(meanwhile))

	after := openDeployed(t).Config()
	if was := before.Config(); after.WorkQueues["second"] == "" || after.Table != was.Table ||
		after.InboxURL != was.InboxURL || after.WorkQueues["default"] != was.WorkQueues["default"] {
		t.Errorf("configuration of the hub: got %+v, before the updates %+v", after, was)
	}
	raiseAll(t, c, waiting)
	for _, all := range [][]started{waiting, others, meanwhile} {
		for _, s := range all {
			complete(t, c, s)
			valid(t, c, s.instance)
		}
	}
}

// failUpdate deploys old code with a resource that fails.
func failUpdate(t *testing.T, binaries string) {
	t.Helper()
	cmd := deployCommand(t.Context(), binaries, "--yes", "--template", brokenTemplate(t))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	text := complaints.String()
	if err == nil || len(out) > 0 || !strings.Contains(text, "perdure: Broken (AWS::Lambda::Url) failed: ") ||
		!strings.Contains(text, "stack perdure-deployed is UPDATE_ROLLBACK_COMPLETE: the previous deployment is running") {
		t.Errorf("failed update: got %v, stdout %s, stderr %s", err, out, text)
	}
}
