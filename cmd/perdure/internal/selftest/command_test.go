package selftest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
)

// tool runs the command in a world.
type tool struct {
	*world

	stdout, stderr bytes.Buffer
	out            io.Writer // instead of stdout
	opened         int
}

// exec runs the command and returns its exit code.
func (h *tool) exec(t *testing.T, json bool, stdin string, args ...string) (code int, err error) {
	t.Helper()
	h.stdout.Reset()
	h.stderr.Reset()
	env := &cli.Env{
		Stdin: strings.NewReader(stdin), Stdout: cmp.Or(h.out, io.Writer(&h.stdout)), Stderr: &h.stderr, JSON: json,
		Getenv: func(string) string { return "" }, Now: func() time.Time { return h.clock },
	}
	cmd := command(env, func(context.Context) (*runner, error) {
		h.opened++
		return h.runner, nil
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	if e, ok := errors.AsType[*cli.ExitError](err); ok {
		return e.Code, err
	}
	if err != nil {
		return cli.CodeError, err
	}
	return cli.CodeOK, nil
}

func TestCommand_notConfirmed_createsNothing(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	code, err := h.exec(t, false, "y\n")
	if code != cli.CodeError || !strings.Contains(err.Error(), "nothing was created") || len(h.stacks()) > 0 {
		t.Errorf("got %d, %v, stacks %v", code, err, h.stacks())
	}
	text := h.stderr.String()
	for _, want := range []string{"creates in account 123456789012", "less than $0.50", "continue? [yes/no]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if code, err := h.exec(t, false, "yes\n"); code != cli.CodeOK || len(h.stacks()) != 1 || len(h.left()) > 0 {
		t.Errorf("confirmed: got %d, %v, left %v", code, err, h.left())
	}
}

// stacks returns the stacks that ever existed.
func (h *tool) stacks() (names []string) {
	for name := range h.fakeAccount.stacks {
		names = append(names, name)
	}
	return names
}

func TestCommand_results_decideExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result func(r *Report) error
		args   []string
		code   int
		text   string // of the report
	}{
		"passed": {func(r *Report) error {
			r.Scenarios = []ScenarioResult{{Name: "Chain"}}
			return nil
		}, nil, cli.CodeOK, "1 of 1 scenarios passed"},
		"failed scenario": {func(r *Report) error {
			r.Scenarios = []ScenarioResult{{Name: "Chain", Instance: "i", Error: "wrong\nresult"}}
			return nil
		}, nil, codeFailed, "0 of 1 scenarios passed"},
		"different account": {func(r *Report) error {
			r.Checks = []CheckResult{{Check: "sqs-delay", Assumptions: []string{"A10"}, Verdict: Differs}}
			return nil
		}, nil, codeFailed, "sqs-delay  A10          differs"},
		"undecided check": {func(r *Report) error {
			r.Checks = []CheckResult{{Check: "sqs-delay", Verdict: NotShown}}
			return nil
		}, nil, cli.CodeOK, "not shown"},
		"error":   {func(*Report) error { return errFault }, nil, cli.CodeError, "did not run to its end: fault"},
		"kept":    {func(*Report) error { return nil }, []string{"--keep"}, codeRemains, "remaining: perdure-selftest-"},
		"removed": {func(*Report) error { return nil }, nil, cli.CodeOK, "everything was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &tool{world: newWorld(t)}
			h.test = func(_ context.Context, _ *deployed, r *Report) error { return c.result(r) }
			code, err := h.exec(t, false, "", append(c.args, "--yes")...)
			if code != c.code || !strings.Contains(h.stdout.String(), c.text) {
				t.Errorf("got %d, %v\n%s", code, err, h.stdout.String())
			}
		})
	}
}

func TestCommand_json_printsReport(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	h.test = func(_ context.Context, _ *deployed, r *Report) error {
		r.Latencies = []Latency{{Name: "step", Samples: 2, P50: 30, Max: 60}}
		return nil
	}
	if code, err := h.exec(t, true, "", "--yes"); code != cli.CodeOK {
		t.Fatalf("got %d, %v", code, err)
	}
	var r Report
	if err := json.Unmarshal(h.stdout.Bytes(), &r); err != nil || r.Latencies[0].Max != 60 || r.Account != number {
		t.Errorf("got %s, %v", h.stdout.String(), err)
	}
}

func TestCommand_leftovers_areRemovedFirst(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	if _, err := h.begin(t.Context(), options{keep: true}); err != nil {
		t.Fatal(err)
	}
	kept := h.left()
	h.clock = h.clock.Add(runLimit + time.Minute)
	if code, err := h.exec(t, false, "", "--yes"); code != cli.CodeOK || len(kept) == 0 || len(h.left()) > 0 {
		t.Errorf("got %d, %v, left %v of %v", code, err, h.left(), kept)
	}
}

// closedWriter is the standard output of a pipe whose reader has ended.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestCommand_reportNotPrinted_exitCodeIsThatOfTheRun(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t), out: closedWriter{}}
	code, err := h.exec(t, false, "", "--yes", "--keep")
	if code != codeRemains || !strings.Contains(err.Error(), "remove it with perdure selftest --remove") {
		t.Errorf("kept: got %d, %v", code, err)
	}
	if code, err := h.exec(t, false, "", "--yes"); code != cli.CodeError || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("passed: got %d, %v", code, err)
	}
}

// The prompt, or the removal of leftovers, takes so long that a run with the announced ID is a leftover for others.
func TestCommand_lateConfirmation_runIsNotALeftover(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	h.after = func(call string) error {
		if call == "ListBuckets" { // the last call before the prompt
			h.clock = h.clock.Add(runLimit)
		}
		return nil
	}
	h.test = func(_ context.Context, d *deployed, _ *Report) error {
		h.tested = d
		if h.clock = h.clock.Add(testLimit); h.isLeftover(d.run) {
			t.Errorf("another run removes %s, which started at %v, at %v", d.run, d.run.startedAt(), h.clock)
		}
		return nil
	}
	if code, err := h.exec(t, false, "yes\n"); code != cli.CodeOK || h.tested == nil || len(h.left()) > 0 {
		t.Fatalf("got %d, %v, left %v", code, err, h.left())
	}
	if !strings.Contains(h.stderr.String(), "continues as run "+string(h.tested.run)) {
		t.Errorf("the new ID is not in:\n%s", h.stderr.String())
	}
}

// The stack of a hub is in review while the self-test lists the runs, and is created before their removal.
func TestCommand_stackInReviewBecomesHub_isNotRemoved(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	hub := &stack{}
	hub.ID, hub.Name = "id:"+runID("production").stack(), runID("production").stack()
	hub.set("REVIEW_IN_PROGRESS", "")
	h.fakeAccount.stacks[hub.Name] = hub
	h.after = func(call string) error {
		if call == "ListBuckets" {
			hub.set("CREATE_COMPLETE", "")
			h.fakeAccount.buckets[payloads+hub.Name] = map[string]bool{"payload": true}
		}
		return nil
	}
	code, err := h.exec(t, false, "", "--yes")
	if code != codeRemains || hub.Status != "CREATE_COMPLETE" || len(h.fakeAccount.buckets[payloads+hub.Name]) == 0 ||
		!strings.Contains(err.Error(), "stack perdure-selftest-production was not created by the self-test") {
		t.Errorf("got %d, %v, left %v", code, err, h.left())
	}
}

// CloudFormation does not end the deletion.
func TestRemoveAll_deletionDoesNotEnd_reportsRemainingResources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		report, err := w.begin(t.Context(), options{keep: true})
		if err != nil {
			t.Fatal(err)
		}
		w.sleep = func(ctx context.Context, _ time.Duration) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = (&flags{}).removeAll(ctx, w.runner, []runID{runID(report.Run)})
		exit, ok := errors.AsType[*cli.ExitError](err)
		if !ok || exit.Code != codeRemains || !strings.Contains(exit.Text, "the removal took more than 8m0s") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCommand_remove_removesRunOfAnyAge(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	report, err := h.begin(t.Context(), options{keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := h.exec(t, false, "", "--remove", report.Run); code != cli.CodeOK || len(h.left()) > 0 {
		t.Errorf("got %d, %v, left %v", code, err, h.left())
	}
	if h.stdout.Len() > 0 || len(h.stacks()) != 1 {
		t.Errorf("stacks %v, printed %s", h.stacks(), h.stdout.String())
	}
}

// The run is in another account or region, or the stack is that of a hub with such a name.
func TestCommand_removeWithoutResourcesOfTheRun_failsAndRemovesNothing(t *testing.T) {
	t.Parallel()
	const run = "production" // an ID by its form, of a run in 2019
	h := &tool{world: newWorld(t)}
	code, err := h.exec(t, false, "", "--remove", run)
	if code != cli.CodeError || !strings.Contains(err.Error(), "no resources of run production in account "+
		"123456789012, region eu-west-1; check AWS_PROFILE and AWS_REGION") {
		t.Errorf("missing run: got %d, %v", code, err)
	}
	hub := &stack{}
	hub.ID, hub.Name = "id:"+runID(run).stack(), runID(run).stack()
	hub.set("CREATE_COMPLETE", "")
	h.fakeAccount.stacks[hub.Name] = hub
	h.fakeAccount.buckets[payloads+hub.Name] = map[string]bool{"payload": true}
	if code, err = h.exec(t, false, "", "--remove", run); code != cli.CodeError || hub.Status != "CREATE_COMPLETE" ||
		len(h.fakeAccount.buckets[payloads+hub.Name]) == 0 {
		t.Errorf("stack of a hub: got %d, %v, left %v", code, err, h.left())
	}
}

func TestCommand_removeWithExpiredCredentials_reportsRemainingResources(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	h.before = func(string) error {
		return &deployment.APIError{Operation: "describe stack", Code: "ExpiredToken", Status: 403}
	}
	code, err := h.exec(t, false, "", "--remove", "t9k3ab4mxq")
	if code != codeRemains || !strings.Contains(err.Error(), "renew the AWS credentials") {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestCommand_parameters_replaceThoseOfTheTest(t *testing.T) {
	t.Parallel()
	h := &tool{world: newWorld(t)}
	if code, err := h.exec(t, false, "", "--yes", "--parameter", "APIKind=function-url", "--parameter",
		"LogRetention=3"); code != cli.CodeOK {
		t.Fatalf("got %d, %v", code, err)
	}
	for _, s := range h.fakeAccount.stacks {
		for _, set := range s.sets {
			if p := set.Parameters; p["APIKind"] != "function-url" || p["LogRetention"] != "3" || p["WorkTimeout"] != "60" {
				t.Errorf("got %v", p)
			}
		}
	}
	if code, err := h.exec(t, false, "", "--yes", "--parameter", "Hub=x"); code != cli.CodeError ||
		!strings.Contains(err.Error(), `the template has no parameter "Hub"`) || len(h.left()) > 0 {
		t.Errorf("unknown parameter: got %d, %v, left %v", code, err, h.left())
	}
}

func TestCommand_invalidFlags_areRejectedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--architecture: must be arm64 or x86_64":  {"--architecture", "amd64"},
		"--remove: must be the ID of a run":        {"--remove", "orders"},
		`unexpected argument "orders"`:             {"orders"},
		"--parameter: must be NAME=VALUE, is":      {"--parameter", "x"},
		"unknown flag: --regoin":                   {"--regoin", "x"},
		"if any flags in the group [keep remove]":  {"--keep", "--remove", "t9k3ab4mxq"},
		"if any flags in the group [short remove]": {"--short", "--remove", "t9k3ab4mxq"},
	} {
		h := &tool{world: newWorld(t)}
		if code, err := h.exec(t, false, "", args...); code == cli.CodeOK || !strings.Contains(err.Error(), want) ||
			h.opened > 0 {
			t.Errorf("%v: got %d, %v", args, code, err)
		}
	}
}

func TestSource_checkout_isTheModuleOfTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	b := &builder{environ: os.Environ(), output: &bytes.Buffer{}}
	dir, err := b.source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orchestrator", "worker", "renewer", "api"} {
		if _, err := os.Stat(filepath.Join(dir, application, "functions", name, "main.go")); err != nil {
			t.Error(err)
		}
	}
}

// Settings of the user must not change the build of a release in the module cache.
func TestEnvironment_release_isBuiltReadOnlyWithoutWorkspace(t *testing.T) {
	t.Parallel()
	b := &builder{environ: []string{"GOWORK=/home/user/go.work", "GOFLAGS=-mod=mod -modcacherw"}, version: "v0.3.0"}
	if got := b.environment()[2:]; !slices.Equal(got, []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -mod=readonly",
	}) {
		t.Errorf("got %v", got)
	}
	if b.version = ""; !slices.Equal(b.environment(), b.environ) {
		t.Errorf("checkout: got %v", b.environment())
	}
}

func TestReleaseOf_build_returnsVersionToDownload(t *testing.T) {
	t.Parallel()
	own := debug.Module{Path: module, Version: "v0.3.0", Sum: "h1:abc"}
	for name, c := range map[string]struct {
		build debug.BuildInfo
		want  string
	}{
		"go run of a release": {debug.BuildInfo{Main: own}, "v0.3.0"},
		"tool of an application": {
			debug.BuildInfo{Main: debug.Module{Path: "example.com/orders"}, Deps: []*debug.Module{&own}}, "v0.3.0",
		},
		"binary of a release": {debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.3.0"}}, "v0.3.0"},
		"checkout": {
			debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.3.1-0.20261129120000-0123456789ab"}}, "",
		},
		"replaced": {debug.BuildInfo{
			Main: debug.Module{Path: "example.com/orders"},
			Deps: []*debug.Module{{Path: module, Version: "v0.3.0", Replace: &debug.Module{Path: "../perdure"}}},
		}, ""},
	} {
		if got := releaseOf(&c.build); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
