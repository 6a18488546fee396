package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/infra/template"
)

// tool runs deploy on fake services.
type tool struct {
	aws      *fakeAWS
	bucket   string // of the last connection
	in       io.Reader
	out, err bytes.Buffer
	json     bool
}

func newTool() *tool { return &tool{aws: newFakeAWS(), in: strings.NewReader("yes\n")} }

// run runs deploy with the binaries of a directory.
func (h *tool) run(t *testing.T, args ...string) error {
	t.Helper()
	return h.runContext(t.Context(), t, args...)
}

func (h *tool) runContext(ctx context.Context, t *testing.T, args ...string) error {
	t.Helper()
	h.out.Reset()
	h.err.Reset()
	env := &cli.Env{
		HubName: "orders", Stdin: h.in, Stdout: &h.out, Stderr: &h.err, JSON: h.json,
		Getenv: func(string) string { return "" },
		Sleep:  func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	}
	cmd := deployCommand(env, func(_ context.Context, bucket string) (StackAPI, CodeStore, error) {
		h.bucket = bucket
		return h.aws, h.aws, nil
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// binaries returns a directory with binaries.
func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range someFunctions() {
		if err := os.MkdirAll(filepath.Join(dir, f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name, "bootstrap"), f.Binary, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDeployCommand_confirmed_printsChangesAndOutputs(t *testing.T) {
	t.Parallel()
	h := newTool()
	err := h.run(t, "--binaries", binaries(t), "--bucket", "mine", "--parameter", "WorkerMemory=512", "--tag", "a=b")
	if err != nil {
		t.Fatal(err)
	}
	if h.bucket != "mine" || h.aws.last.Parameters["WorkerMemory"] != "512" || h.aws.last.Tags["a"] != "b" ||
		h.aws.last.Stack != "perdure-orders" {
		t.Errorf("bucket %s, change set %+v", h.bucket, h.aws.last)
	}
	for _, want := range []string{
		"ACTION  RESOURCE  TYPE                  REPLACEMENT\nadd     Table     AWS::DynamoDB::Table  —\nadd 1\n",
		"change stack perdure-orders: continue? [yes/no]",
	} {
		if !strings.Contains(h.err.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, h.err.String())
		}
	}
	want := "OUTPUT     VALUE\nstack      perdure-orders\nstatus     CREATE_COMPLETE\nTableName  orders\n"
	if got := h.out.String(); got != want {
		t.Errorf("printed\n%s", got)
	}
}

func TestDeployCommand_json_printsResult(t *testing.T) {
	t.Parallel()
	h := newTool()
	h.json = true
	if err := h.run(t, "--binaries", binaries(t), "--yes", "--stack", "mine"); err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(h.out.Bytes(), &got); err != nil || got.Stack != "mine" || !got.Changed ||
		got.Outputs["TableName"] != "orders" {
		t.Errorf("printed %s: %v", h.out.String(), err)
	}
}

func TestDeployCommand_notConfirmed_changesNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"no\n", "", "y\n"} {
		h := newTool()
		h.in = strings.NewReader(answer)
		err := h.run(t, "--binaries", binaries(t))
		if err == nil || !strings.Contains(err.Error(), "not confirmed, nothing was changed") || h.aws.executed > 0 {
			t.Errorf("%q: got %v", answer, err)
		}
	}
}

// blockedReader blocks like a terminal, and interrupts the command when it is read.
type blockedReader struct {
	interrupt func()
	ended     chan struct{}
}

func (b blockedReader) Read([]byte) (int, error) {
	b.interrupt()
	<-b.ended
	return 0, io.EOF
}

func TestDeployCommand_interruptedAtPrompt_changesNothing(t *testing.T) {
	t.Parallel()
	h := newTool()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	defer close(ended)
	h.in = blockedReader{cancel, ended}
	err := h.runContext(ctx, t, "--binaries", binaries(t))
	exit, ok := errors.AsType[*cli.ExitError](err)
	if !ok || exit.Text != "interrupted; this run has not changed stack perdure-orders" || h.aws.executed > 0 || len(h.aws.sets) > 0 {
		t.Errorf("got %v", err)
	}
}

// Without a person, a change that loses data is not made.
func TestConfirm_yesFlagAndLosses_isRefused(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	env := &cli.Env{Stderr: &stderr, Stdin: strings.NewReader("yes\n")}
	set := &ChangeSet{Changes: []Change{
		{"Modify", "Inbox", "AWS::SQS::Queue", "True"}, {"Modify", "Table", "AWS::DynamoDB::Table", "Conditional"},
	}}
	err := (&deployFlags{yes: true}).confirm(t.Context(), env, "s", set)
	if err == nil || !strings.Contains(err.Error(), "run the command without --yes") ||
		!strings.Contains(stderr.String(), "WARNING: data, messages or timers of removed or replaced resources may be lost: "+
			"Inbox, Table\n") {
		t.Errorf("got %v\n%s", err, stderr.String())
	}
	if err := (&deployFlags{}).confirm(t.Context(), env, "s", set); err != nil {
		t.Errorf("confirmed: got %v", err)
	}
}

func TestDeployCommand_invalidFlags_areRejectedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken.json")
	if err := os.WriteFile(broken, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--stack: must match", []string{"--stack", "a_b"}},
		{"--parameter: must be NAME=VALUE", []string{"--parameter", "WorkerMemory"}},
		{"--parameter: WorkerMemory is set twice", []string{"--parameter", "WorkerMemory=1", "--parameter", "WorkerMemory=2"}},
		{"--parameter WorkerMemory: must be at least 128", []string{"--parameter", "WorkerMemory=1"}},
		{"--tag: must be NAME=VALUE", []string{"--tag", "=x"}},
		{"--template: template has no parameter HubName", []string{"--template", broken}},
		{"--template: ", []string{"--template", filepath.Join(empty, "none.json")}},
		{"functions/orchestrator is not a directory", []string{"--app", empty}},
		{"unexpected argument", []string{"orders"}},
	} {
		h := newTool()
		if err := h.run(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) || len(h.aws.calls) > 0 {
			t.Errorf("%v: got %v after %v", c.args, err, h.aws.calls)
		}
	}
}

func TestTemplateCommand_prints(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	env := &cli.Env{Stdout: &out}
	cmd := PrintTemplate(env)
	cmd.SetArgs([]string{})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !bytes.Equal(out.Bytes(), template.JSON) {
		t.Errorf("printed %d bytes: %v", out.Len(), err)
	}
	file := filepath.Join(t.TempDir(), "template.json")
	cmd = PrintTemplate(env)
	cmd.SetArgs([]string{"--out", file})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, template.JSON) {
		t.Errorf("wrote %d bytes: %v", len(got), err)
	}
}
